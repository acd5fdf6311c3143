"""A recording as instructions: the calls that record each command, once.

A binding is (buffer, slot, offset, length); a null buffer means the slot. The symbols of an entry are its parameter
words; where it has code for few of something, the
entry and the workload are chosen by their number.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrion.compiler.ir.core import BlockArgument, Operation, Value
from orchestrion.compiler.ir.dims import symbol
from orchestrion.compiler.ir.types import I32
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.function_dims import rows_of

from .emitter import Emitter
from .sizes import Sizes

Memory = tuple[Value | None, int]


def emit_recording(
    record: ll_seq.Record,
    emitter: Emitter,
    values: dict[Value, Value],
    executables: Mapping[str, ll_seq.Executable],
    sizes: Sizes,
) -> Value:
    """Emits the whole recording; gives the value that holds it."""
    body = record.body.block
    recording = emitter.value("hal.recording.create", len(body.arguments))
    commands = _Commands(recording, emitter, values, executables, sizes)
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
        sizes: Sizes,
    ) -> None:
        self.recording = recording
        self.emitter = emitter
        self.values = values
        self.executables = executables
        self.sizes = sizes

    def op(self, op: Operation) -> None:
        call, recording, number = self.emitter.call, self.recording, self.sizes.number
        match op:
            case ll_seq.Dispatch():
                self._dispatch(op)
            case ll_seq.Copy():
                source = (*self._memory(op.source), number(op.source_offset))
                target = (*self._memory(op.target), number(op.target_offset))
                call("hal.recording.copy", recording, *source, *target, number(op.length))
            case ll_seq.Fill():
                pattern = int.from_bytes(op.value.data, "little")
                target = (*self._memory(op.target), number(op.offset))
                length = number(op.length)
                call("hal.recording.fill", recording, *target, length, _signed(pattern), op.value.itemsize)
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
            length = ll_seq.length_of(binding)
            operands += (*self._memory(memory), self.sizes.number(offset), self.sizes.number(length))
        executable = self.values[op.executable]
        workload: list[Value | int] = [self.sizes.number(size) for size in entry.workload.ints]
        chosen: Value | int = ordinal
        if entry.few is not None and entry.of_few is not None:
            few = self.sizes.is_less(*entry.few.ints)
            chosen = self.emitter.op("i32.add", a=self.emitter.constant("i32", ordinal), b=few, d=I32).result
            lesser = entry.of_few.workload.ints
            workload = [self.sizes.chosen(few, a, b) for a, b in zip(lesser, entry.workload.ints, strict=True)]
        words = [self.sizes.word(symbol(one.name)) for one, _ in rows_of(entry.dims)]
        if words:
            self.emitter.call("hal.recording.parameters", self.recording, *words)
        self.emitter.call("hal.recording.dispatch", self.recording, executable, chosen, *workload, *operands)


def _signed(pattern: int) -> int:
    """64 bits as the immediate that holds them."""
    return pattern - (1 << 64) if pattern >> 63 else pattern
