"""What `vm-codegen --style=hal` writes for a module, imported, and called with arrays."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from orchestrion.compiler.codegen.styles import STYLES, Files
from orchestrion.compiler.codegen.subject import Subject
from orchestrion.compiler.errors import CompileError
from orchestrion.schema.decoder import read_module
from orchestrion.vm.verifier import verify


def generated(module: bytes, name: str, targets: tuple[str, ...] | None = None) -> Files:
    """The files for a module, which is verified before as the command does."""
    decoded = read_module(module)
    for ordinal in range(len(decoded.programs)):
        verify(decoded, ordinal)

    def no_ir() -> Any:
        raise CompileError("style hal takes no IR")

    return STYLES["hal"].generate(Subject(f"{name}.fb", lambda: decoded, no_ir, targets), name, {})


def write(files: Files, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def imported(module: bytes, folder: Path, name: str = "model", targets: tuple[str, ...] | None = None) -> ModuleType:
    """The generated module, imported from a folder."""
    write(generated(module, name, targets), folder)
    spec = importlib.util.spec_from_file_location(f"hal_code_{name}", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def created(code: ModuleType, device: Any, *parameters: Any) -> Any:
    """The program for a device: the one of `create`, or the only class."""
    if hasattr(code, "create"):
        return code.create(device, *parameters)
    (program,) = [
        value for value in vars(code).values()
        if isinstance(value, type) and issubclass(value, code.Program) and value is not code.Program
    ]  # fmt: skip
    return program.create(device, *parameters)


def uploaded(code: ModuleType, device: Any, arrays: Sequence[Any]) -> list[Any]:
    """Views on a device with the elements of arrays."""
    from orchestrion.schema.dtypes import of_numpy

    found = []
    for array in map(np.asarray, arrays):
        dtype = of_numpy(array.dtype)
        assert dtype is not None
        found.append(code.upload(device, array, dtype))
    return found


def as_list(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [] if results is None else [results]


def same_bits(got: Any, want: Any) -> None:
    """Fails unless views hold the bits of arrays."""
    got, want = as_list(got), as_list(want)
    assert len(got) == len(want)
    for place, (view, array) in enumerate(zip(got, map(np.asarray, want), strict=True)):
        found = view.read()
        assert (found.dtype, found.shape) == (array.dtype, array.shape), f"result {place}"
        assert found.tobytes() == array.tobytes(), f"result {place}: other bits"
