"""Positions as sums: a constant and multiples of other values, modulo the range of their type.

A position in memory becomes a sum of terms that are constant in the surrounding loops and of terms that change. The
constant terms are added in front of the loop (the builder hoists them), so an iteration adds only the rest. The literal
constant comes last: the positions of neighbours then differ in the last step, a pattern that compilers look for when
they vectorize loads and stores. A quotient and a remainder of one division are joined into the dividend.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.schema.dtypes import BY_NAME

if TYPE_CHECKING:
    from .builder import KernelBuilder


class Sum(NamedTuple):
    """`constant` plus each value of `terms` times its factor."""

    terms: dict[Value, int]
    constant: int


def sum_of(value: Value) -> Sum:
    """The sum that an integer computes."""
    return _sum_of(value, {})


def _sum_of(value: Value, found: dict[Value, Sum]) -> Sum:
    """The same. `found`: the sums of some of its parts, which may occur in several others."""
    if value not in found:
        found[value] = _sum_of_parts(value, found)
    return found[value]


def _sum_of_parts(value: Value, found: dict[Value, Sum]) -> Sum:
    op, known = value.defining_op, k.bits_of(value)
    if known is not None:
        return Sum({}, known)
    if isinstance(op, k.Scalar) and op.primitive.name in ("add", "multiply"):
        bits = k.dtype_of(value).bits
        x, y = (_sum_of(operand, found) for operand in op.operands)
        if op.primitive.name == "add":
            return added(((x, 1), (y, 1)), bits)
        if not x.terms or not y.terms:
            other, factor = (x, y.constant) if x.terms else (y, x.constant)
            return added(((other, factor),), bits)
    return Sum({value: 1}, 0)


def difference(x: Sum, y: Sum) -> int | None:
    """x - y if it is known and not negative."""
    return x.constant - y.constant if x.terms == y.terms and x.constant >= y.constant else None


def added(parts: Iterable[tuple[Sum, int]], bits: int) -> Sum:
    """The sum of some sums, each times a factor, of integers of `bits` bits."""
    mask = (1 << bits) - 1
    terms: dict[Value, int] = {}
    constant = 0
    for part, times in parts:
        constant = (constant + part.constant * times) & mask
        for value, count in part.terms.items():
            terms[value] = (terms.get(value, 0) + count * times) & mask
    return _undivided(Sum({value: count for value, count in terms.items() if count}, constant), bits)


def _undivided(whole: Sum, bits: int) -> Sum:
    """Replaces (x / n) * n + x mod n by x."""
    for quotient, count in whole.terms.items():
        over = quotient.defining_op
        if over is None or over.name != "kernel.unchecked_divide":
            continue
        size = k.bits_of(over.operands[1])
        for remainder, times in whole.terms.items():
            rest = remainder.defining_op
            if rest is None or rest.name != "kernel.unchecked_remainder" or size is None:
                continue
            is_whole = (times * size - count) % (1 << bits) == 0
            if is_whole and all(x is y for x, y in zip(over.operands, rest.operands, strict=True)):
                kept = {v: n for v, n in whole.terms.items() if v is not quotient and v is not remainder}
                parts = ((Sum(kept, whole.constant), 1), (sum_of(over.operands[0]), times))
                return added(parts, bits)
    return whole


def emit(b: KernelBuilder, whole: Sum) -> Value:
    """Emits a sum. Terms that are known outside of the most loops come first, the constant comes last."""
    total: Value | None = None
    for level in sorted({b.level(value) for value in whole.terms}):
        part: Value | None = None
        for value, count in whole.terms.items():
            if b.level(value) == level:
                term = b.op("multiply", value, b.index(count))
                part = term if part is None else b.op("add", part, term)
        assert part is not None
        total = part if total is None else b.op("add", total, part)
    constant = b.index(whole.constant)
    return constant if total is None else b.op("add", total, constant)


def split(b: KernelBuilder, coordinate: Value, tile: int) -> tuple[Value, Value]:
    """coordinate / tile and coordinate mod tile, without a division if the sum shows them."""
    known = aligned(b, coordinate, tile)
    if known is not None:
        return known[0], b.index(known[1])
    whole = sum_of(coordinate)
    number = {value: count // tile for value, count in whole.terms.items() if count % tile == 0}
    rest = {value: count for value, count in whole.terms.items() if count % tile}
    unit, place = gcd(tile, *rest.values()), whole.constant % tile
    if unit == 1 or place >= unit or not _counts(b, whole):
        return _divided(b, coordinate, tile)
    units = emit(b, Sum({value: count // unit for value, count in rest.items()}, 0))
    quotient, part = _divided(b, units, tile // unit)
    before = emit(b, Sum(number, whole.constant // tile))
    return b.op("add", before, quotient), b.place(part, unit, b.index(place))


def aligned(b: KernelBuilder, coordinate: Value, tile: int) -> tuple[Value, int] | None:
    """coordinate / tile, and coordinate mod tile if the sum shows that it is a constant; else None."""
    whole = sum_of(coordinate)
    if not _counts(b, whole) or any(count % tile for count in whole.terms.values()):
        return None
    number = {value: count // tile for value, count in whole.terms.items()}
    return emit(b, Sum(number, whole.constant // tile)), whole.constant % tile


def group_of(b: KernelBuilder, positions: Iterable[Value], count: int) -> Value | None:
    """The number of the group of `count` neighbours that positions are, in order; None if that is not known."""
    places = [aligned(b, position, count) for position in positions]
    numbers = {place[0] for place in places if place is not None}
    in_order = [place and place[1] for place in places] == list(range(count))
    return numbers.pop() if in_order and len(numbers) == 1 else None


def _counts(b: KernelBuilder, whole: Sum) -> bool:
    """Whether nothing is subtracted. Then no part of the sum wraps, because the whole sum is in range."""
    half = 1 << (BY_NAME[b.index_type].bits - 1)
    return all(count < half for count in (*whole.terms.values(), whole.constant))


def _divided(b: KernelBuilder, x: Value, divisor: int) -> tuple[Value, Value]:
    by = b.index(divisor)
    return b.op("unchecked_divide", x, by), b.op("unchecked_remainder", x, by)
