"""The functions of `hal` that record commands and submit them, as called by an analysed function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from orchestrion.hal.command_buffer import PREDICATE_BYTES

from .facts import Binding, Called, Command, Read, Run
from .values import NULL, BufferRef, ExecutableRef, Quantity, RecordingRef, Value, ViewRef, number, quantity_of

if TYPE_CHECKING:
    from .instructions import Frame


def buffers_of(value: Value) -> tuple[int, ...] | None:
    """The rows of the buffers that a value may be, directly or under a view; None if it may be others."""
    if value is None:
        return None
    found = []
    for atom in value:
        if isinstance(atom, BufferRef):
            found.append(atom.row)
        elif isinstance(atom, ViewRef):
            found.append(atom.buffer)
        else:
            return None
    return tuple(sorted(found))


def recordings_of(value: Value) -> tuple[RecordingRef, ...]:
    """The recordings that a value may be; empty if it may be something else."""
    found = [atom for atom in value or () if isinstance(atom, RecordingRef)]
    return tuple(sorted(found, key=lambda row: (row.function, row.pc))) if value and len(found) == len(value) else ()


def called(frame: Frame, pc: int, name: str, arguments: Sequence[Value]) -> None:
    """Notes the call of a function that may do anything with its arguments."""
    rows = {row for value in arguments for row in buffers_of(value) or ()}
    frame.block.events.append(Called(pc, name, tuple(sorted(rows))))


def _binding(buffer: Value, slot: Value, offset: Value, length: Value) -> Binding:
    place = quantity_of(slot) if buffer == NULL else None
    rows = () if isinstance(place, int) else buffers_of(buffer)
    return Binding(rows, place if isinstance(place, int) else None, quantity_of(offset), quantity_of(length))


def _add(frame: Frame, recording: Value, command: Command) -> None:
    frame.block.commands.extend((row, command) for row in recordings_of(recording))


def _parameters(frame: Frame, pc: int, arguments: Sequence[Value]) -> None:
    for recording in recordings_of(arguments[0]):
        frame.words[recording] = tuple(map(quantity_of, arguments[1:]))


def _dispatch(frame: Frame, pc: int, arguments: Sequence[Value]) -> None:
    recording, executable, entry, *workload = arguments[:6]
    groups = zip(arguments[6::4], arguments[7::4], arguments[8::4], arguments[9::4], strict=True)
    bindings = tuple(_binding(*group) for group in groups)
    words: tuple[Quantity | None, ...] = ()
    for row in recordings_of(recording):
        words = frame.words.pop(row, ())
    ordinals = tuple(sorted(atom.ordinal for atom in executable or () if isinstance(atom, ExecutableRef)))
    sizes = tuple(map(quantity_of, workload))
    place = frame.code.ordinal, pc
    _add(frame, recording, Command("dispatch", *place, bindings, ordinals, quantity_of(entry), sizes, words))


def _copy(frame: Frame, pc: int, arguments: Sequence[Value]) -> None:
    recording, source, slot, offset, target, target_slot, target_offset, length = arguments
    bindings = _binding(source, slot, offset, length), _binding(target, target_slot, target_offset, length)
    _add(frame, recording, Command("copy", frame.code.ordinal, pc, bindings))


def _fill(frame: Frame, pc: int, arguments: Sequence[Value]) -> None:
    recording, target, slot, offset, length, *_ = arguments
    _add(frame, recording, Command("fill", frame.code.ordinal, pc, (_binding(target, slot, offset, length),)))


def _loop(frame: Frame, pc: int, arguments: Sequence[Value]) -> None:
    recording, predicate, slot, offset = arguments
    binding = _binding(predicate, slot, offset, number(PREDICATE_BYTES))
    _add(frame, recording, Command("loop", frame.code.ordinal, pc, (binding,)))


def _branch(frame: Frame, pc: int, arguments: Sequence[Value]) -> None:
    recording, selector, slot, offset, length, _ = arguments
    _add(frame, recording, Command("branch", frame.code.ordinal, pc, (_binding(selector, slot, offset, length),)))


def _nesting(kind: str) -> Callable[[Frame, int, Sequence[Value]], None]:
    def nested(frame: Frame, pc: int, arguments: Sequence[Value]) -> None:
        _add(frame, arguments[0], Command(kind, frame.code.ordinal, pc, ()))

    return nested


def _run(how: str, first: int) -> Callable[[Frame, int, Sequence[Value]], None]:
    """`first`: the index of the argument that is slot 0."""

    def run(frame: Frame, pc: int, arguments: Sequence[Value]) -> None:
        slots = tuple(map(buffers_of, arguments[first:]))
        frame.block.events.append(Run(pc, how, recordings_of(arguments[0]), slots))

    return run


def _read(frame: Frame, pc: int, arguments: Sequence[Value]) -> None:
    buffer, offset, length = arguments
    frame.block.events.append(Read(pc, buffers_of(buffer), quantity_of(offset), quantity_of(length)))


#: function of `hal` without a relevant result -> function that notes a call of it
RECORDED: Final[dict[str, Callable[[Frame, int, Sequence[Value]], None]]] = {
    "hal.recording.parameters": _parameters,
    "hal.recording.dispatch": _dispatch,
    "hal.recording.copy": _copy,
    "hal.recording.fill": _fill,
    "hal.recording.begin_loop": _loop,
    "hal.recording.begin_branch": _branch,
    "hal.recording.next_arm": _nesting("next_arm"),
    "hal.recording.end": _nesting("end"),
    "hal.execute": _run("execute", 1),
    "hal.enqueue": _run("enqueue", 1),
    "hal.submit": _run("submit", 3),
    "hal.read": _read,
}
