"""The interface of workers: the loop starts them, gives them tasks, and waits for events.

A worker has one task at a time. After `Lost` and `Refused` it is gone. Workers are numbered from 0; numbers are not
reused.
"""

from typing import NamedTuple, Protocol

from .worker import Outcome, Ready, Task


class Started(NamedTuple):
    """A worker is ready for its first task."""

    worker: int
    ready: Ready


class Done(NamedTuple):
    """A worker has finished its task, and is ready for another one."""

    worker: int
    outcome: Outcome


class Lost(NamedTuple):
    """A worker ended unexpectedly; `how` describes it."""

    worker: int
    how: str


class Refused(NamedTuple):
    """A worker cannot take part, so the run cannot continue."""

    worker: int
    reason: str


Event = Started | Done | Lost | Refused


class Workers(Protocol):
    """Processes that run tasks. `default`: the default number of workers."""

    default: int

    def start(self) -> int:
        """Starts a worker and returns its number; an event reports when it is ready."""

    def submit(self, worker: int, task: Task) -> None:
        """Gives a task to a worker that is ready."""

    def wait(self) -> list[Event]:
        """Waits for events, and returns those since the last call."""

    def close(self) -> None:
        """Ends all workers, even busy ones."""
