"""A StableHLO function in the making, in generic text: its lines, its values, and values of a wanted type from them.

Floats are *exact* (made by correctly rounded ops, moved, compared, selected) or *near* (transcendental, summed up).
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from random_types import COMPLEX, COMPUTED, NUMPY, REAL, SMALL, TINY, Array, limits, literal, numbers, part, splat
from stablehlo_text import tensor


@dataclass(frozen=True)
class Value:
    name: str
    shape: tuple[int, ...]
    dtype: str
    near: bool = False

    @property
    def type(self) -> str:
        return tensor(self.shape, self.dtype)

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass
class Body:
    """A function in the making: its lines and the values that exist so far."""

    rng: random.Random
    prefix: str = "v"
    lines: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    count: int = 0
    depth: int = 0  #: regions around it
    types: tuple[str, ...] = COMPUTED  #: element types of this program
    rare: float = 0.1  #: how many of its ops are of rare kinds
    used: set[str] = field(default_factory=set)  #: names of values that are operands

    def fresh(self) -> str:
        self.count += 1
        return f"%{self.prefix}{self.count}"

    def op(
        self, name: str, operands: Sequence[Value], shape: Sequence[int], dtype: str, attributes: str = "",
        near: bool | None = None, region: str = "",
    ) -> Value:  # fmt: skip
        made = Value(self.fresh(), tuple(shape), dtype, any(x.near for x in operands) if near is None else near)
        self.emit(name, operands, [made], attributes, region)
        return made

    def emit(
        self, name: str, operands: Sequence[Value], results: Sequence[Value], attributes: str = "", region: str = ""
    ) -> None:
        left = f"{', '.join(r.name for r in results)} = " if results else ""
        types = ", ".join(x.type for x in operands)
        outs = ", ".join(r.type for r in results)
        properties = f" <{{{attributes}}}>" if attributes else ""
        body = f" ({region})" if region else ""
        names = ", ".join(x.name for x in operands)
        self.lines.append(f'{left}"{name}"({names}){properties}{body} : ({types}) -> ({outs})')
        self.values += results
        self.used.update(x.name for x in operands)

    def some(self, most: int) -> list[Value]:
        """Values to be returned: what nobody uses, or it would be computed in vain, and another one."""
        unused = [v for v in self.values if v.name not in self.used]
        return self.rng.sample(unused, min(len(unused), most)) + [self.rng.choice(self.values)]

    # Values of a wanted kind.

    def pick(self, test: Callable[[Value], bool] = lambda v: True) -> Value | None:
        found = [v for v in self.values if test(v)]
        return self.rng.choice(found[-8:] if self.rng.random() < 0.7 else found) if found else None

    def constant(self, array: Array, dtype: str) -> Value:
        array = np.asarray(array)
        return self.op("stablehlo.constant", [], array.shape, dtype, f"value = {literal(array.astype(NUMPY[dtype]))}")

    def number(self, value: Any, dtype: str, shape: tuple[int, ...] = ()) -> Value:
        """A splat."""
        return self.op("stablehlo.constant", [], shape, dtype, f"value = {splat(value, dtype, shape)}")

    def like(self, x: Value, value: Any) -> Value:
        return self.number(value, x.dtype, x.shape)

    def of(self, dtype: str, shape: tuple[int, ...], near: bool = True) -> Value:
        """Some value of this type: one that is there, one made from another, or a new constant or iota."""
        rng = self.rng
        ok = lambda v: v.dtype == dtype and v.shape == shape and (near or not v.near)  # noqa: E731
        found = self.pick(ok) if rng.random() < 0.7 else None
        if found is not None:
            return found
        other = self.pick(lambda v: v.shape == shape and not v.near)
        if other is not None and rng.random() < 0.7:
            return self.converted(other, dtype)
        other = self.pick(lambda v: v.dtype == dtype and v.size == prod(shape) and (near or not v.near))
        if other is not None and rng.random() < 0.7:
            return self.op("stablehlo.reshape", [other], shape, dtype)
        other = self.pick(lambda v: v.shape == () and v.dtype == dtype and (near or not v.near))
        if other is not None and rng.random() < 0.6:
            return self.op("stablehlo.broadcast_in_dim", [other], shape, dtype, "broadcast_dimensions = array<i64>")
        most = 0 if dtype in ("i1", *SMALL) else 8 if dtype in TINY else 100
        if shape and rng.random() < 0.4 and max(shape) < most:
            return self.iota(shape, dtype)
        if rng.random() < 0.5:
            return self.number(numbers(rng, dtype, ())[()], dtype, shape)
        return self.constant(numbers(rng, dtype, shape), dtype)

    def iota(self, shape: tuple[int, ...], dtype: str) -> Value:
        axis = self.rng.randrange(len(shape))
        return self.op("stablehlo.iota", [], shape, dtype, f"iota_dimension = {axis} : i64")

    def converted(self, x: Value, dtype: str) -> Value:
        """In another type, in range where it goes from float to integer; of complex numbers the real part."""
        if x.dtype == dtype and self.rng.random() < 0.9:
            return x
        if x.dtype in COMPLEX and dtype not in COMPLEX:
            x = self.op("stablehlo.real", [x], x.shape, part(x.dtype))
        if dtype == "i1":
            return x if x.dtype == "i1" else self.compare(x, self.like(x, 0), "NE")
        if x.dtype not in REAL and dtype in COMPLEX:
            x = self.converted(x, part(dtype))
        if x.dtype in REAL and dtype not in REAL + COMPLEX:
            least, greatest = limits(dtype)
            x = self.between(x, max(least, -100), min(greatest, 100))
        return self.op("stablehlo.convert", [x], x.shape, dtype)

    def between(self, x: Value, low: int, high: int) -> Value:
        """A float that is a number, within bounds."""
        isnan = self.compare(x, x, "NE")
        x = self.op("stablehlo.select", [isnan, self.like(x, 1), x], x.shape, x.dtype)
        bounds = [self.number(low, x.dtype), self.number(high, x.dtype)]
        return self.op("stablehlo.clamp", [bounds[0], x, bounds[1]], x.shape, x.dtype)

    def whole(self, x: Value) -> Value:
        """A float as -2, -1, 0, 1 or 2, so that sums are exact in any order."""
        x = self.between(x, -2, 2)
        return self.positive_zero(self.op("stablehlo.round_nearest_even", [x], x.shape, x.dtype))

    def positive_zero(self, x: Value) -> Value:
        """With no negative zeros, which a sum of one product may be or not."""
        zero = self.like(x, 0)
        return self.op("stablehlo.select", [self.compare(x, zero, "EQ"), zero, x], x.shape, x.dtype)

    def tame(self, x: Value) -> Value:
        """A number, complex or not, whose parts are finite and small."""
        if x.dtype not in COMPLEX:
            return self.between(x, -3, 3)
        parts = [self.op(f"stablehlo.{name}", [x], x.shape, part(x.dtype)) for name in ("real", "imag")]
        return self.op("stablehlo.complex", [self.between(v, -3, 3) for v in parts], x.shape, x.dtype)

    def compare(self, x: Value, y: Value, direction: str, kind: str = "") -> Value:
        given = f", compare_type = #stablehlo<comparison_type {kind}>" if kind else ""
        attributes = f"comparison_direction = #stablehlo<comparison_direction {direction}>{given}"
        return self.op("stablehlo.compare", [x, y], x.shape, "i1", attributes)
