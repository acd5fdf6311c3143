"""Suspends Python's cyclic garbage collector during a compilation.

Operations, values and blocks refer to each other, so only the collector frees dropped IR. But most of the objects of a
compilation stay alive, and running the collector took a quarter of the compilation time of a ResNet-18. Therefore it is
suspended, and runs between passes after enough objects were created.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: Allocated minus freed objects since the last collection; bounds dropped IR to some hundred megabytes.
COLLECTION_THRESHOLD = 1_000_000


@contextmanager
def collection_paused() -> Iterator[None]:
    """Context manager without collections except by `collect`. May be nested, and used in several threads."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def collect() -> None:
    """Runs the collector if many objects were created since its last run."""
    if gc.get_count()[0] > COLLECTION_THRESHOLD:
        gc.collect()
