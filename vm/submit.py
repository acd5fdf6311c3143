"""Asynchronous calls: `function.submit(x, out=None, wait=(), signal=None)` gives a `Future` at once.

- Arguments are checked and copied before `submit` returns. The call begins when all of `wait` is reached and the calls
  submitted to its context before it are over; it runs in the device's `run` thread (`agent.py`), never in the caller's.
- Where compiled code waits for the device (`hal.execute`, `await`) the call is suspended and its thread serves others;
  the device's `wait` thread tells when to go on. A fence that no submitted work signals is looked at now and then.
- Whatever ends the call early (error, deadline, `cancel`) is told at once; the context goes on with its next call when
  the work that the device had by then is over. The deadline counts from `submit`.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from orchestrion.hal.buffer import BufferView
from orchestrion.hal.errors import DeadlineExceeded as HalDeadlineExceeded
from orchestrion.hal.errors import HalError
from orchestrion.hal.semaphore import Fence as DeviceFence

from .array import Array
from .call import SuspendableCall
from .call_fence import CallFence
from .errors import PUBLIC, CallerTypeError, Cancelled, DeadlineExceeded, LimitError, VmError, WaitFailed, public
from .fence import Fence, Future
from .interpreter import abandon
from .lane import Lane
from .native_fence import as_fence

if TYPE_CHECKING:
    from orchestrion.hal.buffer import Buffer

    from .code import Code
    from .context import Context
    from .exports import Export

#: seconds between two looks at a fence that no submitted work signals, at first and at most
_FIRST_LOOK, _LAST_LOOK = 0.0005, 0.02


class Staged:
    """A submitted call's arguments, checked: arrays are copies, views on the device are the caller's.

    `outs` is what the caller gave per result, `targets` the views of those that are on the device. Once it is its turn,
    `destinations` are the views for all results, and `passed` are all views that the program was given.
    """

    __slots__ = ("before", "destinations", "operands", "outs", "passed", "started", "targets")

    def __init__(
        self,
        operands: list[Array | BufferView],
        outs: tuple[Any, ...] | None,
        targets: tuple[BufferView | None, ...],
    ) -> None:
        self.operands = operands
        self.outs = outs
        self.targets = targets
        self.destinations: tuple[BufferView | None, ...] = ()
        self.passed: list[BufferView | None] = []
        self.before: tuple[int, ...] = ()
        self.started = 0.0


class Submittable(Protocol):
    """A function whose calls can be submitted. See `function.py`."""

    context: Context
    name: str
    export: Export
    code: Code

    def stage(self, arguments: Sequence[Any], out: Any) -> Staged:
        """The arguments, checked and copied."""

    def enter(self, staged: Staged) -> list[BufferView | None]:
        """The operands of the call, whose turn it is."""

    def leave(self, staged: Staged, results: tuple[Any, ...], ready: Callable[[int, Any], None]) -> Any:
        """The caller's value of a call that is over. `ready` is called with each result."""


def submit(function: Submittable, arguments: Sequence[Any], out: Any, wait: Iterable[Any], signal: Any) -> Future:
    """Check, copy, enqueue. See `Function.submit`."""
    waits = tuple([_waited(f"wait {place}", thing) for place, thing in enumerate(wait)])
    several = isinstance(signal, list | tuple)
    signals = tuple([_signalled(f"signal {place}", thing) for place, thing in enumerate(signal if several else ())])
    count = len(function.export.results)
    if several and len(signals) != count:
        raise CallerTypeError(f"{function.name!r} gives {count} results, signal has {len(signals)} fences")
    whole = None if several else _signalled("signal", signal)
    lane = Lane.of(function.context)
    call = SubmittedCall(function, function.stage(arguments, out), waits, whole, lane)
    for part, fence in zip(call.future.results if several else (), signals, strict=True):
        if fence is not None:
            part.listen(partial(_pass_on, part, fence))
    lane.submit(call)
    call.arm()
    return call.future


