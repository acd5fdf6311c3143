"""An in-order OpenCL queue. What is submitted goes through a worker thread, what is executed through the caller's.

Waiting releases the interpreter lock, so other threads go on meanwhile. clFinish cannot be interrupted: Ctrl-C and
watchers take effect when the commands under way are over. The worker waits for work that an exception left behind.
"""

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
from orchestrion.hal.timeline import Worker

from .api import Api, P
from .buffer import OpenCLBuffer
from .failures import check, failure, translate
from .recording import Step
from .staging import Staging


class OpenCLQueue(BackendQueue):
    def __init__(self, api: Api, queue: cl.CommandQueue) -> None:
        self._queue = queue
        self._finish: Step = partial(api.calls.clFinish, P(queue.int_ptr))
        self._worker = Worker("orchestrion-opencl")
        self._staging = Staging(queue)

    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        self._worker.submit(waits, partial(self._run, batch) if batch else None, signals)

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        self.execute_batch(((commands, table),))

    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        if self._worker.busy:
            self._worker.drain()
        self._run(batch)

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        self._worker.recover(self._end, signals, unsure)

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        assert isinstance(buffer, OpenCLBuffer)
        if self._worker.busy:
            self._worker.submit((), partial(self._write, buffer, offset, data.copy()), ())
        else:
            self._write(buffer, offset, data)

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        assert isinstance(buffer, OpenCLBuffer)
        self._worker.drain()
        try:
            self._staging.read(buffer.whole, offset, out)
        except cl.Error as error:
            raise translate(f"read of {out.size} bytes", error) from error

    def wait_idle(self) -> None:
        self._worker.drain()
        self._end()

    def close(self) -> None:
        self._worker.close()
        self._end()
        self._staging.release()

    def _end(self) -> None:
        check(self._finish(), "waiting for work")

    def _write(self, buffer: OpenCLBuffer, offset: int, data: Bytes) -> None:
        try:
            self._staging.write(buffer.whole, offset, data)
        except cl.Error as error:
            raise translate(f"write of {data.size} bytes", error) from error

    def _run(self, batch: Sequence[BackendWork]) -> None:
        """Enqueue and wait once. What a step takes is its own when it is enqueued, so the next table may be bound."""
        try:
            for commands, table in batch:
                for step in commands.steps(table):  # type: ignore[attr-defined]
                    code = step()
                    if code:
                        raise failure(code, "execution")
        except HalError:
            self._finish()  # commands under way use buffers that may be released after this error
            raise
        code = self._finish()
        if code:
            raise failure(code, "waiting for work")
