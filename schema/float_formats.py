"""Small binary floating-point formats: the exact meaning of their bits, without NumPy.

A format has a sign (except `f8E8M0FNU`), an exponent with a bias, and a mantissa. Exponent 0 holds zero and subnormal
numbers. The suffix of a format's name states its special values, as in MLIR and ml_dtypes. None: the greatest exponent
holds infinities and NaNs. `FN`: no infinities; the NaN has all bits set, and formats of 4 and 6 bits have none. `FNUZ`:
also no negative zero, whose bits are the NaN. `FNU`: no sign and no zero.
"""

from dataclasses import dataclass
from enum import Enum
from math import copysign, frexp, inf, isnan, ldexp, nan


class Special(Enum):
    """The special values of a format."""

    IEEE = "infinities and NaNs at the greatest exponent"
    FN = "one NaN per sign: all other bits set"
    FNUZ = "one NaN: the bits of the negative zero"
    FNU = "one NaN: all bits set; no sign, no zero"
    FINITE = "no infinities, no NaNs: larger numbers become the greatest, a NaN becomes the negative zero"


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A format: widths in bits, the bias of the exponent, and the special values."""

    exponent: int
    mantissa: int
    bias: int
    special: Special = Special.IEEE

    @property
    def bits(self) -> int:
        return self.exponent + self.mantissa + (self.special is not Special.FNU)

    @property
    def itemsize(self) -> int:
        """Bytes of a stored element."""
        return (self.bits + 7) // 8

    @property
    def nan(self) -> int:
        """The bits of the NaN that arithmetic returns; of the negative zero in a format without NaNs."""
        match self.special:
            case Special.IEEE:
                return (2 << self.exponent) - 1 << self.mantissa - 1
            case Special.FN:
                return (1 << self.bits - 1) - 1
            case Special.FNUZ | Special.FINITE:
                return 1 << self.bits - 1
            case _:
                return (1 << self.bits) - 1

    @property
    def greatest(self) -> int:
        """The bits of the greatest finite number."""
        match self.special:
            case Special.IEEE:
                return ((1 << self.exponent) - 1 << self.mantissa) - 1
            case Special.FNUZ:
                return (1 << self.bits - 1) - 1
            case _:
                return self.nan - 1

    @property
    def has_negative_zero(self) -> bool:
        return self.special not in (Special.FNUZ, Special.FNU)

    @property
    def has_nan(self) -> bool:
        return self.special is not Special.FINITE

    @property
    def least_exponent(self) -> int:
        """The exponent of the least positive number, a power of two."""
        return (0 if self.special is Special.FNU else 1) - self.bias - self.mantissa

    def value(self, bits: int) -> float:
        """The number that these bits represent; exact."""
        sign = 0 if self.special is Special.FNU else bits >> self.bits - 1
        magnitude = bits - (sign << self.bits - 1)
        if self.has_nan and (magnitude if self.special is Special.FN else bits) == self.nan:
            return nan
        if self.special is Special.FNU:
            return ldexp(1.0, bits - self.bias)
        if self.special is Special.IEEE and magnitude > self.greatest:
            special = nan if magnitude & (1 << self.mantissa) - 1 else inf
            return copysign(special, -1 if sign else 1)
        exponent, fraction = magnitude >> self.mantissa, magnitude & (1 << self.mantissa) - 1
        whole = fraction + ((1 << self.mantissa) if exponent else 0)
        return copysign(ldexp(whole, self.least_exponent + max(exponent, 1) - 1), -1 if sign else 1)

    def rounded(self, value: float) -> int:
        """The bits of the number nearest to a double, ties to even. A number that is too large becomes infinity, NaN,
        or the greatest number.
        """
        if isnan(value) or self.special is Special.FNU and value <= 0:
            return self.nan
        sign = int(copysign(1, value) < 0) << self.bits - 1 if self.special is not Special.FNU else 0
        magnitude = self._magnitude(abs(value))
        if magnitude > self.greatest:
            above = {Special.IEEE: self.greatest + 1, Special.FINITE: self.greatest}
            return sign | above.get(self.special, self.nan)
        return 0 if magnitude == 0 and self.special is Special.FNUZ else sign | magnitude

    def _magnitude(self, value: float) -> int:
        """The rounded magnitude, as if the exponent had no upper limit."""
        if value in (0, inf):
            return self.greatest + 1 if value else 0
        _, exponent = frexp(value)  # value < 2^exponent
        unit = max(exponent - 1 - self.mantissa, self.least_exponent)
        steps = round(ldexp(value, -unit)) if exponent - unit < 60 else 0
        above = unit - self.least_exponent
        if self.special is Special.FNU:
            return max(above if steps <= 1 else above + steps.bit_length() - 1, 0)
        return steps + (above << self.mantissa)
