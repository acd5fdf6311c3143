"""vm-compile on standard error: progress on a terminal, a final line, the times of its passes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import read_all

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.pipeline import PASSES, PHASES, passes_of
from orchestrion.compiler.steps import Steps
from orchestrion.tools import compile, progress, terminal

SIMPLE_MUL = Path(__file__).parents[2] / "examples" / "simple_mul.generic.mlir"
END = r"m\.fb: [\d,]+ bytes, in \d+\.\d\d s\n"
#: what is done for each pass and phase, in order
STEPS = [("input", "read"), ("input", "parse")]
for _phase in list(PHASES)[1:]:
    STEPS += [*((_phase, row.name) for row in passes_of(_phase)), (_phase, "verify")]
STEPS += [("bytecode", "encode"), ("bytecode", "write")]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))


def test_steps_are_told_before_they_run_and_noted_after(tmp_path: Path) -> None:
    told: list[tuple[str, str, str]] = []
    steps = Steps(lambda *step: told.append(step))
    Compilation(targets=("reference", "spirv"), steps=steps).write(SIMPLE_MUL, tmp_path / "m.fb")
    assert [(step.phase, step.name) for step in steps.done] == STEPS
    assert [(phase, name) for phase, name, part in told if not part] == STEPS
    parts = [part for phase, name, part in told if (phase, name) == ("executables", "lower-executables") and part]
    assert parts == ["1 of 2", "2 of 2"], "an entry for each target"
    assert len(PASSES) < len(steps.done) and all(step.seconds >= 0 for step in steps.done)


def test_the_last_line_names_file_size_and_time(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert compile.main([str(SIMPLE_MUL), "-o", "m.fb"]) == 0
    out, error = capsys.readouterr()
    assert out == "" and re.fullmatch(END, error), "no progress where standard error is no terminal"
    assert error.startswith(f"m.fb: {(tmp_path / 'm.fb').stat().st_size:,} bytes")
    assert compile.main([str(SIMPLE_MUL), "-o", "m.fb", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert compile.main([str(SIMPLE_MUL), "--compile-to=stablehlo"]) == 0
    out, error = capsys.readouterr()
    assert "stablehlo.multiply" in out and error == "", "the text of a phase is no module"


def test_time_passes_is_a_table_of_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert compile.main([str(SIMPLE_MUL), "-o", "m.fb", "--time-passes", "--quiet"]) == 0
    head, *rows, whole = capsys.readouterr().err.splitlines()
    assert head.split() == ["phase", "step", "seconds", "share"]
    assert [tuple(row.split()[:2]) for row in rows] == STEPS
    assert whole.split()[0] == "all" and whole.split()[2] == "100.0%"
    seconds = [float(row.split()[2]) for row in rows]
    assert abs(sum(seconds) - float(whole.split()[1])) < 1e-4 * len(rows)


def test_time_passes_of_a_program_that_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "bad.mlir").write_text(SIMPLE_MUL.read_text().replace("stablehlo.multiply", "stablehlo.all_to_all"))
    assert compile.main(["bad.mlir", "-o", "m.fb", "--time-passes"]) == 1
    table, _, refusal = capsys.readouterr().err.partition("vm-compile: ")
    assert "all_to_all" in refusal
    assert table.splitlines()[-2].split()[:2] == ["stablehlo", "check-legality"], "the pass that failed is the last row"


@pytest.mark.parametrize(("terminal", "shown"), [("xterm", True), ("dumb", False)])
def test_progress_is_a_line_that_is_erased(terminal: str, shown: bool) -> None:
    pty = pytest.importorskip("pty", reason="a system without pseudo terminals")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "orchestrion.tools.compile", str(SIMPLE_MUL), "-o", "m.fb"]
    done = subprocess.run(command, stderr=theirs, env=os.environ | {"TERM": terminal}, timeout=120)
    os.close(theirs)
    told = read_all(ours)
    assert done.returncode == 0
    assert ("\r\x1b[K[2/7] stablehlo: inline\r\x1b[K" in told) == shown
    last = told.rpartition("\x1b[K")[2]
    assert re.fullmatch(END, last.replace("\r\n", "\n"))


def test_parts_of_a_step_are_told_ten_times_a_second() -> None:
    class Terminal:
        """A terminal that stores its output."""

        text = ""

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None: ...

        def isatty(self) -> bool:
            return True

    shown = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setattr(terminal, "monotonic", iter([0.0, 0.05, 0.2]).__next__)
        with progress.following(shown) as told:  # type: ignore[arg-type]
            assert told is not None
            for part in ("", "1 of 9", "2 of 9"):
                told("executables", "lower-executables", part)
    assert re.findall(r"\d of 9", shown.text) == ["2 of 9"]
