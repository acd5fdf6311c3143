"""Converts a recording to instructions: one call of the `hal` module per command.

A binding is (buffer, slot, offset, length) in bytes; a null buffer means the slot. The symbols of an entry are its
parameter words. The sizes select which specialization of an entry is dispatched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Value
from orchestrion.compiler.ir.types import I32, I64, Type
from orchestrion.compiler.sequencer import ll_seq

from .emitter import Emitter
from .size_emitter import SizeEmitter

Memory = tuple[Value | None, int]
#: A number as an operand of a call.
Number = Value | int
#: The entries of an executable: name -> (ordinal, entry).
_Entries = dict[str, tuple[int, ll_seq.Entry]]


@dataclass
class RecordingEmitter:
    """Emits one recording of a body whose values are converted to `values`."""

    emitter: Emitter
    values: dict[Value, Value]
    executables: Mapping[str, ll_seq.Executable]
    sizes: SizeEmitter
    recording: Value = field(init=False)
    _entries: dict[str, _Entries] = field(default_factory=dict, init=False)

    def emit(self, record: ll_seq.Record) -> Value:
        """Emits the whole recording; returns the value that holds it."""
        body = record.body.block
        has_flow = any(isinstance(op, ll_seq.Loop | ll_seq.Branch) for op in body)
        create = "hal.recording.create_control_flow" if has_flow else "hal.recording.create"
        self.recording = self.emitter.value(create, len(body.arguments))
        self._region(body)
        with self.emitter.builder.at(body.end.loc):
            self.emitter.call("hal.recording.finish", self.recording)
        return self.recording

    def _region(self, block: Block) -> None:
        """Emits the commands of a block."""
        for op in block:
            self.emitter.new_scope()
            with self.emitter.builder.at(op.loc):
                self._op(op)

    def _op(self, op: Operation) -> None:
        call, recording, number = self.emitter.call, self.recording, self.sizes.number
        match op:
            case ll_seq.Dispatch():
                self._dispatch(op)
            case ll_seq.Copy():
                source = (*self._memory(op.source), number(op.source_offset))
                target = (*self._memory(op.target), number(op.target_offset))
                call("hal.recording.copy", recording, *source, *target, number(op.length))
            case ll_seq.Fill():
                # the immediate is signed, with 64 bits
                pattern = int.from_bytes(op.value.data, "little", signed=op.value.itemsize == 8)
                target = (*self._memory(op.target), number(op.offset))
                call("hal.recording.fill", recording, *target, number(op.length), pattern, op.value.itemsize)
            case ll_seq.Barrier():
                call("hal.recording.barrier", recording)
            case ll_seq.Loop():
                call("hal.recording.begin_loop", recording, *self._memory(op.predicate), op.offset.value)
                self._region(op.body.block)
                call("hal.recording.end", recording)
            case ll_seq.Branch():
                size = ll_seq.READ_BYTES[op.type.value]
                selector = (*self._memory(op.selector), op.offset.value)
                call("hal.recording.begin_branch", recording, *selector, size, len(op.arms))
                for place, arm in enumerate(op.arms):
                    if place:
                        call("hal.recording.next_arm", recording)
                    self._region(arm.block)
                call("hal.recording.end", recording)
            case ll_seq.End():
                pass  # of the recording or of a region in it
            case _:
                raise AssertionError(f"{op.name} in a recording")

    def _memory(self, value: Value) -> Memory:
        if isinstance(value, BlockArgument):
            return None, value.index
        return self.values[value], 0

    def _dispatch(self, op: ll_seq.Dispatch) -> None:
        entries = self._entries_of(op.entry.root)
        _, entry = entries[op.entry.nested[0]]
        operands: list[Value | int | None] = []
        for memory, offset, length in op.device_bindings(entry):
            operands += (*self._memory(memory), self.sizes.number(offset), self.sizes.number(length))
        ordinal, workload = self._launch(op.entry.nested[0], entries)
        if words := list(map(self.sizes.word, op.words(entry))):
            self.emitter.call("hal.recording.parameters", self.recording, *words)
        executable = self.values[op.executable]
        self.emitter.call("hal.recording.dispatch", self.recording, executable, ordinal, *workload, *operands)

    def _entries_of(self, executable: str) -> _Entries:
        """Cached: linked executables have many entries, and a recording dispatches them many times."""
        if executable not in self._entries:
            rows = enumerate(entry for _, entry in self.executables[executable].entries())
            self._entries[executable] = {entry.sym_name.value: (ordinal, entry) for ordinal, entry in rows}
        return self._entries[executable]

    def _launch(self, name: str, entries: _Entries) -> tuple[Number, list[Number]]:
        """Ordinal and workload of the first specialization that the sizes allow, else of the entry itself."""
        own, entry = entries[name]
        ordinal: Number = own
        workload = [self.sizes.number(size) for size in entry.workload.sizes]
        for row in reversed(ll_seq.specializations_of(entry)):
            fits = self.sizes.at_most(row.size, row.most)
            number, special = entries[row.entry]
            ordinal = self._select(I32, fits, number, ordinal)
            less = [self.sizes.number(size) for size in special.workload.sizes]
            workload = [self._select(I64, fits, x, y) for x, y in zip(less, workload, strict=True)]
        return ordinal, workload

    def _select(self, type: Type, condition: Value, x: Number, y: Number) -> Number:
        """`x` if the condition is true, else `y`."""
        if x == y:
            return x
        a, b = (self.emitter.constant(str(type), item) if isinstance(item, int) else item for item in (x, y))
        return self.emitter.op(f"{type}.select", c=condition, a=a, b=b, d=type).result
