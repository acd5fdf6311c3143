"""The folder rules: what may import what, what pyproject.toml must list, how long a file may be."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

# folder -> the folders it may import
MAY_IMPORT: dict[str, set[str]] = {
    "schema": set(),
    "hal": {"schema"},
    "vm": {"schema", "hal"},
    "compiler": {"schema"},
    "tools": {"schema", "hal", "vm", "compiler"},
}
LONGEST_FILE = 600


def sources() -> Iterator[Path]:
    for folder in MAY_IMPORT:
        yield from sorted((ROOT / folder).rglob("*.py"))


def imports() -> Iterator[tuple[Path, ast.Import | ast.ImportFrom]]:
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield path.relative_to(ROOT), node


def absolute_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level:
        return []
    return [f"{node.module}.{alias.name}" for alias in node.names]


def test_imports_point_one_way() -> None:
    wrong = [
        f"{path}:{node.lineno} imports {name}"
        for path, node in imports()
        for name in absolute_names(node)
        if name.startswith("orchestrion.") and name.split(".")[1] not in MAY_IMPORT[path.parts[0]] | {path.parts[0]}
    ]
    assert not wrong


def test_folders_are_imported_by_their_full_name() -> None:
    wrong = [
        f"{path}:{node.lineno} imports {name}"
        for path, node in imports()
        for name in absolute_names(node)
        if name.split(".")[0] in MAY_IMPORT
    ]
    assert not wrong


def test_pyproject_lists_every_package() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = [
        ".".join(("orchestrion", *init.parent.relative_to(ROOT).parts))
        for folder in MAY_IMPORT
        for init in (ROOT / folder).rglob("__init__.py")
    ]
    assert sorted(config["tool"]["setuptools"]["packages"]) == sorted(found)


def test_no_file_is_too_long() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in [*sources(), *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "benchmarks").rglob("*.py"))]
        if not path.name.endswith("_generated.py")
        and (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    }
    assert not long


def test_the_runtime_starts_without_the_extras() -> None:
    """Importing the runtime pulls in NumPy and flatbuffers at most: no compiler, no driver's library."""
    program = (
        "import sys; from orchestrion import vm, hal, schema; from orchestrion.hal import registry; "
        "extras = {'pyopencl', 'vulkan', 'jaxlib', 'llvmlite', 'cryptography'}; "
        "print(sorted(({'orchestrion.compiler'} | extras) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