def _waited(what: str, thing: Any) -> Fence:
    fence = as_fence(thing)
    if fence is None:
        raise CallerTypeError(f"{what}: expected a fence, a submitted call or a cl_event, got {type(thing).__name__}")
    return fence


def _signalled(what: str, thing: Any) -> Fence | None:
    if thing is None:
        return None
    fence = as_fence(thing)
    if fence is None:
        raise CallerTypeError(f"{what}: expected a fence or a user event, got {type(thing).__name__}")
    if fence.unsignallable:
        raise CallerTypeError(f"{what}: {type(thing).__name__} cannot be signalled, {fence.unsignallable}")
    return fence


def _pass_on(future: Future, fence: Fence) -> None:
    fence.settle(future.exception())


def _pending(buffer: Buffer) -> bool:
    """Whether the device still works with a buffer."""
    state, last = buffer.device_state, buffer.submitted
    return bool(last) and state is not None and state.reached() < last


def _hear(buffers: Sequence[Buffer]) -> None:
    """The next use of buffers shall not raise the error of work that is over."""
    for buffer in buffers:
        if buffer.submitted and buffer.device_state is not None and not _pending(buffer):
            with suppress(HalError):
                buffer.device_state.wait_for(buffer)


def _clear(error: BaseException) -> None:
    """A future keeps its error, not what the frames refer to that it passed. An error of the VM says itself where."""
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        if isinstance(cause, VmError | HalError):
            cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__


class _Watcher:
    """Ends work of a call that was cancelled, or ran too long."""

    __slots__ = ("_deadline", "_future")

    def __init__(self, future: Future, deadline: float | None) -> None:
        self._future = future
        self._deadline = deadline

    def check(self) -> None:
        if self._future.done() and isinstance(self._future.exception(), LimitError):
            raise HalDeadlineExceeded("the call that submitted the work was ended")
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise HalDeadlineExceeded("the call that submitted the work ran longer than it may")


