"""The greatest or least of many f32 as reductions of their bits, which take an instruction each.

`maximum` and `minimum` of floats order the zeros and let a NaN win, in about six instructions that wait for each other.
The bits of floats of one sign have the order of their magnitudes. Three numbers decide the result for any set of
floats: the greatest of the bits as signed integers, the least and the greatest as unsigned ones.
"""

from collections.abc import Sequence
from dataclasses import replace

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.reducers import single_op_name

from .loops import Reduction, Scalars
from .rules import element_of

#: bits of infinity and of minus infinity. The bits of a NaN of the same sign are greater
_INFINITY, _MINUS_INFINITY = 0x7F800000, 0xFF800000


def is_extremum(op: Reduce) -> bool:
    """Whether a reduction is the greatest or least of f32."""
    name = single_op_name(op.body.block)
    return name in ("stablehlo.maximum", "stablehlo.minimum") and element_of(op.results[0]) == "f32"


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
        names = "maximum", "minimum", "maximum"
        return [b.op(name, *pair) for name, *pair in zip(names, x, y, strict=True)]

    neutral = None if reduction.neutral is None else words(reduction.neutral)
    dtypes = "i32", "ui32", "ui32"
    return replace(reduction, start=start, element=element, combine=combine, neutral=neutral, dtypes=dtypes)


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
