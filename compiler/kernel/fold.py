"""Heroes: ops whose element folds many elements, `reduce` and `dot_general`, as sequential loops.

A fold keeps the order of its elements and applies the initial value once, at the front, so that a reducer need not be
commutative and its initial value need not be neutral. Long folds are folds of blocks: the rounding error of a sum of n
floats then grows with log n, not with n.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Region, Value
from orchestrion.compiler.stablehlo.base import dtype_of
from orchestrion.compiler.stablehlo.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.structural import Constant
from orchestrion.schema.dtypes import BOOL, FLOAT, DType

from .builder import KernelBuilder
from .emitter import Number
from .index import Index, Shape, delinearize
from .rules import Requests, Rule, element_of, scalar_index, shape_of

#: a generator of several scalars
Scalars = Generator[tuple[Value, Index], Value, list[Value]]

#: elements folded in one loop; longer folds are folds of blocks of powers of it
BLOCK = 64
#: folds up to this length need no loop
UNROLLED = 4
#: Mesa's llvmpipe leaves the loops of an invocation after 65,535 turns in all, silently; a fold stays well below
MOST_TURNS = 1 << 15
#: elements that one invocation may fold: a turn takes BLOCK of them at most, and leaving a loop counts as a turn too
MOST_ELEMENTS = 800_000


@dataclass(frozen=True, slots=True)
class Fold:
    """`combine(... combine(combine(start, element(0)), element(1)) ..., element(count - 1))`, several values at once.

    `neutral` are values that change nothing when combined, or None where none are known.
    """

    count: int
    start: Callable[[], Scalars]
    element: Callable[[Value], Scalars]
    combine: Callable[[Sequence[Value], Sequence[Value]], Scalars]
    neutral: Sequence[Value] | None


def sequential(b: KernelBuilder, fold: Fold) -> Scalars:
    """The whole fold in this invocation."""
    values = yield from fold.start()
    if fold.count <= UNROLLED:
        for position in range(fold.count):
            values = yield from _step(fold, b.index(position), values)
        return values
    loops = Loops(b, fold, elements_per_turn(fold.count))
    return (yield from loops.over(b.index(0), b.index(fold.count), fold.count, values))


def elements_per_turn(count: int) -> int:
    """How many elements a turn of the innermost loop folds, so that `count` elements stay below MOST_TURNS."""
    unroll = 1
    while unroll < BLOCK and count / unroll + count / (BLOCK - 1) > MOST_TURNS:
        unroll *= 2
    return unroll


def _step(fold: Fold, position: Value, values: Sequence[Value]) -> Scalars:
    element = yield from fold.element(position)
    return (yield from fold.combine(values, element))


@dataclass(frozen=True, slots=True)
class Loops:
    """Folds ranges of elements; a turn of the innermost loop takes `unroll` of them, a power of two up to BLOCK."""

    builder: KernelBuilder
    fold: Fold
    unroll: int

    def over(self, lower: Value, upper: Value, most: int, start: Sequence[Value]) -> Scalars:
        """Folds the elements from `lower` to before `upper`, at most `most`, onto `start`."""
        if most > MOST_ELEMENTS:
            message = f"one invocation would fold {most} elements, {MOST_ELEMENTS} are the most"
            raise CompileError([Diagnostic(message, self.builder.loc)])
        if most <= BLOCK:
            return (yield from self._straight(lower, upper, start))
        b, length = self.builder, BLOCK if self.fold.neutral is not None else BLOCK + 1
        while length * BLOCK < most:
            length *= BLOCK
        loop = b.begin_loop(lower, upper, b.index(length), start)
        end = b.op("minimum", b.op("add", loop.index, b.index(length)), upper)
        block = yield from self.block(loop.index, end, length)
        return b.end_loop(loop, (yield from self.fold.combine(loop.carried, block)))

    def block(self, lower: Value, upper: Value, most: int) -> Scalars:
        """Folds a range of at least one element without an initial value."""
        if self.fold.neutral is not None:
            return (yield from self.over(lower, upper, most, self.fold.neutral))
        first = yield from self.fold.element(lower)
        return (yield from self.over(self.builder.op("add", lower, self.builder.index(1)), upper, most - 1, first))

    def _straight(self, lower: Value, upper: Value, start: Sequence[Value]) -> Scalars:
        """One loop over whole groups of `unroll` elements, one over what is left."""
        b, values = self.builder, start
        if self.unroll > 1:
            rest = b.op("and", b.op("subtract", upper, lower), b.index(self.unroll - 1))
            whole = b.op("subtract", upper, rest)
            values = yield from self._loop(lower, whole, self.unroll, values)
            lower = whole
        return (yield from self._loop(lower, upper, 1, values))

    def _loop(self, lower: Value, upper: Value, step: int, start: Sequence[Value]) -> Scalars:
        b = self.builder
        loop = b.begin_loop(lower, upper, b.index(step), start)
        values = loop.carried
        for offset in range(step):
            values = yield from _step(self.fold, b.op("add", loop.index, b.index(offset)), values)
        return b.end_loop(loop, values)


# reduce


def reduce_fold(b: KernelBuilder, op: Reduce, at: Index) -> Fold:
    """The fold behind one element of a `stablehlo.reduce`, over its operands' elements at the reduced coordinates."""
    inputs, starts = op.inputs, op.init_values
    shape, dims = shape_of(inputs[0]), op.dimensions.ints
    kept = [axis for axis in range(len(shape)) if axis not in dims]
    sizes = tuple(shape[axis] for axis in sorted(dims))

    def start() -> Scalars:
        values = []
        for value in starts:
            values.append((yield value, scalar_index(b)))
        return values

    def element(position: Value) -> Scalars:
        coordinates = [b.index(0)] * len(shape)
        for axis, coordinate in zip(kept, at.coordinates, strict=True):
            coordinates[axis] = coordinate
        for axis, coordinate in zip(sorted(dims), delinearize(b, position, sizes), strict=True):
            coordinates[axis] = coordinate
        place = at.at(shape, coordinates)
        values = []
        for value in inputs:
            values.append((yield value, place))
        return values

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        return (yield from instance(b, op.body, [*x, *y]))

    return Fold(prod(sizes), start, element, combine, _neutral(b, op))


