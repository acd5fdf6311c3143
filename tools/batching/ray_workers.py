"""Workers that are actors of a Ray cluster (extra `ray`), one per CPU that Ray assigns.

Paths must refer to the same files on all machines. This process starts Ray only if it has no Ray yet, and shuts down
only what it started.
"""

import socket
import sys
from importlib import import_module
from typing import Any

from orchestrion.schema.hints import pip
from orchestrion.tools.cli import InputError

from .pool import Done, Event, Lost, Refused, Started
from .worker import Ready, Setup, Task, Worker, WorkerLost, WorkerRefused

#: `--ray=local`: a cluster on this machine while the command runs
LOCAL = "local"
#: seconds without a first worker after which a note is printed
_NOTE_SECONDS = 30.0
#: seconds in which a cluster's address is answered
_CONNECT_SECONDS = 10.0


class Actor:
    """A worker in a process of Ray. It returns refusals and losses as values, because Ray would wrap exceptions."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._worker: Worker | None = None

    def load(self) -> Ready | str:
        """Loads the module. Returns the reason if that is refused."""
        try:
            self._worker = Worker(self._setup)
        except WorkerRefused as error:
            return str(error)
        return self._worker.ready

    def run(self, worker: int, task: Task) -> Event:
        assert self._worker is not None
        try:
            return Done(worker, self._worker.run(task))
        except WorkerRefused as error:
            return Refused(worker, str(error))
        except WorkerLost as error:
            return Lost(worker, str(error))


class RayWorkers:
    """`Workers` that are actors. `address`: an argument of `ray.init`, or `local`."""

    def __init__(self, setup: Setup, address: str) -> None:
        """Raises InputError if Ray is not installed, or there is no cluster."""
        try:
            ray: Any = import_module("ray")
        except ImportError as error:
            raise InputError(f"--ray needs Ray: {pip('ray[data]', 'pyarrow')} ({error})") from None
        self._ray = ray
        self._owns_ray = not ray.is_initialized()
        if self._owns_ray:
            self._connect(address)
        self.default = max(1, len([node for node in ray.nodes() if node["Alive"]]))
        self._actor = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(Actor)
        self._setup = ray.put(setup)
        self._actors: dict[int, Any] = {}
        self._waiting: dict[Any, int] = {}
        self._next = 0
        self._began = False  #: whether `wait` was called

    def _connect(self, address: str) -> None:
        """Connect this process to a cluster. `InputError`: there is none. Ray itself tries for ten minutes."""
        try:
            _check_address(address)
            self._ray.init(
                address=address,
                log_to_driver=False,
                logging_level="error",
                **({"include_dashboard": False} if address == LOCAL else {}),
            )
        except Exception as error:  # of a node that does not start in time, Ray raises a bare Exception
            raise InputError(f"--ray={address}: there is no cluster: {error}") from error

    def start(self) -> int:
        number, self._next = self._next, self._next + 1
        actor = self._actors[number] = self._actor.remote(self._setup)
        self._waiting[actor.load.remote()] = number
        return number

    def submit(self, worker: int, task: Task) -> None:
        self._waiting[self._actors[worker].run.remote(worker, task)] = worker

    def wait(self) -> list[Event]:
        done, _ = self._ray.wait(list(self._waiting), num_returns=1, timeout=_NOTE_SECONDS)
        if not done and not self._began:
            print("vm-batch: note: the Ray cluster has started no worker yet; each needs a CPU", file=sys.stderr)
        self._began = True
        if not done:
            done, _ = self._ray.wait(list(self._waiting), num_returns=1)
        return [self._event(reference, self._waiting.pop(reference)) for reference in done]

    def _event(self, reference: Any, number: int) -> Event:
        try:
            found = self._ray.get(reference)
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.RayTaskError) as error:
            event: Event = Lost(number, _how(error))
        else:
            event = found
            if isinstance(found, Ready):
                event = Started(number, found)
            elif isinstance(found, str):
                event = Refused(number, found)
        if isinstance(event, Lost | Refused):
            self._ray.kill(self._actors.pop(number))
        return event

    def close(self) -> None:
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors.clear()
        self._waiting.clear()
        if self._owns_ray:
            self._ray.shutdown()


def _check_address(address: str) -> None:
    """`OSError` where nobody answers at `HOST:PORT` or `ray://HOST:PORT`."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()


def _how(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"ended: {lines[-1].strip() if lines else type(error).__name__}"
