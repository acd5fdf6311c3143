"""Finds the submissions that calls of a function will make, without running anything on the device.

A function of the VM submits recordings with buffers in their slots. Its bytecode decides which ones, from predicates
that the device computes. A dry run interprets the bytecode with stand-ins for the functions of the module `hal`: a
submission is noted instead of made, and a predicate is a random number. Several dry runs with different predicates find
the branches and the iterations of loops, whose states swap their buffers.

- A dry run writes neither to buffers nor to the globals of the context: it has a copy of them, without lists and host
  buffers. It takes no memory, of the host or of the device (`_DryContext`).
- A dry run ends early when it calls a function of `hal` without a stand-in or a function of another module, when it
  needs memory or cached results, when random predicates lead to an error of the program, and after `FUEL` units of
  fuel. The driver prepares the submissions that were found; the others are prepared by the first call that makes them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from orchestrion.hal.buffer import Buffer, BufferView
from orchestrion.schema.hal_imports import HAL_IMPORTS

from .call import Call
from .code import Code, Link
from .context import Context
from .errors import VmError
from .hal_module import HalModule
from .interpreter import run
from .limits import NO_LIMITS, Limits
from .memory import Memory
from .native import NativeFunction, NativeModule, native
from .ops.table import CALL, GLOBALS
from .recording import Recording
from .refs import HostBuffer, TypedList

if TYPE_CHECKING:
    from orchestrion.hal.queue import Work

#: units of fuel of all dry runs of a function together: tens of milliseconds
FUEL = 1 << 18
#: dry runs of a function with predicates, and predicates that one dry run may read
MAX_RUNS, MAX_READS = 12, 64
#: of four predicates, three are true on average: loops run several iterations, and both sides of a branch are found
_TRUE_OF_FOUR = 3
#: random indices of `case` are below this
_MAX_CASES = 8
#: functions of `hal` that depend on their arguments alone and change nothing
_PURE = ("hal.view.check", "hal.view.destination", "hal.view.buffer", "hal.view.dim", "hal.view.create")


class _DryRunEnded(VmError):
    """The dry run cannot go on: the call needs the device or another module."""


class _DryContext:
    """The context of a dry run. What needs a device, memory or cached results ends the dry run."""

    device = lost = result_buffers = None
    cancelled = False

    def __init__(self, context: Context) -> None:
        self.program = context.program
        self.limits = NO_LIMITS
        self.memory = Memory(0)
        #: lists and host buffers belong to the context, so a dry run must not change them
        self.globals = [None if isinstance(one, TypedList | HostBuffer) else one for one in context.globals]

    @property
    def memo_cache(self) -> NoReturn:
        raise _DryRunEnded("cached results belong to calls")


class _DryCall(Call):
    """A call of a dry run. `predicate(size)` gives the next predicate, of `size` bytes. `found`: the submissions."""

    __slots__ = ("found", "predicate")

    def __init__(
        self, context: Any, fuel: int, predicate: Callable[[int], int], found: dict[tuple[int, ...], Work]
    ) -> None:
        super().__init__(context, Limits(fuel=fuel))
        self.predicate = predicate
        self.found = found


class _DryHal(NativeModule):
    """The functions of `hal` that a dry run calls instead of those of `HalModule`."""

    name: ClassVar[str] = "hal"

    def _note(self, call: _DryCall, recording: Recording, *buffers: Buffer) -> None:
        for commands in recording.recordings:
            call.found.setdefault((id(commands), *map(id, buffers)), (commands, buffers))

    @native("execute", HAL_IMPORTS["hal.execute"].signature)
    def execute(self, call: _DryCall, recording: Recording, *buffers: Buffer) -> None:
        self._note(call, recording, *buffers)

    @native("enqueue", HAL_IMPORTS["hal.enqueue"].signature)
    def enqueue(self, call: _DryCall, recording: Recording, *buffers: Buffer) -> None:
        self._note(call, recording, *buffers)

    @native("read", HAL_IMPORTS["hal.read"].signature)
    def read(self, call: _DryCall, buffer: Buffer, offset: int, size: int) -> int:
        return call.predicate(size)


_DRY_HAL, _HAL = _DryHal(), HalModule()


def dry_run(context: Context, code: Code, arguments: Sequence[BufferView | None]) -> list[Work]:
    """The recordings that calls of `code` with these views submit, each with its buffers. Some may be missing.

    The caller holds the lock of the context, whose initializers have run.
    """
    linked = _DryCode(context, code)
    found: dict[tuple[int, ...], Work] = {}
    reads, left = linked.run(arguments, FUEL, lambda size: 0, found)
    for seed in range(MAX_RUNS if reads else 0):
        if left <= 0:
            break
        _, left = linked.run(arguments, left, partial(_random_predicate, random.Random(seed)), found)
    return list(found.values())


def _random_predicate(numbers: random.Random, size: int) -> int:
    return int(numbers.randrange(4) < _TRUE_OF_FOUR) if size == 1 else numbers.randrange(_MAX_CASES)


class _DryCode:
    """The code of a program, linked with the stand-ins."""

    def __init__(self, context: Context, code: Code) -> None:
        self._context = context
        names = code.link.names
        link = Link(names, [self._stand_in(*pair) for pair in zip(names, code.link.imports, strict=True)])
        link.codes = [one.relinked(link) for one in context.program.codes]
        self._code = next(new for new, old in zip(link.codes, context.program.codes, strict=True) if old is code)

    def run(
        self,
        arguments: Sequence[BufferView | None],
        fuel: int,
        predicate: Callable[[int], int],
        found: dict[tuple[int, ...], Work],
    ) -> tuple[int, int]:
        """Run the function and add its submissions to `found`. Gives the number of predicates that it read, and the
        fuel that is left.
        """
        reads = 0

        def read(size: int) -> int:
            nonlocal reads
            reads += 1
            if reads > MAX_READS:
                raise _DryRunEnded("more predicates than a dry run may read")
            return predicate(size)

        context = _DryContext(self._context)
        code, call = self._code, _DryCall(context, fuel, read, found)
        entry = code.entry()
        frame = code.template.copy()
        for register, value in zip(code.parameters, arguments, strict=True):
            frame[register] = value
        frame[GLOBALS], frame[CALL] = context.globals, call
        with suppress(VmError):  # random predicates may lead to an error that no call meets
            run(call, frame, entry)
        return reads, call.fuel + (call.reserve or 0)

    def _stand_in(self, name: str, function: NativeFunction | None) -> NativeFunction | None:
        if function is None:
            return None
        found = _HAL.find(name) if name in _PURE else _DRY_HAL.find(name)
        if found is not None:
            return found
        return NativeFunction(name, function.signature, partial(_end, name), function.nullable)


def _end(name: str, call: Call, *_: Any) -> None:
    raise _DryRunEnded(f"the function {name} needs the device or another module")
