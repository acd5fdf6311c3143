"""The results of analysing a program's code: buffers, commands, and the effects of each block of code, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .values import Quantity, RecordingRef, Value, join

#: the value of a location for which no store was found yet
_NOT_SEEN: Final[Value] = frozenset()


@dataclass
class Buffer:
    """Memory that commands use. `kind` is "allocation", "constant", "argument" or "result"."""

    kind: str
    name: str
    size: Quantity | None  #: in bytes


class Binding(NamedTuple):
    """A range of bytes of a buffer, or of a slot's buffer when the recording runs. None: unknown."""

    buffers: tuple[int, ...] | None  #: the possible buffers; empty if it is a slot
    slot: int | None
    offset: Quantity | None
    length: Quantity | None


class Command(NamedTuple):
    """A recorded command, identified by the instruction that records it. `kind` is "dispatch", "copy" or "fill"; "loop"
    or "branch" with its predicate or selector as binding; "next_arm" or "end".
    """

    kind: str
    function: int
    pc: int
    bindings: tuple[Binding, ...]
    executables: tuple[int, ...] = ()  #: the possible executables of a dispatch; empty if unknown
    entry: Quantity | None = None
    workload: tuple[Quantity | None, ...] = ()
    parameters: tuple[Quantity | None, ...] = ()


class Run(NamedTuple):
    """A recording is submitted; `how` is the function of `hal` that submits it."""

    pc: int
    how: str
    recordings: tuple[RecordingRef, ...]  #: the possible recordings; empty if unknown
    slots: tuple[tuple[int, ...] | None, ...]  #: the possible buffers of each slot


class Read(NamedTuple):
    """The host reads a number from a buffer, to choose a branch."""

    pc: int
    buffers: tuple[int, ...] | None
    offset: Quantity | None
    length: Quantity | None


class Called(NamedTuple):
    """A function of this program, or of another module, is called."""

    pc: int
    name: str
    buffers: tuple[int, ...]  #: the buffers of the views that it takes


Event = Run | Read | Called


@dataclass
class Block:
    """Instructions from `first` up to, not including, `end`, and their effects, in order."""

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
    """Values that functions pass to each other."""

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
