"""Base of StableHLO ops: a shape rule, checked against the result types in the text.

A shape rule returns the result types that an op must have, or raises `ShapeError`. Rules that tensor bytecode has as
well stand in `schema/tensor_shapes.py`. Ops on types that are not known yet (dynamic dimensions, quantized elements)
are left to the legality check; the rules see only known types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from orchestrion.compiler.ir.attributes import PARTS, DenseArray
from orchestrion.compiler.ir.core import Operation, Trait, Value
from orchestrion.compiler.ir.declare import operand, result
from orchestrion.compiler.ir.dims import Dim, Shape, bounds
from orchestrion.compiler.ir.types import TensorType, Type, scalar
from orchestrion.schema import tensor_shapes
from orchestrion.schema.dtypes import BY_NAME, SIGNED, DType
from orchestrion.schema.tensor_shapes import ShapeError as ShapeError


class StablehloOp(Operation):
    """An op whose result types follow from its operands and attributes by `infer`."""

    def infer(self) -> Sequence[TensorType]:
        """The result types that the op must have. Raises ShapeError."""
        raise NotImplementedError(self.name)

    def by_rule(self, rule: Callable[..., tensor_shapes.Types[Dim]], *attributes: Any) -> list[TensorType]:
        """The result types by a rule of `schema/tensor_shapes.py` with these attributes. Raises ShapeError."""
        found = rule([schema_type(value) for value in self.operands], *attributes)
        return [TensorType(type.shape, scalar(type.dtype.name)) for type in found]

    def check(self) -> Iterator[str]:
        values = (*self.operands, *self.results)
        if not all(is_known(value.type) for value in values):
            return
        try:
            wanted = self.infer()
        except ShapeError as error:
            yield str(error)
            return
        for index, (value, type) in enumerate(zip(self.results, wanted, strict=True)):
            if value.type != type:
                yield f"result {index} must be {type}, is {value.type}"


class PureOp(StablehloOp):
    """An op of one result, without effects."""

    out = result(TensorType)
    traits = frozenset({Trait.PURE})


class OperandOp(PureOp):
    """A pure op whose first operand is `operand_`."""

    operand_ = operand(TensorType)


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
    assert isinstance(value.type, TensorType), f"{value.type} is not a tensor"
    return value.type


def dtype_of(value: Value) -> DType:
    """The row of a tensor value's element type."""
    return BY_NAME[str(tensor_of(value).element)]


def schema_type(value: Value) -> tensor_shapes.TensorType[Dim]:
    """The type of a tensor value, of a known element type, as the schema has it."""
    return tensor_shapes.TensorType(dtype_of(value), tensor_of(value).shape)


def rebuilt(op: Operation, operands: Sequence[Value], types: Sequence[Type]) -> Operation:
    """A detached op like `op`, on other operands, with results of these types. It takes over the regions."""
    regions, op.regions = list(op.regions), []
    return op.like(operands, types, op.properties, op.attributes, regions, (), op.loc)


def is_axes(given: Sequence[int], rank: int) -> bool:
    """Whether these are distinct axes below `rank`."""
    return len(set(given)) == len(given) and all(0 <= axis < rank for axis in given)


def integer_limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    least = -(1 << dtype.bits - 1) if dtype.kind == SIGNED else 0
    return least, least + (1 << dtype.bits) - 1


def axes(name: str, given: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Distinct axes below `rank`. Raises ShapeError."""
    if not is_axes(given, rank):
        raise ShapeError(f"{name} {list(given)} are not distinct axes of rank {rank}")
    return given


def check_lines(inputs: Sequence[Value], results: Sequence[Value]) -> list[TensorType]:
    """The types of operands of one shape, of which there is at least one, and as many results. Raises ShapeError."""
    types = [tensor_of(value) for value in inputs]
    if not types:
        raise ShapeError("has no operands")
    if any(type.shape != types[0].shape for type in types):
        raise ShapeError(f"operands differ in shape: {type_list(types)}")
    if len(results) != len(types):
        raise ShapeError(f"{len(types)} operands need as many results, not {len(results)}")
    return types


def per_axis(name: str, given: DenseArray, rank: int) -> Shape:
    """One size per axis. Raises ShapeError."""
    if len(given) != rank:
        raise ShapeError(f"{name} has {len(given)} numbers for rank {rank}")
    return given.sizes


def type_list(types: Iterable[object]) -> str:
    """Types, or symbols, separated by commas, for messages."""
    return ", ".join(map(str, types))
