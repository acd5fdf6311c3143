"""Each hint on what to install names distributions of PyPI, or a checkout's folder; never this package by its name."""

import ast
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

from orchestrion.schema.hints import EXTRAS, JAX, install, pip

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: distributions that hints name beside the requirements in pyproject.toml
OTHERS = {"jax", "torch", "torchax", "tensorflow", "pyinstaller", "pyopencl"}
#: the words of a command, up to what ends it in prose, in a table or in code
COMMAND = re.compile(r"pip install((?: +(?:'[^']*'|[\w.$/=*<>\[\]{}@-]+))+)")


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")


def _known() -> set[str]:
    listed = [*PROJECT["dependencies"], *(row for rows in PROJECT["optional-dependencies"].values() for row in rows)]
    return {_name(row) for row in listed} - {PROJECT["name"]} | OTHERS


def _problem(command: str) -> str | None:
    """What is wrong with the words behind `pip install`."""
    for word in shlex.split(command):
        if word.startswith("-") or word.startswith((".", "/", "$", "{")):
            continue  # an option, a folder, or what a shell or a program fills in
        if _name(word) not in _known():
            return word
    return None


def _hints() -> list[tuple[str, str]]:
    """Each command `pip install` in a tracked file: its place and what stands behind it."""
    done = subprocess.run(
        ["git", "grep", "-nI", "pip install", "--", ".", ":!.ci", ":!tests/docs/test_hints.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split(":", 2) for line in done.stdout.splitlines()]
    return [(f"{path}:{number}", found) for path, number, text in rows for found in COMMAND.findall(text)]


def test_the_table_is_that_of_pyproject() -> None:
    extras = PROJECT["optional-dependencies"]
    assert {name: list(rows) for name, rows in EXTRAS.items()} == {name: extras[name] for name in EXTRAS}
    assert JAX in extras["test"]
    of_all = re.findall(r"[\w-]+", extras["all"][0])[1:]
    assert set(of_all) <= set(EXTRAS)


def test_hints_are_quoted_for_a_shell() -> None:
    assert install("narrow") == "python -m pip install 'ml_dtypes>=0.5'"
    assert pip("ml_dtypes") == "python -m pip install ml_dtypes"
    for extra, rows in EXTRAS.items():
        assert shlex.split(install(extra)) == ["python", "-m", "pip", "install", *rows]


def test_each_hint_names_distributions_or_a_checkout() -> None:
    hints = _hints()
    assert len(hints) > 15
    wrong = [f"{place}: {word}" for place, command in hints if (word := _problem(command)) is not None]
    assert not wrong


def test_a_hint_that_names_this_package_is_found() -> None:
    assert _problem("'orchestrion[vulkan]'") and _problem("orchestrion") and _problem("-e '.[all]' orchestrion-ray")
    assert _problem("-e '.[all]' jax 'torch==2.10.*'") is None


def test_code_takes_its_hints_from_one_place() -> None:
    """No string of a source but docstrings holds a command: `schema.hints` makes it."""
    wrong = []
    for folder in ("schema", "hal", "vm", "compiler", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.name == "hints.py":
                continue
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text if "install" in text else "")
            wrong += [
                f"{path.relative_to(ROOT)}:{node.lineno}"
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and "pip install" in node.value
            ]
    assert not wrong
