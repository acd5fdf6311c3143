"""Asynchronous calls: `function.submit(x, out=None, wait=(), signal=None)` returns a `Future` at once.

- Arguments are checked and copied before `submit` returns. The call begins when all fences of `wait` are reached and
  the calls that were submitted to its context before it have ended. It runs in the device's event loop `run`
  (`event_loop.py`), never in the caller's thread.
- A call is suspended where compiled code waits for the device (`hal.execute`, `await`), and the event loop runs other
  calls. The device's event loop `wait` resumes it. A fence that no submitted work signals is polled.
- An error, the deadline and `cancel` end the future at once. The context begins its next call when the device has
  finished the work of the ended one. The deadline counts from `submit`.
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
from .call import Meter, SuspendableCall
from .call_fence import CallFence
from .call_queue import CallQueue
from .errors import (
    HAL_ERRORS,
    CallerTypeError,
    Cancelled,
    DeadlineExceeded,
    LimitError,
    VmError,
    WaitFailed,
    from_hal_error,
)
from .fence import Fence, Future
from .interpreter import abandon
from .native_fence import as_fence

if TYPE_CHECKING:
    from orchestrion.hal.buffer import Buffer

    from .code import Code
    from .context import Context
    from .exports import Export

#: seconds between two polls of a fence that no submitted work signals: at first, and at most
_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.0005, 0.02


class Staged:
    """The checked arguments of a submitted call: copies of arrays, and the caller's views on the device.

    `outs`: the caller's destination of each result. `targets`: the views of destinations on the device, None for
    others. Set when the call begins: `destinations`, a view for each result, and `passed`, all views that the program
    gets.
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
    """A function with calls that can be submitted. See `function.py`."""

    context: Context
    name: str
    export: Export
    code: Code

    def stage(self, arguments: Sequence[Any], out: Any) -> Staged:
        """The arguments, checked and copied."""

    def enter(self, staged: Staged) -> list[BufferView | None]:
        """The operands of the call, which begins now."""

    def leave(self, staged: Staged, results: tuple[Any, ...], ready: Callable[[int, Any], None]) -> Any:
        """The value that the caller gets when the call has ended. Calls `ready` with the number and value of each
        result.
        """


def submit(function: Submittable, arguments: Sequence[Any], out: Any, wait: Iterable[Any], signal: Any) -> Future:
    """Check and copy the arguments and submit the call. See `Function.submit`."""
    waits = tuple([_wait_fence(f"wait {place}", thing) for place, thing in enumerate(wait)])
    several = isinstance(signal, list | tuple)
    signals = tuple([_signal_fence(f"signal {place}", thing) for place, thing in enumerate(signal if several else ())])
    count = len(function.export.results)
    if several and len(signals) != count:
        raise CallerTypeError(f"{function.name!r} gives {count} results, signal has {len(signals)} fences")
    whole = None if several else _signal_fence("signal", signal)
    queue = CallQueue.of(function.context)
    call = SubmittedCall(function, function.stage(arguments, out), waits, whole, queue)
    for part, fence in zip(call.future.results if several else (), signals, strict=True):
        if fence is not None:
            part.listen(partial(_pass_on, part, fence))
    queue.submit(call)
    call.arm()
    return call.future


def _wait_fence(what: str, thing: Any) -> Fence:
    fence = as_fence(thing)
    if fence is None:
        raise CallerTypeError(f"{what}: expected a fence, a submitted call or a cl_event, got {type(thing).__name__}")
    return fence


def _signal_fence(what: str, thing: Any) -> Fence | None:
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


def _is_pending(buffer: Buffer) -> bool:
    """Whether submitted work that uses a buffer has not ended."""
    state, last = buffer.device_state, buffer.submitted
    return bool(last) and state is not None and state.reached() < last


def _discard_errors(buffers: Sequence[Buffer]) -> None:
    """Take the errors of ended work from buffers, so that the next use of a buffer does not raise them."""
    for buffer in buffers:
        if buffer.submitted and buffer.device_state is not None and not _is_pending(buffer):
            with suppress(HalError):
                buffer.device_state.wait_for(buffer)


