"""A child process that answers requests and may be killed.

It runs code that untrusted input may crash, hang, or make use too much memory: driver compilers, C++ parsers. The child
runs the same Python with the parent's import path and environment, and calls one function, `answer`, for each request.
It does not get PYTHONPATH, because relative entries would name other folders than when the parent started.

A frozen application (PyInstaller) has no Python to run. There the child is the application itself, started again with
an argument that `freeze_support`, the first line of its main, handles. The same limits apply to that child.

- A message is a JSON object and bytes, in frames with both lengths. Nothing is unpickled.
- Each request has a deadline, counted from when the child is ready. A late or dead child is killed with all processes
  that it started. The next request starts a new one.
- The child has no terminal: its output is lost, and it ignores SIGINT. Its memory may be limited (`limit_memory`), and
  it writes no core files.
- It ends at the parent's exit, when the parent dies (end of its input, or its own deadline while it works), and when it
  was idle for a while.
- Requests of several threads are answered one after the other. A forked process starts its own child.
- A process that was started as a child but did not become one starts no children. So an application that just opens its
  window again does not start itself endlessly.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import signal
import struct
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

from .fork import after_fork, new_lock

if TYPE_CHECKING:
    import subprocess

#: seconds for Python to start and to import the answering function
START_SECONDS = 60.0
#: seconds without a request after which a child ends
IDLE_SECONDS = 60.0
#: seconds after the deadline at which a child that was not killed ends itself, because its parent is gone
GRACE_SECONDS = 2.0
#: the most bytes of a message; untrusted input may control the child
MAX_BYTES = 1 << 30
#: exit statuses of a child: it was idle, or its parent is gone
IDLE, ORPHAN = 75, 76

#: attribute of `sys.flags` -> option of Python, so that the child ignores the same parts of its environment
_FLAGS = {"isolated": "-I", "ignore_environment": "-E", "no_user_site": "-s", "no_site": "-S"}
_LENGTHS = struct.Struct("<QQ")
#: the argument and the environment variable that mark a restarted application as a child
_MARKER, _PARENT = "--orchestrion-child", "ORCHESTRION_CHILD_OF"
_ADVICE = "an application calls orchestrion.vm.freeze_support() at the top of its main, before it does anything else"
_BOOT = "import sys,json;p=json.loads(sys.argv[1]);sys.path[:]=p['path'];import {0};{0}.main(p)"


class Message(NamedTuple):
    """A request or an answer."""

    fields: dict[str, Any]
    data: bytes = b""


#: the function that a child calls for each request
Answer = Callable[[Message], Message]


class ChildFailed(Exception):
    """A request got no answer."""


class ChildUnavailable(ChildFailed):
    """No child can be started here; the message states why."""


class ChildLate(ChildFailed):
    """The deadline passed. The child was killed."""


class ChildDied(ChildFailed):
    """The child ended before it answered: by a signal, by itself, or out of memory. `how` describes it."""

    def __init__(self, how: str) -> None:
        super().__init__(f"the child process {how}")
        self.how = how


class ChildRaised(ChildFailed):
    """The answering function raised an exception; the message names it."""


class Child:
    """A function in a child process. `answer` is `module:name`; the module is imported in the child only.

    `memory`: the limit of its private memory in bytes (`limit_memory`), None for no limit. `idle`: seconds without a
    request after which it ends. Thread-safe.
    """

    def __init__(self, answer: str, memory: int | None = None, idle: float = IDLE_SECONDS) -> None:
        self._options = {"answer": answer, "memory": memory, "idle": idle}
        self._process: _Process | None = None
        self._lock = new_lock()
        _children.add(self)

    @property
    def pid(self) -> int | None:
        """The id of the process, busy or not; None without one."""
        process = self._process
        return None if process is None else process.pid

    def start(self) -> None:
        """Start a process unless there is one, without waiting for it. Raises ChildUnavailable if none
        can be started.
        """
        with self._lock:
            self._running()

    def request(self, fields: dict[str, Any], data: bytes | memoryview = b"", *, deadline: float) -> Message:
        """Returns the answer to a request; `deadline` is in seconds. Raises a subclass of ChildFailed if there is no
        answer.

        An exception during the wait, such as KeyboardInterrupt, ends the child.
        """
        if not 0 < deadline < math.inf:
            raise ValueError(f"deadline {deadline} is not a number of seconds")
        if memoryview(data).nbytes > MAX_BYTES:
            raise ValueError(f"a request of {memoryview(data).nbytes} bytes, the limit is {MAX_BYTES}")
        with self._lock:
            process = self._running()
            try:
                return self._ask(process, fields, data, deadline)
            except ChildDied:
                if process.status != IDLE:  # one that nobody asked since it started may have ended, too
                    raise
            return self._ask(self._running(), fields, data, deadline)

    def end(self) -> None:
        """End the process, if there is one, busy or not. A request that waits for it raises ChildDied."""
        process = self._process
        if process is None:
            return
        process.kill()
        with self._lock:
            self._drop(process)

    def __del__(self) -> None:
        """No reference and no request is left. A finalizer takes no lock and waits for nothing: the process ends when
        its input closes, and is reaped by the next request of another child, or at exit.
        """
        process = getattr(self, "_process", None)
        if process is not None:
            process.hang_up()
            _dropped.append(process)

    def _running(self) -> _Process:
        _end_dropped()
        if self._process is None:
            self._process = _Process(self._options)
        return self._process

    def _ask(self, process: _Process, fields: dict[str, Any], data: bytes | memoryview, deadline: float) -> Message:
        done = False
        try:
            answer = process.ask(fields, data, deadline)
            done = process.status is None
        finally:
            if not done:
                self._drop(process)
        if "raised" in answer.fields:
            raise ChildRaised(answer.fields["raised"])
        return Message(answer.fields["fields"], answer.data)

    def _drop(self, process: _Process) -> None:
        """End a process. The lock is held."""
        process.kill()
        process.close()
        if self._process is process:
            self._process = None

    def _forget(self) -> None:
        """In a forked process: the child belongs to the parent."""
        process, self._process = self._process, None
        if process is not None:
            process.forget()


class _Process:
    """One child process. Only one thread at a time may call `ask`; `Child` holds a lock."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.fresh = True
        self.status: int | None = None
        self._killing = new_lock()
        self._is_python = _runs_python()
        self._popen = _spawn(options)
        self.pid = self._popen.pid

    def ask(self, fields: dict[str, Any], data: bytes | memoryview, deadline: float) -> Message:
        if self.fresh:
            self._wait_until_ready()
            self.fresh = False
        return self._within(deadline, lambda: self._exchange({"deadline": deadline, "fields": fields}, data))

    def kill(self) -> None:
        """Kill it with all processes that it started, and wait for its end. Thread-safe, and may be repeated."""
        with self._killing:
            if self.status is None:
                _kill(self._popen)
                self.status = self._popen.wait()

    def close(self) -> None:
        """Close the parent's ends of the pipes. No thread uses them."""
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()

    def hang_up(self) -> None:
        """Close its input. The pipe is unbuffered, so this takes no lock."""
        if self._popen.stdin is not None:
            self._popen.stdin.close()

    def forget(self) -> None:
        """In a forked process: `Popen` neither waits for the process nor warns that it still runs."""
        self._popen.returncode = self.status = 0
        self.close()

    def _wait_until_ready(self) -> None:
        try:
            hello = self._within(START_SECONDS, self._receive)
        except (ChildDied, ChildLate) as error:
            if self._is_python:
                raise
            raise ChildUnavailable(
                f"no child process: {sys.executable}, started again, did not become one ({error}); {_ADVICE}"
            ) from error
        if "raised" in hello.fields:
            raise ChildUnavailable(f"the child process cannot start: {hello.fields['raised']}")

    def _within(self, deadline: float, act: Callable[[], Message]) -> Message:
        """Returns the result of `act`. At the deadline a timer kills the process, which ends the read or write of
        `act`.
        """
        late = threading.Event()

        def kill() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(deadline, kill)
        timer.daemon = True
        timer.start()
        end = monotonic() + deadline
        try:
            answer = act()
            if monotonic() > end:  # the timer's thread may run later than this one
                late.set()
                raise EOFError
            return answer
        except (EOFError, OSError, ValueError, RecursionError) as error:
            self.kill()  # if it has ended, this only waits for it and keeps its status
            if late.is_set():
                raise ChildLate(f"no answer within {deadline:g} seconds") from None
            raise ChildDied(_how(self.status, error)) from None
        finally:
            timer.cancel()

    def _exchange(self, header: dict[str, Any], data: bytes | memoryview) -> Message:
        assert self._popen.stdin is not None
        _write(self._popen.stdin, header, data)
        answer = self._receive()
        if "raised" not in answer.fields and not isinstance(answer.fields.get("fields"), dict):
            raise ValueError("neither an answer nor an exception")
        return answer

    def _receive(self) -> Message:
        assert self._popen.stdout is not None
        return _read(self._popen.stdout)


