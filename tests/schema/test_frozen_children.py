"""Child processes of applications that embed Python: the application starts again, and `freeze_support` runs the child.

The application here is a script with the properties of a frozen one: `sys.frozen`, and an executable that is not
Python. `tests/tools/test_frozen_app.py` freezes one with PyInstaller.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrion.schema import child_process
from orchestrion.schema.child_process import Child, ChildUnavailable

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the application is a shell script")

#: seconds for a process, on a machine that is busy
LONG = 120.0

SUPPORT = "from orchestrion.schema.child_process import freeze_support; freeze_support()"
#: notes its starts, and notes and prints what comes of the requests, as JSON
APPLICATION = """
import json, os, sys, time
with open({starts!r}, "a") as file:
    print(os.getpid(), file=file)
sys.path[:] = {path!r}
sys.frozen = {frozen!r}
sys.executable = {executable!r}
{first}
from orchestrion.schema import child_process
from orchestrion.schema.child_process import Child, ChildFailed
child = Child("child_answers:answer", memory=256 << 20)
said = []
for fields in {requests!r}:
    try:
        answer = child.request(fields, b"abc", deadline=fields.pop("deadline", 60))
        said.append([answer.fields, answer.data.decode()])
    except ChildFailed as error:
        said.append([type(error).__name__, str(error)])
with open({notes!r}, "a") as file:
    print(json.dumps([os.getpid(), said]), file=file)
print(json.dumps([os.getpid(), said]))
"""
ECHO = {"kind": "echo"}


class Application:
    def __init__(self, folder: Path, first: str, requests: list[dict[str, Any]], frozen: bool = True) -> None:
        self.starts, self.notes = folder / "starts", folder / "notes"
        self.executable = folder / "app"
        source = APPLICATION.format(
            starts=str(self.starts),
            notes=str(self.notes),
            path=sys.path,
            frozen=frozen,
            executable=str(self.executable),
            first=first,
            requests=requests,
        )
        (folder / "source").write_text(source)
        self.executable.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder / "source"}" "$@"\n')
        self.executable.chmod(0o755)

    def run(self, *arguments: str, **environment: str) -> tuple[int, list[Any]]:
        """The application's process, and the results of its requests."""
        done = subprocess.run(
            [str(self.executable), *arguments],
            capture_output=True,
            text=True,
            timeout=LONG,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stderr
        process, said = json.loads(done.stdout)
        return process, said

    @property
    def processes(self) -> list[int]:
        return [int(line) for line in self.starts.read_text().split()]


@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "embedded"])
def test_the_application_becomes_the_child(tmp_path: Path, frozen: bool) -> None:
    application = Application(tmp_path, SUPPORT, [ECHO, ECHO | {"said": "ü"}], frozen)
    parent, [(first, data), (second, _)] = application.run("--orchestrion", "argument")
    assert data == "cba" and second["said"] == "ü"
    assert application.processes == [parent, first["pid"]] and second["pid"] == first["pid"]


def test_the_child_has_the_same_limits(tmp_path: Path) -> None:
    """The memory limit, the deadline, and the end of the processes that it started."""
    path = tmp_path / "pid"
    requests = [
        {"kind": "take", "bytes": 16 << 20},
        {"kind": "take", "bytes": 1 << 30},
        {"kind": "limits"},
        {"kind": "start", "path": str(path), "deadline": 3},
        {"kind": "spin", "deadline": 0.3},
        ECHO,
    ]
    application = Application(tmp_path, SUPPORT, requests)
    parent, (small, large, limits, late, spin, last) = application.run()
    assert small[0] == {"bytes": 16 << 20} and large[0] == "ChildRaised" and "MemoryError" in large[1]
    assert limits[0]["core"] == 0 and limits[0]["memory"] == 256 << 20
    assert limits[0]["session"] == limits[0]["pid"] != parent and limits[0]["interrupt"] == "SIG_IGN"
    assert limits[0]["variables"] == []
    assert late[0] == spin[0] == "ChildLate" and last[1] == "cba"
    assert all(gone(pid) for pid in [int(path.read_text()), *application.processes])


def gone(pid: int) -> bool:
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


@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "embedded"])
def test_without_the_call_it_is_refused_and_not_started_again(tmp_path: Path, frozen: bool) -> None:
    """An earlier version started the application again as if it were Python, which opened a second window."""
    application = Application(tmp_path, "", [ECHO], frozen)
    parent, [(error, message)] = application.run()
    assert error == "ChildUnavailable" and application.processes == [parent]
    assert f"no child process: {application.executable} is an application" in message
    assert "orchestrion.vm.freeze_support() at the top of its main" in message


def test_an_application_that_does_not_become_a_child_says_why(tmp_path: Path) -> None:
    """It reads its arguments before it calls `freeze_support`, and does not know the child's argument."""
    first = "if sys.argv[1:]:\n    raise SystemExit(2)\n" + SUPPORT
    _, [(error, message)] = Application(tmp_path, first, [ECHO]).run()
    assert error == "ChildUnavailable" and "did not become one (the child process ended with status 2)" in message
    assert "orchestrion.vm.freeze_support() at the top of its main" in message


def test_it_is_not_started_for_ever(tmp_path: Path) -> None:
    """If the argument is lost, the started process runs as the application and starts no further process."""
    application = Application(tmp_path, SUPPORT, [ECHO])
    application.executable.write_text(application.executable.read_text().replace('"$@"', ""))
    application.run()
    inner, outer = [json.loads(line) for line in application.notes.read_text().splitlines()]
    assert application.processes == [outer[0], inner[0]]
    assert f"this process was started as one by process {outer[0]}, and goes on" in inner[1][0][1]
    assert "did not become one" in outer[1][0][1]


def test_the_argument_alone_makes_no_child(tmp_path: Path) -> None:
    """An attacker may choose an application's arguments, as in a link that it opens; they cannot name a function to
    call.
    """
    path = tmp_path / "imported"
    (tmp_path / "evil.py").write_text(f"open({str(path)!r}, 'w').close()")
    options = json.dumps({"answer": "evil:answer", "memory": None, "idle": 60})
    application = Application(tmp_path, f"sys.path.insert(0, {str(tmp_path)!r})\n{SUPPORT}", [])
    _, said = application.run("--orchestrion-child", options)
    assert said == [] and not path.exists()


def test_python_needs_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("python3.11", "Python", "pythonw.exe", "pypy3"):
        monkeypatch.setattr(sys, "executable", f"/no/such/{name}")
        with pytest.raises(ChildUnavailable, match="No such file"):
            Child("child_answers:answer").start()


def test_phones_have_no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not the application calls `freeze_support`: on Android the executable is the system's."""
    monkeypatch.setattr(sys, "executable", "/system/bin/app_process64")
    monkeypatch.setattr(sys, "getandroidapilevel", lambda: 24, raising=False)
    for supported in (False, True):
        monkeypatch.setattr(child_process, "_supported", supported)
        with pytest.raises(ChildUnavailable, match="no child process: an application on a phone cannot start itself"):
            Child("child_answers:answer").start()
