"""How many threads a device of the driver `cpu` uses by default, and how it is shown."""

import os

from orchestrion.hal.errors import InvalidArgument

#: environment variable: threads of a device, the caller's included
THREADS = "ORCHESTRION_THREADS"
MAX_THREADS = 1024


def thread_count() -> int:
    """The number of threads of a device: ORCHESTRION_THREADS, otherwise the cores that this process may use.

    Raises InvalidArgument unless the variable is a number from 1 to MAX_THREADS.
    """
    text = os.environ.get(THREADS, "").strip()
    if not text:
        return min(len(os.sched_getaffinity(0)), MAX_THREADS)
    if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
        raise InvalidArgument(f"{THREADS}={text!r} is not a number from 1 to {MAX_THREADS}")
    return int(text)


def thread_note(threads: int) -> str:
    """The note of a device that uses this number of threads."""
    return f"{threads} {'thread' if threads == 1 else 'threads'}"
