"""docs/tuning.md: its commands run, in a short form; what it shows has the form of what they print."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.compiler.targets import schedule_file
from orchestrion.tools.tuning import search, space, tuner

PAGE = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text(encoding="utf-8")
EXAMPLES = Path(__file__).parents[2] / "examples"


def block(language: str) -> str:
    """The first fenced block of a language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def form(text: str) -> list[str]:
    """The first word of each line, without numbers."""
    return [re.sub(r"\d+", "N", line.split(maxsplit=1)[0]) for line in text.splitlines() if line.strip()]


def test_its_commands_run(shell: Callable[[str], str], missing_drivers: dict[str, str], tmp_path: Path) -> None:
    if "opencl" in missing_drivers:
        pytest.skip(missing_drivers["opencl"])
    shown = block("console")
    search_line, compile_line = (line[2:] for line in shown.splitlines() if line.startswith("$ "))
    told = shell(f"{search_line.replace('--budget=60', '--budget=30 --trials=4')} 2>&1")
    head, table = told.split("\n", 1)
    assert re.fullmatch(r"main on opencl \(.*\), machine cpu", head)
    assert form(table)[:2] == form(shown.split("\n", 2)[2])[:2] == ["entry", "main_dispatch_N"]
    shell(compile_line)
    folder = tmp_path / "copied"
    shell(f"mkdir {folder} && cp {shlex.quote('mlp.schedules')} mlp.fb {folder}")
    text = (folder / "mlp.schedules").read_text("utf-8")
    assert text.splitlines()[0] == block("text").splitlines()[0] == schedule_file.HEADER
    x, y = (np.load(EXAMPLES / f"mlp_{name}.npy") for name in ("input", "output"))
    result = vm.load(folder / "mlp.fb", device="opencl", allow_native_code=True).main(x)
    np.testing.assert_allclose(result, y, rtol=1e-4, atol=1e-6)


def test_its_file_is_one() -> None:
    file = schedule_file.parse(block("text").encode(), "page")
    assert [str(choice) for choice in file.choices] == re.findall(r"^schedule .*$", file.text(), re.MULTILINE)
    assert len(file.choices) == 2


def test_its_numbers_are_those_of_the_code() -> None:
    assert f"{search.MARGIN:.0%}" == "3%" and "by 3 %" in PAGE
    assert f"{tuner.LEAST_SHARE:.1%}" == "0.5%" and "less than 0.5 %" in PAGE
    assert f"{search.BATCHES} batches" in PAGE
    for form_ in space.KNOBS:
        assert f"| {form_} |" in PAGE
    rows = dict(re.findall(r"^\| (elements|tiles|blocks|rows) \| .*? \| (.*) \|$", PAGE, re.MULTILINE))
    for form_, knobs in rows.items():
        assert len(knobs.split(", ")) == len(space.KNOBS[form_]), form_
