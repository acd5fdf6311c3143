"""Writes the file of parameters beside a module, and the attributes by which the module finds it."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from orchestrion.compiler.errors import CompileError
from orchestrion.schema import writer
from orchestrion.schema.parameters import DIGEST_ATTRIBUTE, FILE_ATTRIBUTE
from orchestrion.schema.safetensors import Values, write_file


def write_parameters(module: writer.Module, path: Path | None) -> writer.Module:
    """Writes the parameter values of the program. Returns the module with attributes that name the file.

    Raises CompileError if there are values and `path` is None, or if programs disagree about a value.
    """
    values = _values(module)
    if path is None:
        if values:
            raise CompileError(
                f"parameters {', '.join(values)} have values, and no file to write them to: --parameters=FILE"
            )
        return module
    digest = write_file(path, values)
    if not values:
        return module
    return replace(module, attributes={**module.attributes, FILE_ATTRIBUTE: path.name, DIGEST_ATTRIBUTE: digest.hex()})


def _values(module: writer.Module) -> dict[str, Values]:
    """Parameter name -> its value. Parameters of the same name in several programs are one."""
    found: dict[str, Values] = {}
    for program in module.programs:
        for row in program.constants:
            if not isinstance(row, writer.Parameter) or row.data is None:
                continue
            made = found.setdefault(row.name, Values(row.dtype, row.dims, row.data))
            if made.data is not row.data and _digest(made) != _digest(Values(row.dtype, row.dims, row.data)):
                raise CompileError(f"programs differ in parameter {row.name}")
    return found


def _digest(values: Values) -> tuple[str, tuple[int, ...], bytes]:
    return str(values.dtype), values.dims, sha256(memoryview(values.data)).digest()  # type: ignore[arg-type]
