"""A child process answers, is late, dies, or is idle; its parent dies, is interrupted, or forks."""

import gc
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrion.schema import child_process
from orchestrion.schema.child_process import (
    Child,
    ChildDied,
    ChildLate,
    ChildRaised,
    ChildUnavailable,
)

ANSWER = "child_answers:answer"
#: seconds in which a child that nobody bothers answers, on a machine that is busy
LONG = 60.0

posix = pytest.mark.skipif(os.name != "posix", reason="signals, process groups and limits of POSIX")


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child(ANSWER)
    yield made
    made.end()


def ends(pid: int) -> bool:
    """Whether a process ends, or becomes a zombie, within a while."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_one_process_answers_all_requests(child: Child) -> None:
    first = child.request({"kind": "echo", "said": "grüße \ud800"}, b"abc", deadline=LONG)
    again = child.request({"kind": "echo"}, memoryview(bytes(range(256)) * 9999), deadline=LONG)
    assert first.data == b"cba" and first.fields["said"] == "grüße \ud800"
    assert again.data == (bytes(range(256)) * 9999)[::-1]
    assert first.fields["pid"] == again.fields["pid"] == child.pid != os.getpid()


def test_it_has_the_parents_import_path(child: Child, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    odd = tmp_path / f"with{os.pathsep}separator"
    odd.mkdir()
    monkeypatch.syspath_prepend(str(odd))
    made = child.request({"kind": "echo"}, deadline=LONG).fields["path"]
    hooks = [entry for entry in sys.path if entry.startswith("__editable__")]  # of an editable install
    assert made == [entry if entry in hooks else os.path.abspath(entry) for entry in sys.path] and str(odd) in made


def test_it_does_not_import_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    other = Child(ANSWER)
    try:
        assert other.request({"kind": "echo"}, deadline=LONG).fields["pid"]
    finally:
        other.end()


@pytest.mark.parametrize("variable", ["lib", os.pathsep])
def test_a_relative_import_path_is_the_parents(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python resolves PYTHONPATH when a process starts, and the parent may be in an untrusted folder by then."""
    (tmp_path / variable.strip(os.pathsep)).mkdir(exist_ok=True)
    (tmp_path / variable.strip(os.pathsep) / "json.py").write_text("raise SystemExit(3)\n")
    monkeypatch.setenv("PYTHONPATH", variable)
    monkeypatch.chdir(tmp_path)
    child = Child(ANSWER)
    assert child.request({"kind": "echo"}, deadline=LONG).fields["pid"]
    child.end()


def test_a_late_child_is_killed_and_replaced(child: Child) -> None:
    child.request({"kind": "echo"}, deadline=LONG)
    pid = child.pid
    assert pid is not None
    with pytest.raises(ChildLate, match=r"within 0\.2 seconds"):
        child.request({"kind": "spin"}, deadline=0.2)
    assert ends(pid) and child.pid is None
    assert child.request({"kind": "echo"}, deadline=LONG).fields["pid"] != pid


@posix
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGALRM"])
def test_the_signal_that_ended_it_is_named(child: Child, name: str) -> None:
    with pytest.raises(ChildDied, match=f"was ended by {name}"):
        child.request({"kind": "signal", "signal": getattr(signal, name)}, deadline=LONG)
    assert child.request({"kind": "echo"}, deadline=LONG).fields["pid"]


@pytest.mark.parametrize("status", [0, 3, child_process.IDLE])
def test_its_exit_status_is_named(child: Child, status: int) -> None:
    with pytest.raises(ChildDied, match=f"ended with status {status}$"):
        child.request({"kind": "exit", "status": status}, deadline=LONG)


def test_an_exception_is_named_and_the_child_goes_on(child: Child) -> None:
    with pytest.raises(ChildRaised, match="KeyError: 'who'"):
        child.request({"kind": "raise", "text": "who"}, deadline=LONG)
    pid = child.pid
    with pytest.raises(ChildDied, match="neither an answer nor an exception"):
        child.request({"kind": "nothing"}, deadline=LONG)
    assert pid is not None and ends(pid)


def test_what_cannot_be_imported_is_named() -> None:
    for answer, said in (("no_such_module:answer", "ModuleNotFoundError"), ("json:answer", "AttributeError")):
        other = Child(answer)
        with pytest.raises(ChildUnavailable, match=said):
            other.request({}, deadline=LONG)
        assert other.pid is None


