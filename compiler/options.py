"""Options of a compilation. Passes read them, without knowing the table of passes (`pipeline.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrion.compiler.profiles import DEFAULT
from orchestrion.compiler.sequencer.arena import MAX_ALLOCATION
from orchestrion.compiler.steps import Steps

if TYPE_CHECKING:
    from orchestrion.compiler.provenance import Recorder
    from orchestrion.compiler.targets.schedule_file import SavedSchedules


class Choice(NamedTuple):
    """An option with one of several values: what it decides, and value -> meaning, the default first."""

    doc: str
    values: dict[str, str]


#: Name of an option with one of several values -> its row.
CHOICES: Final[dict[str, Choice]] = {
    "levels": Choice("programs of a target with several profiles", {
        "all": "the best one, and one for devices that cannot run it",
        "first": "the best one alone",
    }),
    "encodings": Choice("layout of the operands of dots in memory", {
        "default": "chosen by each target, for dots that become faster",
        "none": "row-major order",
        "always": "chosen by each target, for dots of any size",
        "test": "odd tiles with padding, in another order, on every target; slow, for tests of the compiler",
    }),
    "callbacks": Choice("calls of Python functions", {
        "refuse": "the program is refused",
        "drop": "those with unused results are left out, others are refused",
    }),
    "quantized": Choice("arithmetic on quantized types", {
        "integer": "exact sums of integers, rounded once per op",
        "float": "in floats, as the specification writes it",
    }),
    "lapack": Choice("calls of LAPACK", {
        "default": "library calls on targets that have them and become faster, otherwise loops",
        "loops": "loops on every target, so that no device needs a library",
    }),
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Options that a caller gives and passes read.

    `targets`: keys of `schema.profiles.PROFILES`, best first. `machines`: keys of `profiles.MACHINES`, best first.
    `parameter_arguments`: names of arguments that lie outside the module. `max_allocation`: bytes above which an arena
    or a pool of constants is split. `target_cpu`: levels of target `cpu`, empty for those of the host. `encodings`,
    `callbacks`, `quantized`, `lapack`: values of `CHOICES`. `steps`: is notified of each pass.
    """

    targets: tuple[str, ...]
    encodings: str = "default"
    machines: tuple[str, ...] = (DEFAULT,)
    parameter_arguments: tuple[str, ...] = ()
    max_allocation: int = MAX_ALLOCATION
    callbacks: str = "refuse"
    quantized: str = "integer"
    lapack: str = "default"
    target_cpu: tuple[str, ...] = ()
    steps: Steps = field(default_factory=Steps, compare=False)


@dataclass(frozen=True)
class Options(Settings):
    """Options of the passes of a compilation.

    `recorder`: is notified of decisions, for a placement report. `parameters`: large constants lie outside the module.
    `schedules`: those of a file, which replace chosen ones. `float_sums`: all machines sum integers in f32 at least as
    fast as in i32. `widened_by_dots`: types that dots widen themselves, since a machine multiplies bf16 faster then, or
    all machines f16.
    """

    recorder: Recorder | None = None
    parameters: bool = False
    schedules: SavedSchedules | None = None
    float_sums: bool = True
    widened_by_dots: frozenset[str] = frozenset()
