"""Fences, which submitted calls wait for and signal, and the `Future` of a submitted call, which is a fence.

- A fence is an object of the host. Any thread may signal it, and calls on any device may wait for it without blocking a
  thread.
- A fence is reached once, with success or with an error. A call that waits for a fence with an error fails.
- Fences over events and semaphores of OpenCL and Vulkan are `NativeFence`s (`native_fence.py`).
- A future has the result or the error of the call: `result` waits for it, and so does `await` in any asyncio loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from orchestrion.hal.errors import EventFailed, HalError
from orchestrion.hal.fork import new_lock

from .errors import CallerValueError, Cancelled
from .limits import plain_number

if TYPE_CHECKING:
    import asyncio

    from orchestrion.hal.device import Device
    from orchestrion.hal.semaphore import Semaphore


class Fence:
    """A one-time event of the host. Reach it with `signal`, or pass it to a submitted call as `signal=`."""

    __slots__ = ("_done", "_error", "_listeners", "_lock")

    #: the reason why `signal` is refused; empty if it is not
    unsignallable: str = ""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._done = False
        self._error: BaseException | None = None
        self._listeners: list[Callable[[], None]] = []

    @staticmethod
    def from_cl_event(event: Any) -> Fence:
        """A fence over a `pyopencl.Event` of any context. It is reached when the event is complete, with `EventFailed`
        if the event ends with an error. A fence over a `UserEvent` can be signalled, which completes the event.

        `InvalidArgument` for any other object.
        """
        from .native_fence import from_cl_event

        return from_cl_event(event)

    @staticmethod
    def from_vk_semaphore(semaphore: Any, value: int, device: Device) -> Fence:
        """A fence over a timeline `VkSemaphore` of `device` (`program.device`). It is reached when the semaphore's
        value is at least `value`. Signalling the fence sets that value. The caller keeps the semaphore while the
        fence is used.
        """
        from .native_fence import from_vk_semaphore

        return from_vk_semaphore(semaphore, value, device)

    def to_cl_event(self, context: Any) -> Any:
        """A `pyopencl.UserEvent` of an OpenCL context, for `wait_for=` of commands that the caller enqueues. It is
        complete when the fence is reached. If the fence has an error, its status is -14 and those commands do not run.
        """
        from .native_fence import to_cl_event

        return to_cl_event(self, context)

    def to_semaphore(self, device: Device) -> Semaphore:
        """A timeline semaphore of `device` whose value becomes 1 when the fence is reached. The caller releases it.

        On Vulkan its `native` is a `VkSemaphore`. Vulkan has no failed semaphores, so the value is 1 after an error
        too.
        """
        semaphore = device.create_semaphore()
        self.listen(_Signaller(self, semaphore))
        return semaphore

    def done(self) -> bool:
        """Whether the fence is reached, with success or with an error."""
        return self._done

    def signal(self) -> None:
        """Reach the fence with success. From any thread. `CallerError` if it is reached already."""
        if not self.settle(None):
            raise CallerValueError("the fence is reached already")

    def wait(self, timeout: float | None = None) -> None:
        """Block until the fence is reached, and raise its error if it has one. `TimeoutError` after `timeout`
        seconds.
        """
        error = self.exception(timeout)
        if error is not None:
            try:
                raise error
            finally:
                del self, error  # the error's traceback refers to this frame, and the fence to the error

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Block until the fence is reached. Gives its error, None for success. `TimeoutError` after `timeout`
        seconds.
        """
        seconds = plain_number("timeout", timeout)
        if not self._done:
            reached: SimpleQueue[None] = SimpleQueue()  # not an Event, which Ctrl-C may leave broken (hal/waiting.py)
            listener = partial(reached.put, None)
            self.listen(listener)
            try:
                reached.get(timeout=seconds)
            except Empty:
                raise TimeoutError(f"not reached after {timeout} s") from None
            finally:
                self.forget(listener)
        return self._error

    def settle(self, error: BaseException | None) -> bool:
        """Reach the fence, with an error or with success (None). False if it was reached before."""
        with self._lock:
            if self._done:
                return False
            self._error = error
            self._done = True
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()
        return True

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` once when the fence is reached, in the thread that reaches it; at once if it is reached. A
        listener must not raise.
        """
        with self._lock:
            if not self._done:
                self._listeners.append(listener)
                return
        listener()

    def forget(self, listener: Callable[[], None]) -> None:
        """Do not call `listener` any more."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait until the fence is reached, and raise its error if it has one."""
        yield from self._reached()
        self.wait()

    def _reached(self) -> Generator[Any, None, None]:
        import asyncio

        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        listener = _LoopWaker(loop, waiter)
        self.listen(listener)
        try:
            yield from waiter
        finally:
            self.forget(listener)


class Future(Fence):
    """The result of a submitted call. Reached when the call has ended. The caller may change arguments at once."""

    __slots__ = ("_count", "_name", "_parts", "_value")

    unsignallable = "a call reaches it"

    def __init__(self, name: str, count: int = 1) -> None:
        super().__init__()
        self._name = name
        self._count = count
        self._parts: tuple[ResultFuture, ...] = ()
        self._value: Any = None

    @property
    def results(self) -> tuple[Future, ...]:
        """A future for each result, reached as soon as the result is in its destination. All fail if the call fails.

        Cancelling one of them, or a task that awaits it, cancels the call.
        """
        with self._lock:
            if self._parts:
                return self._parts
            self._parts = tuple([ResultFuture(self, f"{self._name} result {i}") for i in range(self._count)])
        self.listen(self._end_parts)
        return self._parts

    def deliver_part(self, place: int, value: Any) -> None:
        """Reach the future of result `place`, before the whole call ends."""
        with self._lock:
            parts = self._parts
        if parts:
            parts[place].deliver(value)

    def invalidate_after_fork(self, error: BaseException) -> None:
        """Reach the future with an error in a forked process, without calling its listeners. A thread of the parent may
        have held the lock.
        """
        self._lock = new_lock()
        self._listeners = []
        self.settle(error)
        for part in self._parts:
            part.invalidate_after_fork(error)

    def _end_parts(self) -> None:
        if self._error is not None:
            for part in self._parts:
                part.settle(self._error)
            return
        values = (self._value,) if self._count == 1 else self._value
        for part, value in zip(self._parts, values, strict=True):
            part.deliver(value)  # does nothing for parts that have one

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the call and return its result, as the blocking call would. Raises what the blocking call would
        raise, or `TimeoutError` after `timeout` seconds.
        """
        try:
            self.wait(timeout)
            return self._value
        finally:
            del self  # see `wait`

    def signal(self) -> None:
        """Raise `CallerError`: only the call reaches its future."""
        raise CallerValueError(f"the future of a call of {self._name!r} is signalled by the call alone")

    def cancel(self) -> bool:
        """End the call with `Cancelled`. False if it has ended. Its arrays of `out` may then have any content.

        The next call of the context waits for work of this call that is on the device; errors of that work are ignored.
        """
        return self.settle(Cancelled("the call was cancelled"))

    def deliver(self, value: Any) -> bool:
        """Reach the future with a value. False if it was reached before."""
        with self._lock:
            if self._done:
                return False
            self._value = value
        return self.settle(None)

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for the result. If the task that awaits it is cancelled, the call is cancelled."""
        import asyncio

        try:
            yield from self._reached()
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self.result()

    def __repr__(self) -> str:
        state = "running or waiting" if not self._done else "done" if self._error is None else "failed"
        return f"<call of {self._name!r}, {state}>"


class ResultFuture(Future):
    """One result of a submitted call."""

    __slots__ = ("_call",)

    def __init__(self, call: Future, name: str) -> None:
        super().__init__(name)
        self._call = call

    def cancel(self) -> bool:
        """Cancel the call. False if this result is there."""
        return not self._done and self._call.cancel()


class _Signaller:
    """A listener that signals a semaphore of the HAL when a fence is reached. Keeps the semaphore alive."""

    __slots__ = ("_backend", "_fence", "_ref")

    def __init__(self, fence: Fence, semaphore: Semaphore) -> None:
        self._fence = fence
        self._backend = semaphore.alive()
        self._ref = semaphore.ref

    def __call__(self) -> None:
        error = self._fence.exception()
        with suppress(HalError):  # the device is lost: waiting for the semaphore raises that error
            if error is None:
                self._backend.signal(1)
            else:
                self._backend.fail(1, as_hal_error(error))


def as_hal_error(error: BaseException) -> HalError:
    """The error that a semaphore fails with, if its fence is reached with `error`."""
    if isinstance(error, HalError):
        return error
    failure = EventFailed(f"its fence was reached with an error: {error}")
    failure.__cause__ = error
    return failure


class _LoopWaker:
    """A listener in any thread that ends the waiting of an asyncio task."""

    __slots__ = ("_loop", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None]) -> None:
        self._loop = loop
        self._waiter = waiter

    def __call__(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            if not self._loop.is_closed():  # nobody awaits anything in a closed loop
                raise

    def _wake(self) -> None:
        if not self._waiter.done():
            self._waiter.set_result(None)
