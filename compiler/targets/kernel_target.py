"""Base class of targets whose entries are `kernel` IR, lowered by schedules for a machine."""

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import Choice, choose
from orchestrion.compiler.kernel.lower import lower_entry
from orchestrion.compiler.profiles import DEFAULT

from .target import Target


class KernelTarget(Target):
    """A target that has a row in `machines` for each kind of device, and serializes `kernel` IR."""

    def choose(self, body: Body, machine: str = DEFAULT) -> Choice:
        return choose(body, self.row(machine))

    def lower(self, entry: Operation, machine: str = DEFAULT) -> None:
        lower_entry(entry, self.row(machine))