def freeze_support() -> None:
    """Call in the first line of an application's main: allows its executable to be started again as a child process.

    In that process it does not return. Elsewhere it returns at once. Programs run by Python do not need it.
    """
    global _supported
    _supported = True
    if sys.argv[1:2] == [_MARKER] and len(sys.argv) == 3 and _PARENT in os.environ:
        main(json.loads(sys.argv[2]))


def _runs_python() -> bool:
    """Whether `sys.executable` is Python. In frozen applications, and where Python is embedded (Briefcase on macOS,
    uWSGI), it is the application, which would start again.
    """
    name = os.path.basename(sys.executable or "").casefold()
    return not getattr(sys, "frozen", False) and any(python in name for python in ("python", "pypy", "graalpy"))


def _is_on_a_phone() -> bool:
    """Whether this is Android, where `sys.executable` belongs to the system, or iOS, which has no child processes."""
    return sys.platform == "ios" or hasattr(sys, "getandroidapilevel")


def _command(options: dict[str, Any]) -> list[str]:
    """The command that starts a child. Raises ChildUnavailable."""
    if _PARENT in os.environ:
        raise ChildUnavailable(
            f"no child process: this process was started as one by process {os.environ[_PARENT]}, and goes on as the "
            f"program that it was; {_ADVICE}"
        )
    if not sys.executable:
        raise ChildUnavailable("no child process: this program is no Python that can be started again")
    if not _runs_python():
        if _is_on_a_phone():
            raise ChildUnavailable("no child process: an application on a phone cannot start itself again")
        if not _supported:
            raise ChildUnavailable(f"no child process: {sys.executable} is an application and no Python; {_ADVICE}")
        return [sys.executable, _MARKER, json.dumps(options)]
    # an entry that is no path belongs to an import hook (of editable installs) and stays unchanged
    path = [os.path.abspath(entry) if not entry or os.path.exists(entry) else entry for entry in sys.path]
    flags = [flag for name, flag in _FLAGS.items() if getattr(sys.flags, name)]
    return [sys.executable, *flags, "-P", "-c", _BOOT.format(__name__), json.dumps(options | {"path": path})]


