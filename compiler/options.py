"""Options of a compilation. Passes read them, without knowing the table of passes (`pipeline.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.profiles import DEFAULT
from orchestrion.compiler.sequencer.arena import MAX_ALLOCATION
from orchestrion.compiler.steps import Steps

if TYPE_CHECKING:
    from orchestrion.compiler.provenance import Recorder
    from orchestrion.compiler.targets.schedule_file import SavedSchedules

#: Option `encodings`: how the operands of dots are laid out.
ENCODINGS: Final[dict[str, str]] = {
    "default": "as each target gains by it",
    "none": "in row-major order",
    "always": "as each target likes it, for dots of any size",
    "test": "in odd tiles, padded, in another order, on every target: slow, and it finds what depends on the order",
}
#: Option `levels`: the programs of a target with several profiles.
PROFILE_LEVELS: Final[dict[str, str]] = {
    "all": "the best one, and one for devices with less where the best one does not run there",
    "first": "the best one",
}
#: Option `callbacks`: what happens to callbacks into Python.
CALLBACKS: Final[dict[str, str]] = {
    "refuse": "the program is refused",
    "drop": "those with unused results are left out, others are refused",
}
#: Option `quantized`: the arithmetic on quantized types.
QUANTIZED: Final[dict[str, str]] = {
    "integer": "exact sums of integers, rounded once per op",
    "float": "in floats, as the specification writes it",
}
#: Option `lapack`: what becomes of calls of LAPACK, such as those that JAX's linear algebra makes on CPUs.
LAPACK: Final[dict[str, str]] = {
    "default": "as each target gains by it",
    "loops": "loops on every target, so that no device needs a library",
}
#: Option with one value of a table -> the table.
CHOICES: Final[dict[str, dict[str, str]]] = {
    "encodings": ENCODINGS,
    "levels": PROFILE_LEVELS,
    "callbacks": CALLBACKS,
    "quantized": QUANTIZED,
    "lapack": LAPACK,
}


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a compilation.

    `targets`: keys of `schema.profiles.PROFILES`, best first. `encodings`: a key of `ENCODINGS`. `machines`: keys of
    `profiles.MACHINES`, best first. `recorder`: is notified of decisions, for a placement report. `parameters`: large
    constants lie outside the module, and so do the arguments named in `parameter_arguments`. `max_allocation`: bytes
    above which an arena or a pool of constants is split. `callbacks`: a key of `CALLBACKS`. `quantized`: a key of
    `QUANTIZED`. `lapack`: a key of `LAPACK`. `schedules`: those of a file, which replace chosen ones. `target_cpu`:
    levels of target `cpu`, empty for those of the host. `float_sums`: all machines sum integers in f32 at least as fast
    as in i32. `widening_dots`: a machine multiplies bf16 faster in dots that widen their own operands. `steps`: is
    notified of each pass.
    """

    targets: tuple[str, ...]
    encodings: str = "default"
    machines: tuple[str, ...] = (DEFAULT,)
    recorder: Recorder | None = None
    parameters: bool = False
    parameter_arguments: tuple[str, ...] = ()
    max_allocation: int = MAX_ALLOCATION
    callbacks: str = "refuse"
    quantized: str = "integer"
    lapack: str = "default"
    schedules: SavedSchedules | None = None
    target_cpu: tuple[str, ...] = ()
    float_sums: bool = True
    widening_dots: bool = False
    steps: Steps = field(default_factory=Steps, compare=False)
