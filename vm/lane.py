"""The submitted calls of one context: in order, one at a time, in turns with the blocking ones.

- The lane takes the context's lock for the first call that can begin and keeps it while the next one can. So a blocking
  call waits for calls that were submitted before it, unless they wait for fences themselves: those it overtakes.
- `advance` and all that runs calls happens in the device's `run` thread; `_mutex` guards what `submit` touches as well.
- A lane refers to no context: its calls do, as long as they last.
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

from .agent import Agents
from .errors import Cancelled, DeviceLost

if TYPE_CHECKING:
    from orchestrion.hal.device import Device

    from .context import Context
    from .fence import Future

#: seconds until a lane looks again whether blocking calls of other threads have left the context
_AGAIN = 0.0005


class Turn(Protocol):
    """A submitted call, as its lane sees it. See `submit.py`."""

    @property
    def context(self) -> Context: ...

    @property
    def future(self) -> Future: ...

    def ready(self) -> bool:
        """Whether all that it waits for is reached."""

    def begin_turn(self) -> None:
        """The context is this call's. Does not raise; when the call is over, it calls `Lane.over`."""


class Lane:
    """`Context.lane`. Its semaphore is the context's timeline: each submission to the device signals the next value."""

    __slots__ = ("_busy", "_calls", "_closed", "_lock", "_mutex", "_number", "_owner", "_semaphore", "agents")

    def __init__(self, lock: threading.Lock, agents: Agents) -> None:
        self.agents = agents
        self._lock = lock  #: of the context
        self._mutex = new_lock()
        self._calls: deque[Turn] = deque()
        self._busy: Turn | None = None  #: begun, and its work not over
        self._owner: list[bool] = []  #: holds True while this lane has the context's lock (`attempt`)
        self._closed = False
        self._semaphore: Semaphore | None = None
        self._number = 0

    @staticmethod
    def of(context: Context) -> Lane:
        """That of a context, made when first asked for. `CallerError`: the context is closed."""
        if isinstance(context.lock, ForkedLock):
            context.lock.refuse()
        with _making:
            if context.device is None:
                raise context.refusal()
            lane = context.lane
            if not isinstance(lane, Lane):
                lane = context.lane = Lane(context.lock, Agents.of(context.device.device_state))
            return lane

    def submit(self, call: Turn) -> None:
        try:
            self._append(call)
            self.agents.run.post(self.advance)
        except BaseException:  # the lane may hold the context's lock already: it goes on whatever ended this
            to_its_end(partial(self.agents.run.post, self.advance))
            raise

    def _append(self, call: Turn) -> None:
        with self._mutex:
            if self._closed:
                raise call.context.refusal()
            first = not self._calls and not self._owner
            self._calls.append(call)
            if first and call.ready():
                attempt(self._lock, self._owner)

    def advance(self) -> None:
        """Begin the next call if none is under way and it can."""
        while self._busy is None:
            call = self._next()
            if call is None:
                return
            self._busy = call
            call.begin_turn()

    def over(self) -> None:
        """The call under way has ended, and its work."""
        self._busy = None
        self.agents.run.post(self.advance)

    def timeline(self, device: Device) -> DeviceFence:
        """The fence that the next submission to the device shall signal."""
        if self._semaphore is None:
            self._semaphore = device.create_semaphore()
        self._number += 1
        return DeviceFence([(self._semaphore, self._number)])

    def cancel(self) -> None:
        """The call under way, if any. From any thread."""
        call = self._busy
        if call is not None:
            call.future.cancel()

    def close(self, lost: DeviceLost | None = None) -> None:
        """No call begins any more; those that have not begun end with `Cancelled`, or `DeviceLost` if that is why. From
        any thread.
        """
        with self._mutex:
            self._closed = True
            pending = [*self._calls]
        for call in pending:
            cancelled = Cancelled("the context was closed before the call began")
            call.future.settle(cancelled if lost is None else DeviceLost(lost.message))

    def invalidate_after_fork(self, parent: int) -> None:
        """In a process that was forked: what was submitted is the parent's."""
        error = Cancelled(f"the call was submitted by process {parent}, of which this one is a fork")
        for call in (*self._calls, *([] if self._busy is None else [self._busy])):
            call.future.invalidate_after_fork(error)

    def release(self) -> None:
        """Let go of the timeline, when the context is closed."""
        semaphore, self._semaphore = self._semaphore, None
        if semaphore is not None:
            semaphore.release()

    def _next(self) -> Turn | None:
        with self._mutex:
            calls = self._calls
            while calls and calls[0].future.done():
                calls.popleft()
            if not calls or not calls[0].ready():
                if self._owner:
                    self._owner.clear()
                    self._lock.release()
                return None
            if not self._owner:
                attempt(self._lock, self._owner)
            if not self._owner:
                self.agents.run.at(time.monotonic() + _AGAIN, self.advance)
                return None
            return calls.popleft()


_making = new_lock()
