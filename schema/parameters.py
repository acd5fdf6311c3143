"""Parameters of a module: named constants whose bytes lie in separate safetensors files.

They are rows of a module's constants whose segment is of kind `Parameter`. Parameters of one name are the same
parameter in all programs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .dtypes import BY_CODE, DType, describe
from .module import Module
from .rows import Program, SegmentKind

#: attributes of a module: the name of the file that the compiler wrote its parameters to, and its SHA-256 in hex
FILE_ATTRIBUTE: Final = "parameters.file"
DIGEST_ATTRIBUTE: Final = "parameters.digest"


class Parameter(NamedTuple):
    """A parameter of a module. `digest`: of the bytes that it had at compile time; zeros if it had none."""

    name: str
    dtype: DType
    dims: tuple[int, ...]
    digest: bytes
    segment: int

    def __str__(self) -> str:
        return describe(self.dtype, self.dims)


def parameters_of(module: Module, program: Program | None = None) -> tuple[Parameter, ...]:
    """The parameters of a program, or of all programs, in the order of the constants."""
    start, end = (0, None) if program is None else (program.constants_start, program.constants_end)
    found: dict[int, Parameter] = {}
    for row in module.constants[start:end]:
        segment = module.segments[row.segment]
        if segment.kind == SegmentKind.Parameter:
            dims, dtype = tuple(module.dims[row.dims_start : row.dims_end]), BY_CODE[row.dtype]
            found[row.segment] = Parameter(module.strings[row.name], dtype, dims, segment.digest, row.segment)
    return tuple(found.values())
