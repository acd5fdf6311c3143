"""Finds the submissions that calls of a function will make, without running anything on the device.

A function of the VM submits recordings with buffers in their slots. Which ones, its bytecode decides; what it decides
by are predicates that the device computes. A rehearsal interprets the bytecode with stand-ins for the functions of the
module `hal`: a submission is noted instead of made, and a predicate is a number that is made up. Several rehearsals
with different predicates find the branches and the turns of loops, whose states swap their buffers.

- Nothing is written to: neither to buffers, nor to the globals of the context, of which a rehearsal has a copy.
- A rehearsal ends early where only the device or another module could go on, where made-up predicates lead to an error
  of the program, and after `UNITS` units of fuel. What it does not find, the first call makes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from orchestrion.hal.buffer import Buffer, BufferView
from orchestrion.schema.hal_imports import HAL_IMPORTS

from .call import Call
from .code import Code, Link
from .context import Context
from .errors import VmError
from .hal_module import HalModule
from .interpreter import run
from .limits import Limits
from .native import NativeFunction, NativeModule, native
from .ops.table import CALL, GLOBALS
from .recording import Recording

if TYPE_CHECKING:
    from orchestrion.hal.queue import Work

#: units of fuel of all rehearsals of a function together: tens of milliseconds
UNITS = 1 << 18
#: rehearsals of a function whose path depends on predicates, and predicates that one of them reads at most
TRIES, READS = 12, 64
#: of four predicates so many are true: loops take some turns, and branches are found either way
_TRUE = 3
#: indices of `case` are below this
_ARMS = 8
#: functions of `hal` that compute with what they are given, and change nothing
_PURE = ("hal.view.check", "hal.view.destination", "hal.view.buffer", "hal.view.dim", "hal.view.create")


class _Ended(VmError):
    """The rehearsal cannot go on: the call would ask the device, or another module."""


class _Rehearsed(Call):
    """A call of a rehearsal. `predicate` gives the next predicate of a size in bytes."""

    __slots__ = ("found", "predicate")

    def __init__(
        self, context: Context, fuel: int, predicate: Callable[[int], int], found: dict[tuple[int, ...], Work]
    ) -> None:
        super().__init__(context, Limits(fuel=fuel))
        self.predicate = predicate
        self.found = found


class _RehearsalHal(NativeModule):
    """The functions of `hal` that a rehearsal calls in place of those of `HalModule`."""

    name: ClassVar[str] = "hal"

    def _note(self, call: _Rehearsed, recording: Recording, *buffers: Buffer) -> None:
        commands = recording.commands
        call.found.setdefault((id(commands), *map(id, buffers)), (commands, buffers))

    @native("execute", HAL_IMPORTS["hal.execute"].signature)
    def execute(self, call: _Rehearsed, recording: Recording, *buffers: Buffer) -> None:
        self._note(call, recording, *buffers)

    @native("enqueue", HAL_IMPORTS["hal.enqueue"].signature)
    def enqueue(self, call: _Rehearsed, recording: Recording, *buffers: Buffer) -> None:
        self._note(call, recording, *buffers)

    @native("read", HAL_IMPORTS["hal.read"].signature)
    def read(self, call: _Rehearsed, buffer: Buffer, offset: int, size: int) -> int:
        return call.predicate(size)


_REHEARSAL, _HAL = _RehearsalHal(), HalModule()


def rehearse(context: Context, code: Code, arguments: Sequence[BufferView | None]) -> list[Work]:
    """The recordings that calls of `code` with these views submit, each with its buffers, as far as they are found.

    The caller holds the lock of the context, whose initializers ran.
    """
    entry = _Rehearsal(context, code)
    found: dict[tuple[int, ...], Work] = {}
    reads, left = entry.run(arguments, UNITS, lambda size: 0, found)
    for seed in range(TRIES if reads else 0):
        if left <= 0:
            break
        _, left = entry.run(arguments, left, partial(_made_up, random.Random(seed)), found)
    return list(found.values())


def _made_up(numbers: random.Random, size: int) -> int:
    return int(numbers.randrange(4) < _TRUE) if size == 1 else numbers.randrange(_ARMS)


class _Rehearsal:
    """The code of a program, linked with the stand-ins."""

    def __init__(self, context: Context, code: Code) -> None:
        self._context = context
        names = code.link.names
        link = Link(names, [self._stand_in(*pair) for pair in zip(names, code.link.imports, strict=True)])
        link.codes = [one.linked(link) for one in context.program.codes]
        self._code = next(new for new, old in zip(link.codes, context.program.codes, strict=True) if old is code)

    def run(
        self,
        arguments: Sequence[BufferView | None],
        fuel: int,
        predicate: Callable[[int], int],
        found: dict[tuple[int, ...], Work],
    ) -> tuple[int, int]:
        """Add to `found`. Gives how many predicates were read, and the fuel that is left."""
        reads = 0

        def read(size: int) -> int:
            nonlocal reads
            reads += 1
            if reads > READS:
                raise _Ended("more predicates than a rehearsal reads")
            return predicate(size)

        code, call = self._code, _Rehearsed(self._context, fuel, read, found)
        entry = code.entry()
        frame = code.template.copy()
        for register, value in zip(code.parameters, arguments, strict=True):
            frame[register] = value
        frame[GLOBALS], frame[CALL] = list(self._context.globals), call
        with suppress(VmError):  # where a rehearsal ends is no error of the program
            run(call, frame, entry)
        return reads, call.fuel + (call.reserve or 0)

    def _stand_in(self, name: str, function: NativeFunction | None) -> NativeFunction | None:
        if function is None:
            return None
        found = _HAL.find(name) if name in _PURE else _REHEARSAL.find(name)
        if found is not None:
            return found
        return NativeFunction(name, function.signature, partial(_end, name), function.nullable)


def _end(name: str, call: Call, *_: Any) -> None:
    raise _Ended(f"the call goes on with {name}")
