"""What a function of symbolic shapes demands of the sizes of a call, as assertions in front of all that relies on them.

In this order: what the program itself asserts; that each symbol lies within its bounds; that the arguments have the
sizes that their types say; that no tensor of a kernel has no elements, or more than 32 bits count. What is true for all
symbols within their bounds is not asserted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from orchestrion.compiler.flow import util
from orchestrion.compiler.ir.attributes import ArrayAttr, DenseArray, DictAttr, StringAttr, attribute_of, dense_ints
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.declare import size_in
from orchestrion.compiler.ir.dims import GREATEST, LEAST, Dim, bounds, symbol, symbols_of
from orchestrion.compiler.ir.types import DIMS, FunctionType, TensorType

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


class Definition(NamedTuple):
    """A row of `dims`: a symbol of a function, its bounds, and what it is; an entry's has no value."""

    name: str
    least: int
    greatest: int
    value: int | None


def definitions(dims: ArrayAttr | None) -> list[Definition]:
    """The rows of the attribute `dims`."""
    found = []
    for row in dims or ():
        assert isinstance(row, DictAttr)
        name, least, greatest, value = (row.get(key) for key in ("name", "least", "greatest", "value"))
        assert isinstance(name, StringAttr)
        bound = LEAST if least is None else size_in(least), GREATEST if greatest is None else size_in(greatest)
        found.append(Definition(name.value, *bound, value.ints[0] if isinstance(value, DenseArray) else None))
    return found


def demands(signature: FunctionType, dims: ArrayAttr | None, tensors: Iterable[TensorType]) -> Iterator[Operation]:
    """The assertions beside the program's own; `tensors` are the types of what its kernels hold."""
    yield from _bounds(definitions(dims))
    for axis in measured(signature):
        yield from _same(axis, definitions(dims))
    yield from _elements(tensors)


def _bounds(symbols: Iterable[Definition]) -> Iterator[Operation]:
    for row in symbols:
        assert row.value is not None
        for predicate, bound, wanted in (("ge", row.least, "least"), ("le", row.greatest, "most")):
            message = f"size {row.name} is {{0}}, {{1}} is the {wanted}"
            yield _assertion(row.value, predicate, bound, message, row.value, bound)


def _same(axis: Measured, symbols: list[Definition]) -> Iterator[Operation]:
    own = symbol(axis.name)
    if any(_is(axis.size, row.name) and row.value is not None and _is(row.value, axis.name) for row in symbols):
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
