"""Threads that must come to an end: what they raise is raised, and where they hang is said."""

import faulthandler
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def stacks() -> str:
    """Where every thread is."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()


@contextmanager
def watched(seconds: float) -> Iterator[None]:
    """If this takes longer, the stacks of all threads go to stderr and the process ends: also where a thread hangs that
    holds the interpreter lock.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def run_together(work: list[Callable[[], None]], seconds: float) -> None:
    """Run each in a thread of its own. Raises the first error of any, and `TimeoutError` with stacks for a hang."""
    failures: list[BaseException] = []

    def guarded(one: Callable[[], None]) -> None:
        try:
            one()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(one,), daemon=True) for one in work]
    with watched(2 * seconds):
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        for thread in threads:
            while thread.is_alive() and not failures and time.monotonic() < end:
                thread.join(0.1)
        if failures:
            raise failures[0]
        if any(thread.is_alive() for thread in threads):
            raise TimeoutError(f"threads hang after {seconds} s\n{stacks()}")
