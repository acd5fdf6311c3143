"""The attribute `dims` of functions and entries: the symbols in their types, as a list of dictionaries.

For a function, `{name, least, greatest, value}` in the order of definition: the value is a size over measured sizes of
arguments (`arg1_0` is the size of axis 0 of argument 1) and over earlier symbols. For an entry, the same without
values: its parameters, sorted by name. `greatest` is omitted for the default bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from orchestrion.compiler.ir.attributes import (
    ArrayAttr,
    Convertible,
    DenseArray,
    DictAttr,
    DimArray,
    IntegerAttr,
    StringAttr,
    attribute_of,
)
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import DEFAULT_GREATEST, Size, Symbol, is_dynamic, symbols_of
from orchestrion.compiler.ir.types import Attribute, FunctionType, TensorType
from orchestrion.compiler.ir.util import Assert

from .func import Func

#: A symbol and the size that defines it; None for a symbol of an entry.
DimDefinition = tuple[Symbol, Size | None]
_MEASURED: Final = re.compile(r"arg([0-9]{1,9})_([0-9]{1,9})")


def measured_name(argument: int, axis: int) -> str:
    """The name of the measured size of an argument's axis."""
    return f"arg{argument}_{axis}"


def measured_place(name: str) -> tuple[int, int] | None:
    """The argument and axis of a measured size; None for the name of any other symbol."""
    match = _MEASURED.fullmatch(name)
    return None if match is None else (int(match[1]), int(match[2]))


def dims_attribute(rows: Iterable[DimDefinition]) -> ArrayAttr:
    return ArrayAttr(tuple(attribute_of(_dictionary(*row)) for row in rows))


def _dictionary(symbol: Symbol, value: Size | None) -> dict[str, Convertible]:
    found: dict[str, Convertible] = {"name": symbol.name, "least": symbol.least}
    if symbol.greatest != DEFAULT_GREATEST:
        found["greatest"] = symbol.greatest
    return found if value is None else {**found, "value": DimArray((value,))}


def dims_of(func: Func) -> list[DimDefinition]:
    """The definitions in `dims` of a function or an entry. Raises ValueError if the attribute is malformed."""
    return dim_definitions(func.dims)


def dim_definitions(dims: ArrayAttr | None) -> list[DimDefinition]:
    """The definitions in the attribute `dims`. Raises ValueError if it is malformed."""
    return [_row(item) for item in dims or ()]


def _row(item: Attribute) -> DimDefinition:
    if not isinstance(item, DictAttr):
        raise ValueError(f"dims holds {item}, which is not a dictionary")
    name, value, least, greatest = (item.get(key) for key in ("name", "value", "least", "greatest"))
    most = greatest.value if isinstance(greatest, IntegerAttr) else DEFAULT_GREATEST
    bounded = isinstance(least, IntegerAttr) and 1 <= least.value <= most <= DEFAULT_GREATEST
    if not isinstance(name, StringAttr) or not isinstance(least, IntegerAttr) or not bounded:
        raise ValueError(f"dims holds {item}: a symbol has a name, a least size of 1 or more, and a greatest")
    symbol = Symbol(name.value, least.value, most)
    if value is None:
        return symbol, None
    if not isinstance(value, DenseArray) or len(value) != 1:
        raise ValueError(f"dims holds {item}, whose value is not one size")
    return symbol, value.sizes[0]


def used_symbols(op: Operation) -> list[Symbol]:
    """The symbols in the types and properties of an op and of the ops inside, except assertions; sorted."""
    found: set[Symbol] = set()
    for inner in op.walk():
        if not isinstance(inner, Assert):
            found.update(*(_in_attribute(value) for value in inner.properties.values()))
        found.update(*(_in_attribute(value.type) for value in (*inner.block_arguments(), *inner.results)))
    return sorted(found)


def _in_attribute(value: Attribute) -> Iterable[Symbol]:
    match value:
        case TensorType() if not value.is_static:
            return symbols_of(*value.shape)
        case FunctionType():
            return [one for type in (*value.inputs, *value.results) for one in _in_attribute(type)]
        case DimArray():
            return symbols_of(*(size for size in value.sizes if is_dynamic(size)))
        case _:
            return ()
