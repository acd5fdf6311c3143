"""Timeline semaphores in software, and a queue worker that waits for them, for drivers without their own.

- A `SoftSemaphore` is a value under a condition. Failed work advances it all the same, and stores its error: waiting
  for a value that only a failure reached raises the error.
- A `Worker` runs submissions in order on one thread, which the first submission starts: `submit` never blocks. Work
  whose waits failed is not run, and fails with their error.
- At exit workers are stopped: a thread that the interpreter ends inside of a driver may crash the process.
- `drain` is for the blocking calls of a queue (`execute`, `write`, `read`). When it returns, nothing submitted before
  is running, and the caller may compute on its own thread. The front holds the queue meanwhile.
"""

import atexit
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from .backend import NOT_MADE, BackendSemaphore, Point
from .errors import DeviceLost, HalError, InternalError
from .fork import after_fork, new_lock
from .waiting import Changed, start_thread

#: the most separate errors that a semaphore stores
MAX_FAILURES = 1000


class SoftSemaphore(BackendSemaphore):
    """A timeline semaphore of the host."""

    __slots__ = ("_changed", "_failures", "_value")

    def __init__(self, initial: int) -> None:
        self._value = initial
        self._changed = Changed()
        self._failures: list[tuple[int, int, HalError]] = []

    def value(self) -> int:
        return self._value

    def signal(self, value: int) -> None:
        with self._changed.lock:
            self._value = max(self._value, value)
            self._changed.notify()

    def fail(self, value: int, error: HalError) -> None:
        """After very many consecutive failures, the first error stands for the later ones."""
        with self._changed.lock:
            before = self._value
            if len(self._failures) >= MAX_FAILURES and self._failures[-1][1] == before:
                before, _, error = self._failures.pop()
            self._failures.append((before, value, error))
            self._value = max(self._value, value)
            self._changed.notify()

    def wait(self, value: int, timeout: float | None) -> bool:
        if self._value < value and not self._changed.wait_for(lambda: self._value >= value, timeout):
            return False
        for before, reached, error in self._failures:
            if before < value <= reached:
                raise type(error)(str(error)) from error
        return True

    def release(self) -> None:
        return


class _Submission:
    __slots__ = ("failed", "run", "signals", "waits")

    def __init__(
        self,
        waits: Sequence[Point],
        run: Callable[[], None] | None,
        signals: Sequence[Point],
        failed: Callable[[HalError], None] | None = None,
    ) -> None:
        self.waits = waits
        self.run = run
        self.signals = signals
        self.failed = failed


class Worker:
    """One thread that runs submissions in order."""

    __slots__ = (
        "__weakref__",
        "_run_lock",
        "_changed",
        "_ended",
        "_name",
        "_started",
        "_stopping",
        "_unreported_errors",
        "busy",
    )

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = Changed()
        self._run_lock = new_lock()  #: held by the thread that runs submissions; a second thread ends at once
        self._started = self._ended = False
        self._stopping = False
        self._unreported_errors: HalError | None = None
        #: submissions that are not over, the running one first; a queue checks this before it calls `drain`
        self.busy: deque[_Submission] = deque()
        _workers.add(self)

    def submit(
        self,
        waits: Sequence[Point],
        run: Callable[[], None] | None,
        signals: Sequence[Point],
        failed: Callable[[HalError], None] | None = None,
    ) -> None:
        """Call `run` when the waits are reached, then signal. `failed` receives the error of the waits or of `run`.

        Without both a signal to fail and `failed`, the next `drain` raises the error.
        """
        submission = _Submission(waits, run, signals, failed)
        with self._changed.lock:
            if not self._started:
                start_thread(self._work, self._name)  # after an exception here a second one starts, and ends at once
                self._started = True
            self.busy.append(submission)
            self._changed.notify()

    def recover(self, run: Callable[[], None] | None, signals: Sequence[Point], unsure: Sequence[Point]) -> None:
        """For `BackendQueue.recover`. After all submissions, the thread fails those points of `unsure` that are not
        reached, calls `run`, and signals.
        """
        if unsure:
            self.submit((), partial(fail_unsubmitted, unsure), ())
        if run is None and not self.busy:
            _signal(_Submission((), None, signals), None)
        else:
            self.submit((), run, signals)

    def drain(self) -> None:
        """Return when nothing submitted before is pending or running."""
        self._changed.wait_for(lambda: not self.busy)
        unreported_errors, self._unreported_errors = self._unreported_errors, None
        if unreported_errors is not None:
            raise unreported_errors

    def close(self) -> None:
        """End the thread after all submitted work is over."""
        with self._changed.lock:
            self._stopping = True
            self._changed.notify()
        if self._started:
            self._changed.wait_for(lambda: self._ended)

    def abandon(self) -> None:
        """End the thread after the running submission. Pending submissions, and waits that may never end, fail."""
        with self._changed.lock:
            current, *pending = self.busy or (None,)
            while len(self.busy) > 1:
                self.busy.pop()
        for submission in pending:
            assert submission is not None
            _signal(submission, DeviceLost("the process ends"))
        for semaphore, value in () if current is None else current.waits:
            if semaphore.value() < value:
                semaphore.fail(value, DeviceLost("the process ends"))
        self.close()

    def _work(self) -> None:
        if not self._run_lock.acquire(False):
            return
        while (submission := self._next()) is not None:
            error = _outcome(submission)
            _signal(submission, error)
            if error is not None and not submission.signals and submission.failed is None:
                self._unreported_errors = self._unreported_errors or error
            del submission, error
            with self._changed.lock:
                self.busy.popleft()
                self._changed.notify()
        with self._changed.lock:
            self._ended = True
            self._changed.notify()

    def _next(self) -> _Submission | None:
        """Wait for the next submission; None if the thread is to end. It is the first of `busy` while it runs."""
        self._changed.wait_for(lambda: self.busy or self._stopping)
        with self._changed.lock:
            return self.busy[0] if self.busy else None


def _outcome(submission: _Submission) -> HalError | None:
    try:
        for semaphore, value in submission.waits:
            semaphore.wait(value, None)
        if submission.run is not None:
            submission.run()
    except HalError as error:
        return error
    except Exception as error:  # a fault of the driver must reach whoever waits, not end the thread
        defect = InternalError(f"submission failed: {type(error).__name__}: {error}")
        defect.__cause__ = error
        return defect
    return None


def fail_unsubmitted(points: Sequence[Point]) -> None:
    """Fail the points of an interrupted submission that nobody reached. All submitted work is over."""
    for semaphore, value in points:
        if semaphore.value() < value:
            semaphore.fail(value, HalError(NOT_MADE))


def _clear(error: BaseException | None) -> None:
    """Drop the traceback of a stored error: its frames would keep arrays alive."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _signal(submission: _Submission, error: HalError | None) -> None:
    _clear(error)
    if error is not None and submission.failed is not None:
        submission.failed(error)
    for semaphore, value in submission.signals:
        if error is None:
            semaphore.signal(value)
        else:
            semaphore.fail(value, error)


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


@after_fork
def _forget(parent: int) -> None:
    """In a forked process: the threads belong to the parent."""
    _workers.clear()


@atexit.register
def _abandon() -> None:
    for worker in [*_workers]:
        worker.abandon()
