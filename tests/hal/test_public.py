"""The public names of the driver interface: they are there, they are documented, and the template needs no others."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

from orchestrion.hal.backend import API_VERSION
from orchestrion.hal.public import PROVISIONAL, PUBLIC
from orchestrion.schema.plugins import GROUPS

ROOT = Path(__file__).parent.parent.parent
TEMPLATE = ROOT / "examples" / "hal-template" / "orchestrion_hal_template"
PAGE = (ROOT / "docs" / "hal-driver.md").read_text()


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_there(module: str) -> None:
    found = import_module(module)
    for name in PUBLIC[module]:
        value = getattr(found, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{module}.{name} has no docstring"


def test_abstract_methods_and_defaults_of_version_1() -> None:
    """Whoever adds an abstract method breaks every driver of an earlier version."""
    backend = import_module("orchestrion.hal.backend")
    abstract = {
        name: sorted(getattr(backend, name).__abstractmethods__)
        for name in dir(backend)
        if "Backend" in name[:7] and inspect.isclass(getattr(backend, name))
    }
    assert API_VERSION == (1, 0)
    assert abstract == {
        "BackendBuffer": ["release"],
        "BackendCommandBuffer": ["barrier", "copy", "dispatch", "fill", "finish", "release"],
        "BackendDevice": [
            "allocate", "close", "create_command_buffer", "create_executable", "create_semaphore", "import_host",
        ],
        "BackendDriver": ["devices", "open"],
        "BackendExecutable": ["release"],
        "BackendQueue": ["execute_batch", "submit", "wait_idle"],
        "BackendSemaphore": ["fail", "release", "signal", "value", "wait"],
    }  # fmt: skip


def imported(path: Path) -> list[tuple[str, str]]:
    """Module and name of each import from this project."""
    return [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("orchestrion.")
        for alias in node.names
    ]


@pytest.mark.parametrize("file", sorted(TEMPLATE.glob("*.py")), ids=lambda path: path.stem)
def test_the_template_imports_public_names_only(file: Path) -> None:
    for module, name in imported(file):
        if file.name == "target.py" and any(module == row or module.startswith(f"{row}.") for row in PROVISIONAL):
            continue
        if f"{module}.{name}" in PUBLIC:  # a module as a whole
            continue
        assert name in PUBLIC.get(module, ()), f"{file.name} imports {name} of {module}"


def test_the_template_is_small() -> None:
    """Lines with code, of the driver, its format and its device."""
    files = [TEMPLATE / f"{name}.py" for name in ("driver", "bytecode", "lanes")]
    assert sum(map(code_lines, files)) < 300


def code_lines(path: Path) -> int:
    """Lines that are no blank lines, comments or docstrings."""
    text = path.read_text()
    tree = ast.parse(text)
    docs: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            docs |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in lines if number not in docs and line.strip() and not line.lstrip().startswith("#"))


@pytest.mark.parametrize("name", [*PUBLIC, *GROUPS])
def test_the_page_names_it(name: str) -> None:
    assert f"`{name}`" in PAGE
