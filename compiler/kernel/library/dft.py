"""Fourier transforms of a few complex numbers as straight-line code: the work of an invocation in one pass.

A transform of length `p m`, p prime, is `p` transforms of length m, rotations, and `m` transforms of length p.
Rotations by quarters cost nothing; those by eighths cost two products. A transform of prime length first adds and
subtracts the numbers k and p - k, which have the same factors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import cos, pi, sin

from orchestrion.compiler.scalars.math.number import Number


@dataclass(frozen=True, slots=True)
class Complex:
    """A complex number."""

    real: Number
    imag: Number

    def __add__(self, other: "Complex") -> "Complex":
        return Complex(self.real + other.real, self.imag + other.imag)

    def __sub__(self, other: "Complex") -> "Complex":
        return Complex(self.real - other.real, self.imag - other.imag)

    def __mul__(self, other: "Complex") -> "Complex":
        return Complex(self.real * other.real - self.imag * other.imag, self.real * other.imag + self.imag * other.real)

    def scaled(self, factor: float) -> "Complex":
        """The product with a real number."""
        return Complex(self.real * factor, self.imag * factor)


@dataclass(frozen=True, slots=True)
class Dft:
    """Emits transforms. `sign`: the sign of the exponent."""

    sign: int

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

    def _turned(self, x: Complex, turns: Fraction) -> Complex:
        """x times e^(sign 2 pi i turns)."""
        eighths = self.sign * turns * 8 % 8
        if eighths.denominator == 1 and eighths % 2 == 1:
            x = Complex(x.real - x.imag, x.real + x.imag).scaled(0.5**0.5)  # an eighth of a turn, and longer
            eighths -= 1
        if eighths.denominator == 1:
            for _ in range(int(eighths) // 2 % 4):
                x = Complex(-x.imag, x.real)
            return x
        angle = float(eighths) * pi / 4
        return x * Complex(x.real.constant(cos(angle)), x.real.constant(sin(angle)))

    def _prime(self, values: Sequence[Complex]) -> list[Complex]:
        count = len(values)
        if count == 2:
            return [values[0] + values[1], values[0] - values[1]]
        half = range(1, count // 2 + 1)
        sums = [values[k] + values[count - k] for k in half]
        rests = [values[k] - values[count - k] for k in half]
        total = values[0]
        for one in sums:
            total = total + one
        result = [total] * count
        for m in half:
            even, odd = values[0], None
            for k, (both, rest) in enumerate(zip(sums, rests, strict=True), 1):
                angle = 2 * pi * (k * m % count) / count
                even = even + both.scaled(cos(angle))
                part = rest.scaled(self.sign * sin(angle))
                odd = part if odd is None else odd + part
            assert odd is not None, "a prime that is not two has halves"
            result[m] = Complex(even.real - odd.imag, even.imag + odd.real)
            result[count - m] = Complex(even.real + odd.imag, even.imag - odd.real)
        return result