class SubmittedCall(SuspendableCall):
    """One submitted call, from `submit` to its end."""

    context: Context
    __slots__ = ("_function", "_lane", "_look", "_operands", "_signal", "_staged", "_timer", "_waits", "future")

    def __init__(
        self, function: Submittable, staged: Staged, waits: tuple[Fence, ...], signal: Fence | None, lane: Lane
    ) -> None:
        super().__init__(function.context)
        self.future = Future(function.name, len(function.export.results))
        self._function = function
        self._staged = staged
        self._waits = waits
        self._signal = signal
        self._lane = lane
        self._look = _FIRST_LOOK
        self._operands: list[BufferView | None] = []
        run = lane.agents.run
        self._timer = None if self.deadline is None else run.at(self.deadline, self._expire)

    def arm(self) -> None:
        """Listen to what it waits for, and to its own end."""
        for fence in self._waits:
            fence.listen(self._waited)
        self.future.listen(self._ended)

    def ready(self) -> bool:
        return all([fence.done() for fence in self._waits])

    def check(self) -> None:
        """As that of a blocking call; its end may also have come from outside."""
        if self.future.done():
            raise Cancelled("the call was cancelled")
        super().check()

    def watcher(self) -> Any:
        return _Watcher(self.future, self.deadline)

    def timeline(self) -> DeviceFence:
        """The fence for the next submission."""
        device = self.context.device
        if device is None:
            raise self.context.refusal()
        return self._lane.timeline(device)

    def begin_turn(self) -> None:
        """The context is this call's. From here on in the `run` thread."""
        if self._failed_wait() or self.future.done():
            self._over()
            return
        try:
            self._operands = self._function.enter(self._staged)
            self.context.start(self, self._function.code, self._operands)
        except BaseException as error:  # whatever it is, it belongs to whoever holds the future
            self._fail(error)
        else:
            self._proceed()

    def _proceed(self) -> None:
        """It ran up to its end, or to a fence."""
        try:
            if self.waiting is not None:
                self._suspend(self.waiting)
                return
            self.check()
            if self._unfinished():
                self._lane.agents.wait.post(self._settle)
                return
            value = self._function.leave(self._staged, self.results, self.future.deliver_part)
        except BaseException as error:
            self._fail(error)
        else:
            self.future.deliver(value)
            self._over()

    def _suspend(self, fence: DeviceFence) -> None:
        if isinstance(fence, CallFence):
            fence.listen(partial(self._lane.agents.run.post, self._resume))
            return
        if fence.promised:
            self._lane.agents.wait.post(self._wait)
            return
        self._lane.agents.run.at(time.monotonic() + self._look, self._resume)
        self._look = min(2 * self._look, _LAST_LOOK)

    def _wait(self) -> None:
        """In the `wait` thread. Failures are found when the call goes on."""
        with suppress(HalError):
            for semaphore, value in self.waiting.points:
                semaphore.alive().wait(value, None)
        self._lane.agents.run.post(self._resume)

    def _unfinished(self) -> bool:
        """Whether it returned without waiting for its work."""
        views = [view for view in (*self._operands, *self.results) if isinstance(view, BufferView)]
        return any([_pending(view.buffer) for view in views])

    def _settle(self) -> None:
        """In the `wait` thread. Failures are found when the results are read."""
        self._wait_for_device()
        self._lane.agents.run.post(self._proceed)

    def _resume(self) -> None:
        fence = self.waiting
        try:
            if self.future.done():
                raise abandon(self, HalError("the call is over"))
            if not fence.reached:
                self._suspend(fence)
                return
            self.context.resume(self)
        except BaseException as error:
            self._fail(error)
        else:
            self._proceed()

    def _fail(self, error: BaseException) -> None:
        """Tell, and let the device finish before the context goes on."""
        self.results = ()
        if isinstance(error, PUBLIC):
            cause, error = error, public(error)
            error.__cause__ = cause
        _clear(error)
        self.future.settle(error)
        self._lane.agents.wait.post(self._drain)

    def _drain(self) -> None:
        """In the `wait` thread. What the buffers would say of failed work is said already."""
        self._wait_for_device()
        with suppress(HalError):
            _hear([view.buffer for view in self._operands if view is not None])
        self._lane.agents.run.post(self._over)

    def _wait_for_device(self) -> None:
        """In the `wait` thread, which no error may end. One that a driver raises twice is found by the next use."""
        for _ in range(2):
            with suppress(HalError):
                if self.context.device is not None:
                    self.context.device.queue.drain()
                return

    def _over(self) -> None:
        """Nothing of it is under way. Whoever may still refer to the call, it keeps no memory."""
        lane = self._lane
        self._operands, self.results = [], ()
        del self.context, self.memory, self._function, self._staged
        lane.over()

    def _expire(self) -> None:
        if not self.future.done():
            limits = self.limits
            limit = f"{limits.deadline} s after submit{limits.origin('deadline')}"
            self.future.settle(DeadlineExceeded(f"the call was not over {limit}"))

    def _waited(self) -> None:
        """One of the fences is reached, in any thread."""
        self._failed_wait()
        if self.ready():
            self._lane.agents.run.post(self._lane.advance)

    def _failed_wait(self) -> bool:
        """Whether a fence was reached with an error, which ends the call."""
        for fence in self._waits:
            error = fence.exception() if fence.done() else None
            if error is not None:
                failure = WaitFailed(f"what the call waited for failed: {error}")
                failure.__cause__ = error
                self.future.settle(failure)
                return True
        return False

    def _ended(self) -> None:
        """The future is reached, in any thread."""
        if self._timer is not None:
            self._timer.stop()
        for fence in self._waits:
            fence.forget(self._waited)
        if self._signal is not None:
            self._signal.settle(self.future.exception())
        self._lane.agents.run.post(self._lane.advance)
