"""Python's collector of cyclic garbage, which a compilation would run all the time and for nothing.

Operations, values and blocks point at one another, so dropped IR is freed by the collector only; but most of what a
compilation makes lives on, and collecting meanwhile took a quarter of a ResNet-18's compilation. It is paused, then,
and runs between passes once enough was made since it ran last.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: objects made, less those freed, since the last collection: some hundred megabytes of dropped IR at the most
COLLECTION_THRESHOLD = 1_000_000


@contextmanager
def collection_paused() -> Iterator[None]:
    """Nothing is collected meanwhile, but by `collect`. May stand inside another and in several threads."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def collect() -> None:
    """Frees dropped IR where much was made."""
    if gc.get_count()[0] > COLLECTION_THRESHOLD:
        gc.collect()
