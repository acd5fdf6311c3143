"""The folder rules: what may import what, what pyproject.toml must list, how long a file may be."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from orchestrion.compiler.pipeline import PASSES

ROOT = Path(__file__).parent.parent

# folder -> the folders it may import
MAY_IMPORT: dict[str, set[str]] = {
    "schema": set(),
    "hal": {"schema"},
    "vm": {"schema", "hal"},
    "compiler": {"schema"},
    "tools": {"schema", "hal", "vm", "compiler"},
}
#: The folders of the compiler in the order of the data: a folder imports only earlier ones. `rules` judges the IR
#: after each phase, so it may know all of them.
COMPILER_ORDER = (
    "ir",
    "scalars",
    "stablehlo",
    "frontend",
    "flow",
    "sequencer",
    "kernel",
    "targets",
    "bytecode",
    "rules",
    "codegen",
)
#: The same for the parts of two of its folders, which are files and sub-folders.
PARTS_ORDER: dict[str, tuple[str, ...]] = {
    "kernel": (
        "machine",
        "schedule",
        "reduction_limits",
        "types",
        "dialect",
        "methods",
        "code",
        "emulation",
        "signature",
        "elements",
        "elementwise",
        "body",
        "rows",
        "products",
        "panels",
        "library",
        "emit",
        "legality",
        "patterns",
        "choose",
        "loop_entry",
        "lower",
    ),
    "targets": (
        "choice",
        "target",
        "kernel_target",
        "library_code",
        "schedule_file",
        "c_text",
        "cpu",
        "opencl",
        "reference",
        "spirv",
        "passes",
    ),
}
LONGEST_FILE = 600
#: files of vm/ that know each other, whether to run or for types: two halves of one subject each, and no others
CIRCLES = [["fence", "native_fence"], ["parameter_trust", "parameters"], ["profile", "trace"]]


def sources() -> Iterator[Path]:
    for folder in MAY_IMPORT:
        yield from sorted((ROOT / folder).rglob("*.py"))


@cache
def imports_of(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Those anywhere in a file. To parse all files takes seconds."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def imports() -> Iterator[tuple[Path, ast.Import | ast.ImportFrom]]:
    for path in sources():
        for node in imports_of(path):
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


def known_files(folder: Path) -> dict[str, set[str]]:
    """The modules of a folder, and those of the same folder that each imports: anywhere in it, for types too."""
    files = {".".join(path.relative_to(folder).with_suffix("").parts): path for path in folder.rglob("*.py")}
    packages = {name.removesuffix("__init__").rstrip("."): name for name in files if name.endswith("__init__")}
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        found[name] = set()
        for node in imports_of(path):
            if isinstance(node, ast.ImportFrom):
                for candidates in _targets(node, name.split(".")[:-1], f"orchestrion.{folder.name}"):
                    there = (packages.get(one, one) for one in candidates)
                    found[name].update(next(([one] for one in there if one in files), []))
        found[name].discard(name)
    return found


def _targets(node: ast.ImportFrom, package: list[str], root: str) -> Iterator[tuple[str, str]]:
    """For each imported name the module that it may be, and the one that it may be in. `package`: where the import
    stands, below `root`.
    """
    if node.level:
        base = package[: len(package) + 1 - node.level]
    elif node.module is not None and f"{node.module}.".startswith(f"{root}."):
        base = []
    else:
        return
    module = (node.module or "") if node.level else (node.module or "").removeprefix(root).lstrip(".")
    path = [*base, *filter(None, module.split("."))]
    for alias in node.names:
        yield ".".join([*path, alias.name]), ".".join(path)


def test_folders_of_the_compiler_import_earlier_ones() -> None:
    known = known_files(ROOT / "compiler")
    folders = {path.name for path in (ROOT / "compiler").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert set(COMPILER_ORDER) == folders
    assert not back_edges(known, COMPILER_ORDER)


@pytest.mark.parametrize("folder", PARTS_ORDER)
def test_parts_of_a_folder_import_earlier_ones(folder: str) -> None:
    known = known_files(ROOT / "compiler")
    names = {name: name.removeprefix(f"{folder}.") for name in known if name.startswith(f"{folder}.")}
    inside = {inner: {names[other] for other in known[name] if other in names} for name, inner in names.items()}
    assert set(PARTS_ORDER[folder]) == {name.split(".")[0] for name in inside} - {"__init__"}
    assert not back_edges(inside, PARTS_ORDER[folder])


def back_edges(known: dict[str, set[str]], order: tuple[str, ...]) -> dict[str, set[str]]:
    """For each module the parts that it imports although they stand later in the order."""
    place = {part: number for number, part in enumerate(order)}
    found = {
        name: {part for part in {other.split(".")[0] for other in imported} if place.get(part, -1) > place[own]}
        for name, imported in known.items()
        if (own := name.split(".")[0]) in place
    }
    return {name: later for name, later in found.items() if later}


def test_passes_do_not_call_passes() -> None:
    """Only the table of passes knows the functions that are passes: what two passes share is a function of its own."""
    passes = {tuple((*row.path.split(":"), "run")[:2]) for row in PASSES}
    modules = {module for module, _ in passes}
    wrong = []
    for path in sorted((ROOT / "compiler").rglob("*.py")):
        package = list(path.relative_to(ROOT / "compiler").parts[:-1])
        for node in imports_of(path):
            if isinstance(node, ast.ImportFrom):
                for name, module in _targets(node, package, "orchestrion.compiler"):
                    if (module, name.rpartition(".")[2]) in passes or name in modules:
                        wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} imports {name}")
    assert not wrong


def circles(known: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which imports every other one, directly or by way of others."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            fresh = known[todo.pop()] - seen
            seen |= fresh
            todo += fresh
        return seen

    far = {name: reached(name) for name in known}
    groups = {tuple(sorted(other for other in known if other in far[name] and name in far[other])) for name in known}
    return sorted(list(group) for group in groups if len(group) > 1)


def test_the_files_of_the_runtime_form_no_circles() -> None:
    """A context, a call and what serves them are seen through protocols by those that they must not know."""
    known = known_files(ROOT / "vm")
    assert "context" in known["call_queue"] and "call_queue" not in known["context"]
    assert circles(known) == CIRCLES


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [["a", "b", "c"]]


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
