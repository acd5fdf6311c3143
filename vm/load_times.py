"""Measures the stages of a load, which `Program.statistics()["load"]["stages"]` lists in seconds."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter

from .load_progress import LoadProgress

#: stage -> what the load does in it, in order
STAGES: dict[str, str] = {
    "read": "opening the file, comparing the digest of its root, and choosing a device if none is named",
    "device": "opening the device, or a share of it",
    "verify": "decoding and verifying the program, or finding it in the cache, and linking it",
    "parameters": "finding the values of parameters",
    "build": "waiting for device code to be built",
    "initializers": "running initializers without waiting for builds: constants, memory, recordings",
    "warm_up": "work ahead of the first call: memory for arguments and results, recordings that the driver encodes",
}


class LoadTimes:
    """The seconds of each stage. Reports the start of each stage to `progress`."""

    __slots__ = ("_started", "progress", "seconds")

    def __init__(self, progress: LoadProgress | None = None) -> None:
        self.progress = progress
        self._started = perf_counter()
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Add the time of the body to a stage, even if the body raises."""
        if self.progress is not None:
            self.progress.report(name)
        started = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += perf_counter() - started

    @property
    def total(self) -> float:
        """Seconds since the load began."""
        return perf_counter() - self._started

    def move(self, seconds: float, source: str, target: str) -> None:
        """Move seconds from the stage `source` to the stage `target`."""
        self.seconds[source] -= seconds
        self.seconds[target] += seconds
