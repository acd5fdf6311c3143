"""Extrema that lanes of vectors find in any order: the greatest or least of many f32, or its place.

The greatest or least of many f32 is found by reductions of their bits, which take an instruction each.

`maximum` and `minimum` of floats order the zeros and let a NaN win, in about six instructions that wait for each other.
The bits of floats of one sign have the order of their magnitudes. Three numbers decide the result for any set of
floats: the greatest of the bits as signed integers, the least and the greatest as unsigned ones.

The place of an extremum (`stablehlo/ops/reducers.py`) is the first one of a NaN, else of the extremum. Its reducer
finds it in the order of the elements. In any other order, of two NaN the one of the lower place must win, too.
"""

from collections.abc import Sequence
from dataclasses import replace

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.reducers import is_commutative, place_direction, single_op_name
from orchestrion.compiler.stablehlo.ops.structural import Constant, Iota
from orchestrion.schema.dtypes import BY_NAME, FLOAT

from .loops import Reduction, Scalars
from .rules import element_of

#: bits of infinity and of minus infinity. The bits of a NaN of the same sign are greater
_INFINITY, _MINUS_INFINITY = 0x7F800000, 0xFF800000


def is_extremum(op: Reduce) -> bool:
    """Whether a reduction is the greatest or least of f32."""
    name = single_op_name(op.body.block)
    return name in ("stablehlo.maximum", "stablehlo.minimum") and element_of(op.results[0]) == "f32"


def is_free(op: Reduce) -> bool:
    """Whether lanes may combine the elements of a reduction in any order, by `in_any_order`."""
    return is_commutative(op.body.block) or _is_place(op)


def _is_place(op: Reduce) -> bool:
    """Whether a reduction only finds the place of an extremum, along one axis. The first places are the least then."""
    if not place_direction(op.body.block) or op.results[0].uses:
        return False
    numbers, start = op.inputs[1].defining_op, op.init_values[0].defining_op
    if not isinstance(numbers, Iota) or op.dimensions.ints != (numbers.iota_dimension.value,):
        return False
    return isinstance(start, Constant) and start.value.scalars()[0] == start.value.scalars()[0]


def in_any_order(b: KernelBuilder, op: Reduce, reduction: Reduction) -> Reduction:
    """A reduction for which `is_free` holds, whose results are the same in any order, except for float rounding."""
    if not _is_place(op):
        return of_bits(b, reduction) if is_extremum(op) else reduction
    direction = place_direction(op.body.block)

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        yield from ()
        (a, i), (c, j) = x, y
        lower = b.op("compare_lt", i, j)
        takes = b.op(f"compare_{direction.lower()}", a, c)
        takes = b.op("or", takes, b.op("and", b.op("compare_eq", a, c), lower))
        if BY_NAME[b.dtype(a)].kind == FLOAT:
            is_less = b.op("or", b.op("compare_eq", c, c), lower)
            takes = b.op("or", takes, b.op("and", b.op("compare_ne", a, a), is_less))
        return [b.select(takes, *pair) for pair in zip(x, y, strict=True)]

    return replace(reduction, combine=combine, is_exact=True)


def of_bits(b: KernelBuilder, reduction: Reduction) -> Reduction:
    """The reduction of bits in place of a reduction for which `is_extremum` holds."""

    def words(values: Sequence[Value]) -> list[Value]:
        bits = b.op("bitcast", values[0], to="ui32")
        return [b.op("bitcast", values[0], to="i32"), bits, bits]

    def start() -> Scalars:
        return words((yield from reduction.start()))

    def element(at: Sequence[Value]) -> Scalars:
        return words((yield from reduction.element(at)))

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        yield from ()
        names = "compare_gt", "compare_lt", "compare_gt"
        return [b.select(b.op(name, *pair), *pair) for name, *pair in zip(names, x, y, strict=True)]

    neutral = None if reduction.neutral is None else words(reduction.neutral)
    exact = replace(reduction, neutral=neutral, dtypes=("i32", "ui32", "ui32"), is_exact=True, by_lanes=True)
    return replace(exact, start=start, element=element, combine=combine)


def from_bits(b: KernelBuilder, op: Reduce, values: Sequence[Value]) -> Value:
    """The result of the reduction `op`, from those of the reduction of bits."""
    signed, least, greatest = (b.op("bitcast", value, to="ui32") for value in values)
    positive = b.op("compare_ge", values[0], b.const(0, "i32"))
    if single_op_name(op.body.block) == "stablehlo.maximum":
        is_nan = b.op("compare_gt", greatest, b.word(_MINUS_INFINITY))
        found = b.select(is_nan, greatest, b.select(positive, signed, least))
    else:
        is_nan = b.op("compare_gt", values[0], b.const(_INFINITY, "i32"))
        negative = b.op("compare_gt", greatest, b.word(0x7FFFFFFF))
        found = b.select(is_nan, signed, b.select(negative, greatest, least))
    return b.op("bitcast", found, to="f32")
