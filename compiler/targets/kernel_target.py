"""Base class of targets whose entries are `kernel` IR, lowered by schedules for a machine."""

from typing import NamedTuple, Self

from orchestrion.compiler.ir.core import Block, Operation
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import Choice, choose
from orchestrion.compiler.kernel.lower import lower_entry
from orchestrion.compiler.kernel.signature import Signature, signature_of
from orchestrion.compiler.profiles import DEFAULT
from orchestrion.compiler.sequencer.level_code import code_of
from orchestrion.compiler.sequencer.ll_seq import Entry, Executable

from .target import Target


class KernelTarget(Target):
    """A target that has a row in `machines` for each kind of device, and serializes `kernel` IR."""

    def choose(self, body: Body, machine: str = DEFAULT) -> Choice:
        return choose(body, self.row(machine))

    def lower(self, entry: Operation, machine: str = DEFAULT) -> None:
        lower_entry(entry, self.row(machine))


class Lowered(NamedTuple):
    """The lowered entries of an executable: their bodies with their signatures, the features that they need, and the
    most bytes of shared memory of a workgroup of any entry.
    """

    entries: list[tuple[Block, Signature]]
    features: frozenset[str]
    shared_bytes: int

    @classmethod
    def of(cls, executable: Operation) -> Self:
        """The entries of an `ll_seq.executable`. Raises CompileError if one is not lowered."""
        assert isinstance(executable, Executable)
        entries = executable.body.block.of(Entry)
        signatures = [signature_of(entry) for entry in entries]
        return cls(
            [(code_of(entry), signature) for entry, signature in zip(entries, signatures, strict=True)],
            frozenset[str]().union(*(signature.features for signature in signatures)),
            max(signature.shared_bytes for signature in signatures),
        )
