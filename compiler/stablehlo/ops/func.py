"""The func dialect: functions, calls, returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import (
    ArrayAttr,
    DictAttr,
    IntegerAttr,
    StringAttr,
    SymbolRef,
    UnitAttr,
    dictionaries,
)
from orchestrion.compiler.ir.core import Block, Operation, Trait
from orchestrion.compiler.ir.declare import attr, operands, optional, region, results
from orchestrion.compiler.ir.dialect import Dialect, ops_in
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import Attribute, FunctionType, TensorType, Type
from orchestrion.schema.dtypes import BY_NAME

from .base import is_known, is_supported

#: Attribute of an argument, from JAX: the index of the result that may take its memory.
ALIAS: Final = "tf.aliasing_output"
#: Attribute of an argument or result: its name for callers.
NAME: Final = "orchestrion.name"
#: Attribute of the first result, or of the first argument without results: the text of `schema.trees` for the function.
TREES: Final = "orchestrion.trees"


def result_aliases(arg_attrs: ArrayAttr | None) -> dict[int, int]:
    """Result -> the argument whose memory the caller may pass for it, from the attribute `ALIAS`."""
    found = {}
    for index, attrs in enumerate(arg_attrs or ()):
        output = attrs.get(ALIAS) if isinstance(attrs, DictAttr) else None
        if isinstance(output, IntegerAttr):
            found[output.value] = index
    return found


def signature_attributes(type: FunctionType, arg_attrs: ArrayAttr | None, res_attrs: ArrayAttr | None) -> Iterator[str]:
    """Messages about the attributes of arguments and results: one dictionary each, with valid aliases."""
    for attrs, types, what in ((arg_attrs, type.inputs, "arguments"), (res_attrs, type.results, "results")):
        if attrs is None:
            continue
        if len(attrs) != len(types):
            yield f"{len(attrs)} attribute dictionaries for {len(types)} {what}"
        if not all(isinstance(item, DictAttr) for item in attrs):
            yield f"the attributes of {what} are not dictionaries"
        for index, (made, seen) in enumerate(zip(types, types_for_callers(types, attrs), strict=False)):
            if seen is not made and not (is_known(seen) and is_supported(made) and _bytes(seen) == _bytes(made)):
                yield f"{what[:-1]} {index} of type {made} is {seen} to callers, which differs in size"
    for result, argument in result_aliases(arg_attrs).items():
        if not 0 <= result < len(type.results):
            yield f"argument {argument} aliases result {result}, of which there are {len(type.results)}"
        elif argument < len(type.inputs) and type.inputs[argument] != type.results[result]:
            given, made = type.inputs[argument], type.results[result]
            yield f"argument {argument} of type {given} aliases result {result} of type {made}"


#: Attribute of an argument or result: its type for callers, if devices use another one.
CALLER_TYPE: Final = "orchestrion.type"


def types_for_callers(types: Sequence[Type], attrs: Attribute | None) -> list[Type]:
    """The types of arguments or results for callers."""
    seen = [item.get(CALLER_TYPE) for item in dictionaries(attrs, len(types))]
    return [true if isinstance(true, TensorType) else type for type, true in zip(types, seen, strict=True)]


def names_for_callers(count: int, attrs: Attribute | None, otherwise: str) -> list[str]:
    """The names of arguments or results for callers. `otherwise`: the beginning of the names of those without one."""
    names = [item.get(NAME) for item in dictionaries(attrs, count)]
    return [name.value if isinstance(name, StringAttr) else f"{otherwise}{n}" for n, name in enumerate(names)]


def set_dictionaries(func: Func, key: str, items: Sequence[DictAttr]) -> None:
    """Sets `arg_attrs` or `res_attrs`; erases it if all dictionaries are empty."""
    func.properties.pop(key, None)
    if any(item.items for item in items):
        func.properties[key] = ArrayAttr(tuple(items))


def set_types(func: Func, inputs: Sequence[Type], results: Sequence[Type]) -> None:
    """Changes the signature of a function; the types for callers stay."""
    old = func.function_type
    for key, before, after in (("arg_attrs", old.inputs, inputs), ("res_attrs", old.results, results)):
        items = dictionaries(func.get(key), len(before))
        seen = types_for_callers(before, func.get(key))
        changed = [
            item if type == made else DictAttr.of({**item.mapping, CALLER_TYPE: type})
            for item, type, made in zip(items, seen, after, strict=True)
        ]
        if changed != items:
            func.properties[key] = ArrayAttr(tuple(changed))
    func.properties["function_type"] = FunctionType(tuple(inputs), tuple(results))


def change_signature(func: Func, parts: Callable[[Type], list[Type]]) -> None:
    """Replaces each type by its parts, none or several. A type that is its only part keeps its attributes, in which
    references to a result by index are renumbered, or dropped if the result changes.
    """
    given = func.get_as("function_type", FunctionType)
    if given is None:
        return
    places = {}
    results: list[Type] = []
    for number, type in enumerate(given.results):
        if parts(type) == [type]:
            places[number] = len(results)
        results += parts(type)
    inputs = [part for type in given.inputs for part in parts(type)]
    if (*inputs,) == given.inputs and (*results,) == given.results:
        return
    func.properties["function_type"] = FunctionType(tuple(inputs), tuple(results))
    for key, types in (("arg_attrs", given.inputs), ("res_attrs", given.results)):
        attrs = func.get_as(key, ArrayAttr)
        if attrs is not None and len(attrs) == len(types):
            items: list[Attribute] = []
            for item, type in zip(attrs, types, strict=True):
                found = parts(type)
                items += [_renumbered(item, places)] if found == [type] else [DictAttr(())] * len(found)
            func.properties[key] = ArrayAttr(tuple(items))


def _renumbered(item: Attribute, places: Mapping[int, int]) -> Attribute:
    """The attributes of an argument, with the new place of the result that they name."""
    output = item.get(ALIAS) if isinstance(item, DictAttr) else None
    if not isinstance(item, DictAttr) or not isinstance(output, IntegerAttr):
        return item
    kept = {key: value for key, value in item.mapping.items() if key != ALIAS}
    place = places.get(output.value)
    return DictAttr.of(kept if place is None else {**kept, ALIAS: IntegerAttr(place, output.type)})


def _bytes(type: Type) -> Size:
    assert isinstance(type, TensorType)
    return type.num_elements * BY_NAME[str(type.element)].itemsize


class Func(Operation):
    """A function. Public (visible from outside) unless `sym_visibility` says otherwise.

    `dims`: the symbols in its types, for sizes that each call determines (`function_dims.py`). An entry of an
    executable has a `kind` (`flow/kinds.py`) and, from the phase `hl_seq` on, `schedules` (`kernel/schedule.py`): those
    for dispatches of some sizes first, the one for all others last.
    """

    name = "func.func"
    sym_name = attr(StringAttr)
    function_type = attr(FunctionType)
    sym_visibility = optional(StringAttr)
    arg_attrs = optional(ArrayAttr)
    res_attrs = optional(ArrayAttr)
    no_inline = optional(UnitAttr)
    dims = optional(ArrayAttr)
    kind = optional(StringAttr)
    schedules = optional(ArrayAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL})

    @property
    def is_public(self) -> bool:
        """Whether the function is visible from outside."""
        visibility = self.get_as("sym_visibility", StringAttr)
        return visibility is None or visibility.value == "public"

    @property
    def is_declaration(self) -> bool:
        """Whether the function has no body."""
        return not self.body.blocks

    @property
    def entry(self) -> Block:
        return self.body.blocks[0]

    def check(self) -> Iterator[str]:
        if self.is_declaration:
            return
        given = tuple(argument.type for argument in self.entry.arguments)
        if given != self.function_type.inputs:
            yield f"type {self.function_type} does not fit the arguments ({', '.join(map(str, given))})"
        yield from signature_attributes(self.function_type, self.arg_attrs, self.res_attrs)


class Call(Operation):
    """Calls a function by its symbol."""

    name = "func.call"
    arguments = operands()
    callee = attr(SymbolRef)
    no_inline = optional(UnitAttr)
    arg_attrs = optional(ArrayAttr)
    res_attrs = optional(ArrayAttr)
    outputs = results()

    def check_symbols(self, tables: SymbolTables) -> Iterator[str]:
        target = tables.lookup(self, self.callee)
        if not isinstance(target, Func):
            yield f"{self.callee} is not a function"
            return
        given = FunctionType(tuple(v.type for v in self.operands), tuple(r.type for r in self.results))
        wanted = target.get_as("function_type", FunctionType)  # None: malformed, and reported at the function
        if wanted is not None and given != wanted:
            yield f"{self.callee} is of type {wanted}, called as {given}"


class Return(Operation):
    """Returns from a function."""

    name = "func.return"
    values = operands()
    traits = frozenset({Trait.TERMINATOR})

    def check(self) -> Iterator[str]:
        func = self.parent_op
        given = tuple(value.type for value in self.operands)
        wanted = func.get_as("function_type", FunctionType) if isinstance(func, Func) else None
        if wanted is not None and given != wanted.results:
            yield f"returns ({', '.join(map(str, given))}) from a function of type {wanted}"


DIALECT = Dialect("func", ops_in(globals()))