def _spawn(options: dict[str, Any]) -> subprocess.Popen[bytes]:
    import subprocess  # imported here, because the child imports this file, too, and does not need it

    try:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.Popen(
            _command(options),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment | {_PARENT: str(os.getpid())},
            start_new_session=True,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise ChildUnavailable(f"no child process: {error}") from error


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group. It was not waited for, so no other process has its id."""
    try:
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # it is dead already; macOS raises the latter
        pass


def _how(status: int | None, error: Exception) -> str:
    if isinstance(error, ValueError):
        return f"gave a message that is none: {error}"
    if status is None or status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name} ({signal.strsignal(-status)})"
    except ValueError:
        return f"was ended by signal {-status}"


#: whether `freeze_support` was called
_supported = False

_children: weakref.WeakSet[Child] = weakref.WeakSet()
#: processes of garbage-collected children
_dropped: deque[_Process] = deque()


def _end_dropped() -> None:
    with suppress(IndexError):  # another thread does the same
        while True:
            process = _dropped.popleft()
            process.kill()
            process.close()


@atexit.register
def _end_all() -> None:
    _end_dropped()
    for child in [*_children]:
        child.end()


@after_fork
def _forget_all(parent: int) -> None:
    for child in [*_children]:
        child._forget()
    while _dropped:
        _dropped.popleft().forget()


# Frames, on both sides.


def _write(pipe: IO[bytes], fields: dict[str, Any], data: bytes | memoryview) -> None:
    text = json.dumps(fields).encode()
    for part in (_LENGTHS.pack(len(text), memoryview(data).nbytes), text, data):
        left = memoryview(part).cast("B")
        while left.nbytes:
            left = left[pipe.write(left) :]


def _read(pipe: IO[bytes]) -> Message:
    """Reads a message. Raises EOFError at the end of the pipe, ValueError for an invalid message."""
    text, data = _LENGTHS.unpack(_exactly(pipe, _LENGTHS.size))
    if text > MAX_BYTES or data > MAX_BYTES:
        raise ValueError(f"{max(text, data)} bytes, the limit is {MAX_BYTES}")
    fields = json.loads(_exactly(pipe, text))
    if not isinstance(fields, dict):
        raise ValueError("no object")
    return Message(fields, bytes(_exactly(pipe, data)))


def _exactly(pipe: IO[bytes], size: int) -> bytearray:
    whole = bytearray()
    while len(whole) < size:
        part = pipe.read(min(size - len(whole), 1 << 20))
        if not part:
            raise EOFError
        whole += part
    return whole


# The child's side.


def main(options: dict[str, Any]) -> NoReturn:
    """The main function of the child: takes over its pipes, limits its memory, imports the function, and serves
    requests.
    """
    requests, answers = _take_pipes()
    os.environ.pop(_PARENT, None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if options["memory"] is not None:
        limit_memory(options["memory"])
    try:
        module, _, name = options["answer"].partition(":")
        answer: Answer = getattr(import_module(module), name)
    except Exception as error:
        _write(answers, {"raised": _one_line_message(error)}, b"")
        os._exit(1)
    try:
        _write(answers, {}, b"")
        while True:
            _serve(requests, answers, answer, options["idle"])
    except (EOFError, OSError):  # the parent is gone
        os._exit(ORPHAN)


def limit_memory(size: int) -> None:
    """Limit the private memory of this process to `size` bytes, and disable core files.

    Linux counts it as RLIMIT_DATA. Elsewhere all address space counts (RLIMIT_AS), which macOS does not enforce.
    Windows has neither limit.
    """
    if sys.platform == "win32":
        return
    import resource

    memory = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    for what, most in ((resource.RLIMIT_CORE, 0), (memory, size)):
        _, hard = resource.getrlimit(what)
        try:
            resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
        except (OSError, ValueError):  # the system defines the limit but does not support it
            continue


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Moves the pipes to descriptors that nothing prints to, reads from, or inherits."""
    requests, answers = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(nothing)
    return requests, answers


def _serve(requests: IO[bytes], answers: IO[bytes], answer: Answer, idle: float) -> None:
    timer = threading.Timer(idle, os._exit, (IDLE,))
    timer.daemon = True
    timer.start()
    request = _read(requests)
    timer.cancel()
    _end_after(request.fields["deadline"] + GRACE_SECONDS)
    try:
        made = answer(Message(request.fields["fields"], request.data))
        reply = Message({"fields": made.fields}, made.data)
    except Exception as error:
        reply = Message({"raised": _one_line_message(error)})
    _end_after(0)
    _write(answers, reply.fields, reply.data)


def _end_after(seconds: float) -> None:
    """Have the system end this process after `seconds`, busy or not; 0 cancels that."""
    if sys.platform == "win32":
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _one_line_message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
