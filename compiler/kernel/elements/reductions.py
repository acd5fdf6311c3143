"""The rules of `reduce` and `dot_general`: an element of their results is a reduction of many elements of operands.

The reduction runs as sequential loops of one invocation (`loops.py`), unless a schedule says otherwise.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from orchestrion.compiler.flow.structure import structure_of
from orchestrion.compiler.ir.core import Region, Value
from orchestrion.compiler.ir.dims import Shape, is_less
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.reducers import is_neutral
from orchestrion.compiler.stablehlo.ops.structural import Constant

from .axes import Axes
from .extrema import from_bits, is_extremum, of_bits
from .index import Index
from .loops import UNROLLED, Reduction, Scalars, sequential
from .rules import Requests, Rule, element_of, mapped, scalar_index, shape_of

#: a generator that returns the factors of several products
Pairs = Generator[tuple[Value, Index], Value, Iterable[tuple[Value, Value]]]

# reduce


def reduction_of_reduce(b: KernelBuilder, op: Reduce, at: Index) -> Reduction:
    """The reduction for one element of a `stablehlo.reduce`, over the reduced axes of its operands."""
    inputs, starts = op.inputs, op.init_values
    shape, read = shape_of(inputs[0]), structure_of(op).reads[0]
    axes = Axes([(value, sorted(op.dimensions.ints)) for value in inputs])
    outer = at.coordinates  # found here, in front of all loops: drivers may not move what each iteration divides

    def element(reduced: Sequence[Value]) -> Scalars:
        assert read.coordinates is not None
        place = at.at(shape, mapped(b, read.coordinates, outer, axes.apart(b, reduced)))
        return (yield from requested((value, place) for value in inputs))

    return Reduction(
        axes.sizes,
        lambda: requested((value, scalar_index(b)) for value in starts),
        element,
        lambda x, y: instance(b, op.body, [*x, *y]),
        _neutral(b, op),
        dtypes=[element_of(result) for result in op.results],
    )


def requested(wanted: Iterable[tuple[Value, Index]]) -> Scalars:
    """The elements of values at places, in order."""
    values = []
    for value, at in wanted:
        values.append((yield value, at))
    return values


def instance(b: KernelBuilder, body: Region, arguments: Sequence[Value | None]) -> Scalars:
    """The results of a region on these arguments; None for an argument that the region does not use."""
    block, place = body.block, scalar_index(b)
    assert block.last is not None
    b.memo.push()
    for argument, value in zip(block.arguments, arguments, strict=True):
        if value is not None:
            b.memo.set((argument, place.key), value)
    values = yield from requested((result, place) for result in block.last.operands)
    b.memo.pop()
    return values


def _neutral(b: KernelBuilder, op: Reduce) -> list[Value] | None:
    """The initial value if it is a neutral constant: each block may then start from it. Else None."""
    start = op.init_values[0].defining_op
    if not isinstance(start, Constant) or not is_neutral(op.body.block, start.result):
        return None
    return [b.bits(int.from_bytes(bytes(start.value.data), "little"), element_of(op.inputs[0]))]


def reduce(b: KernelBuilder, op: Reduce, result: int, at: Index) -> Requests:
    """The rule of `stablehlo.reduce`. It remembers the elements of all results."""
    reduction = reduction_of_reduce(b, op, at)
    if b.machine.lanes and is_extremum(op) and is_less(UNROLLED, reduction.count):
        values = [from_bits(b, op, (yield from sequential(b, of_bits(b, reduction), b.unroll)))]
    else:
        values = yield from sequential(b, reduction, b.unroll)
    for value, output in zip(values, op.results, strict=True):
        b.memo.set((output, at.key), value)
    return values[result]


# dot_general


class Factors:
    """The two factors of each product of one element of a `stablehlo.dot_general`, in the type of the result.

    `axes`: its contracted axes, which the elements of a tile share.
    """

    def __init__(self, b: KernelBuilder, op: DotGeneral, at: Index, axes: Axes | None = None) -> None:
        self.builder = b
        self.at = at
        self.dtype = element_of(op.out)
        self.axes = axes or Axes(op.sides)
        #: operands with their index maps
        self.sides = list(zip(op.operands, structure_of(op).reads, strict=True))

    def of(self, number: int, reduced: Sequence[Value]) -> Scalars:
        """The element of an operand, the left one 0, the right one 1, at a place of the contracted dimensions."""
        b, point, (operand, read) = self.builder, self.at.coordinates, self.sides[number]
        assert read.coordinates is not None
        coordinates = mapped(b, read.coordinates, point, self.axes.apart(b, reduced))
        value = yield operand, self.at.at(shape_of(operand), coordinates)
        return [b.op("convert", value, to=self.dtype)]


def sums_of_products(
    b: KernelBuilder, sizes: Shape, zeros: Sequence[Value], factors: Callable[[Sequence[Value]], Pairs]
) -> Reduction:
    """Sums of products side by side, which start as `zeros`. `factors`: those of each product at a place."""

    def start() -> Scalars:
        yield from ()
        return list(zeros)

    def element(reduced: Sequence[Value]) -> Scalars:
        return [b.op("multiply", x, y) for x, y in (yield from factors(reduced))]

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        yield from ()
        return [b.op("add", *pair) for pair in zip(x, y, strict=True)]

    def accumulate(values: Sequence[Value], reduced: Sequence[Value]) -> Scalars:
        found = yield from factors(reduced)
        return [b.multiply_add(x, y, z) for (x, y), z in zip(found, values, strict=True)]

    fused = b.has_multiply_add(b.dtype(zeros[0]))
    dtypes = [b.dtype(zero) for zero in zeros]
    return Reduction(sizes, start, element, combine, zeros, accumulate if fused else None, dtypes)


def reduction_of_dot(b: KernelBuilder, op: DotGeneral, at: Index, axes: Axes | None = None) -> Reduction:
    """The reduction for one element of a `stablehlo.dot_general`: a sum of products in the type of the result."""
    factors = Factors(b, op, at, axes)

    def pair(reduced: Sequence[Value]) -> Pairs:
        (x,) = yield from factors.of(0, reduced)
        (y,) = yield from factors.of(1, reduced)
        return [(x, y)]

    return sums_of_products(b, factors.axes.sizes, [b.const(0, factors.dtype)], pair)


def dot_general(b: KernelBuilder, op: DotGeneral, result: int, at: Index) -> Requests:
    """The rule of `stablehlo.dot_general`."""
    return (yield from sequential(b, reduction_of_dot(b, op, at), b.unroll))[0]


#: op name -> the reduction behind one element
REDUCTIONS: dict[str, Callable[[KernelBuilder, Any, Index], Reduction]] = {
    Reduce.name: reduction_of_reduce,
    DotGeneral.name: reduction_of_dot,
}

#: op name -> its rule
HEROES: dict[str, Rule] = {Reduce.name: reduce, DotGeneral.name: dot_general}
