"""Runs a setup function for the sizes of a call, and notes what it would allocate and record.

A setup (docs/dynamic-shapes.md) is straight-line code: arithmetic on sizes, assertions, allocations, recordings. Run
with the functions of this file in place of the module `hal`, it makes nothing on the device: an allocation gives a
buffer that was handed in, and a recording is a list. `indirect_setup.py` compares what two sizes give.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from orchestrion.hal.buffer import Buffer
from orchestrion.hal.command_buffer import FILL_SIZES
from orchestrion.hal.executable import Executable
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.isa import Effect, Instruction

from .code import Code, Link
from .errors import Trap
from .native import NativeModule, native
from .ops.table import CALL, GLOBALS
from .recording import MAX_SLOTS, Recording

#: effects of a traced function's instructions, beside calls of the functions of `TraceHal`; none of them reads a ref
_EFFECTS = frozenset((Effect.CONSTANT, Effect.NULL, Effect.COPY, Effect.PURE, Effect.TRAP, Effect.LOAD))
#: a binding's source in a recording: a buffer, or the number of a slot
Source = Buffer | int


class Dispatch(NamedTuple):
    executable: Executable
    entry: int
    workload: tuple[int, int, int]
    parameters: bytes
    buffers: tuple[Buffer | None, ...]
    slots: tuple[int, ...]
    offsets: tuple[int, ...]
    lengths: tuple[int, ...]


class Transfer(NamedTuple):
    """A copy from the first range to the second, or a fill of the only one with `pattern`."""

    buffers: tuple[Buffer | None, ...]
    slots: tuple[int, ...]
    offsets: tuple[int, ...]
    lengths: tuple[int, ...]
    pattern: bytes


class Barrier(NamedTuple):
    pass


Command = Dispatch | Transfer | Barrier
BARRIER = Barrier()


class Traced(NamedTuple):
    """What a setup does for one set of sizes. `results` holds what it gives; recordings in it are those in `records`,
    whose `commands` the reader of this replaces.
    """

    sizes: list[int]  #: bytes of each allocation
    records: list[tuple[Recording, int, list[Command]]]  #: the recording, its slots, its commands
    results: tuple[Any, ...]


class Misfit(Exception):
    """Memory and recordings for larger sizes do not serve these."""


class Untraceable(Misfit):
    """The function allocates more than it was given memory for."""


class Tracer:
    """Stands where a setup expects the running call. `buffers`: for its allocations, in order."""

    __slots__ = ("block", "buffers", "memory", "pending_batch", "records", "regs", "results", "sizes", "stack")

    def __init__(self, memory: Any, buffers: Sequence[Buffer] | None) -> None:
        self.memory = memory
        self.buffers = buffers
        self.sizes: list[int] = []
        self.records: list[tuple[Recording, int, list[Command]]] = []
        # what the end of a function looks at
        self.stack: list[Any] = []
        self.pending_batch = None
        self.results: tuple[Any, ...] = ()
        self.regs: Any = None
        self.block: Any = None


class TraceHal(NativeModule):
    """The functions of `hal` that a setup calls."""

    name: ClassVar[str] = "hal"

    @native("allocate", HAL_IMPORTS["hal.allocate"].signature)
    def allocate(self, tracer: Tracer, size: int) -> Buffer:
        if size < 0:
            raise Trap(f"allocation of {size} bytes")
        number = len(tracer.sizes)
        tracer.sizes.append(size)
        if tracer.buffers is None:
            return Buffer.__new__(Buffer)  # stands for one: nothing of it is used
        if number >= len(tracer.buffers):
            raise Untraceable("it allocates more often than for other sizes")
        return tracer.buffers[number]

    @native("recording.create", HAL_IMPORTS["hal.recording.create"].signature)
    def create(self, tracer: Tracer, slots: int) -> Recording:
        if not 0 <= slots <= MAX_SLOTS:
            raise Trap(f"a recording with {slots} slots, at most {MAX_SLOTS} are allowed")
        commands: Any = []
        recording = Recording(commands, tracer.memory)
        tracer.records.append((recording, slots, commands))
        return recording

    @native("recording.parameters", HAL_IMPORTS["hal.recording.parameters"].signature)
    def parameters(self, tracer: Tracer, recording: Recording, *words: int) -> None:
        recording.parameters = struct.pack(f"<{len(words)}I", *[word & 0xFFFFFFFF for word in words])

    @native("recording.dispatch", HAL_IMPORTS["hal.recording.dispatch"].signature, nullable=(6,))
    def dispatch(
        self, tracer: Tracer, recording: Any, executable: Executable, entry: int, x: int, y: int, z: int, *groups: Any
    ) -> None:
        ranges = groups[0::4], groups[1::4], groups[2::4], groups[3::4]
        recording.commands.append(Dispatch(executable, entry, (x, y, z), recording.parameters, *ranges))
        recording.parameters = b""

    @native("recording.copy", HAL_IMPORTS["hal.recording.copy"].signature, nullable=(1, 4))
    def copy(self, tracer: Tracer, recording: Any, *operands: Any) -> None:
        source, slot, offset, target, target_slot, target_offset, length = operands
        ranges = (source, target), (slot, target_slot), (offset, target_offset), (length, length)
        recording.commands.append(Transfer(*ranges, b""))

    @native("recording.fill", HAL_IMPORTS["hal.recording.fill"].signature, nullable=(1,))
    def fill(self, tracer: Tracer, recording: Any, *operands: Any) -> None:
        target, slot, offset, length, pattern, size = operands
        if size not in FILL_SIZES:
            raise Trap(f"fill pattern of {size} bytes, expected 1, 2, 4 or 8")
        data = (pattern & (1 << 8 * size) - 1).to_bytes(size, "little")
        recording.commands.append(Transfer((target,), (slot,), (offset,), (length,), data))

    @native("recording.barrier", HAL_IMPORTS["hal.recording.barrier"].signature)
    def barrier(self, tracer: Tracer, recording: Any) -> None:
        recording.commands.append(BARRIER)

    @native("recording.finish", HAL_IMPORTS["hal.recording.finish"].signature)
    def finish(self, tracer: Tracer, recording: Recording) -> None:
        """Nothing to do."""


_HAL = TraceHal()


def untraceable(code: Code) -> str:
    """Why a function is no setup that can be traced; empty if it is one."""
    *body, last = code.decoded
    if last.row.effect is not Effect.RETURN:
        return "it does not end where it is written last"
    if code.link.placed:
        return "it is profiled"
    for instruction in body:
        row = instruction.row
        if row.effect is Effect.NATIVE:
            ordinal: Any = instruction.operands[0]
            called = code.link.names[ordinal]
            if code.link.imports[ordinal] is None or _HAL.find(called) is None:
                return f"it calls {called}"
        elif not _is_traced(row):
            return f"it uses {row.name}"
    return ""


def _is_traced(row: Instruction) -> bool:
    return row.effect in _EFFECTS and not any([spec.kind == "ref" and not spec.result for spec in row.operands])


class SetupTrace:
    """A setup that can be traced: its code, linked with `TraceHal`."""

    __slots__ = ("_code", "length")

    def __init__(self, code: Code) -> None:
        link = Link(code.link.names, [_HAL.find(name) for name in code.link.names])
        self._code = code.linked(link)
        self.length = code.length  #: in units of fuel

    def run(
        self, values: list[Any], memory: Any, arguments: Sequence[int], buffers: Sequence[Buffer] | None = None
    ) -> Traced:
        """`values`: the globals of the context. `buffers`: what allocations give; None: objects that stand for some.

        Raises what the setup raises: `CallerError` for sizes that it refuses, `Trap`; or `Untraceable`.
        """
        code = self._code
        entry = code.entry()
        frame = code.template.copy()
        for register, value in zip(code.parameters, arguments, strict=True):
            frame[register] = value
        tracer = Tracer(memory, buffers)
        frame[GLOBALS], frame[CALL] = values, tracer
        for op in entry.ops:
            op(frame)
        entry.end(frame)
        return Traced(tracer.sizes, tracer.records, tracer.results)
