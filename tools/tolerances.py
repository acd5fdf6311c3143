"""The allowed differences of floats, for a comparison and in its recording.

A value may differ by `relative` times its magnitude, plus `absolute` times the greatest magnitude of its array
(`arrays.mismatch`). A flag takes precedence over a recorded tolerance, and that over the default.
"""

import argparse
import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Tolerances(NamedTuple):
    """The relative and the absolute tolerance."""

    relative: float
    absolute: float

    def data(self) -> dict[str, float]:
        """The form of recordings."""
        return {"rtol": self.relative, "atol": self.absolute}

    def __str__(self) -> str:
        return f"rtol {self.relative:g}, atol {self.absolute:g}"


DEFAULT: Final = Tolerances(1e-5, 1e-6)


def chosen(options: argparse.Namespace, recorded: Tolerances = DEFAULT) -> Tolerances:
    """The tolerances of `--expected-rtol` and `--expected-atol`; the recorded ones where a flag is missing."""
    relative, absolute = options.expected_rtol, options.expected_atol
    return Tolerances(
        recorded.relative if relative is None else relative, recorded.absolute if absolute is None else absolute
    )


def read(data: Mapping[str, Any]) -> Tolerances:
    """The tolerances of a recording; the default if it has none. Raises ValueError unless they are numbers of 0 or
    more.
    """
    found = Tolerances(data.get("rtol", DEFAULT.relative), data.get("atol", DEFAULT.absolute))
    if any(type(value) not in (int, float) or not math.isfinite(value) or value < 0 for value in found):
        raise ValueError(f"rtol {found.relative!r}, atol {found.absolute!r}")
    return found
