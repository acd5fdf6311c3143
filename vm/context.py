"""A context: the globals, memory and limits of one user of a loaded program. Its calls run one after the other.

Fuel, deadline and depth limit each call; the memory limit holds for everything that the context holds. A call that
reaches a limit ends with a named error. The context stays usable: the frames of the call are dropped, the globals are
as the call left them.

A context uses the interpreter. It does not import what is built upon the interpreter (submitted calls, helper threads
that build device code, recordings for several sizes): those are passed in as callables or seen through protocols.
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
from .interpreter import abandon, located, run
from .limits import NO_LIMITS, Limits
from .load_facts import LoadFacts
from .memo_cache import MemoCache, Setups, Uncached
from .memory import Memory
from .ops.table import CALL, GLOBALS
from .run_initializer import run_initializer, runs_forward

if TYPE_CHECKING:
    from orchestrion.hal.device import Device

    from .call import Builds
    from .growable_buffers import ResultBuffers
    from .jit import Translation
    from .linker import LinkedProgram
    from .load_progress import BuildProgress


class SubmittedCalls(Protocol):
    """The submitted calls of a context. See `call_queue.py`."""

    def cancel(self) -> None:
        """Cancel the running call, if any."""

    def close(self, lost: DeviceLost | None = None) -> None:
        """Begin no further call. Calls that have not begun end with `Cancelled`, or with `lost` if it is given."""

    def release(self) -> None:
        """Release all objects of the device: the context is closed."""

    def invalidate_after_fork(self, parent: int) -> None:
        """End all calls in a process that was forked from process `parent`."""


class Context:
    """Private state of a shared `LinkedProgram`. Any thread may call functions; each call holds `lock`.

    `device`: the context's share of the device, closed with the context. `parent`: the context of the program's
    initializers, which owns the objects in immutable globals; None if this is that context.
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
        "memo_cache",
        "call_queue",
        "limits",
        "lock",
        "lost",
        "memory",
        "memory_pressure_callbacks",
        "parent",
        "program",
        "progress",
        "result_buffers",
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
        """Create a context without running initializers.

        `memory`: the account that the device charges; None: a new one with the limit of `limits`. `setups`: makes the
        setups whose recordings serve several sizes, on devices with indirect dispatch; None: each set of sizes has
        recordings of its own.
        """
        self.program = program
        self.limits = limits
        self.memory = Memory(limits.memory) if memory is None else memory
        self.device = device
        self.execute = _no_device if device is None else device.queue.execute
        self.parent = parent
        indirect = setups is not None and device is not None and device.indirect_dispatch
        self.memo_cache = MemoCache(self.memory, partial(setups, program) if setups is not None and indirect else None)
        self.globals: list[Any] = list(program.globals if parent is None else parent.globals)
        #: `callback(busy)`, bound methods of the context's objects: see `on_memory_pressure`
        self.memory_pressure_callbacks: list[weakref.WeakMethod[Callable[[bool], bool]]] = []
        self.result_buffers: ResultBuffers | None = None  #: buffers for the results that the running call allocates
        self.cancelled = False
        self.facts = LoadFacts()
        self.builds: Builds | None = None  #: while the program's initializers run
        self.progress: BuildProgress | None = None  #: while the program's initializers run, if `load` has a callback
        self.constant_bytes = 0  #: bytes of constants that were copied to the device since the last log entry
        self.lock: Any = new_lock()  #: or a `ForkedLock`
        self.call_queue: SubmittedCalls | None = None  #: from the first submitted call on
        if device is not None:
            device.on_memory_pressure(self.release_caches)
        self.memory.on_full(self.release_caches)
        self.lost: DeviceLost | None = None  #: the error, if the context was closed because its device was lost
        _contexts.add(self)

    def invoke(self, code: Code, arguments: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Call a function, wait for it, and return its results. The caller has checked the types of the arguments.

        Raises `VmError`, or `ModuleError` if an executable or constant that the function uses is damaged.
        """
        with self.lock:
            return self.run(Call(self), code, arguments)

    def initialize(self, codes: Sequence[Code], limits: Limits | None = None) -> None:
        """Run initializers in order, as one call within `limits` (None: the limits of calls). Closes the context if one
        fails. The caller sets the memory limit (`Memory.restrict`).
        """
        try:
            with self.lock:
                call = Call(self, limits)
                for code in codes:
                    call.spend(code.length)
                    if code.translation is not None:
                        with suppress(Uncached):
                            self._run_translation(call, code, code.translation, ())
                            continue
                    first = not code.runs and runs_forward(code)
                    code.count_run()
                    if first:
                        run_initializer(call, code, self.globals)
                        continue
                    self.start(call, code, ())
                    while call.waiting is not None:
                        self._wait(call)
                        run(call, call.regs, call.resumption)
        except BaseException:
            self.close()
            raise

    def run(self, call: Call, code: Code, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """As `invoke`. The caller holds the lock and gives a call object, which it may use again."""
        translation = code.translation
        if translation is not None:
            self.cancelled = False
            if call.limited:
                call.begin()
            try:
                return self._run_translation(call, code, translation, arguments)
            except Uncached:  # the instructions that ran may run again
                pass
        else:
            code.count_run()
        call.begin()
        self.start(call, code, arguments)
        while call.waiting is not None:
            self._wait(call)
            run(call, call.regs, call.resumption)
        results, call.results = call.results, ()
        return results

    def _run_translation(
        self, call: Call, code: Code, translation: Translation, arguments: Sequence[Any]
    ) -> tuple[Any, ...]:
        try:
            return translation.run(self.globals, call, arguments)
        except (VmError, HalError, MemoryError) as error:
            pc = translation.pc(error.__traceback__)
            raise located(error, call, code, pc, []) from (None if isinstance(error, VmError) else error)

    def start(self, call: Call, code: Code, arguments: Sequence[Any]) -> None:
        """Run a call to its end or to its first suspension (`Call.waiting`); then `resume` continues it."""
        self.cancelled = False
        entry = code.entry()
        frame = code.template.copy()
        for register, value in zip(code.parameters, arguments):  # noqa: B905  the hot path; counts were compared
            frame[register] = value
        frame[GLOBALS], frame[CALL] = self.globals, call
        run(call, frame, entry)

    def resume(self, call: Call) -> None:
        """Continue a suspended call. `CallerError` if its fence is not signalled."""
        try:
            if not call.reached(call.waiting):
                raise CallerValueError("the call waits for a fence that is not signalled")
        except LimitError as error:
            raise abandon(call, error) from None
        except HalError as error:
            raise abandon(call, error) from error
        call.waiting = None
        run(call, call.regs, call.resumption)

    def cancel(self) -> None:
        """End the running call, if any, with `Cancelled`. From any thread. The call ends within a few milliseconds."""
        self.cancelled = True
        if self.call_queue is not None:
            self.call_queue.cancel()

    def on_memory_pressure(self, callback: Callable[[bool], bool]) -> None:
        """Register a bound method that releases memory when none is left. It returns True if it released any.

        Its argument tells whether a call is running, whose memory it must not release.
        """
        self.memory_pressure_callbacks.append(weakref.WeakMethod(callback))

    def release_caches(self, own: bool = True) -> bool:
        """Release cached results and memory. True if there were any. For `Device.on_memory_pressure`.

        `own`: the caller is a call of this context, or no call is running. Else another thread may run a call of this
        context; if it does, nothing is released.
        """
        if own:
            return self._release_caches(busy=True)
        held: list[bool] = []
        try:
            attempt(self.lock, held)
            return bool(held) and self._release_caches(busy=False)
        finally:
            if held:
                self.lock.release()

    def _release_caches(self, busy: bool) -> bool:
        found = [self.memo_cache.clear()]
        for row in self.memory_pressure_callbacks:
            callback = row()
            found.append(callback is not None and callback(busy))
        return any(found)

    def close(self) -> None:
        """Release the globals, in the order of `release_order.py`, and the device. No function may be called then."""
        if self.builds is not None:  # an initializer failed, and helper threads still use the device
            self.builds.end()
        self._drop_globals()
        if self.call_queue is not None:
            self.call_queue.release()
        self.execute = _no_device if self.lost is None else partial(_refuse, self.lost.message)
        if self.device is not None:
            try:
                self.device.close()
            finally:
                if self.device.closed:  # else Ctrl-C ended the wait for work, and `close` may be called again
                    self.device = None

    def _drop_globals(self) -> None:
        builds, self.builds = self.builds, None
        if builds is not None:  # an initializer failed, and helper threads still use the device
            builds.end()
        self.memo_cache.clear()
        if self.globals:
            for place in self.program.code.release_order():
                self.globals[place] = None
            self.globals.clear()

    def invalidate_after_fork(self, parent: int) -> None:
        """Refuse all calls in a process that was forked from process `parent`."""
        self.lock = ForkedLock(
            CallerValueError(f"the program was loaded by process {parent}, of which this one is a fork")
        )
        queue, self.call_queue = self.call_queue, None
        if queue is not None:
            queue.invalidate_after_fork(parent)

    def refusal(self, what: str = "the program") -> VmError:
        """The error of a call to a closed context. `what`: the closed object in the message."""
        return CallerValueError(f"{what} is closed") if self.lost is None else DeviceLost(self.lost.message)

    @property
    def build_seconds(self) -> float:
        """The seconds for which initializers and calls of this context and its parent waited for builds."""
        return self.facts.build_seconds + (0.0 if self.parent is None else self.parent.facts.build_seconds)

    @property
    def closed(self) -> bool:
        """Whether functions of this context refuse calls. False for the context of the program's initializers."""
        return self.parent is not None and (self.execute is _no_device or self.lost is not None)

    def _wait(self, call: Call) -> None:
        try:
            call.wait()
        except LimitError as error:
            raise abandon(call, error) from None
        except HalError as error:
            raise abandon(call, error) from error

    def __del__(self) -> None:
        """Release a context that was dropped without `close`. Neither waits nor takes a lock: pending work keeps the
        memory that it uses.
        """
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
