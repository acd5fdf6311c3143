"""What the loop knows of workers, wherever they run: it starts them, gives them tasks, and waits for events.

A worker has one task at a time. After `Lost` and `Refused` it is gone. Workers are numbered from 0, and no number is
used again.
"""

from typing import NamedTuple, Protocol

from .worker import Outcome, Ready, Task


class Started(NamedTuple):
    """A worker is ready for its first task."""

    worker: int
    ready: Ready


class Done(NamedTuple):
    """A worker has done its task, and is ready for another."""

    worker: int
    outcome: Outcome


class Lost(NamedTuple):
    """A worker ended without being asked to; `how`: in words."""

    worker: int
    how: str


class Refused(NamedTuple):
    """A worker cannot take part: the run cannot go on."""

    worker: int
    reason: str


Event = Started | Done | Lost | Refused


class Workers(Protocol):
    """Processes that do tasks. `default`: how many, if nobody says."""

    default: int

    def start(self) -> int:
        """Start a worker; an event says when it is ready. Gives its number."""

    def submit(self, worker: int, task: Task) -> None:
        """Give a task to a worker that is ready."""

    def wait(self) -> list[Event]:
        """What happened since the last call; waits until something did."""

    def close(self) -> None:
        """End all workers, whatever they do."""
