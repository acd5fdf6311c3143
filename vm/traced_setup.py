"""Traces a setup function: runs it for some sizes and notes the memory and the commands that it asks for.

A setup (docs/dynamic-shapes.md) is straight-line code: arithmetic on sizes, assertions, allocations, recordings. A
traced setup calls the functions of this file instead of the module `hal`, and makes nothing on the device: an
allocation gives a buffer that the caller passed, and a recording is a list. `indirect_setup.py` compares the traces of
two sizes.
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

#: effects of instructions that a traced function may have, if they read no ref; it may also call `TraceHal`'s functions
_TRACEABLE_EFFECTS = frozenset((Effect.CONSTANT, Effect.NULL, Effect.COPY, Effect.PURE, Effect.TRAP, Effect.LOAD))


class Dispatch(NamedTuple):
    """A dispatch. `buffers`, `slots`, `offsets` and `lengths` are those of its bindings; a slot counts if its buffer is
    None.
    """

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
    """A barrier between commands."""


Command = Dispatch | Transfer | Barrier
BARRIER = Barrier()


class Traced(NamedTuple):
    """The trace of a setup for one set of sizes. `results`: what the setup returns. Its recordings are those in
    `records`, and the reader of this replaces their `commands` by command buffers.
    """

    sizes: list[int]  #: bytes of each allocation
    records: list[tuple[Recording, int, list[Command]]]  #: the recording, its slots, its commands
    results: tuple[Any, ...]


class Misfit(Exception):
    """Memory and recordings for larger sizes cannot serve these sizes."""


class Untraceable(Misfit):
    """The function allocates more often than it was given buffers, or uses a recording that it did not create."""


class Tracer:
    """Takes the place of the running call in a traced setup. `buffers`: for its allocations, in order."""

    __slots__ = (
        "block", "buffers", "commands", "memory", "pending_batch", "records", "regs", "results", "sizes", "stack",
    )  # fmt: skip

    def __init__(self, memory: Any, buffers: Sequence[Buffer] | None) -> None:
        self.memory = memory
        self.buffers = buffers
        self.sizes: list[int] = []
        self.records: list[tuple[Recording, int, list[Command]]] = []
        self.commands: dict[int, list[Command]] = {}  #: of the recordings in `records`, by `id`
        # read by the function's return
        self.stack: list[Any] = []
        self.pending_batch = None
        self.results: tuple[Any, ...] = ()
        self.regs: Any = None
        self.block: Any = None

    def commands_of(self, recording: Recording) -> list[Command]:
        """The traced commands of a recording. `Untraceable` for one that the setup did not create, from a global."""
        found = self.commands.get(id(recording))
        if found is None:
            raise Untraceable("it uses a recording that it did not create")
        return found


class TraceHal(NativeModule):
    """The functions of `hal` that a traced setup may call."""

    name: ClassVar[str] = "hal"

    @native("allocate", HAL_IMPORTS["hal.allocate"].signature)
    def allocate(self, tracer: Tracer, size: int) -> Buffer:
        if size < 0:
            raise Trap(f"allocation of {size} bytes")
        number = len(tracer.sizes)
        tracer.sizes.append(size)
        if tracer.buffers is None:
            return Buffer.__new__(Buffer)  # a stand-in whose fields are not used
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
        tracer.commands[id(recording)] = commands
        return recording

    @native("recording.parameters", HAL_IMPORTS["hal.recording.parameters"].signature)
    def parameters(self, tracer: Tracer, recording: Recording, *words: int) -> None:
        tracer.commands_of(recording)
        recording.parameters = struct.pack(f"<{len(words)}I", *[word & 0xFFFFFFFF for word in words])

    @native("recording.dispatch", HAL_IMPORTS["hal.recording.dispatch"].signature, nullable=(6,))
    def dispatch(
        self, tracer: Tracer, recording: Any, executable: Executable, entry: int, x: int, y: int, z: int, *groups: Any
    ) -> None:
        ranges = groups[0::4], groups[1::4], groups[2::4], groups[3::4]
        tracer.commands_of(recording).append(Dispatch(executable, entry, (x, y, z), recording.parameters, *ranges))
        recording.parameters = b""

    @native("recording.copy", HAL_IMPORTS["hal.recording.copy"].signature, nullable=(1, 4))
    def copy(self, tracer: Tracer, recording: Any, *operands: Any) -> None:
        source, slot, offset, target, target_slot, target_offset, length = operands
        ranges = (source, target), (slot, target_slot), (offset, target_offset), (length, length)
        tracer.commands_of(recording).append(Transfer(*ranges, b""))

    @native("recording.fill", HAL_IMPORTS["hal.recording.fill"].signature, nullable=(1,))
    def fill(self, tracer: Tracer, recording: Any, *operands: Any) -> None:
        target, slot, offset, length, pattern, size = operands
        if size not in FILL_SIZES:
            raise Trap(f"fill pattern of {size} bytes, expected 1, 2, 4 or 8")
        data = (pattern & (1 << 8 * size) - 1).to_bytes(size, "little")
        tracer.commands_of(recording).append(Transfer((target,), (slot,), (offset,), (length,), data))

    @native("recording.barrier", HAL_IMPORTS["hal.recording.barrier"].signature)
    def barrier(self, tracer: Tracer, recording: Any) -> None:
        tracer.commands_of(recording).append(BARRIER)

    @native("recording.finish", HAL_IMPORTS["hal.recording.finish"].signature)
    def finish(self, tracer: Tracer, recording: Recording) -> None:
        tracer.commands_of(recording)


_HAL = TraceHal()


def untraceable(code: Code) -> str:
    """The reason why a function cannot be traced; empty if it can."""
    *body, last = code.decoded
    if last.row.effect is not Effect.RETURN:
        return "it does not end with a return"
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
    return row.effect in _TRACEABLE_EFFECTS and not any(
        [spec.kind == "ref" and not spec.result for spec in row.operands]
    )


class SetupTrace:
    """The code of a setup that can be traced, linked with `TraceHal`."""

    __slots__ = ("_code", "length")

    def __init__(self, code: Code) -> None:
        link = Link(code.link.names, [_HAL.find(name) for name in code.link.names])
        self._code = code.relinked(link)
        self.length = code.length  #: in units of fuel

    def run(
        self, values: list[Any], memory: Any, arguments: Sequence[int], buffers: Sequence[Buffer] | None = None
    ) -> Traced:
        """Trace the setup. `values`: the globals of the context. `arguments`: the sizes. `buffers`: the results of
        allocations; None: stand-ins.

        Raises what the setup raises, such as `CallerError` for sizes that it refuses, or `Untraceable`.
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
