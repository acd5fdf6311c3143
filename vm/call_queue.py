"""The queue of the submitted calls of one context. They run in order, one at a time.

- The queue holds the context's lock while it has a call that can begin. So a blocking call waits for the calls that
  were submitted before it. It does not wait for a submitted call that itself waits for a fence: it overtakes that call.
- Calls run in the event loop `run` of the device, and `advance` is called only there. `_mutex` guards what `submit`
  changes.
- A queue has no reference to its context. Its calls have one until they end.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol

from orchestrion.hal.fork import ForkedLock, new_lock
from orchestrion.hal.semaphore import Fence as DeviceFence
from orchestrion.hal.semaphore import Semaphore
from orchestrion.hal.waiting import attempt, to_its_end

from .errors import Cancelled, DeviceLost
from .event_loop import DeviceLoops

if TYPE_CHECKING:
    from orchestrion.hal.device import Device

    from .context import Context
    from .fence import Future

#: seconds between two attempts to take the context's lock while blocking calls hold it
_RETRY_SECONDS = 0.0005


class QueuedCall(Protocol):
    """A submitted call in a queue. See `submit.py`."""

    @property
    def context(self) -> Context: ...

    @property
    def future(self) -> Future: ...

    def ready(self) -> bool:
        """Whether all fences that it waits for are reached."""

    def take_turn(self) -> None:
        """Run the call; the queue holds the context's lock. Does not raise. Its end calls `CallQueue.call_ended`."""


class CallQueue:
    """The submitted calls of a context (`Context.call_queue`), and the context's timeline.

    The timeline is a semaphore: each submission to the device signals its next value.
    """

    __slots__ = ("_calls", "_closed", "_holds_lock", "_lock", "_mutex", "_running", "_semaphore", "_value", "loops")

    def __init__(self, lock: threading.Lock, loops: DeviceLoops) -> None:
        self.loops = loops
        self._lock = lock  #: of the context
        self._mutex = new_lock()
        self._calls: deque[QueuedCall] = deque()
        self._running: QueuedCall | None = None  #: the call that began and whose work has not ended
        self._holds_lock: list[bool] = []  #: [True] while this queue holds the context's lock (`attempt`)
        self._closed = False
        self._semaphore: Semaphore | None = None
        self._value = 0  #: of the timeline, signalled by the last submission

    @staticmethod
    def of(context: Context) -> CallQueue:
        """The queue of a context, made at the first call. `CallerError` if the context is closed."""
        if isinstance(context.lock, ForkedLock):
            context.lock.refuse()
        with _creation_lock:
            if context.device is None:
                raise context.refusal()
            queue = context.call_queue
            if not isinstance(queue, CallQueue):
                queue = context.call_queue = CallQueue(context.lock, DeviceLoops.of(context.device.device_state))
            return queue

    def submit(self, call: QueuedCall) -> None:
        """Append a call. `CallerError` or `DeviceLost` if the context is closed."""
        try:
            self._append(call)
            self.loops.run.post(self.advance)
        except BaseException:  # the queue may hold the context's lock already, so it has to go on
            to_its_end(partial(self.loops.run.post, self.advance))
            raise

    def _append(self, call: QueuedCall) -> None:
        with self._mutex:
            if self._closed:
                raise call.context.refusal()
            first = not self._calls and not self._holds_lock
            self._calls.append(call)
            if first and call.ready():
                attempt(self._lock, self._holds_lock)

    def advance(self) -> None:
        """Begin the next call if no call is running and the next one is ready."""
        while self._running is None:
            call = self._next()
            if call is None:
                return
            self._running = call
            call.take_turn()

    def call_ended(self) -> None:
        """The running call and its work on the device have ended."""
        self._running = None
        self.loops.run.post(self.advance)

    def timeline(self, device: Device) -> DeviceFence:
        """The fence that the next submission to the device shall signal."""
        if self._semaphore is None:
            self._semaphore = device.create_semaphore()
        self._value += 1
        return DeviceFence([(self._semaphore, self._value)])

    def cancel(self) -> None:
        """Cancel the running call, if any. From any thread."""
        call = self._running
        if call is not None:
            call.future.cancel()

    def close(self, lost: DeviceLost | None = None) -> None:
        """Begin no further call. From any thread.

        Calls that have not begun end with `Cancelled`; with `DeviceLost` if `lost` is given.
        """
        with self._mutex:
            self._closed = True
            pending = [*self._calls]
        for call in pending:
            cancelled = Cancelled("the context was closed before the call began")
            call.future.settle(cancelled if lost is None else DeviceLost(lost.message))

    def invalidate_after_fork(self, parent: int) -> None:
        """End all calls in a process that was forked from process `parent`: they run in the parent."""
        error = Cancelled(f"the call was submitted by process {parent}, of which this one is a fork")
        for call in (*self._calls, *([] if self._running is None else [self._running])):
            call.future.invalidate_after_fork(error)

    def release(self) -> None:
        """Release the timeline. Called when the context is closed."""
        semaphore, self._semaphore = self._semaphore, None
        if semaphore is not None:
            semaphore.release()

    def _next(self) -> QueuedCall | None:
        with self._mutex:
            calls = self._calls
            while calls and calls[0].future.done():
                calls.popleft()
            if not calls or not calls[0].ready():
                if self._holds_lock:
                    self._holds_lock.clear()
                    self._lock.release()
                return None
            if not self._holds_lock:
                attempt(self._lock, self._holds_lock)
            if not self._holds_lock:
                self.loops.run.at(time.monotonic() + _RETRY_SECONDS, self.advance)
                return None
            return calls.popleft()


_creation_lock = new_lock()
