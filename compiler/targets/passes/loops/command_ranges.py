"""The ranges of memory that the commands of a loop access, with their element types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.sequencer import ll_seq


class Range(NamedTuple):
    """A range of bytes. `dtype`: the element type; empty if the command does not say."""

    memory: Value
    offset: int
    length: int
    dtype: str


@dataclass(frozen=True)
class CommandRanges:
    """The ranges that the commands of a loop access, in their order."""

    tables: SymbolTables
    ranges: list[Range]

    @classmethod
    def of(cls, loop: ll_seq.Loop, tables: SymbolTables) -> CommandRanges:
        """The ranges of all commands in a loop. The state of the loop counts where other commands access it."""
        found = cls(tables, [])
        found.ranges.extend(one for op in loop.walk() for one in found.of_command(op))
        return found

    def entry_of(self, op: ll_seq.Dispatch) -> ll_seq.Entry:
        """The entry of a dispatch."""
        entry = self.tables.lookup(op, op.entry)
        assert isinstance(entry, ll_seq.Entry)
        return entry

    def of_command(self, op: Operation) -> Iterator[Range]:
        """The ranges that a command accesses."""
        match op:
            case ll_seq.Dispatch():
                entry = self.entry_of(op)
                types = _types(entry)
                for number, (memory, offset) in enumerate(zip(op.bindings, op.offsets.ints, strict=True)):
                    yield Range(memory, offset, int(ll_seq.length_of(entry.bindings.items[number])), types[number])
            case ll_seq.Fill():
                yield Range(op.target, int(op.offset), int(op.length), str(op.value.type.element))
            case ll_seq.Copy() if not _is_state(op):
                yield Range(op.source, int(op.source_offset), int(op.length), "")
                yield Range(op.target, int(op.target_offset), int(op.length), "")

    def copies(self, op: ll_seq.Copy) -> Iterable[tuple[ll_seq.Copy, str]]:
        """Copies of the ranges that matter, with their element types: of a state those that commands access."""
        known: dict[tuple[int, int], str] = {}
        size, starts = int(op.length), (int(op.source_offset), int(op.target_offset))
        for memory, offset, length, dtype in self.ranges:
            for side, start in zip((op.source, op.target), starts, strict=True):
                at = offset - start
                if memory is side and 0 <= at and at + length <= size:
                    known[at, length] = known.get((at, length)) or dtype
        if not _is_state(op):
            known = {(0, size): known.get((0, size), "")}
        for (at, length), dtype in known.items():
            made = ll_seq.Copy.build(
                source=op.source,
                source_offset=starts[0] + at,
                target=op.target,
                target_offset=starts[1] + at,
                length=length,
                loc=op.loc,
            )
            yield made, dtype or ("ui8" if length % 4 else "ui32")


def _is_state(op: ll_seq.Copy) -> bool:
    """Whether a copy moves the next state of a loop over the present one."""
    made = op.target.defining_op
    return isinstance(made, ll_seq.Allocate) and made.lifetime.value == "state" and op.length == made.size


def _types(entry: ll_seq.Entry) -> list[str]:
    """The element type of each binding of an entry whose body is not lowered."""
    found = ["ui8"] * len(entry.bindings)
    for op in entry.body.block:
        if isinstance(op, ll_seq.LoadInput | ll_seq.StoreOutput):
            assert isinstance(op.value.type, TensorType)
            found[entry.body.block.arguments.index(op.binding)] = str(op.value.type.element)  # type: ignore[arg-type]
    return found
