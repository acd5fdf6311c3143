"""What a compilation is asked for: passes read it, and know nothing of the table of passes (`pipeline.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.kernel.machine import DEFAULT
from orchestrion.compiler.sequencer.arena import MAX_ALLOCATION
from orchestrion.compiler.steps import Steps

if TYPE_CHECKING:
    from orchestrion.compiler.provenance import Recorder
    from orchestrion.compiler.targets.schedule_file import SavedSchedules

#: how the operands of dots are laid out
ENCODINGS: Final[dict[str, str]] = {
    "default": "as each target gains by it",
    "none": "in row-major order",
    "always": "as each target likes it, for dots of any size",
    "test": "in odd tiles, padded, in another order, on every target: slow, and it finds what depends on the order",
}
#: what becomes of calls of Python
CALLBACKS: Final[dict[str, str]] = {
    "refuse": "the program is refused",
    "drop": "those whose results nobody needs are left out, others are refused",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What a compilation is asked for. `targets` are names of `schema.profiles.PROFILES`, best first; `encodings` is
    one of `ENCODINGS`, `machines` are names of `kernel.machine.MACHINES`, best first. `recorder`: who is told what was
    decided, for a placement report. `parameters`: large constants lie outside the module, and so do the arguments
    called `parameter_arguments`. `max_allocation`: bytes above which an arena or a pool of constants is split into
    several. `callbacks`: one of `CALLBACKS`. `schedules`: those of a file, which go before the table's. `steps`: is
    told of each pass.
    """

    targets: tuple[str, ...]
    encodings: str = "default"
    machines: tuple[str, ...] = (DEFAULT,)
    recorder: Recorder | None = None
    parameters: bool = False
    parameter_arguments: tuple[str, ...] = ()
    max_allocation: int = MAX_ALLOCATION
    callbacks: str = "refuse"
    schedules: SavedSchedules | None = None
    steps: Steps = field(default_factory=Steps, compare=False)
