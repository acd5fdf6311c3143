"""Element types: one row each, read by the compiler, the module file, the VM and every device.

A code is `kind << 8 | bits` and never changes. Storage is little endian; `i1` takes one byte, 0 or 1.
A type that has no row does not exist yet and is refused by name.
"""

from dataclasses import dataclass, field

import numpy as np

BOOL, SIGNED, UNSIGNED, FLOAT = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class DType:
    """One element type: its StableHLO name, its code in files, its kind, width and NumPy type."""

    name: str
    kind: int
    bits: int
    numpy: np.dtype
    #: worked out once: calls compare codes
    code: int = field(init=False, repr=False, compare=False)
    itemsize: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", self.kind << 8 | self.bits)
        object.__setattr__(self, "itemsize", self.numpy.itemsize)

    def __str__(self) -> str:
        return self.name


DTYPES: tuple[DType, ...] = (
    DType("i1", BOOL, 1, np.dtype(np.bool_)),
    DType("i8", SIGNED, 8, np.dtype("<i1")),
    DType("i16", SIGNED, 16, np.dtype("<i2")),
    DType("i32", SIGNED, 32, np.dtype("<i4")),
    DType("i64", SIGNED, 64, np.dtype("<i8")),
    DType("ui8", UNSIGNED, 8, np.dtype("<u1")),
    DType("ui16", UNSIGNED, 16, np.dtype("<u2")),
    DType("ui32", UNSIGNED, 32, np.dtype("<u4")),
    DType("ui64", UNSIGNED, 64, np.dtype("<u8")),
    DType("f32", FLOAT, 32, np.dtype("<f4")),
    DType("f64", FLOAT, 64, np.dtype("<f8")),
)

BY_NAME: dict[str, DType] = {row.name: row for row in DTYPES}
BY_CODE: dict[int, DType] = {row.code: row for row in DTYPES}
BY_NUMPY: dict[np.dtype, DType] = {row.numpy: row for row in DTYPES}
