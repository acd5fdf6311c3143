"""The types of the kernel dialect: tests, whose descriptions messages quote, and what types say of values."""

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.types import DialectType, ScalarType, Type
from orchestrion.schema.dtypes import BY_NAME, COMPUTED, DType

_COMPUTED = frozenset(dtype.name for dtype in COMPUTED)
#: possible numbers of lanes of a vector
VECTOR_LANES = (2, 4, 8, 16)


def is_scalar(type: Type) -> bool:
    """an element type that devices compute on"""
    return isinstance(type, ScalarType) and type.name in _COMPUTED


def is_index(type: Type) -> bool:
    """ui32 or ui64"""
    return str(type) in ("ui32", "ui64")


def is_word(type: Type) -> bool:
    """ui32"""
    return str(type) == "ui32"


def is_condition(type: Type) -> bool:
    """i1"""
    return str(type) == "i1"


def is_shared(type: Type) -> bool:
    """!kernel.shared"""
    return shared_shape(type) is not None


def shared_type(count: int, dtype: str) -> DialectType:
    """`!kernel.shared<64xf32>`: `count` elements."""
    return DialectType("kernel.shared", f"{count}x{dtype}")


def shared_shape(type: Type) -> tuple[int, DType] | None:
    """The number of elements of a shared array and their type; None for any other type."""
    return _shape(type, "kernel.shared")


def _shape(type: Type, name: str) -> tuple[int, DType] | None:
    count, _, dtype = type.body.partition("x") if isinstance(type, DialectType) and type.name == name else ("", "", "")
    element = BY_NAME.get(dtype)
    return (int(count), element) if element and element.computed and count.isdecimal() and int(count) else None


def vector_type(count: int, dtype: str) -> DialectType:
    """`!kernel.vector<8xf32>`: `count` lanes."""
    return DialectType("kernel.vector", f"{count}x{dtype}")


def vector_shape(type: Type) -> tuple[int, DType] | None:
    """The number of lanes of a vector and their type; None for any other type."""
    shape = _shape(type, "kernel.vector")
    return shape if shape is not None and shape[0] in VECTOR_LANES else None


def is_vector(type: Type) -> bool:
    """!kernel.vector"""
    return vector_shape(type) is not None


def is_carried(type: Type) -> bool:
    """an element type or !kernel.vector"""
    return is_scalar(type) or is_vector(type)


def dtype_of(value: Value) -> DType:
    """The element type of a scalar, a vector or a shared array."""
    found = BY_NAME.get(value.type.name) if isinstance(value.type, ScalarType) else None
    return _parts(value)[1] if found is None else found


def length_of(value: Value) -> int:
    """Number of lanes of a vector, or of elements of a shared array; 1 for a scalar."""
    return _parts(value)[0] if isinstance(value.type, DialectType) else 1


def _parts(value: Value) -> tuple[int, DType]:
    shape = shared_shape(value.type) or vector_shape(value.type)
    assert shape is not None, f"{value.type} has no elements"
    return shape
