"""Workers that are spawned processes of this machine; they are not forked, so no driver is shared.

A worker ends when its pipe is closed: when it is not needed any more, and when this process dies.
"""

import multiprocessing
import signal
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from .pool import Done, Event, Lost, Refused, Started
from .worker import Setup, Task, Worker, WorkerLost, WorkerRefused

#: seconds within which a worker must end after its pipe is closed
_END_SECONDS = 5.0


class LocalWorkers:
    """`Workers` that are child processes."""

    default = 2  #: one worker reads and writes while the other one calls

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, tuple[SpawnProcess, Connection]] = {}
        self._next = 0

    def start(self) -> int:
        ours, theirs = self._context.Pipe()
        number, self._next = self._next, self._next + 1
        process = self._context.Process(target=serve, args=(theirs, self._setup, number), daemon=True)
        process.start()
        theirs.close()  # the worker has the only other end, so its death closes the pipe
        self._workers[number] = process, ours
        return number

    def submit(self, worker: int, task: Task) -> None:
        try:
            self._workers[worker][1].send(task)
        except OSError:  # it has died, which `wait` reports
            return

    def wait(self) -> list[Event]:
        numbers = {connection: number for number, (_, connection) in self._workers.items()}
        found: list[Event] = []
        for connection in wait(list(numbers)):
            assert isinstance(connection, Connection)
            number = numbers[connection]
            try:
                event: Event = connection.recv()
            except (EOFError, OSError):
                event = Lost(number, self._bury(number))
            else:
                if isinstance(event, Lost | Refused):
                    self._bury(number)
            found.append(event)
        return found

    def _bury(self, number: int) -> str:
        """Describes how a worker ended."""
        process, connection = self._workers.pop(number)
        connection.close()
        process.join(_END_SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
        status = process.exitcode or 0
        if status >= 0:
            return f"ended with status {status}"
        try:
            return f"was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"was ended by signal {-status}"

    def close(self) -> None:
        for process, connection in self._workers.values():
            connection.close()
            process.terminate()
        for process, _ in self._workers.values():
            process.join(_END_SECONDS)
            if process.exitcode is None:
                process.kill()
                process.join()
        self._workers.clear()


def serve(connection: Connection, setup: Setup, number: int) -> None:
    """The main function of a worker. The parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        worker = Worker(setup)
        event: Event = Started(number, worker.ready)
        while (task := _exchange(connection, event)) is not None:
            event = Done(number, worker.run(task))
    except WorkerRefused as error:
        _exchange(connection, Refused(number, str(error)))
    except WorkerLost as error:
        _exchange(connection, Lost(number, str(error)))


def _exchange(connection: Connection, event: Event) -> Task | None:
    """Reports an event, and returns the next task; None if the parent closed its end or died."""
    try:
        connection.send(event)
        task: Task = connection.recv()
    except (EOFError, OSError):
        return None
    return task