def _clear_tracebacks(error: BaseException) -> None:
    """Drop the references in the frames of an error that a future keeps. Errors of the VM lose their tracebacks: they
    have a chain of places.
    """
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        if isinstance(cause, VmError | HalError):
            cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__


class _Watcher:
    """Ends the submitted work of a call that was cancelled or exceeded its deadline."""

    __slots__ = ("_deadline", "_future")

    def __init__(self, future: Future, deadline: float | None) -> None:
        self._future = future
        self._deadline = deadline

    def check(self) -> None:
        if self._future.done() and isinstance(self._future.exception(), LimitError):
            raise HalDeadlineExceeded("the call that submitted the work has ended")
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise HalDeadlineExceeded("the call that submitted the work exceeded its deadline")


class _SubmittedMeter(_Watcher):
    """Also spends the fuel of the call, which is suspended meanwhile."""

    __slots__ = ("_call", "_meter")

    def __init__(self, call: SubmittedCall, deadline: float | None) -> None:
        super().__init__(call.future, deadline)
        self._call = call
        self._meter = Meter(call)

    def check(self) -> None:
        super().check()
        try:
            self._meter.check()
        except LimitError as error:
            self._call.exhausted = error
        if self._call.exhausted is not None:  # raised here: the two errors must not refer to each other
            raise HalDeadlineExceeded("the call that submitted the work reached a limit")


