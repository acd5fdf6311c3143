"""The reference target: tensor bytecode, the format of the NumPy device."""

from typing import Final

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.profiles import DEFAULT
from orchestrion.compiler.sequencer.ll_seq import Entry, Executable
from orchestrion.compiler.targets.target import Payload, Target

from .lower import lower_entry
from .serialize import serialize_executable


class ReferenceTarget(Target):
    """The target of the NumPy device. It requires no features."""

    name = "reference"

    def lower(self, entry: Operation, machine: str = DEFAULT) -> None:
        assert isinstance(entry, Entry)
        lower_entry(entry)

    def serialize(self, executable: Operation) -> Payload:
        assert isinstance(executable, Executable)
        return Payload(serialize_executable(executable), frozenset(), 0)


TARGET: Final = ReferenceTarget()
