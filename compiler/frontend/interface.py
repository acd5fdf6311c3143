"""Names of arguments and results: the names in the user's Python code become `orchestrion.name` of public functions.

JAX stores the name of an argument in its location, and the path of a result in `jax.result_info`. A name that is
present already (in IR that this compiler printed) stays. A name that occurs twice in one list is dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from orchestrion.compiler.ir.attributes import ArrayAttr, DictAttr, StringAttr, dictionaries
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.locations import UNKNOWN, NameLoc
from orchestrion.compiler.ir.types import FunctionType, is_token
from orchestrion.compiler.stablehlo.ops.func import NAME, TREES, Func
from orchestrion.schema.trees import Items, Keyed, Leaf, Node, Record, Trees, encode, leaves


@dataclass(frozen=True)
class Interface:
    """The trees of a program's arguments and results. `is_named`: whether the parameters have their names; else the
    names of the program's arguments provide them.
    """

    trees: Trees
    is_named: bool = True

    @property
    def arguments(self) -> list[str]:
        """The name of each flat argument."""
        return [label for name, node in self.trees.parameters for label in leaf_names(node, name)]

    @property
    def results(self) -> list[str]:
        """The name of each flat result."""
        return list(leaf_names(self.trees.result, "result"))

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of flat arguments and of flat results."""
        return len(self.arguments), len(self.results)

    def named(self, arguments: Sequence[str]) -> Interface:
        """The same interface with parameters named after the program's arguments, such as `params['w']`."""
        if self.is_named:
            return self
        found: list[tuple[str, Node]] = []
        positional = len(self.trees.parameters) - self.trees.keywords
        for number, (name, node) in enumerate(self.trees.parameters):
            first = next(leaves(node), None)
            shown = "" if first is None else arguments[first].partition("[")[0].partition(".")[0]
            found.append((shown if number < positional and shown.isidentifier() else name, node))
        if len({name for name, _ in found}) < len(found):
            return Interface(self.trees)
        return Interface(replace(self.trees, parameters=tuple(found)))


def name_interface(module: Module) -> None:
    """Names the arguments and results of public functions, as far as locations and attributes state names."""
    for op in module.regions[0].walk(Func) if module.regions else ():
        for key in ("arg_attrs", "res_attrs"):
            if not any(isinstance(item, DictAttr) and item.items for item in op.get_as(key, ArrayAttr) or ()):
                op.properties.pop(key, None)  # empty lists, which some printers leave out
        if op.is_public:
            _name_function(op)


def apply_interface(module: Module, interface: Interface) -> None:
    """Adds names and trees to `main`, if it has as many arguments and results as the interface."""
    for func in module.regions[0].walk():
        name = func.get_as("sym_name", StringAttr) if func.name == "func.func" else None
        if name is None or name.value != "main" or not func.regions[0].blocks:
            continue
        signature = func.get_as("function_type", FunctionType)
        if signature is None:
            continue
        values = func.regions[0].blocks[0].arguments
        taken = [_of_location(value) for value in values if not is_token(value.type)]
        if (len(taken), sum(not is_token(type) for type in signature.results)) != interface.counts:
            continue
        found = interface.named(taken)
        for key, types, names in (
            ("arg_attrs", signature.inputs, found.arguments),
            ("res_attrs", signature.results, found.results),
        ):
            rest = iter(names)
            _add(func, key, len(types), ["" if is_token(type) else next(rest) for type in types])
        if not found.trees.is_flat:
            _add_trees(func, encode(found.trees))


def _add_trees(func: Operation, text: str) -> None:
    """Stores the text at the first result, or argument: all phases keep their attributes."""
    signature = func.get_as("function_type", FunctionType)
    assert signature is not None
    for key, types in (("res_attrs", signature.results), ("arg_attrs", signature.inputs)):
        place = next((number for number, type in enumerate(types) if not is_token(type)), None)
        if place is not None:
            items = dictionaries(func.get(key), len(types))
            items[place] = DictAttr.of({**items[place].mapping, TREES: StringAttr(text)})
            func.properties[key] = ArrayAttr(tuple(items))
            return


def _name_function(func: Operation) -> None:
    signature = func.get_as("function_type", FunctionType)
    if signature is None or not func.regions or not func.regions[0].blocks:
        return
    arguments = [_of_location(value) for value in func.regions[0].blocks[0].arguments]
    _add(func, "arg_attrs", len(signature.inputs), arguments)
    infos = dictionaries(func.get("res_attrs"), len(signature.results))
    _add(func, "res_attrs", len(infos), [_of_result(info) for info in infos])


def _of_location(value: Value) -> str:
    loc = value.loc
    return loc.name if isinstance(loc, NameLoc) and loc.child is UNKNOWN else ""


def _of_result(info: DictAttr) -> str:
    name = info.get("jax.result_info")
    return name.value if isinstance(name, StringAttr) else ""


def _add(func: Operation, key: str, count: int, names: Sequence[str]) -> None:
    given = func.get_as(key, ArrayAttr)
    if len(names) != count or given is not None and len(given) != count:
        return
    often = Counter(names)
    items = dictionaries(given, count)
    named = [
        item
        if item.get(NAME) is not None or not name or often[name] > 1
        else DictAttr.of({**item.mapping, NAME: StringAttr(name)})
        for item, name in zip(items, names, strict=True)
    ]
    if named != items:
        func.properties[key] = ArrayAttr(tuple(named))


def leaf_names(node: Node, name: str) -> Iterator[str]:
    """The name of each leaf as a Python expression: `params['w'][0].scale`."""
    match node:
        case Leaf():
            yield name
        case Items(_, children):
            for place, child in enumerate(children):
                yield from leaf_names(child, f"{name}[{place}]")
        case Keyed(keys, children):
            for key, child in zip(keys, children, strict=True):
                yield from leaf_names(child, f"{name}[{key!r}]")
        case Record(_, fields, accessors, children):
            for field, accessor, child in zip(fields, accessors, children, strict=True):
                yield from leaf_names(child, f"{name}.{field}" if accessor == "attribute" else f"{name}[{field!r}]")
