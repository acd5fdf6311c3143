"""What the READMEs show runs: Python, commands. What the first one says is supported is."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrion.compiler.ir.dialect import ops_in
from orchestrion.compiler.stablehlo.expansions.expand import PATTERNS
from orchestrion.compiler.stablehlo.ops import contraction, structural
from orchestrion.compiler.stablehlo.ops.dialect import DIALECT
from orchestrion.schema.dtypes import DTYPES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"(?<=^```python\n).*?(?=^```$)", README, re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    (vm-.*)$", re.MULTILINE)
DEVICE = re.compile(r"--device=(\w+)")


def section(title: str) -> str:
    return re.split(r"^## ", README, flags=re.MULTILINE)[1:][titles().index(title)]


def titles() -> list[str]:
    return re.findall(r"^## (.*)$", README, re.MULTILINE)


def test_its_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax")
    import numpy as np

    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path))
    names: dict[str, object] = {}
    for block in PYTHON:
        exec(block, names)
    want = np.tanh(np.ones((8, 4)) @ np.ones((4, 3))).astype(np.float32)
    assert capsys.readouterr().out == f"{want}\n"
    np.testing.assert_array_equal(np.asarray(names["y"]), want)


@pytest.mark.parametrize("page", ["README.md", "examples/README.md"])
def test_its_commands_run(page: str, shell: Callable[[str], str], missing_drivers: dict[str, str]) -> None:
    """In their order, those for a device that is not here on the default one."""
    commands = COMMAND.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(commands) >= 4
    for command in commands:
        named = DEVICE.search(command)
        shell(DEVICE.sub("", command) if named and named[1] in missing_drivers else command)


def test_its_ops_are_the_ones_supported() -> None:
    """Every op that it names is one, and no op that is more than elementwise is left out."""
    named = set(re.findall(r"`([a-z_]+)`", section("What it does today")))
    supported = {name.removeprefix("stablehlo.") for name in (*DIALECT.ops, *PATTERNS)}
    assert named <= supported
    whole = {op.name.removeprefix("stablehlo.") for op in ops_in(vars(structural), vars(contraction))}
    assert whole - {"return"} <= named


def test_its_element_types_are_the_ones_supported() -> None:
    text = re.sub(r"`(u?i)8` to `(?:\1)64`", r"`\g<1>8` `\g<1>16` `\g<1>32` `\g<1>64`", section("What it does today"))
    assert set(re.findall(r"`((?:(?:ui|i|f|bf)\d+[A-Z0-9]*|complex<f\d+>))`", text)) == {row.name for row in DTYPES}
