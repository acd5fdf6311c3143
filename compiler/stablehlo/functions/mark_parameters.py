"""mark-parameters: names the constants and arguments whose values lie outside of the module.

Constants of at least `MIN_PARAMETER_BYTES` bytes become parameters if the options ask for it. The name of one is the
name in the location of its first user, else that location's file and line, else a number; equal names get numeric
suffixes. Splats stay, because they store only one element, and so do element types that safetensors lacks.

Arguments become parameters by name: `w`, or `params` for all of `params['w']`, `params[0]` and `params.w`, or `argN` by
index if no argument has that name. These arguments move to the end, and the function's trees (`schema.trees`) lose
them. Raises CompileError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PureWindowsPath
from typing import Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import ArrayAttr, DenseElements, DictAttr, StringAttr, dictionaries
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.locations import FileLoc, Location, NameLoc, walk
from orchestrion.compiler.ir.parameters import parameter
from orchestrion.compiler.ir.types import Attribute, FunctionType, TensorType
from orchestrion.compiler.options import Options
from orchestrion.compiler.stablehlo.ops.func import ALIAS, TREES, Func, names_for_callers
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.safetensors import holds
from orchestrion.schema.trees import decode, encode, without

from .calls import CallGraph
from .parameters import KEY, attributes_of, set_arguments

#: Minimum bytes of a constant that becomes a parameter.
MIN_PARAMETER_BYTES: Final = 4096
_DONATED: Final = (ALIAS, "jax.buffer_donor")


def run(module: Module, options: Options) -> None:
    taken: set[str] = set()
    if options.parameter_arguments:
        _mark_arguments(module, options.parameter_arguments, taken)
    if options.parameters:
        _mark_constants(module, taken)


def _mark_constants(module: Module, taken: set[str]) -> None:
    number = 0
    for op in module.walk():
        value = op.get_as("value", DenseElements) if op.name == "stablehlo.constant" else None
        if value is None or KEY in op.attributes:
            continue
        if len(value.data) >= MIN_PARAMETER_BYTES and not value.is_splat and _has_type(value.type):
            name = _unique(_place(op) or f"constant_{number}", taken)
            op.attributes[KEY] = parameter(name, value.type, value)
            number += 1


def _unique(wish: str, taken: set[str]) -> str:
    """`wish` if it is not taken, else the first free one of `wish.1`, `wish.2`, ..."""
    name, number = wish, 0
    while name in taken:
        number += 1
        name = f"{wish}.{number}"
    taken.add(name)
    return name


def _place(op: Operation) -> str:
    """The name of the place where a constant is first used; empty if it is unknown."""
    users = [user.loc for result in op.results for user in result.users()[:1]]
    return next((text for loc in (*users, op.loc) if (text := _text(loc))), "")


def _text(location: Location) -> str:
    """The outermost name in a location, else the innermost file, without folders, and its line."""
    items = list(walk(location))
    name = next((item.name for item in items if isinstance(item, NameLoc)), "")
    if name:
        return name.replace("\0", "")
    places = [item for item in items if isinstance(item, FileLoc)]
    return f"{PureWindowsPath(places[0].file).name}:{places[0].line}".replace("\0", "") if places else ""


def _mark_arguments(module: Module, wanted: Sequence[str], taken: set[str]) -> None:
    """Marks the arguments named in `wanted`. Raises CompileError with everything that is wrong with them."""
    graph = CallGraph(module)
    called = {target for calls in graph.calls.values() for _, target in calls}
    types: dict[str, TensorType] = {}
    found: set[str] = set()
    wrong: list[Diagnostic] = []
    for func in graph.functions.values():
        if not func.is_public or func.is_declaration or func.get_as("function_type", FunctionType) is None:
            continue
        chosen = dict(_chosen(func, wanted, found))
        if chosen and func in called:
            wrong.append(_refusal(func, "is called by the program: its arguments cannot be parameters"))
        for index, name in chosen.items():
            wrong += [_refusal(func, text) for text in _problems(func, index, name, types)]
        if not wrong:
            _mark(func, chosen)
    there = ", ".join(name for func in graph.functions.values() if func.is_public for name in _names(func))
    missing = [name for name in wanted if name not in found]
    if missing:
        wrong.append(Diagnostic(f"no argument is called {', '.join(missing)}; there are {there or 'none'}"))
    if wrong:
        raise CompileError(wrong)
    taken.update(types)


def _refusal(func: Func, message: str) -> Diagnostic:
    return Diagnostic(message, func.loc, f"func.func @{func.symbol}")


def _names(func: Func) -> list[str]:
    """The names of the arguments for callers."""
    return names_for_callers(len(func.function_type.inputs), func.get("arg_attrs"), "arg")


def _chosen(func: Func, wanted: Sequence[str], found: set[str]) -> Iterator[tuple[int, str]]:
    """The wanted arguments: index and name. Adds to `found` the names in `wanted` that select one."""
    names = _names(func)
    said = {text for text in wanted for name in names if text == name or _is_part(name, text)}
    for index, name in enumerate(names):
        numbered = f"arg{index}"
        choosing = [text for text in wanted if text == name or _is_part(name, text) or text == numbered not in said]
        found.update(choosing)
        if choosing:
            yield index, name


def _is_part(name: str, of: str) -> bool:
    """Whether `name` is a part of `of`, as `params['w']` is of `params`."""
    return name.startswith(of) and re.match(r"[\[.]", name[len(of) :]) is not None


def _problems(func: Func, index: int, name: str, types: dict[str, TensorType]) -> Iterator[str]:
    type = func.function_type.inputs[index]
    what = f"argument {index}, {name}, of type {type}"
    if not isinstance(type, TensorType) or not type.is_static or not type.num_elements:
        yield f"{what} cannot be a parameter: only tensors of known size with elements can"
    elif not _has_type(type):
        yield f"{what} cannot be a parameter: safetensors has no such element type"
    elif types.setdefault(name, type) != type:
        yield f"{what} is of type {types[name]} in another function: a parameter has one type"
    if any(attributes_of(func)[index].get(key) is not None for key in _DONATED):
        yield f"{what} is donated: nothing may write into a parameter"


def _has_type(type: TensorType) -> bool:
    row = BY_NAME.get(str(type.element))
    return row is not None and holds(row)


def _mark(func: Func, chosen: dict[int, str]) -> None:
    """Moves the selected arguments to the end and marks them."""
    arguments, attrs = func.entry.arguments, attributes_of(func)
    order = sorted(range(len(arguments)), key=lambda index: index in chosen)
    types = [func.function_type.inputs[index] for index in order]
    items = [_with(attrs[index], chosen.get(index), func.function_type.inputs[index]) for index in order]
    func.entry.order_arguments([arguments[index] for index in order])
    set_arguments(func, types, items)
    _forget(func, chosen)


def _forget(func: Func, chosen: dict[int, str]) -> None:
    """Removes the selected arguments from the trees, since callers do not pass them."""
    inputs, results = func.function_type.inputs, func.function_type.results
    for key, types in (("res_attrs", results), ("arg_attrs", inputs)):
        items = dictionaries(func.get(key), len(types))
        for place, item in enumerate(items):
            if isinstance(text := item.get(TREES), StringAttr):
                rest = without(decode(text.value, len(inputs), len(results)), chosen)
                mapping = {name: value for name, value in item.mapping.items() if name != TREES}
                items[place] = DictAttr.of(mapping if rest.is_flat else {**mapping, TREES: StringAttr(encode(rest))})
                func.properties[key] = ArrayAttr(tuple(items))


def _with(attrs: DictAttr, name: str | None, type: Attribute) -> DictAttr:
    if name is None:
        return attrs
    assert isinstance(type, TensorType), "anything else is refused"
    return DictAttr.of({**attrs.mapping, KEY: parameter(name, type)})
