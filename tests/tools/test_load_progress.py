"""The progress line on a terminal while vm-run and vm-bench load a module."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import read_all

from orchestrion.tools import load_progress, run, terminal

MODULE = str(Path(__file__).parents[1] / "golden" / "v1.0-simple_mul.fb")
INPUTS = ["--input=4xf32=1,2,3,4", "--input=4xf32=10,20,30,40"]


class Terminal(io.StringIO):
    """A terminal that stores its output."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("tool", ["run", "bench"])
@pytest.mark.parametrize(("kind", "shown"), [("xterm", True), ("dumb", False)])
def test_a_line_that_is_erased(tool: str, kind: str, shown: bool) -> None:
    pty = pytest.importorskip("pty", reason="a system without pseudo terminals")
    ours, theirs = pty.openpty()
    flags = ["--repeat=1", "--json"] if tool == "bench" else []
    command = [sys.executable, "-m", f"orchestrion.tools.{tool}", MODULE, "--device=reference", *INPUTS, *flags]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"TERM": kind}, timeout=120, text=True
    )
    os.close(theirs)
    told = read_all(ours)
    assert done.returncode == 0 and "\x1b" not in done.stdout
    if shown:
        assert "\r\x1b[Kv1.0-simple_mul.fb: read\r\x1b[K" in told and told.endswith("\r\x1b[K")
        assert re.search(r": build, 0 of \d+ executables\r", told)
    else:
        assert told == ""


def test_no_line_where_standard_error_is_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([MODULE, "--device=reference", *INPUTS]) == 0
    assert capsys.readouterr().err == ""


def test_a_warning_does_not_stand_on_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    with load_progress.loading("folder/m.fb", "vulkan") as tell:
        assert tell is not None
        tell("warm_up", 0, 0)
        terminal.erase()
        print("warning: streamed", file=sys.stderr)
        terminal.erase()
    assert stream.getvalue() == "\r\x1b[Km.fb on vulkan: warm up\r\x1b[Kwarning: streamed\n"
