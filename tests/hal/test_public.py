"""The public names of the driver interface exist and are documented, and the template needs no others."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

from orchestrion.compiler.public import TARGET_INTERFACE
from orchestrion.compiler.targets import target
from orchestrion.hal import backend
from orchestrion.hal.backend import API_VERSION
from orchestrion.hal.public import DEVICE_INTERFACE, PUBLIC
from orchestrion.schema.plugins import GROUPS

ROOT = Path(__file__).parent.parent.parent
TEMPLATE = ROOT / "examples" / "hal-template" / "orchestrion_hal_template"
PAGE = (ROOT / "docs" / "hal-driver.md").read_text()


@pytest.mark.parametrize("module", [*PUBLIC, *DEVICE_INTERFACE, *TARGET_INTERFACE])
def test_public_names_are_there(module: str) -> None:
    for name in PUBLIC.get(module) or DEVICE_INTERFACE.get(module) or TARGET_INTERFACE[module]:
        found = import_module(module)
        value = getattr(found, name) if hasattr(found, name) else import_module(f"{module}.{name}")
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{module}.{name} has no docstring"


#: the abstract methods of version 1.0
ABSTRACT = {
    "BackendBuffer": ("release",),
    "BackendCommandBuffer": ("barrier", "copy", "dispatch", "fill", "finish", "release"),
    "BackendDevice": (
        "allocate", "close", "create_command_buffer", "create_executable", "create_semaphore", "import_host",
    ),
    "BackendDriver": ("devices", "open"),
    "BackendExecutable": ("release",),
    "BackendInstance": (),
    "BackendQueue": ("execute_batch", "submit", "wait_idle"),
    "BackendSemaphore": ("fail", "release", "signal", "value", "wait"),
}  # fmt: skip


@pytest.mark.parametrize("name", ABSTRACT)
def test_abstract_methods_of_version_1(name: str) -> None:
    """A new abstract method would break every driver of an earlier version. The page lists them."""
    assert API_VERSION == (1, 0)
    assert tuple(sorted(getattr(backend, name).__abstractmethods__)) == ABSTRACT[name]
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
    assert all(f"`{method}`" in row for method in ABSTRACT[name])


def test_no_class_of_the_interface_is_forgotten() -> None:
    classes = {name for name, value in vars(backend).items() if name.startswith("Backend") and inspect.isclass(value)}
    assert classes == ABSTRACT.keys()


def imported(path: Path) -> list[tuple[str, str]]:
    """Module and name of each import of this project."""
    return [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("orchestrion.")
        for alias in node.names
    ]


@pytest.mark.parametrize("file", sorted(TEMPLATE.glob("*.py")), ids=lambda path: path.stem)
def test_the_template_imports_public_names_only(file: Path) -> None:
    for module, name in imported(file):
        if file.name == "target.py" and name in TARGET_INTERFACE.get(module, ()):
            continue
        if f"{module}.{name}" in PUBLIC:  # a module as a whole
            continue
        assert name in PUBLIC.get(module, ()), f"{file.name} imports {name} of {module}"


def test_abstract_methods_of_targets_of_version_1() -> None:
    """Whoever adds an abstract method breaks every target of an earlier version."""
    assert target.API_VERSION == (1, 1) and target.Target.api_version == (1, 0)
    assert target.Target.__abstractmethods__ == {"lower", "serialize"}


def test_the_template_is_small() -> None:
    """Counts the lines of code of the driver, its format and its device."""
    files = [TEMPLATE / f"{name}.py" for name in ("driver", "bytecode", "lanes")]
    assert sum(map(code_lines, files)) < 300


def code_lines(path: Path) -> int:
    """The number of lines that are not blank, comments or docstrings."""
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
