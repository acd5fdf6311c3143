"""Determines the symbols in the sizes of a function's arguments, from the assertions of the program.

Initially each unknown size of an argument is measured: `arg0_1` is the size of axis 1 of argument 0. Assertions about
measured sizes then define the symbols: `arg1_0 == arg0_0` makes two sizes one symbol, `arg0_0 mod 2 == 0` makes a size
twice a symbol, `arg0_0 >= 4` bounds a symbol. Everything else in an assertion is checked at run time, and not relied
on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrion.compiler.ir import dims
from orchestrion.compiler.ir.dims import (
    DEFAULT_GREATEST,
    DEFAULT_LEAST,
    Call,
    Dim,
    Size,
    Symbol,
    is_dynamic,
    substitute,
    symbols_of,
)
from orchestrion.compiler.ir.types import DYNAMIC, TensorType, Type
from orchestrion.compiler.stablehlo.ops.elementwise import MIRRORED
from orchestrion.compiler.stablehlo.ops.function_dims import measured_name, measured_place

from .shape_values import Comparison


@dataclass(frozen=True, slots=True)
class Solution:
    """The symbols, in order, each with its size over measured sizes; and measured sizes as expressions over symbols."""

    symbols: tuple[tuple[Symbol, Size], ...]
    sizes: dict[str, Size]


def measured(types: Sequence[Type]) -> list[str]:
    """The names of the unknown sizes of arguments, in order."""
    return [
        measured_name(argument, axis)
        for argument, type in enumerate(types)
        for axis, size in enumerate(type.shape if isinstance(type, TensorType) else ())
        if size == DYNAMIC
    ]


#: JAX's form, in messages of assertions, of a variable's name and the index of its number.
_SPECIFIED_NAME: Final = re.compile(r"'([A-Za-z_]\w*)' = \{([0-9]{1,3})\} from specification ")


def names_in_message(message: str, numbers: Sequence[Size]) -> dict[Size, str]:
    """Size -> the name that the message of an assertion gives it."""
    return {numbers[int(at)]: name for name, at in _SPECIFIED_NAME.findall(message) if int(at) < len(numbers)}


def solve(names: Iterable[str], asserted: Sequence[Comparison], called: Mapping[Size, str]) -> Solution:
    """The symbols for measured sizes that satisfy the assertions; `called` maps sizes to wanted names."""
    multiples = _multiples(asserted)
    sizes: dict[str, Size] = {}
    symbols: list[tuple[Symbol, Size]] = []
    waiting = list(names)
    while waiting:
        name = next((name for name in waiting if not _is_made_of(name, asserted, waiting)), waiting[0])
        waiting.remove(name)
        equal = _equal_to(name, asserted, sizes)
        if equal is not None:
            sizes[name] = equal
            continue
        factor, rest = multiples.get(name, (1, 0))
        raw = dims.symbol(name)
        value = dims.floordiv(raw - rest, factor)
        own = _own_name(called.get(value), symbols)
        least, greatest = _bounds(name, asserted)
        most = DEFAULT_GREATEST if greatest == DEFAULT_GREATEST else (greatest - rest) // factor
        symbol = Symbol(own, max(-(-(least - rest) // factor), DEFAULT_LEAST), max(most, DEFAULT_LEAST))
        sizes[name] = factor * dims.symbol(own, symbol.least, symbol.greatest) + rest
        symbols.append((symbol, value))
    return Solution(tuple(symbols), sizes)


def _own_name(wanted: str | None, taken: Sequence[tuple[Symbol, Size]]) -> str:
    """The wanted name if it is free, else a generated one."""
    used = {symbol.name for symbol, _ in taken}
    if wanted is None or wanted in used or wanted in dims.FUNCTIONS or measured_place(wanted) is not None:
        wanted = next(name for number in range(len(used) + 1) if (name := f"d{number}") not in used)
    return wanted


def _equalities(asserted: Sequence[Comparison]) -> Iterable[tuple[Size, Size]]:
    for one in asserted:
        if one.direction == "EQ":
            yield _as_sum(one.lhs, one.rhs)
            yield _as_sum(one.rhs, one.lhs)


def _as_sum(lhs: Size, rhs: Size) -> tuple[Size, Size]:
    """`y == x + z` for `x == y - z`: a sum of sizes is known not to be negative."""
    terms = rhs.terms if isinstance(rhs, Dim) else ()
    added = [atoms for count, atoms in terms if count > 0]
    taken = [atoms for count, atoms in terms if count < 0 and atoms]
    if not taken or len(added) != 1 or len(added[0]) != 1 or not isinstance(added[0][0], Symbol):
        return lhs, rhs
    whole = dims.symbol(added[0][0].name)
    return (whole, lhs + whole - rhs) if (1, added[0]) in terms else (lhs, rhs)


def _is_made_of(name: str, asserted: Sequence[Comparison], waiting: Sequence[str]) -> bool:
    """Whether an assertion makes the size an expression over sizes that are not all defined yet."""
    this = dims.symbol(name)
    for lhs, rhs in _equalities(asserted):
        others = {symbol.name for symbol in symbols_of(rhs)} - {name}
        if lhs == this and rhs not in [dims.symbol(other) for other in others] and others & set(waiting):
            return True
    return False


def _equal_to(name: str, asserted: Sequence[Comparison], sizes: dict[str, Size]) -> Size | None:
    """An expression over defined sizes that an assertion makes equal to a measured size."""
    for lhs, rhs in _equalities(asserted):
        if lhs == dims.symbol(name) and all(symbol.name in sizes for symbol in symbols_of(rhs)):
            return substitute(rhs, sizes)
    return None


def _multiples(asserted: Sequence[Comparison]) -> dict[str, tuple[int, int]]:
    """Measured size -> (factor, rest), if it is asserted to be a multiple of the factor plus the rest."""
    found: dict[str, tuple[int, int]] = {}
    for lhs, rhs in _equalities(asserted):
        if rhs == 0 and isinstance(lhs, Dim) and len(lhs.terms) == 1 and lhs.terms[0][0] == 1:
            for atom in lhs.terms[0][1]:
                if isinstance(atom, Call) and atom.op == "mod" and not is_dynamic(atom.rhs):
                    shifted = _shifted(atom.lhs)
                    if shifted is not None:
                        found.setdefault(shifted[0], (atom.rhs, -shifted[1] % atom.rhs))
    return found


def _shifted(size: Size) -> tuple[str, int] | None:
    """(name, number) if the size is `name + number`, else None."""
    names = [symbol.name for symbol in symbols_of(size)]
    if len(names) != 1:
        return None
    rest = size - dims.symbol(names[0])
    return None if is_dynamic(rest) else (names[0], rest)


def _bounds(name: str, asserted: Sequence[Comparison]) -> tuple[int, int]:
    """The asserted bounds of a single measured size."""
    least, greatest = DEFAULT_LEAST, DEFAULT_GREATEST
    for one in asserted:
        difference = one.lhs - one.rhs
        for size, direction in ((difference, one.direction), (-difference, MIRRORED[one.direction])):
            place = _shifted(size)
            if place is None or place[0] != name:
                continue
            if direction in ("GE", "GT"):
                least = max(least, -place[1] + (direction == "GT"))
            elif direction in ("LE", "LT"):
                greatest = min(greatest, -place[1] - (direction == "LT"))
    return least, greatest