def test_a_program_that_is_no_python_has_no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    for attribute, value in (
        ("executable", ""),
        ("executable", None),
        ("executable", "/no/such/python"),
        ("frozen", True),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(sys, attribute, value, raising=False)
            patch.setattr("orchestrion.schema.child_process._supported", False)  # other tests call freeze_support
            with pytest.raises(ChildUnavailable, match="no child process"):
                Child(ANSWER).start()


@pytest.mark.parametrize("deadline", [0, -1, math.inf, math.nan])
def test_a_deadline_is_a_number_of_seconds(child: Child, deadline: float) -> None:
    with pytest.raises(ValueError, match="deadline"):
        child.request({"kind": "echo"}, deadline=deadline)


@posix
def test_memory_is_limited() -> None:
    other = Child(ANSWER, memory=256 << 20)
    try:
        assert other.request({"kind": "take", "bytes": 16 << 20}, deadline=LONG).fields == {"bytes": 16 << 20}
        with pytest.raises(ChildRaised, match="MemoryError"):
            other.request({"kind": "take", "bytes": 1 << 30}, deadline=LONG)
        assert other.request({"kind": "echo"}, deadline=LONG)
    finally:
        other.end()


@posix
def test_what_it_started_ends_with_it(child: Child, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with pytest.raises(ChildLate):
        child.request({"kind": "start", "path": str(path)}, deadline=2)
    assert ends(int(path.read_text()))


@posix
def test_sigint_is_the_parents(child: Child) -> None:
    assert child.request({"kind": "interrupted"}, deadline=LONG).fields == {}
    over = threading.Event()

    def interrupt() -> None:
        """Sends the signal again after a while, because an exception raised inside a finalizer is lost."""
        seconds = 0.3
        while not over.wait(seconds):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            seconds = 5.0

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # another test may have left its own
    try:
        with pytest.raises(KeyboardInterrupt):
            threading.Thread(target=interrupt, daemon=True).start()
            try:
                child.request({"kind": "sleep", "seconds": LONG}, deadline=2 * LONG)
            finally:
                over.set()
    finally:
        signal.signal(signal.SIGINT, before)
    assert child.pid is None
    assert child.request({"kind": "echo"}, deadline=LONG)


def test_an_idle_child_ends_and_is_replaced() -> None:
    other = Child(ANSWER, idle=0.2)
    try:
        pid = other.request({"kind": "echo"}, deadline=LONG).fields["pid"]
        assert ends(pid)
        assert other.request({"kind": "echo"}, deadline=LONG).fields["pid"] != pid
    finally:
        other.end()


def test_a_child_that_was_never_asked_is_replaced() -> None:
    other = Child(ANSWER, idle=0.2)
    try:
        other.start()
        pid = other.pid
        assert pid is not None and ends(pid)
        assert other.request({"kind": "echo"}, deadline=LONG).fields["pid"] != pid
    finally:
        other.end()


def test_another_thread_may_end_it(child: Child) -> None:
    child.request({"kind": "echo"}, deadline=LONG)
    timer = threading.Timer(0.3, child.end)
    timer.start()
    with pytest.raises(ChildDied):
        child.request({"kind": "sleep", "seconds": LONG}, deadline=2 * LONG)
    timer.join()
    assert child.request({"kind": "echo"}, deadline=LONG)


def test_it_ends_when_nobody_has_it() -> None:
    other = Child(ANSWER)
    pid = other.request({"kind": "echo"}, deadline=LONG).fields["pid"]
    del other
    gc.collect()
    assert ends(pid)


def test_threads_take_turns(child: Child) -> None:
    said: dict[int, bytes] = {}

    def ask(number: int) -> None:
        for _ in range(8):
            said[number] = child.request({"kind": "echo"}, bytes([number, 0]) * 4096, deadline=LONG).data

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {number: bytes([0, number]) * 4096 for number in range(8)}


def in_a_fork(act: Callable[[], None]) -> int:
    """The exit status of a forked process that runs the function."""
    pid = os.fork()
    if not pid:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@posix
def test_a_fork_has_a_child_of_its_own(child: Child) -> None:
    mine = child.request({"kind": "echo"}, deadline=LONG).fields["pid"]

    def act() -> None:
        assert child.pid is None
        assert child.request({"kind": "echo"}, deadline=LONG).fields["pid"] != mine
        child.end()

    assert in_a_fork(act) == 0
    assert child.request({"kind": "echo"}, deadline=LONG).fields["pid"] == mine


PARENT = """
import os, sys, threading, time
from orchestrion.schema.child_process import Child
child = Child("child_answers:answer")
pid = child.request({"kind": "echo"}, deadline=60).fields["pid"]
print(pid, flush=True)
"""
ENDINGS = {
    "exit": "",
    "os._exit": "os._exit(0)",
    "exception": "raise SystemExit(3)",
    "idle": "os.kill(os.getpid(), 9)",
    "busy": "threading.Timer(0.3, os.kill, (os.getpid(), 9)).start(); child.request({'kind': 'spin'}, deadline=1)",
    "busy, exit": "threading.Thread(target=lambda: child.request({'kind': 'spin'}, deadline=60), daemon=True).start(); "
    "time.sleep(0.3)",
}


@posix
@pytest.mark.parametrize("ending", ENDINGS)
def test_it_ends_with_its_parent(ending: str) -> None:
    path = os.pathsep.join(sys.path)
    parent = subprocess.run(
        [sys.executable, "-c", PARENT + ENDINGS[ending]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=2 * LONG,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert ends(int(parent.stdout))


def test_an_isolated_parent_has_an_isolated_child(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit(3)")
    code = f"import sys; sys.path[:] = {sys.path!r}" + PARENT
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    isolated = [sys.executable, "-I", "-c", code]
    assert int(subprocess.run(isolated, env=environment, capture_output=True, check=True, timeout=2 * LONG).stdout)


def test_nothing_is_left_open(child: Child) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("no /proc")
    before = len([*folder.iterdir()])
    for _ in range(3):
        with pytest.raises(ChildDied):
            child.request({"kind": "exit", "status": 1}, deadline=LONG)
    gc.collect()
    assert len([*folder.iterdir()]) == before
