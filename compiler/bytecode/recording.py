"""A recording as instructions: the calls that record each command, once.

A binding is (buffer, slot, offset, length); a null buffer means the slot.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrion.compiler.ir.attributes import DictAttr, IntegerAttr
from orchestrion.compiler.ir.core import BlockArgument, Operation, Value
from orchestrion.compiler.sequencer import ll_seq

from .emitter import Emitter

Memory = tuple[Value | None, int]


def emit_recording(
    record: ll_seq.Record,
    emitter: Emitter,
    values: dict[Value, Value],
    executables: Mapping[str, ll_seq.Executable],
) -> Value:
    """Emits the whole recording; gives the value that holds it."""
    body = record.body.block
    recording = emitter.value("hal.recording.create", len(body.arguments))
    commands = _Commands(recording, emitter, values, executables)
    for op in body:
        emitter.new_scope()
        with emitter.builder.at(op.loc):
            commands.op(op)
    return recording


class _Commands:
    def __init__(
        self,
        recording: Value,
        emitter: Emitter,
        values: dict[Value, Value],
        executables: Mapping[str, ll_seq.Executable],
    ) -> None:
        self.recording = recording
        self.emitter = emitter
        self.values = values
        self.executables = executables

    def op(self, op: Operation) -> None:
        call, recording = self.emitter.call, self.recording
        match op:
            case ll_seq.Dispatch():
                self._dispatch(op)
            case ll_seq.Copy():
                source = (*self._memory(op.source), op.source_offset.value)
                target = (*self._memory(op.target), op.target_offset.value)
                call("hal.recording.copy", recording, *source, *target, op.length.value)
            case ll_seq.Fill():
                pattern = int.from_bytes(op.value.data, "little")
                target = (*self._memory(op.target), op.offset.value)
                call("hal.recording.fill", recording, *target, op.length.value, _signed(pattern), op.value.itemsize)
            case ll_seq.Barrier():
                call("hal.recording.barrier", recording)
            case ll_seq.End():
                call("hal.recording.finish", recording)
            case _:
                raise AssertionError(f"{op.name} in a recording")

    def _memory(self, value: Value) -> Memory:
        if isinstance(value, BlockArgument):
            return None, value.index
        return self.values[value], 0

    def _dispatch(self, op: ll_seq.Dispatch) -> None:
        entries = [e for e in self.executables[op.entry.root].body.block if isinstance(e, ll_seq.Entry)]
        ordinal, entry = next((i, e) for i, e in enumerate(entries) if e.sym_name.value == op.entry.nested[0])
        operands: list[Value | int | None] = []
        for memory, offset, binding in zip(op.bindings, op.offsets.ints, entry.bindings, strict=True):
            assert isinstance(binding, DictAttr)
            length = binding.get("length")
            assert isinstance(length, IntegerAttr)
            operands += (*self._memory(memory), offset, length.value)
        executable = self.values[op.executable]
        workload = entry.workload.ints
        self.emitter.call("hal.recording.dispatch", self.recording, executable, ordinal, *workload, *operands)


def _signed(pattern: int) -> int:
    """64 bits as the immediate that holds them."""
    return pattern - (1 << 64) if pattern >> 63 else pattern
