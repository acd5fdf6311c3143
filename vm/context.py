"""A context: globals, memory and limits of one user of a loaded program. Its calls run one after the other.

Limits hold for each call (fuel, deadline, depth) or for what the context holds (memory). Reaching one ends the call
with a named error and leaves the context usable: the frames are gone, the globals are as the call left them.

A context knows the interpreter, but none of what is built upon it: submitted calls, helpers that build device code and
recordings for several sizes are handed in as callables or seen through protocols.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from orchestrion.hal.errors import HalError
from orchestrion.hal.fork import ForkedLock, after_fork, new_lock
from orchestrion.hal.waiting import attempt

from .call import Call
from .code import Code
from .errors import CallerValueError, DeviceLost, LimitError, VmError
from .facts import LoadFacts
from .interpreter import abandon, located, run
from .kept import Kept, Setups, Uncached
from .limits import NO_LIMITS, Limits
from .memory import Memory
from .once import run_once, straight_line
from .ops.table import CALL, GLOBALS

if TYPE_CHECKING:
    from orchestrion.hal.device import Device

    from .call import Builds
    from .linker import LinkedProgram
    from .load_progress import BuildProgress
    from .rooms import ResultRooms
    from .straight import Translation


class Submissions(Protocol):
    """What a context asks of its submitted calls. See `lane.py`."""

    def cancel(self) -> None:
        """End the call under way, if any."""

    def close(self, lost: DeviceLost | None = None) -> None:
        """Begin no further call; those that have not begun end with `Cancelled`, or `DeviceLost` if that is why."""

    def release(self) -> None:
        """Drop what it holds of the device: the context is closed."""

    def invalidate_after_fork(self, parent: int) -> None:
        """In a forked process: the calls belong to the process `parent`."""


class Context:
    """Private state over a shared `LinkedProgram`. Any thread may call; calls take turns by `lock`.

    `device` is the context's own share of the device, closed with the context. `parent` is the context of the
    program's initializers, which owns what their globals refer to.
    """

    __slots__ = (
        "__weakref__",
        "builds",
        "cancelled",
        "constant_bytes",
        "device",
        "execute",
        "facts",
        "globals",
        "kept",
        "lane",
        "limits",
        "lock",
        "lost",
        "memory",
        "memory_pressure_callbacks",
        "parent",
        "program",
        "progress",
        "result_rooms",
    )

    def __init__(
        self,
        program: LinkedProgram,
        limits: Limits = NO_LIMITS,
        memory: Memory | None = None,
        device: Device | None = None,
        parent: Context | None = None,
        setups: Callable[[LinkedProgram], Setups] | None = None,
    ) -> None:
        """`memory` is where the device charges; one of its own by `limits` if None. No initializer runs here. `setups`
        makes the recordings that serve several sizes, on devices with indirect dispatch; None: each set of sizes has
        recordings of its own.
        """
        self.program = program
        self.limits = limits
        self.memory = Memory(limits.memory) if memory is None else memory
        self.device = device
        self.execute = _no_device if device is None else device.queue.execute
        self.parent = parent
        #: by `call.cached`
        indirect = setups is not None and device is not None and device.indirect_dispatch
        self.kept = Kept(self.memory, partial(setups, program) if setups is not None and indirect else None)
        self.globals: list[Any] = list(program.globals if parent is None else parent.globals)
        #: `callback(busy)`, of this context's objects: see `on_memory_pressure`
        self.memory_pressure_callbacks: list[weakref.WeakMethod[Callable[[bool], bool]]] = []
        self.result_rooms: ResultRooms | None = None  #: for results that the running call allocates
        self.cancelled = False
        self.facts = LoadFacts()
        self.builds: Builds | None = None  #: while the program's initializers run
        self.progress: BuildProgress | None = None  #: while the program's initializers run, if somebody wants to know
        self.constant_bytes = 0  #: of constants that were copied to the device
        self.lock: Any = new_lock()  #: or a `ForkedLock`
        self.lane: Submissions | None = None  #: of submitted calls, once there was one
        if device is not None:
            device.on_memory_pressure(self.release_spare)
        self.memory.on_full(self.release_spare)
        self.lost: DeviceLost | None = None  #: why it was closed, if that was the loss of its device
        _contexts.add(self)

    def invoke(self, code: Code, arguments: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Call a function and wait until it is over. Arguments have the function's types; the caller has checked.

        Raises `VmError`, or `ModuleError` when an executable or constant that it asks for turns out to be damaged.
        """
        with self.lock:
            return self.run(Call(self), code, arguments)

    def initialize(self, codes: Sequence[Code], limits: Limits | None = None) -> None:
        """Run initializers in order, all of them as one call within `limits` (None: those of calls). If one fails,
        close. The memory limit is not set here (`Memory.restrict`).
        """
        try:
            with self.lock:
                call = Call(self, limits)
                for code in codes:
                    call.spend(code.length)
                    if code.straight is not None:
                        with suppress(Uncached):
                            self._straight(call, code, code.straight, ())
                            continue
                    first = not code.runs and straight_line(code)
                    code.ran()
                    if first:
                        run_once(call, code, self.globals)
                        continue
                    self.start(call, code, ())
                    while call.waiting is not None:
                        self._wait(call)
                        run(call, call.regs, call.resumption)
        except BaseException:
            self.close()
            raise

    def run(self, call: Call, code: Code, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """`invoke` for who holds the lock and keeps a call object to be used again."""
        straight = code.straight
        if straight is not None:
            self.cancelled = False
            if call.limited:
                call.begin()
            try:
                return self._straight(call, code, straight, arguments)
            except Uncached:  # nothing of it ran that may not run again
                pass
        else:
            code.ran()
        call.begin()
        self.start(call, code, arguments)
        while call.waiting is not None:
            self._wait(call)
            run(call, call.regs, call.resumption)
        results, call.results = call.results, ()
        return results

    def _straight(self, call: Call, code: Code, straight: Translation, arguments: Sequence[Any]) -> tuple[Any, ...]:
        try:
            return straight.run(self.globals, call, arguments)
        except (VmError, HalError, MemoryError) as error:
            pc = straight.pc(error.__traceback__)
            raise located(error, call, code, pc, []) from (None if isinstance(error, VmError) else error)

    def start(self, call: Call, code: Code, arguments: Sequence[Any]) -> None:
        """Run a call up to its end or its first suspension (`Call.waiting`), where `resume` goes on."""
        self.cancelled = False
        entry = code.entry()
        frame = code.template.copy()
        for register, value in zip(code.parameters, arguments):  # noqa: B905  the hot path; counts were compared
            frame[register] = value
        frame[GLOBALS], frame[CALL] = self.globals, call
        run(call, frame, entry)

    def resume(self, call: Call) -> None:
        """Go on with a suspended call whose fence was signalled."""
        try:
            if not call.reached(call.waiting):
                raise CallerValueError("the call waits for a fence that is not signalled")
        except HalError as error:
            raise abandon(call, error) from error
        call.waiting = None
        run(call, call.regs, call.resumption)

    def cancel(self) -> None:
        """End the call that is running now, if any, with `Cancelled`. From any thread; it takes a few milliseconds."""
        self.cancelled = True
        if self.lane is not None:
            self.lane.cancel()

    def on_memory_pressure(self, callback: Callable[[bool], bool]) -> None:
        """Have a bound method called when memory runs out, which lets go of what can be made again and tells whether it
        did. Its argument: whether a call is under way, which needs what it uses now.
        """
        self.memory_pressure_callbacks.append(weakref.WeakMethod(callback))

    def release_spare(self, own: bool = True) -> bool:
        """Let go of what is only kept in case it is wanted again; whether there was anything.

        See `hal/memory_pressure.py`.

        `own`: a call of this context asks, or nobody makes one. Else another thread may be in the middle of one: then
        everything stays.
        """
        if own:
            return self._release_spare(busy=True)
        held: list[bool] = []
        try:
            attempt(self.lock, held)
            return bool(held) and self._release_spare(busy=False)
        finally:
            if held:
                self.lock.release()

    def _release_spare(self, busy: bool) -> bool:
        found = [self.kept.clear()]
        for row in self.memory_pressure_callbacks:
            callback = row()
            found.append(callback is not None and callback(busy))
        return any(found)

    def close(self) -> None:
        """Let go of the globals, those that initializers stored last first, then of the device. Nothing may be called
        afterwards.
        """
        if self.builds is not None:  # a failed initializer closes: helpers use the device
            self.builds.end()
        self._drop_globals()
        if self.lane is not None:
            self.lane.release()
        self.execute = _no_device if self.lost is None else partial(_refuse, self.lost.message)
        if self.device is not None:
            try:
                self.device.close()
            finally:
                if self.device.closed:  # else Ctrl-C ended the wait for its work, and this may be called again
                    self.device = None

    def _drop_globals(self) -> None:
        builds, self.builds = self.builds, None
        if builds is not None:  # an initializer failed, while helpers still build for the device
            builds.end()
        self.kept.clear()
        if self.globals:
            for place in self.program.code.release_order():
                self.globals[place] = None
            self.globals.clear()

    def invalidate_after_fork(self, parent: int) -> None:
        """In a process that was forked from its owner: no call is made any more."""
        self.lock = ForkedLock(
            CallerValueError(f"the program was loaded by process {parent}, of which this one is a fork")
        )
        lane, self.lane = self.lane, None
        if lane is not None:
            lane.invalidate_after_fork(parent)

    def refusal(self, what: str = "the program") -> VmError:
        """Why a closed context does nothing."""
        return CallerValueError(f"{what} is closed") if self.lost is None else DeviceLost(self.lost.message)

    @property
    def build_seconds(self) -> float:
        """For which the initializers and calls of this context and its parent waited until code was built."""
        return self.facts.build_seconds + (0.0 if self.parent is None else self.parent.facts.build_seconds)

    @property
    def closed(self) -> bool:
        return self.parent is not None and (self.execute is _no_device or self.lost is not None)

    def _wait(self, call: Call) -> None:
        try:
            call.wait()
        except LimitError as error:
            raise abandon(call, error) from None
        except HalError as error:
            raise abandon(call, error) from error

    def __del__(self) -> None:
        """Dropped without `close`. A finalizer neither waits nor takes a lock; work under way keeps what it uses."""
        if hasattr(self, "lock"):
            self._drop_globals()
            if self.device is not None:
                self.device.drop()


_contexts: weakref.WeakSet[Context] = weakref.WeakSet()


@after_fork
def _invalidate_after_fork(parent: int) -> None:
    for context in [*_contexts]:
        context.invalidate_after_fork(parent)


def _no_device(commands: object, buffers: object, watcher: object) -> None:
    raise CallerValueError("the context has no device")


def _refuse(message: str, commands: object, buffers: object, watcher: object) -> None:
    raise DeviceLost(message)
