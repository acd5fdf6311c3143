"""An in-order OpenCL queue. Work is enqueued when it is submitted, and waited for by the event of its last command.

- A blocking call is enqueued under the device's lock (`launch`) and waited for without it (`wait`), so that other
  threads can enqueue meanwhile. Waiting releases the interpreter lock.
- Submitted work whose waits are reached is enqueued at once. Otherwise a thread, the *starter*, enqueues it when they
  are. Another thread, the *waiter*, waits for the events and signals. No thread waits for the whole queue, because
  others keep filling it.
- While the starter has pending work, it also enqueues all other work. So work starts in the order of submission, and
  only one thread at a time binds arguments and enqueues. An enqueued command has its own copy of its arguments.
- clWaitForEvents cannot be interrupted: Ctrl-C and watchers take effect after it returns.
"""

import ctypes
from collections.abc import Sequence
from functools import partial

import pyopencl as cl

from orchestrion.hal.backend import (
    BackendBuffer,
    BackendCommandBuffer,
    BackendQueue,
    BackendWork,
    Bytes,
    Point,
    Watcher,
)
from orchestrion.hal.errors import HalError
from orchestrion.hal.parallel_jobs import Progress, Using
from orchestrion.hal.timeline import SoftSemaphore, Worker, fail_unsubmitted

from .api import Api, P
from .buffer import OpenCLBuffer
from .failures import check, failure, translate
from .launches import Launcher, launch_like
from .recording import NO_EVENTS, Step, nothing
from .staging import Staging

EVENT_COMMAND_EXECUTION_STATUS = 0x11D3
#: status of an event whose command, or a command that this waited for, ended with an error
ERROR_IN_WAIT_LIST = -14


class Ticket:
    """A launched submission. `event` is the handle of its last command's event while it is in flight.

    `start_value`: the value of `started` at which the starter has enqueued it; 0 if `launch` enqueued it.
    """

    __slots__ = ("event", "started", "start_value", "starts", "where")

    def __init__(self) -> None:
        self.event = P()
        self.where = ctypes.addressof(self.event)
        self.started = SoftSemaphore(0)
        self.start_value = self.starts = 0


