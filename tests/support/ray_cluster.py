"""A Ray cluster for tests, on a machine that is busy with other tests.

Ray gives a node 30 seconds to start, which cannot be changed, and raises a bare `Exception` for one that is late.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import ray

ATTEMPTS = 3


@contextmanager
def local_cluster(cpus: int) -> Iterator[None]:
    """A cluster of one node on this machine, to which this process is connected. `cpus`: as Ray counts them."""
    for attempt in range(ATTEMPTS):
        try:
            ray.init(
                address="local", num_cpus=cpus, include_dashboard=False, log_to_driver=False, logging_level="error"
            )
            break
        except Exception:
            ray.shutdown()
            if attempt == ATTEMPTS - 1:
                raise
    try:
        yield
    finally:
        ray.shutdown()