class SubmittedCall(SuspendableCall):
    """A submitted call, from `submit` to its end."""

    context: Context
    __slots__ = (
        "_function",
        "_operands",
        "_poll_seconds",
        "_queue",
        "_signal",
        "_staged",
        "_timer",
        "_waits",
        "exhausted",
        "future",
    )

    def __init__(
        self, function: Submittable, staged: Staged, waits: tuple[Fence, ...], signal: Fence | None, queue: CallQueue
    ) -> None:
        super().__init__(function.context)
        self.future = Future(function.name, len(function.export.results))
        self._function = function
        self._staged = staged
        self._waits = waits
        self._signal = signal
        self._queue = queue
        self._poll_seconds = _MIN_POLL_SECONDS
        self._operands: list[BufferView | None] = []
        self.exhausted: LimitError | None = None  #: the limit at which a recording with loops was ended
        run = queue.loops.run
        self._timer = None if self.deadline is None else run.at(self.deadline, self._expire)

    def arm(self) -> None:
        """Listen to the fences that the call waits for, and to its own future."""
        for fence in self._waits:
            fence.listen(self._fence_reached)
        self.future.listen(self._ended)

    def ready(self) -> bool:
        return all([fence.done() for fence in self._waits])

    def check(self) -> None:
        """As for a blocking call. Also raises `Cancelled` if the future has ended."""
        if self.future.done():
            raise Cancelled("the call was cancelled")
        super().check()

    def watcher(self) -> Any:
        return _Watcher(self.future, self.deadline)

    def submitted_meter(self) -> Any:
        return self.watcher() if self.reserve is None else _SubmittedMeter(self, self.deadline)

    def reached(self, fence: Any) -> bool:
        try:
            return super().reached(fence)
        except HalError:
            if self.exhausted is not None:
                raise self.exhausted from None
            raise

    def timeline(self) -> DeviceFence:
        """The fence that the next submission shall signal."""
        device = self.context.device
        if device is None:
            raise self.context.refusal()
        return self._queue.timeline(device)

    def take_turn(self) -> None:
        """Run the call; the queue holds the context's lock. From here on in the event loop `run`."""
        if self._wait_failed() or self.future.done():
            self._finish()
            return
        try:
            self._operands = self._function.enter(self._staged)
            self.context.start(self, self._function.code, self._operands)
        except BaseException as error:  # whatever it is, it belongs to whoever holds the future
            self._fail(error)
        else:
            self._proceed()

    def _proceed(self) -> None:
        """Continue after the call ran to its end or to a fence."""
        try:
            if self.waiting is not None:
                self._suspend(self.waiting)
                return
            self.check()
            if self._has_pending_work():
                self._queue.loops.wait.post(self._wait_for_work)
                return
            value = self._function.leave(self._staged, self.results, self.future.deliver_part)
        except BaseException as error:
            self._fail(error)
        else:
            self.future.deliver(value)
            self._finish()

    def _suspend(self, fence: DeviceFence) -> None:
        if isinstance(fence, CallFence):
            fence.listen(partial(self._queue.loops.run.post, self._resume))
            return
        if fence.promised:
            self._queue.loops.wait.post(self._wait)
            return
        self._queue.loops.run.at(time.monotonic() + self._poll_seconds, self._resume)
        self._poll_seconds = min(2 * self._poll_seconds, _MAX_POLL_SECONDS)

    def _wait(self) -> None:
        """Wait for the fence, in the event loop `wait`. Errors are raised when the call resumes."""
        with suppress(HalError):
            for semaphore, value in self.waiting.points:
                semaphore.alive().wait(value, None)
        self._queue.loops.run.post(self._resume)

    def _has_pending_work(self) -> bool:
        """Whether the program returned before its work on the device ended."""
        views = [view for view in (*self._operands, *self.results) if isinstance(view, BufferView)]
        return any([_is_pending(view.buffer) for view in views])

    def _wait_for_work(self) -> None:
        """Wait for the work of the call, in the event loop `wait`. Errors are raised when the results are read."""
        self._wait_for_device()
        self._queue.loops.run.post(self._proceed)

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
        """End the future with an error, then wait for the device before the next call begins."""
        self.results = ()
        if isinstance(error, HAL_ERRORS):
            cause, error = error, from_hal_error(error)
            error.__cause__ = cause
        _clear_tracebacks(error)
        self.future.settle(error)
        self._queue.loops.wait.post(self._drain)

    def _drain(self) -> None:
        """Wait for the device, in the event loop `wait`. Errors of failed work are discarded: the future has one."""
        self._wait_for_device()
        with suppress(HalError):
            _discard_errors([view.buffer for view in self._operands if view is not None])
        self._queue.loops.run.post(self._finish)

    def _wait_for_device(self) -> None:
        """Wait for all work of the context. Does not raise, since events must not. If a driver raises twice, the next
        use of the device raises.
        """
        for _ in range(2):
            with suppress(HalError):
                if self.context.device is not None:
                    self.context.device.queue.drain()
                return

    def _finish(self) -> None:
        """Note that the call and its work have ended, and drop all references to memory."""
        queue = self._queue
        self._operands, self.results = [], ()
        del self.context, self.memory, self._function, self._staged
        queue.call_ended()

    def _expire(self) -> None:
        if not self.future.done():
            limits = self.limits
            limit = f"{limits.deadline} s after submit{limits.origin('deadline')}"
            self.future.settle(DeadlineExceeded(f"the call was not over {limit}"))

    def _fence_reached(self) -> None:
        """One of the fences is reached. In any thread."""
        self._wait_failed()
        if self.ready():
            self._queue.loops.run.post(self._queue.advance)

    def _wait_failed(self) -> bool:
        """Whether a fence was reached with an error. If so, ends the future with `WaitFailed`."""
        for fence in self._waits:
            error = fence.exception() if fence.done() else None
            if error is not None:
                failure = WaitFailed(f"what the call waited for failed: {error}")
                failure.__cause__ = error
                self.future.settle(failure)
                return True
        return False

    def _ended(self) -> None:
        """The future is reached. In any thread."""
        if self._timer is not None:
            self._timer.stop()
        for fence in self._waits:
            fence.forget(self._fence_reached)
        if self._signal is not None:
            self._signal.settle(self.future.exception())
        self._queue.loops.run.post(self._queue.advance)
