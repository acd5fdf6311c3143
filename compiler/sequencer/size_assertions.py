"""Assertions about the sizes of a call, for functions with symbolic shapes. They precede everything that relies on
them.

In this order: the program's own assertions; the bounds of each symbol; the sizes of arguments against their types; for
tensors of kernels, that no size is negative and that 32 bits count the elements; that slices fit their source.
Conditions that hold for all values of the symbols are not asserted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import ArrayAttr, attribute_of
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Size, bounds, dim_min, is_dynamic, symbol, symbols_of
from orchestrion.compiler.ir.types import DIMS, FunctionType, TensorType
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.function_dims import DimDefinition, dim_definitions, measured_name
from orchestrion.compiler.stablehlo.ops.indexing import Gather

#: Maximum elements of a tensor with symbolic sizes: kernels index them with 32 bits.
MAX_ELEMENTS: Final = 2**31 - 1


class MeasuredAxis(NamedTuple):
    """An axis of an argument whose size is known when the function is called."""

    argument: int
    axis: int
    size: Size  #: the size in the argument's type

    @property
    def name(self) -> str:
        """The name of the measured size: `argI_J` for axis J of argument I."""
        return measured_name(self.argument, self.axis)


def measured_axes(signature: FunctionType) -> list[MeasuredAxis]:
    """The axes of a function's arguments whose sizes are symbolic."""
    return [
        MeasuredAxis(argument, axis, size)
        for argument, type in enumerate(signature.inputs)
        if isinstance(type, TensorType)
        for axis, size in enumerate(type.shape)
        if is_dynamic(size)
    ]


def size_assertions(
    signature: FunctionType, dims: ArrayAttr | None, computed: Sequence[Operation]
) -> Iterator[Operation]:
    """The assertions in addition to the program's own; `computed` are the ops in its kernels."""
    symbols = dim_definitions(dims)
    yield from _bounds(symbols)
    for axis in measured_axes(signature):
        yield from _same(axis, symbols)
    types = [value.type for op in computed for value in op.results]
    yield from _elements([type for type in types if isinstance(type, TensorType)])
    yield from _slices(computed)


def _bounds(symbols: Iterable[DimDefinition]) -> Iterator[Operation]:
    for one, value in symbols:
        assert value is not None
        for predicate, bound, wanted in (("ge", one.least, "least"), ("le", one.greatest, "most")):
            message = f"size {one.name} is {{0}}, {{1}} is the {wanted}"
            yield _assertion(value, predicate, bound, message, value, bound)


def _same(axis: MeasuredAxis, symbols: Iterable[DimDefinition]) -> Iterator[Operation]:
    own = symbol(axis.name)
    if any(_is(axis.size, one.name) and value is not None and _is(value, axis.name) for one, value in symbols):
        return  # this axis defines the symbol
    place = f"argument {axis.argument}, dimension {axis.axis}"
    yield _assertion(own, "eq", axis.size, f"{place} is {{0}}, {axis.size} = {{1}} wanted", own, axis.size)


def _is(size: Size, name: str) -> bool:
    """Whether a size is exactly the symbol `name`."""
    found = symbols_of(size)
    return len(found) == 1 and found[0].name == name and str(size) == str(found[0])


def _elements(tensors: Iterable[TensorType]) -> Iterator[Operation]:
    counts = {type.num_elements: type for type in tensors if not type.is_static}
    for count, type in counts.items():
        high = bounds(count)[1]
        name = _name(type)
        for axis, size in enumerate(type.shape):
            if bounds(size)[0] < 0:
                yield _assertion(size, "ge", 0, f"dimension {axis} of {name} would be {{0}}, 0 is the least", size)
        if high > MAX_ELEMENTS:
            message = f"{name} has {{0}} elements, {MAX_ELEMENTS} are the most"
            yield _assertion(count, "le", MAX_ELEMENTS, message, count)


def _slices(computed: Iterable[Operation]) -> Iterator[Operation]:
    """The slices of a gather must fit its source."""
    seen = set()
    for op in computed:
        if not isinstance(op, Gather):
            continue
        whole, count = tensor_of(op.operand_), tensor_of(op.out).num_elements
        for axis, (size, limit) in enumerate(zip(op.slice_sizes.sizes, whole.shape, strict=True)):
            excess = dim_min(size - limit, count)
            if bounds(excess)[1] > 0 and (excess, axis) not in seen:
                seen.add((excess, axis))
                message = f"slices of {{0}} are taken of {{1}} along dimension {axis} of {_name(whole)}"
                yield _assertion(excess, "le", 0, message, size, limit)


def _name(type: TensorType) -> str:
    return str(type).replace(DIMS, "")[:-1]


def _assertion(lhs: Size, predicate: str, rhs: Size, message: str, *numbers: Size) -> Operation:
    return util.Assert.build(
        lhs=[lhs],
        predicate=predicate,
        rhs=[rhs],
        numbers=numbers,
        message=attribute_of(message),
    )
