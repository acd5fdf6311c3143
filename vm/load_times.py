"""Where the time of a load goes: the stages that `Program.statistics()["load"]["stages"]` lists, in seconds."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from time import perf_counter

from .load_progress import LoadProgress

#: stage -> what is done in it, in the order of a load
STAGES: dict[str, str] = {
    "read": "opening the file and comparing the digest of its root",
    "device": "opening the device, or a share of it",
    "verify": "decoding and verifying the program, or finding it verified, and linking it",
    "parameters": "finding the values of parameters",
    "build": "waiting for device code to be built",
    "initializers": "everything else that initializers do: constants, memory, recordings",
    "warm_up": "what the first call would do otherwise: memory for arguments and results, what the driver keeps",
}


class LoadTimes:
    """The seconds of each stage, added up as the load goes on. `progress` hears when one begins."""

    __slots__ = ("_started", "progress", "seconds")

    def __init__(self, progress: LoadProgress | None = None) -> None:
        self.progress = progress
        self._started = perf_counter()
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Add the time of the body to a stage, also where it raises."""
        if self.progress is not None:
            self.progress.tell(name)
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
        """Count seconds that were counted in one stage in another."""
        self.seconds[source] -= seconds
        self.seconds[target] += seconds
