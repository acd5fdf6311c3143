"""Element types: one row each, used by the compiler, the module file, the VM and every device.

A code is `family << 8 | bits` and never changes. Storage is little endian. A type of less than a byte is stored in one
byte: `i1` is 0 or 1; the upper bits of an `i4` or `f4E2M1FN` are zero, and ignored in external data. Devices compute on
the types without a `storage`. Types with one occur in signatures, views, arrays and tools; their elements are stored as
those of the storage type. A type without a row does not exist yet and is refused by name.

NumPy lacks some of the types; the package ml_dtypes defines them. Both are imported when they are first needed, because
the compiler reads IR without them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from .float_formats import FloatFormat, Special
from .fork import remember_lock
from .hints import install

if TYPE_CHECKING:
    import numpy as np

    #: the types of NumPy itself; `of_numpy` includes those of ml_dtypes
    BY_NUMPY: dict[np.dtype[Any], "DType"]

BOOL, SIGNED, UNSIGNED, FLOAT, COMPLEX = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class DType:
    """One element type: its StableHLO name, kind, width, NumPy type, storage type, the family of its code, and the
    meaning of its bits if it is a narrow float.
    """

    name: str
    kind: int
    bits: int
    #: an argument of `np.dtype`, or the name of a type of ml_dtypes
    numpy_name: str
    #: the type that stores its elements; empty if devices compute on it
    storage: str = ""
    #: the family of its code, if that is not its kind
    family: int = 0
    #: of a float that devices do not compute on
    format: FloatFormat | None = None
    #: computed once, because calls compare codes
    code: int = field(init=False, repr=False, compare=False)
    itemsize: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", (self.family or self.kind) << 8 | self.bits)
        object.__setattr__(self, "itemsize", (self.bits + 7) // 8)
        if (self.format is None) == (self.kind == FLOAT and not self.computed):
            raise ValueError(f"{self.name}: a float that is only stored has a format, and no other type")

    def __str__(self) -> str:
        return self.name

    @property
    def computed(self) -> bool:
        """Whether devices compute on it."""
        return not self.storage

    @property
    def foreign(self) -> bool:
        """Whether its NumPy type belongs to ml_dtypes."""
        return self.numpy_name[0] not in "<|"

    @cached_property
    def numpy(self) -> "np.dtype[Any]":
        """Its NumPy type. Raises ImportError, which names the extra, if ml_dtypes is needed and missing."""
        import numpy as np

        if not self.foreign:
            return np.dtype(self.numpy_name)
        try:
            import ml_dtypes

            found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.numpy_name))
            return found
        except (ImportError, AttributeError) as error:
            wanted = f"arrays of {self.name} need ml_dtypes.{self.numpy_name}: {install('narrow')} ({error})"
            raise ImportError(wanted, name="ml_dtypes") from None


# before Python 3.12 a cached property has a lock, which is held while ml_dtypes is imported
if hasattr(DType.__dict__["numpy"], "lock"):
    remember_lock(DType.__dict__["numpy"].lock)

DTYPES: tuple[DType, ...] = (
    DType("i1", BOOL, 1, "|b1"),
    DType("i8", SIGNED, 8, "|i1"),
    DType("i16", SIGNED, 16, "<i2"),
    DType("i32", SIGNED, 32, "<i4"),
    DType("i64", SIGNED, 64, "<i8"),
    DType("ui8", UNSIGNED, 8, "|u1"),
    DType("ui16", UNSIGNED, 16, "<u2"),
    DType("ui32", UNSIGNED, 32, "<u4"),
    DType("ui64", UNSIGNED, 64, "<u8"),
    DType("f32", FLOAT, 32, "<f4"),
    DType("f64", FLOAT, 64, "<f8"),
    DType("i2", SIGNED, 2, "int2", "i8"),
    DType("i4", SIGNED, 4, "int4", "i8"),
    DType("ui2", UNSIGNED, 2, "uint2", "ui8"),
    DType("ui4", UNSIGNED, 4, "uint4", "ui8"),
    DType("f16", FLOAT, 16, "<f2", "ui16", format=FloatFormat(5, 10, 15)),
    DType("bf16", FLOAT, 16, "bfloat16", "ui16", 6, FloatFormat(8, 7, 127)),
    DType("f8E3M4", FLOAT, 8, "float8_e3m4", "ui8", 16, FloatFormat(3, 4, 3)),
    DType("f8E4M3", FLOAT, 8, "float8_e4m3", "ui8", 17, FloatFormat(4, 3, 7)),
    DType("f8E4M3FN", FLOAT, 8, "float8_e4m3fn", "ui8", 18, FloatFormat(4, 3, 7, Special.FN)),
    DType("f8E4M3FNUZ", FLOAT, 8, "float8_e4m3fnuz", "ui8", 19, FloatFormat(4, 3, 8, Special.FNUZ)),
    DType("f8E4M3B11FNUZ", FLOAT, 8, "float8_e4m3b11fnuz", "ui8", 20, FloatFormat(4, 3, 11, Special.FNUZ)),
    DType("f8E5M2", FLOAT, 8, "float8_e5m2", "ui8", 21, FloatFormat(5, 2, 15)),
    DType("f8E5M2FNUZ", FLOAT, 8, "float8_e5m2fnuz", "ui8", 22, FloatFormat(5, 2, 16, Special.FNUZ)),
    DType("f8E8M0FNU", FLOAT, 8, "float8_e8m0fnu", "ui8", 23, FloatFormat(8, 0, 127, Special.FNU)),
    DType("f4E2M1FN", FLOAT, 4, "float4_e2m1fn", "ui8", 24, FloatFormat(2, 1, 1, Special.FINITE)),
    DType("f6E2M3FN", FLOAT, 6, "float6_e2m3fn", "ui8", 25, FloatFormat(2, 3, 1, Special.FINITE)),
    DType("f6E3M2FN", FLOAT, 6, "float6_e3m2fn", "ui8", 26, FloatFormat(3, 2, 3, Special.FINITE)),
    DType("complex<f32>", COMPLEX, 64, "<c8", "f32"),
    DType("complex<f64>", COMPLEX, 128, "<c16", "f64"),
)

#: the types that devices compute on
COMPUTED: tuple[DType, ...] = tuple(row for row in DTYPES if row.computed)

BY_NAME: dict[str, DType] = {row.name: row for row in DTYPES}
BY_CODE: dict[int, DType] = {row.code: row for row in DTYPES}
#: narrow float -> the meaning of its bits
FLOAT_FORMATS: dict[str, FloatFormat] = {row.name: row.format for row in DTYPES if row.format is not None}
_BY_FOREIGN_NAME: dict[str, DType] = {row.numpy_name: row for row in DTYPES if row.foreign}


@cache
def _by_numpy() -> "dict[np.dtype[Any], DType]":
    return {row.numpy: row for row in DTYPES if not row.foreign}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """`BY_NUMPY`, at its first use."""
        if name != "BY_NUMPY":
            raise AttributeError(name)
        return _by_numpy()


def describe(dtype: DType, dims: Sequence[int]) -> str:
    """A tensor type as MLIR writes it inside of `tensor<>`: `4x8xf32`."""
    return "x".join((*map(str, dims), dtype.name))


def of_numpy(dtype: "np.dtype[Any]") -> DType | None:
    """The row of a NumPy type, or None."""
    row = _by_numpy().get(dtype)
    if row is None:
        row = _BY_FOREIGN_NAME.get(dtype.name)
        if row is not None and row.numpy != dtype:
            row = None
    return row
