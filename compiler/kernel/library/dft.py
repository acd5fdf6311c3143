"""Fourier transforms of a few complex numbers as straight-line code: the work of an invocation in one pass.

A transform of length `p m`, p prime, is `p` transforms of length m, rotations, and `m` transforms of length p.
Rotations by quarters cost nothing; those by eighths cost two products. A transform of prime length first adds and
subtracts the numbers k and p - k, which have the same factors.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import cos, pi, sin

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel.builder import KernelBuilder

#: the real and the imaginary part
Complex = tuple[Value, Value]


class Dft:
    """Emits transforms. `sign`: the sign of the exponent."""

    def __init__(self, builder: KernelBuilder, dtype: str, sign: int) -> None:
        self.builder = builder
        self.dtype = dtype
        self.sign = sign

    def of(self, values: Sequence[Complex]) -> list[Complex]:
        """The transform of the values, in order."""
        count = len(values)
        if count == 1:
            return list(values)
        prime = next(x for x in range(2, count + 1) if count % x == 0)
        inner = count // prime
        columns = [self.of(values[first::prime]) for first in range(prime)]
        result: list[Complex] = [values[0]] * count
        for at in range(inner):
            turned = [self._turned(column[at], Fraction(at * k, count)) for k, column in enumerate(columns)]
            for k, value in enumerate(self._prime(turned)):
                result[at + k * inner] = value
        return result

    def product(self, x: Complex, y: Complex) -> Complex:
        """The product of two complex numbers."""
        return (
            self._sub(self._mul(x[0], y[0]), self._mul(x[1], y[1])),
            self._add(self._mul(x[0], y[1]), self._mul(x[1], y[0])),
        )

    def _turned(self, x: Complex, turns: Fraction) -> Complex:
        """x times e^(sign 2 pi i turns)."""
        real, imag = x
        eighths = self.sign * turns * 8 % 8
        if eighths.denominator == 1 and eighths % 2 == 1:
            real, imag = self._sub(real, imag), self._add(real, imag)  # an eighth of a turn, and longer
            half = self._const(0.5**0.5)
            real, imag = self._mul(real, half), self._mul(imag, half)
            eighths -= 1
        if eighths.denominator == 1:
            for _ in range(int(eighths) // 2 % 4):
                real, imag = self._negated(imag), real
            return real, imag
        angle = float(eighths) * pi / 4
        return self.product(x, (self._const(cos(angle)), self._const(sin(angle))))

    def _prime(self, values: Sequence[Complex]) -> list[Complex]:
        count = len(values)
        if count == 2:
            (a, b), (c, d) = values
            return [(self._add(a, c), self._add(b, d)), (self._sub(a, c), self._sub(b, d))]
        half = range(1, count // 2 + 1)
        sums = [self._both(self._add, values[k], values[count - k]) for k in half]
        rests = [self._both(self._sub, values[k], values[count - k]) for k in half]
        total = values[0]
        for one in sums:
            total = self._both(self._add, total, one)
        result = [total] * count
        for m in half:
            even, odd = values[0], None
            for k, (both, rest) in enumerate(zip(sums, rests, strict=True), 1):
                angle = 2 * pi * (k * m % count) / count
                even = self._both(self._add, even, self._scaled(both, cos(angle)))
                part = self._scaled(rest, self.sign * sin(angle))
                odd = part if odd is None else self._both(self._add, odd, part)
            assert odd is not None, "a prime that is not two has halves"
            result[m] = self._sub(even[0], odd[1]), self._add(even[1], odd[0])
            result[count - m] = self._add(even[0], odd[1]), self._sub(even[1], odd[0])
        return result

    def _both(self, op: Callable[[Value, Value], Value], x: Complex, y: Complex) -> Complex:
        return op(x[0], y[0]), op(x[1], y[1])

    def _scaled(self, x: Complex, factor: float) -> Complex:
        number = self._const(factor)
        return self._mul(x[0], number), self._mul(x[1], number)

    def _const(self, number: float) -> Value:
        return self.builder.const(number, self.dtype)

    def _add(self, x: Value, y: Value) -> Value:
        return self.builder.op("add", x, y)

    def _sub(self, x: Value, y: Value) -> Value:
        return self.builder.op("subtract", x, y)

    def _mul(self, x: Value, y: Value) -> Value:
        return self.builder.op("multiply", x, y)

    def _negated(self, x: Value) -> Value:
        return self.builder.op("negate", x)
