"""An OpenCL device with profiling: commands are enqueued one by one, each with an event that the queue times.

An event's times are those of the device's clock; `HostClock` maps them. A command that has nothing to do for a table,
such as a copy of a range onto itself, enqueues nothing and takes no time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import byref
from functools import partial
from typing import Any

import pyopencl as cl

from orchestrion.hal.backend import BackendBuffer, BackendCommandBuffer, BackendWork, Point, Span, Watcher
from orchestrion.hal.errors import HalError
from orchestrion.hal.timing import HostClock, Timing, Timings, now

from .api import Api, P
from .command_buffer import OpenCLCommandBuffer
from .device import OpenCLDevice
from .failures import failure, translate
from .queue import OpenCLQueue
from .recording import NO_EVENTS, Step, Table

#: the number of markers that compare the clocks when a device is opened
CALIBRATIONS = 4
#: functions that enqueue a command; the last argument is the address of its event
ENQUEUES = ("clEnqueueNDRangeKernel", "clEnqueueCopyBuffer", "clEnqueueFillBuffer")


class ProfiledQueue(OpenCLQueue):
    """Wraps the functions of `api` that enqueue commands, so that each returns an event. One submission runs at a time:
    the thread that starts it waits for it.
    """

    overlaps = False

    def __init__(self, api: Api, queue: cl.CommandQueue) -> None:
        super().__init__(api, queue)
        self._timings = Timings()
        self._clock = HostClock()
        self._events: list[Any] = []
        for name in ENQUEUES:
            setattr(api.calls, name, self._with_event(getattr(api.calls, name)))
        for _ in range(CALIBRATIONS):
            submitted = now()
            event = cl.enqueue_marker(queue)
            event.wait()
            self._clock.place([(event.profile.start, event.profile.end)], submitted, now())

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        work = partial(self._timed, self._timings.begin(), batch) if batch else None
        self._starter.submit(waits, work, signals)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self.execute_batch(((commands, table),))

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        self._starter.drain()
        self._timed(self._timings.begin(), batch)

    def take_timings(self) -> list[list[Span]]:
        return self._timings.take()

    def noted(self, step: Step, *events: Any) -> int:
        """Run the step of one command, and note its event."""
        self._events.append(None)
        return step(*events)

    def _with_event(self, function: Any) -> Callable[..., int]:
        def enqueue(*arguments: Any) -> int:
            event = P()
            code: int = function(*arguments[:-1], byref(event))
            if not code:
                self._events[-1] = event
            return code

        return enqueue

    def _timed(self, timing: Timing, batch: Sequence[BackendWork]) -> None:
        """Run a batch and time it. One thread at a time: the caller of a blocking call, or the starter."""
        submitted = now()
        try:
            self._run(batch)
            timing.end(self._place(self._take_events(), submitted, now()))
        except HalError:
            self._take_events()
            timing.end(())
            raise
        except BaseException:  # commands in flight have no times yet
            self._events.clear()
            timing.end(())
            raise

    def _run(self, batch: Sequence[BackendWork]) -> None:
        """Enqueue and wait."""
        try:
            for commands, table in batch:
                for step in commands.steps(table):  # type: ignore[attr-defined]
                    code = step(*NO_EVENTS)
                    if code:
                        raise failure(code, "execution")
        except HalError:
            self._finish()  # commands under way use buffers that may be released after this error
            raise
        self._finish()

    def _take_events(self) -> list[Span | None]:
        """Returns the times of the commands since the last call, which are over, and releases their events."""
        handles, self._events = self._events, []
        events = [None if handle is None else cl.Event.from_int_ptr(handle.value, retain=False) for handle in handles]
        try:
            return [None if event is None else (event.profile.start, event.profile.end) for event in events]
        except cl.Error as error:
            raise translate("reading the times of commands", error, waiting=True) from error

    def _place(self, times: Sequence[Span | None], submitted: int, seen: int) -> list[Span]:
        """Maps the times. A command without an event takes no time, at the end of the previous command."""
        placed = iter(self._clock.place([span for span in times if span is not None], submitted, seen))
        spans: list[Span] = []
        end = submitted
        for span in times:
            spans.append((end, end) if span is None else next(placed))
            end = spans[-1][1]
        return spans


class ProfiledCommandBuffer(OpenCLCommandBuffer):
    __slots__ = ("_profiled",)

    def __init__(self, api: Api, handle: int, queue: ProfiledQueue) -> None:
        super().__init__(api, handle, recorded=False)
        self._profiled = queue

    def steps(self, table: Table) -> Sequence[Step]:
        return [partial(self._profiled.noted, step) for step in super().steps(table)]


class ProfiledDevice(OpenCLDevice):
    queue_class = ProfiledQueue
    queue_properties = cl.command_queue_properties.PROFILING_ENABLE

    def create_command_buffer(self, slots: int) -> ProfiledCommandBuffer:
        assert isinstance(self._queue, ProfiledQueue)
        return ProfiledCommandBuffer(self._api, self._handle.int_ptr, self._queue)