class OpenCLQueue(BackendQueue):
    """An OpenCL command queue. The front serialises all calls except `wait`."""

    overlaps = True
    prepares = True

    def __init__(self, api: Api, queue: cl.CommandQueue) -> None:
        self._queue = queue
        self._handle = P(queue.int_ptr)
        self._calls = api.calls
        self._wait_for = api.calls.clWaitForEvents
        self._release = api.calls.clReleaseEvent
        self._starter = Worker("orchestrion-opencl-starter")
        self._waiter = Worker("orchestrion-opencl-waiter")
        self._own = Ticket()  #: the ticket of `execute`
        self._abandoned: list[Ticket] = []
        self._staging = Staging(queue)
        self.launcher: Launcher | None = None  #: set if the driver compiles kernels at their first launch

    def prepare(self, works: Sequence[BackendWork], using: Using, progress: Progress) -> None:
        if self.launcher is not None:
            launches = [launch_like(one) for commands, _ in works for one in commands.dispatches]  # type: ignore[attr-defined]
            self.launcher.launch(launches, progress)
        for commands, table in works:
            with using():
                commands.steps(table)  # type: ignore[attr-defined]

    def create_ticket(self) -> Ticket:
        return Ticket()

    def launch(self, ticket: Ticket, commands: BackendCommandBuffer, table: Sequence[BackendBuffer]) -> None:
        if self._starter.busy:
            self._launch_later(ticket, ((commands, table),))
            return
        ticket.start_value = 0
        self._enqueue_last(commands.steps(table), ticket.where)  # type: ignore[attr-defined]

    def launch_batch(self, ticket: Ticket, batch: Sequence[BackendWork]) -> None:
        if self._starter.busy:
            self._launch_later(ticket, batch)
            return
        ticket.start_value = 0
        self._enqueue(batch, ticket.where)

    def wait(self, ticket: Ticket, watcher: Watcher | None = None) -> None:
        if ticket.start_value:
            ticket.started.wait(ticket.start_value, None)
        code = self._wait_for(1, ticket.where)
        if code:
            raise self._failure(code, ticket.event)
        event, ticket.event.value = ticket.event.value, None  # before the release: it is released once
        self._release(event)

    def abandon(self, ticket: Ticket) -> None:
        """The event, if any, is released when the device is closed."""
        if ticket not in self._abandoned:
            self._abandoned.append(ticket)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        """For layers between the front and this queue that do not overlap."""
        self.launch(self._own, commands, table)
        self.wait(self._own, watcher)

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        self.launch_batch(self._own, batch)
        self.wait(self._own, watcher)

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        if self._starter.busy or any([semaphore.value() < value for semaphore, value in waits]):
            start = partial(self._start, batch, signals)
            self._starter.submit(waits, start, (), partial(self._signal_failed, signals))
            return
        try:
            for semaphore, value in waits:
                semaphore.wait(value, 0.0)
        except HalError as error:  # the error of a wait
            self._signal_failed(signals, error)
            return
        self._start(batch, signals)

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        """See `BackendQueue.recover`. A marker follows all enqueued work; this method does not wait."""
        if self._own.event or self._own.start_value:
            self.abandon(self._own)
            self._own = Ticket()
        if self._starter.busy:
            self._starter.submit((), partial(self._start, (), signals, unsure), ())
        else:
            self._start((), signals, unsure)

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        assert isinstance(buffer, OpenCLBuffer)
        if self._starter.busy:
            self._starter.submit((), partial(self._write, buffer, offset, data.copy()), ())
        else:
            self._write(buffer, offset, data)

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        assert isinstance(buffer, OpenCLBuffer)
        self._starter.drain()
        try:
            self._staging.read(buffer.whole, offset, out)
        except cl.Error as error:
            raise translate(f"read of {out.size} bytes", error, waiting=True) from error

    def wait_idle(self) -> None:
        self._starter.drain()
        self._waiter.drain()
        self._finish()

    def close(self) -> None:
        self._starter.close()
        self._waiter.close()
        self._finish()
        for ticket in self._abandoned:
            if ticket.event:
                self._release(ticket.event)
        self._staging.release()

    def _finish(self) -> None:
        check(self._calls.clFinish(self._handle), "waiting for work", waiting=True)

    def _write(self, buffer: OpenCLBuffer, offset: int, data: Bytes) -> None:
        try:
            self._staging.write(buffer.whole, offset, data)
        except cl.Error as error:
            raise translate(f"write of {data.size} bytes", error) from error

    def _launch_later(self, ticket: Ticket, batch: Sequence[BackendWork]) -> None:
        ticket.starts += 1
        ticket.start_value = ticket.starts
        self._starter.submit((), partial(self._enqueue, batch, ticket.where), [(ticket.started, ticket.start_value)])

    def _start(self, batch: Sequence[BackendWork], signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        """Enqueue a batch, and have the waiter signal when it and all earlier work are over."""
        event, failed = P(), None
        where = ctypes.addressof(event)
        try:
            if batch:
                self._enqueue(batch, where)
            else:
                self._mark(where)
            self._calls.clFlush(self._handle)
        except HalError as error:  # part of it may be in flight
            failed = error
        self._waiter.submit((), partial(self._end, event, failed, unsure), signals)

    def _end(self, event: ctypes.c_void_p, failed: HalError | None, unsure: Sequence[Point]) -> None:
        """In the waiter's thread: return when a batch is over. `failed` is the error if it was not
        enqueued completely.
        """
        try:
            if failed is not None:
                self._finish()
                raise failed
            code = self._wait_for(1, ctypes.addressof(event))
            if code:
                raise self._failure(code, event)
        finally:
            fail_unsubmitted(unsure)
            if event:
                self._release(event)

    def _signal_failed(self, signals: Sequence[Point], error: HalError) -> None:
        """Fail the signals of a batch that was not enqueued, after those of earlier submissions."""
        self._waiter.submit((), partial(_raise, error), signals)

    def _enqueue(self, batch: Sequence[BackendWork], where: int) -> None:
        """Enqueue a batch. The event of its end is stored at address `where`."""
        *before, (commands, table) = batch
        for earlier, its_table in before:
            for step in earlier.steps(its_table):  # type: ignore[attr-defined]
                code = step(*NO_EVENTS)
                if code:
                    raise failure(code, "execution")
        self._enqueue_last(commands.steps(table), where)  # type: ignore[attr-defined]

    def _enqueue_last(self, steps: Sequence[Step], where: int) -> None:
        """Enqueue the steps of one recording. The event of the last step is stored at address `where`."""
        if not steps or steps[-1] is nothing:
            steps = [*steps, partial(self._calls.clEnqueueMarkerWithWaitList, self._handle)]
        for step in steps[:-1]:
            code = step(*NO_EVENTS)
            if code:
                raise failure(code, "execution")
        code = steps[-1](0, None, where)
        if code:
            raise failure(code, "execution")

    def _mark(self, where: int) -> None:
        code = self._calls.clEnqueueMarkerWithWaitList(self._handle, 0, None, where)
        check(code, "waiting for work")

    def _failure(self, code: int, event: ctypes.c_void_p) -> Exception:
        """Returns the error of a failed wait: that of the event's work, if the work failed."""
        status = ctypes.c_int32()
        what = (EVENT_COMMAND_EXECUTION_STATUS, ctypes.sizeof(status), ctypes.byref(status), None)
        if code == ERROR_IN_WAIT_LIST and not self._calls.clGetEventInfo(event, *what) and status.value < 0:
            return failure(status.value, "execution", waiting=True)
        return failure(code, "waiting for work", waiting=True)


def _raise(error: HalError) -> None:
    raise error
