"""Base of StableHLO ops: a shape rule, checked against the result types in the text.

A shape rule returns the result types that an op must have, or raises `ShapeError`. Ops on types that are not known yet
(dynamic dimensions, quantized elements) are left to the legality check; the rules see only known types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrion.compiler.ir.attributes import PARTS, DenseArray
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import bounds
from orchestrion.compiler.ir.types import TensorType, Type, scalar
from orchestrion.schema.dtypes import BY_NAME, DType


class ShapeError(ValueError):
    """The operands or attributes of an op contradict each other."""


class StablehloOp(Operation):
    """An op whose result types follow from its operands and attributes by `infer`."""

    def infer(self) -> Sequence[TensorType]:
        """The result types that the op must have. Raises ShapeError."""
        raise NotImplementedError(self.name)

    def check(self) -> Iterator[str]:
        values = (*self.operands, *self.results)
        if not all(is_known(value.type) for value in values):
            return
        try:
            wanted = self.infer()
        except ShapeError as error:
            yield str(error)
            return
        for index, (result, type) in enumerate(zip(self.results, wanted, strict=True)):
            if result.type != type:
                yield f"result {index} must be {type}, is {result.type}"


def is_known(type: Type) -> bool:
    """A tensor of known shape, without encoding, whose element type is in `schema/dtypes.py`."""
    return isinstance(type, TensorType) and type.is_known and not type.encoding and str(type.element) in BY_NAME


def is_supported(type: Type) -> bool:
    """A known tensor type that devices compute on: the types that remain after types are expanded."""
    if not isinstance(type, TensorType) or not type.is_known or type.encoding:
        return False
    dtype = BY_NAME.get(str(type.element))
    return dtype is not None and dtype.computed


def may_be_empty(type: Type) -> bool:
    """A tensor of known shape without elements, or without elements for some values of its symbols."""
    return isinstance(type, TensorType) and type.is_known and bounds(type.num_elements)[0] == 0


def is_complex(value: Value) -> bool:
    """Whether this is a tensor of complex numbers."""
    return isinstance(value.type, TensorType) and str(value.type.element) in PARTS


def part_type(type: TensorType) -> TensorType:
    """The type of the parts of complex numbers."""
    return type.with_element(scalar(PARTS[str(type.element)]))


def tensor_of(value: Value) -> TensorType:
    """The tensor type of a value."""
    assert isinstance(value.type, TensorType), f"{value.type} is not a tensor"
    return value.type


def dtype_of(value: Value) -> DType:
    """The row of a tensor value's element type."""
    return BY_NAME[str(tensor_of(value).element)]


def is_axes(given: Sequence[int], rank: int) -> bool:
    """Whether these are distinct axes below `rank`."""
    return len(set(given)) == len(given) and all(0 <= axis < rank for axis in given)


def axes(name: str, given: DenseArray, rank: int) -> tuple[int, ...]:
    """Distinct axes below `rank`. Raises ShapeError."""
    values = given.ints
    if not is_axes(values, rank):
        raise ShapeError(f"{name} {list(values)} are not distinct axes of rank {rank}")
    return values


def per_axis(name: str, given: DenseArray, rank: int) -> tuple[int, ...]:
    """One number per axis. Raises ShapeError."""
    if len(given) != rank:
        raise ShapeError(f"{name} has {len(given)} numbers for rank {rank}")
    return given.ints


def type_list(types: Sequence[object]) -> str:
    """Types separated by commas, for messages."""
    return ", ".join(map(str, types))
