"""What calls wait for and signal: a `Fence`, and the `Future` of a submitted call, which is one.

- A fence is of the host: any thread may signal it, calls on any device may wait for it, and that blocks no thread.
- It is reached once, with success or with an error, and what waits for it fails with a failure of it.
- Fences over events and semaphores of OpenCL and Vulkan are `NativeFence`s; here is only how to get them.
- A future gives what the blocking call would have given or raised: by `result`, or `await` in any asyncio loop.
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
    """Something that happens once. `signal` it, or give it to a call as `signal=`."""

    __slots__ = ("_done", "_error", "_listeners", "_lock")

    #: why nobody may signal it, where that is so
    unsignallable: str = ""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._done = False
        self._error: BaseException | None = None
        self._listeners: list[Callable[[], None]] = []

    @staticmethod
    def from_cl_event(event: Any) -> Fence:
        """A fence over a `pyopencl.Event` of any context: reached when it is complete, with `EventFailed` if it ends
        with an error. Over a `UserEvent` it may be signalled, which completes the event. `InvalidArgument`: it is none.
        """
        from .native_fence import from_cl_event

        return from_cl_event(event)

    @staticmethod
    def from_vk_semaphore(semaphore: Any, value: int, device: Device) -> Fence:
        """A fence over a timeline `VkSemaphore` of `device` (`program.device`): reached when its value is `value` or
        more. To signal the fence is to set that value. The semaphore lives as long as the fence is in use.
        """
        from .native_fence import from_vk_semaphore

        return from_vk_semaphore(semaphore, value, device)

    def to_cl_event(self, context: Any) -> Any:
        """A `pyopencl.UserEvent` of that context, complete when the fence is reached; for `wait_for=` of what the
        caller enqueues. Where the fence is reached with an error, its status is -14 and such work does not run.
        """
        from .native_fence import to_cl_event

        return to_cl_event(self, context)

    def to_semaphore(self, device: Device) -> Semaphore:
        """A timeline semaphore of `device`, the caller's to release, that goes from 0 to 1 when the fence is reached.

        On Vulkan its `native` is a `VkSemaphore`; Vulkan knows no failed semaphores, so it is 1 after an error as well.
        """
        semaphore = device.create_semaphore()
        self.listen(_Signaller(self, semaphore))
        return semaphore

    def done(self) -> bool:
        """Whether it is reached, with success or without."""
        return self._done

    def signal(self) -> None:
        """Reach it, from any thread. `CallerError` when it is reached already."""
        if not self.settle(None):
            raise CallerValueError("the fence is reached already")

    def wait(self, timeout: float | None = None) -> None:
        """Block until it is reached. `TimeoutError` after `timeout` seconds; raises the error it was reached with."""
        error = self.exception(timeout)
        if error is not None:
            try:
                raise error
            finally:
                del self, error  # the error's traceback refers to this frame, and the fence to the error

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error it was reached with, or None, once it is reached. `TimeoutError` after `timeout` seconds."""
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
        """Reach it, with an error or None; False when that has happened before."""
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
        """Call once when it is reached, in the thread that reaches it; now if it is. A listener does not fail."""
        with self._lock:
            if not self._done:
                self._listeners.append(listener)
                return
        listener()

    def forget(self, listener: Callable[[], None]) -> None:
        """Never mind."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def __await__(self) -> Generator[Any, None, Any]:
        """Until it is reached; raises the error it was reached with."""
        yield from self._reached()
        self.wait()

    def _reached(self) -> Generator[Any, None, None]:
        import asyncio

        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        listener = _Awakener(loop, waiter)
        self.listen(listener)
        try:
            yield from waiter
        finally:
            self.forget(listener)


class Future(Fence):
    """A submitted call. Reached when the call is over; its arguments are free again from the start."""

    __slots__ = ("_count", "_name", "_parts", "_value")

    unsignallable = "it is of a call, which reaches it"

    def __init__(self, name: str, count: int = 1) -> None:
        super().__init__()
        self._name = name
        self._count = count
        self._parts: tuple[ResultFuture, ...] = ()
        self._value: Any = None

    @property
    def results(self) -> tuple[Future, ...]:
        """A future for each result, reached as soon as that one is where it belongs; all fail if the call does.

        To cancel one, or a task that awaits it, cancels the call.
        """
        with self._lock:
            if self._parts:
                return self._parts
            self._parts = tuple([ResultFuture(self, f"{self._name} result {i}") for i in range(self._count)])
        self.listen(self._end_parts)
        return self._parts

    def deliver_part(self, place: int, value: Any) -> None:
        """A result is there, and others are not yet."""
        with self._lock:
            parts = self._parts
        if parts:
            parts[place].deliver(value)

    def invalidate_after_fork(self, error: BaseException) -> None:
        """In a forked process, where nobody will reach it: whoever listened is in the parent, and may hold its lock."""
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
            part.deliver(value)  # which some have

    def result(self, timeout: float | None = None) -> Any:
        """What the blocking call would have given, once it is there; or raises what that would have raised."""
        try:
            self.wait(timeout)
            return self._value
        finally:
            del self  # see `wait`

    def signal(self) -> None:
        """Refused: the call reaches it."""
        raise CallerValueError(
            f"the future of a call of {self._name!r} is reached by the call, nobody else may signal it"
        )

    def cancel(self) -> bool:
        """End the call with `Cancelled`; False when it is over. Work of it that the device has is waited for, unheard.

        Its arrays for `out` may hold anything then.
        """
        return self.settle(Cancelled("the call was cancelled"))

    def deliver(self, value: Any) -> bool:
        """Reach it with a value; False when it is reached."""
        with self._lock:
            if self._done:
                return False
            self._value = value
        return self.settle(None)

    def __await__(self) -> Generator[Any, None, Any]:
        """The result; the call is cancelled when the task that awaits it is."""
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
        """End the call; False when the result is there."""
        return not self._done and self._call.cancel()


class _Signaller:
    """Passes a fence on to a semaphore of the HAL, which lives as long as this does."""

    __slots__ = ("_backend", "_fence", "_ref")

    def __init__(self, fence: Fence, semaphore: Semaphore) -> None:
        self._fence = fence
        self._backend = semaphore.alive()
        self._ref = semaphore.ref

    def __call__(self) -> None:
        error = self._fence.exception()
        with suppress(HalError):  # of a lost device; who waits for the semaphore is told
            if error is None:
                self._backend.signal(1)
            else:
                self._backend.fail(1, as_hal_error(error))


def as_hal_error(error: BaseException) -> HalError:
    """What a semaphore that was to tell of success says instead."""
    if isinstance(error, HalError):
        return error
    failure = EventFailed(f"what was to reach it failed: {error}")
    failure.__cause__ = error
    return failure


class _Awakener:
    """Tells an asyncio loop from another thread."""

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
