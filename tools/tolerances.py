"""How much floats may differ: of a comparison, and in what it records.

A value may differ by `relative` times its size, plus `absolute` times the greatest size of its array
(`arrays.mismatch`). A flag counts before what was recorded, and that before the default.
"""

import argparse
import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Tolerances(NamedTuple):
    """See above."""

    relative: float
    absolute: float

    def data(self) -> dict[str, float]:
        """As a recording holds them."""
        return {"rtol": self.relative, "atol": self.absolute}

    def __str__(self) -> str:
        return f"rtol {self.relative:g}, atol {self.absolute:g}"


DEFAULT: Final = Tolerances(1e-5, 1e-6)


def chosen(options: argparse.Namespace, recorded: Tolerances = DEFAULT) -> Tolerances:
    """Those of `--expected-rtol` and `--expected-atol`; where one is missing, what was recorded."""
    relative, absolute = options.expected_rtol, options.expected_atol
    return Tolerances(
        recorded.relative if relative is None else relative, recorded.absolute if absolute is None else absolute
    )


def read(data: Mapping[str, Any]) -> Tolerances:
    """Those of a recording; the default where it has none. ValueError: they are no numbers of 0 or more."""
    found = Tolerances(data.get("rtol", DEFAULT.relative), data.get("atol", DEFAULT.absolute))
    if any(type(value) not in (int, float) or not math.isfinite(value) or value < 0 for value in found):
        raise ValueError(f"rtol {found.relative!r}, atol {found.absolute!r}")
    return found
