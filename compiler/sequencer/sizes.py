"""What a function of symbolic shapes demands of the sizes of a call, as assertions in front of all that relies on them.

In this order: what the program itself asserts; that each symbol lies within its bounds; that the arguments have the
sizes that their types say; that no tensor of a kernel has no elements, or more than 32 bits count. What is true for all
symbols within their bounds is not asserted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from orchestrion.compiler.flow import util
from orchestrion.compiler.ir.attributes import ArrayAttr, attribute_of, dense_ints
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Dim, bounds, symbol, symbols_of
from orchestrion.compiler.ir.types import DIMS, FunctionType, TensorType
from orchestrion.compiler.stablehlo.function_dims import Row, rows_of

#: kernels index in 32 bits where a size is an expression
MOST_ELEMENTS: Final = 2**31 - 1


class Measured(NamedTuple):
    """An axis of an argument whose size is known when the function is called."""

    argument: int
    axis: int
    size: int  #: what its type says of it

    @property
    def name(self) -> str:
        return f"arg{self.argument}_{self.axis}"


def measured(signature: FunctionType) -> list[Measured]:
    """The axes of a function's arguments that each call has sizes for."""
    return [
        Measured(argument, axis, size)
        for argument, type in enumerate(signature.inputs)
        if isinstance(type, TensorType)
        for axis, size in enumerate(type.shape)
        if isinstance(size, Dim)
    ]


def demands(signature: FunctionType, dims: ArrayAttr | None, tensors: Iterable[TensorType]) -> Iterator[Operation]:
    """The assertions beside the program's own; `tensors` are the types of what its kernels hold."""
    symbols = rows_of(dims)
    yield from _bounds(symbols)
    for axis in measured(signature):
        yield from _same(axis, symbols)
    yield from _elements(tensors)


def _bounds(symbols: Iterable[Row]) -> Iterator[Operation]:
    for one, value in symbols:
        assert value is not None
        for predicate, bound, wanted in (("ge", one.least, "least"), ("le", one.greatest, "most")):
            message = f"size {one.name} is {{0}}, {{1}} is the {wanted}"
            yield _assertion(value, predicate, bound, message, value, bound)


def _same(axis: Measured, symbols: Iterable[Row]) -> Iterator[Operation]:
    own = symbol(axis.name)
    if any(_is(axis.size, one.name) and value is not None and _is(value, axis.name) for one, value in symbols):
        return  # it is where the symbol comes from
    place = f"argument {axis.argument}, dimension {axis.axis}"
    yield _assertion(own, "eq", axis.size, f"{place} is {{0}}, {axis.size} = {{1}} wanted", own, axis.size)


def _is(size: int, name: str) -> bool:
    """Whether a size is that symbol."""
    found = symbols_of(size)
    return len(found) == 1 and found[0].name == name and str(size) == str(found[0])


def _elements(tensors: Iterable[TensorType]) -> Iterator[Operation]:
    counts = {type.num_elements: type for type in tensors if not type.is_static}
    for count, type in counts.items():
        low, high = bounds(count)
        name = str(type).replace(DIMS, "")[:-1]
        if low < 1:
            yield _assertion(count, "ge", 1, f"{name} has {{0}} elements, 1 is the least", count)
        if high > MOST_ELEMENTS:
            message = f"{name} has {{0}} elements, {MOST_ELEMENTS} are the most"
            yield _assertion(count, "le", MOST_ELEMENTS, message, count)


def _assertion(lhs: int, predicate: str, rhs: int, message: str, *numbers: int) -> Operation:
    return util.Assert.build(
        lhs=dense_ints(lhs),
        predicate=predicate,
        rhs=dense_ints(rhs),
        numbers=dense_ints(*numbers),
        message=attribute_of(message),
    )
