"""The deviations between two devices, per dispatch: what `vm-run --compare-report` writes and a page shows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.schema.module import Module

Array = npt.NDArray[Any]
#: the format of the file; others are refused
KIND = "orchestrion comparison 1"


@dataclass
class Deviation:
    """The deviations of the outputs of one dispatch, over all its runs. None: integers differ, or a value is not
    finite.
    """

    runs: int = 0
    absolute: float | None = 0.0  #: largest difference
    relative: float | None = 0.0  #: largest difference divided by the expected value, where that is not zero
    differs: bool = False  #: whether it exceeds the tolerances
    lines: tuple[str, ...] = ()  #: the comparison of each binding in the run that differs

    def add(self, want: Array, got: Array) -> None:
        """Add one output of one run."""
        absolute, relative = deviation(want, got)
        self.absolute = _larger(self.absolute, absolute)
        self.relative = _larger(self.relative, relative)


def deviation(want: Array, got: Array) -> tuple[float | None, float | None]:
    """The largest absolute and relative difference of floats and complex numbers; 0 if all elements are equal.

    Differences of integers are not measured, because they may be the bits of narrow floats.
    """
    if want.shape != got.shape or want.dtype != got.dtype:
        return None, None
    equal = (want == got) | ((want != want) & (got != got))
    if equal.all():
        return 0.0, 0.0
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    if want.dtype.kind not in "fc":
        return None, None
    a, b = want[~equal].astype(kind), got[~equal].astype(kind)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return None, None
    difference, size = np.abs(b - a), np.abs(a)
    return float(difference.max()), float(np.max(difference[size > 0] / size[size > 0], initial=0.0))


def _larger(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else max(a, b)


def report(
    module: Module,
    devices: tuple[str, str],
    programs: tuple[int, int],
    function: str,
    found: tuple[bool, str],
    entries: dict[str, Deviation],
) -> dict[str, Any]:
    """Plain data. `devices` and `programs` are (right, judged), `found` is (whether they agree, its description)."""
    return {
        "kind": KIND,
        "module": module.container.digest.hex(),
        "devices": list(devices),
        "programs": list(programs),
        "function": function,
        "agrees": found[0],
        "text": found[1],
        "entries": {
            name: {
                "runs": row.runs,
                "absolute": row.absolute,
                "relative": row.relative,
                "differs": row.differs,
                "lines": list(row.lines),
            }
            for name, row in entries.items()
        },
    }
