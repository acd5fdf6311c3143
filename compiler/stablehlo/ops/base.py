"""What StableHLO ops have in common: a shape rule, checked against the result types that the text states.

A shape rule gives the result types an op must have, or raises `ShapeError`. Ops on types that nobody knows (dynamic
dimensions, quantized elements) are left to the legality check, which names them; the rules see known types only.
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
    """An op whose result types follow from its operands and attributes, as far as `infer` says."""

    def infer(self) -> Sequence[TensorType]:
        """The result types it must have. Raises ShapeError."""
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
    """A tensor of known shape, without encoding, of an element type in `schema/dtypes.py`."""
    return isinstance(type, TensorType) and type.is_known and not type.encoding and str(type.element) in BY_NAME


def is_supported(type: Type) -> bool:
    """A known tensor type that devices compute on: what stands in a program after the expansions of types."""
    if not isinstance(type, TensorType) or not type.is_known or type.encoding:
        return False
    dtype = BY_NAME.get(str(type.element))
    return dtype is not None and dtype.computed


def may_be_empty(type: Type) -> bool:
    """A tensor of known shape that has no elements, or none at some of the sizes that a call may bring."""
    return isinstance(type, TensorType) and type.is_known and bounds(type.num_elements)[0] == 0


def is_complex(value: Value) -> bool:
    """A tensor of complex numbers."""
    return isinstance(value.type, TensorType) and str(value.type.element) in PARTS


def part_type(type: TensorType) -> TensorType:
    """The type of one part of complex numbers."""
    return type.with_element(scalar(PARTS[str(type.element)]))


def tensor_of(value: Value) -> TensorType:
    """The tensor type of a value of the stablehlo phase."""
    assert isinstance(value.type, TensorType), f"{value.type} is no tensor"
    return value.type


def dtype_of(value: Value) -> DType:
    """The row of a tensor value's element type."""
    return BY_NAME[str(tensor_of(value).element)]


def axes(name: str, given: DenseArray, rank: int) -> tuple[int, ...]:
    """Distinct axes inside a rank. Raises ShapeError."""
    values = given.ints
    if len(set(values)) != len(values) or any(not 0 <= axis < rank for axis in values):
        raise ShapeError(f"{name} {list(values)} are not distinct axes of rank {rank}")
    return values


def per_axis(name: str, given: DenseArray, rank: int) -> tuple[int, ...]:
    """One number per axis. Raises ShapeError."""
    if len(given) != rank:
        raise ShapeError(f"{name} has {len(given)} numbers for rank {rank}")
    return given.ints