def instance(b: KernelBuilder, body: Region, arguments: Sequence[Value | None]) -> Scalars:
    """The results of an op's region on these arguments; None for one that it does not use."""
    block, place = body.block, scalar_index(b)
    assert block.last is not None
    b.memo.push()
    for argument, value in zip(block.arguments, arguments, strict=True):
        if value is not None:
            b.memo.set((argument, place.key), value)
    values = []
    for result in block.last.operands:
        values.append((yield result, place))
    b.memo.pop()
    return values


def _infinity(dtype: DType, sign: int) -> Number:
    """The greatest value of a type, or the least."""
    if dtype.kind == FLOAT:
        return sign * float("inf")
    if dtype.kind == BOOL:
        return sign > 0
    info = np.iinfo(dtype.numpy)
    return int(info.max if sign > 0 else info.min)


#: a reducer of one op -> the initial value that changes nothing
_NEUTRAL: dict[str, Callable[[DType], Number]] = {
    "stablehlo.add": lambda dtype: 0,
    "stablehlo.multiply": lambda dtype: 1,
    "stablehlo.maximum": lambda dtype: _infinity(dtype, -1),
    "stablehlo.minimum": lambda dtype: _infinity(dtype, 1),
}


#: reducers of one op that give the same whichever operand is first
_COMMUTATIVE = frozenset({*_NEUTRAL, "stablehlo.and", "stablehlo.or", "stablehlo.xor"})


def _single(op: Reduce) -> str:
    """The name of the one op of both arguments that the reducer is; empty for any other."""
    body = op.body.block
    if len(op.inputs) != 1 or body.first is None or body.first.next_op is not body.last:
        return ""
    both = list(body.first.operands) in (list(body.arguments), list(reversed(body.arguments)))
    return body.first.name if both else ""


def is_commutative(op: Reduce) -> bool:
    """Whether the order of the elements is known not to matter, but for how floats round."""
    return _single(op) in _COMMUTATIVE


def _neutral(b: KernelBuilder, op: Reduce) -> list[Value] | None:
    """The initial value when it is a constant that changes nothing: then a block may start from it too."""
    start = op.init_values[0].defining_op
    neutral = _NEUTRAL.get(_single(op))
    if neutral is None or not isinstance(start, Constant):
        return None
    dtype = dtype_of(op.inputs[0])
    if start.value.scalars()[0] != neutral(dtype):
        return None
    return [b.bits(int.from_bytes(bytes(start.value.data), "little"), dtype.name)]


def reduce(b: KernelBuilder, op: Reduce, result: int, at: Index) -> Requests:
    values = yield from sequential(b, reduce_fold(b, op, at))
    for value, output in zip(values, op.results, strict=True):
        b.memo.set((output, at.key), value)
    return values[result]


# dot_general


def dot_fold(b: KernelBuilder, op: DotGeneral, at: Index) -> Fold:
    """The fold behind one element of a `stablehlo.dot_general`: a sum of products, all in the result's type."""
    lhs, rhs, dims, dtype = op.lhs, op.rhs, op.dimensions, element_of(op.out)
    left, right = dims.free(len(shape_of(lhs)), True), dims.free(len(shape_of(rhs)), False)
    batch, rest = at.coordinates[: len(dims.lhs_batch)], at.coordinates[len(dims.lhs_batch) :]
    sizes = tuple(shape_of(lhs)[axis] for axis in dims.lhs_contract)
    zero = [b.const(0, dtype)]

    def start() -> Scalars:
        yield from ()
        return zero

    def element(position: Value) -> Scalars:
        contracted = delinearize(b, position, sizes)
        of_lhs = (*batch, *rest[: len(left)], *contracted)
        of_rhs = (*batch, *rest[len(left) :], *contracted)
        x = yield lhs, _place(at, shape_of(lhs), (*dims.lhs_batch, *left, *dims.lhs_contract), of_lhs)
        y = yield rhs, _place(at, shape_of(rhs), (*dims.rhs_batch, *right, *dims.rhs_contract), of_rhs)
        return [b.op("multiply", b.op("convert", x, to=dtype), b.op("convert", y, to=dtype))]

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        yield from ()
        return [b.op("add", x[0], y[0])]

    return Fold(prod(sizes), start, element, combine, zero)


def _place(at: Index, shape: Shape, axes: Sequence[int], values: Sequence[Value]) -> Index:
    """The place in a tensor of that shape with these coordinates on these axes, which are all."""
    by_axis = dict(zip(axes, values, strict=True))
    return at.at(shape, [by_axis[axis] for axis in range(len(shape))])


def dot_general(b: KernelBuilder, op: DotGeneral, result: int, at: Index) -> Requests:
    return (yield from sequential(b, dot_fold(b, op, at)))[0]


#: op name -> the fold behind one element
FOLDS: dict[str, Callable[[KernelBuilder, Any, Index], Fold]] = {
    Reduce.name: reduce_fold,
    DotGeneral.name: dot_fold,
}

#: op name -> its rule
HEROES: dict[str, Rule] = {Reduce.name: reduce, DotGeneral.name: dot_general}
