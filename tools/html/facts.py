"""What is found by following a program's code: buffers, commands, and what each block of code does, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .values import Quantity, RecordingRef, Value, join

#: what a place holds that nobody was seen to set
_NOT_SEEN: Final[Value] = frozenset()


@dataclass
class Buffer:
    """Memory that commands work on. `kind` is "allocation", "constant", "argument" or "result"."""

    kind: str
    name: str
    size: Quantity | None  #: in bytes


class Binding(NamedTuple):
    """A range of bytes of a buffer, or of what is put into a slot when the recording runs. None: not known."""

    buffers: tuple[int, ...] | None  #: one of these; empty if it is a slot
    slot: int | None
    offset: Quantity | None
    length: Quantity | None


class Command(NamedTuple):
    """A recorded dispatch, copy or fill, by the instruction that records it."""

    kind: str
    function: int
    pc: int
    bindings: tuple[Binding, ...]
    executables: tuple[int, ...] = ()  #: of a dispatch, one of these; empty where that is not known
    entry: Quantity | None = None
    workload: tuple[Quantity | None, ...] = ()
    parameters: tuple[Quantity | None, ...] = ()


class Run(NamedTuple):
    """A recording goes to the device: `how` is the function of `hal` that sends it."""

    pc: int
    how: str
    recordings: tuple[RecordingRef, ...]  #: one of these; empty where that is not known
    slots: tuple[tuple[int, ...] | None, ...]  #: the buffers that each slot may hold


class Read(NamedTuple):
    """The host reads a number of a buffer, to decide a branch."""

    pc: int
    buffers: tuple[int, ...] | None
    offset: Quantity | None
    length: Quantity | None


class Called(NamedTuple):
    """A function of this program, or of another module, is called."""

    pc: int
    name: str
    buffers: tuple[int, ...]  #: under the views that it takes


Event = Run | Read | Called


@dataclass
class Block:
    """Instructions from `first` to before `end`, and what they do, in order."""

    first: int
    end: int
    next: tuple[int, ...]
    events: list[Event] = field(default_factory=list)
    commands: list[tuple[RecordingRef, Command]] = field(default_factory=list)


@dataclass
class Function:
    ordinal: int
    name: str
    blocks: list[Block]


@dataclass
class Summary:
    """What functions hand to each other."""

    globals: dict[int, Value] = field(default_factory=dict)
    parameters: dict[int, tuple[Value, ...]] = field(default_factory=dict)
    results: dict[int, tuple[Value, ...]] = field(default_factory=dict)

    def store(self, place: int, value: Value) -> None:
        self.globals[place] = join(self.globals.get(place, _NOT_SEEN), value)

    def call(self, function: int, values: Sequence[Value]) -> None:
        self.parameters[function] = joined(self.parameters.get(function), values)

    def give(self, function: int, values: Sequence[Value]) -> None:
        self.results[function] = joined(self.results.get(function), values)


def joined(a: tuple[Value, ...] | None, b: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(b) if a is None else tuple(map(join, a, b))
