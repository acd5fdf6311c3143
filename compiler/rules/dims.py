"""Rules of symbolic sizes: a function defines its symbols, an entry takes its symbols, and nothing uses others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchestrion.compiler.ir.dims import Size, symbols_of
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.ir.util import Assert
from orchestrion.compiler.stablehlo.ops.base import type_list
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.stablehlo.ops.function_dims import dims_of, measured_place, used_symbols


def function_dims(func: Func) -> Iterator[str]:
    """Symbols are defined, in order, by sizes of arguments and by earlier symbols."""
    try:
        rows = dims_of(func)
    except ValueError as error:
        yield str(error)
        return
    known: set[str] = set()
    for symbol, value in rows:
        if symbol.name in known or measured_place(symbol.name) is not None:
            yield f"symbol {symbol.name} is defined twice, or has the name of a measured size"
        if value is None:
            yield f"symbol {symbol.name} has no value"
        else:
            yield from _measures(func, [value], known)
        known.add(symbol.name)
    for op in func.entry.ops if func.body.blocks else ():
        if isinstance(op, Assert):
            yield from _measures(func, [*op.lhs.sizes, *op.rhs.sizes, *op.numbers.sizes], known)
    defined = {symbol for symbol, _ in rows}
    for symbol in used_symbols(func):
        if symbol not in defined:
            yield f"uses symbol {symbol}, which dims does not define so"


def _measures(func: Func, sizes: Iterable[Size], known: set[str]) -> Iterator[str]:
    inputs = func.function_type.inputs
    for symbol in symbols_of(*sizes):
        place = measured_place(symbol.name)
        if place is None:
            if symbol.name not in known:
                yield f"symbol {symbol.name} is used before it is defined"
            continue
        argument, axis = place
        type = inputs[argument] if argument < len(inputs) else None
        if not isinstance(type, TensorType) or axis >= type.rank:
            yield f"measures {symbol.name}, which no argument has"


def entry_dims(func: Func) -> Iterator[str]:
    """An entry takes exactly the symbols that it uses, sorted by name."""
    try:
        rows = dims_of(func)
    except ValueError as error:
        yield str(error)
        return
    symbols, wanted = [symbol for symbol, _ in rows], used_symbols(func)
    if symbols != wanted or any(value is not None for _, value in rows):
        taken, used = type_list(symbols), type_list(wanted)
        yield f"takes the symbols [{taken}], without values, must be [{used}], those that it uses"
