"""Alarms that raise what Ctrl-C raises, in the main thread, for tests of what an interrupt ends.

Python ignores an exception that is raised in a finalizer or in a callback of the garbage collector, such as JAX's. An
alarm is therefore repeated until its block ends: a test that an interrupt must end would run for ever otherwise.
"""

import signal

#: seconds between an alarm and the next one, far more than a block takes to end after the exception
REPEAT = 1.0


class Alarm:
    """Raises KeyboardInterrupt in the block after some seconds, and again after every `REPEAT` seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, self._seconds, REPEAT)
        except KeyboardInterrupt:  # a short alarm may come before the block begins
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.signal(signal.SIGALRM, self._before)
