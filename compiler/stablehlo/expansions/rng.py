"""`rng`: numbers between two bounds, or of a normal distribution; the specification leaves them to the implementation.

Devices hold no state, so the numbers are those of Philox with a key per op: its index among the program's `rng` ops.
They are the same in each call and on every device, and differ between ops. All iterations of a loop get the same
numbers. Programs that need a stream of numbers carry a state, as `rng_bit_generator` and `jax.random` do.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.attributes import DenseElements, DialectAttr, IntegerAttr
from orchestrion.compiler.ir.core import Operation, UnregisteredOp, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.stablehlo.builders.basic import bitcast, constant, convert, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast
from orchestrion.compiler.stablehlo.ops import chlo
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_known, tensor_of
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import FLOAT, SIGNED, UNSIGNED

#: The attribute that numbers the `rng` ops of a program while they are expanded.
_PLACE: Final = "orchestrion.place"


def expand_rng(op: Operation, rewriter: Rewriter) -> bool:
    """Expands the op; skips malformed ops."""
    given = op.get_as("rng_distribution", DialectAttr)
    if given is None or len(op.operands) != 3 or len(op.results) != 1:
        return False
    low, high, _ = op.operands
    out = op.results[0].type
    if not is_known(out) or not isinstance(out, TensorType) or low.type != out.with_shape(()) or high.type != low.type:
        return False
    kind, is_normal = dtype_of(op.results[0]).kind, given.body.split()[-1] == "NORMAL"
    if kind == FLOAT:
        draw = _normal if is_normal else _uniform
    elif kind in (SIGNED, UNSIGNED) and not is_normal:
        draw = _integers
    else:
        return False
    rewriter.replace(
        op, [draw(op, rewriter, broadcast(rewriter, low, out.shape), broadcast(rewriter, high, out.shape))]
    )
    return True


def _uniform(op: Operation, rewriter: Rewriter, low: Value, high: Value) -> Value:
    """low + u (high - low), where u is a multiple of 2^-23 or 2^-52 in [0, 1)."""
    unit = _unit(op, rewriter, tensor_of(low))
    return _moved(rewriter, unit, low, elementwise(rewriter, "subtract", high, low))


def _normal(op: Operation, rewriter: Rewriter, mean: Value, deviation: Value) -> Value:
    """The inverse distribution function at midpoints between multiples of 2^-23 or 2^-52."""
    unit = _unit(op, rewriter, tensor_of(mean))
    type = tensor_of(unit)
    middle = constant(rewriter, 2.0 ** (-24 if str(type.element) == "f32" else -53), type)
    centered = elementwise(
        rewriter, "subtract", elementwise(rewriter, "add", unit, middle), constant(rewriter, 0.5, type)
    )
    doubled = elementwise(rewriter, "add", centered, centered)
    inverse = _chlo(rewriter, "erf_inv", doubled)
    normal = elementwise(rewriter, "multiply", inverse, constant(rewriter, 2.0**0.5, type))
    return _moved(rewriter, normal, mean, deviation)


def _chlo(rewriter: Rewriter, name: str, value: Value) -> Value:
    """An op of CHLO; its own expansion follows, if it has one."""
    cls = chlo.DIALECT.ops.get(f"chlo.{name}")
    op = UnregisteredOp(f"chlo.{name}", [value], [value.type]) if cls is None else cls([value], [value.type])
    return rewriter.insert(op).results[0]


def _moved(rewriter: Rewriter, unit: Value, start: Value, scale: Value) -> Value:
    """start + unit * scale, computed in the type of `unit`, which may be wider than the result's."""
    element, wide = str(tensor_of(start).element), str(tensor_of(unit).element)
    start, scale = (value if element == wide else convert(rewriter, value, wide) for value in (start, scale))
    made = elementwise(rewriter, "add", start, elementwise(rewriter, "multiply", unit, scale))
    return made if element == wide else convert(rewriter, made, element)


def _unit(op: Operation, rewriter: Rewriter, type: TensorType) -> Value:
    """Uniform numbers in [0, 1), in f64 for f64, else in f32, from random bits as the mantissa of floats in [1, 2)."""
    wide, bits = ("f64", "ui64") if str(type.element) == "f64" else ("f32", "ui32")
    drawn = _bits(op, rewriter, type.with_element(scalar(bits)))
    shift, one = (12, 0x3FF << 52) if wide == "f64" else (9, 0x7F << 23)
    fraction = elementwise(rewriter, "shift_right_logical", drawn, constant(rewriter, shift, tensor_of(drawn)))
    number = bitcast(rewriter, elementwise(rewriter, "or", fraction, constant(rewriter, one, tensor_of(drawn))), wide)
    return elementwise(rewriter, "subtract", number, constant(rewriter, 1.0, tensor_of(number)))


def _integers(op: Operation, rewriter: Rewriter, low: Value, high: Value) -> Value:
    """low + bits mod (high - low), in the width of the type; all numbers if both bounds are equal."""
    type, dtype = tensor_of(low), dtype_of(low)
    name = f"ui{dtype.bits}"
    drawn = _bits(op, rewriter, type.with_element(scalar(name)))
    low, high = (bitcast(rewriter, value, name) if dtype.kind == SIGNED else value for value in (low, high))
    moved = elementwise(rewriter, "remainder", drawn, elementwise(rewriter, "subtract", high, low))
    made = elementwise(rewriter, "add", low, moved)
    return bitcast(rewriter, made, str(type.element)) if dtype.kind == SIGNED else made


def _bits(op: Operation, rewriter: Rewriter, type: TensorType) -> Value:
    state = TensorType((2,), scalar("ui64"))
    key = _place(op).to_bytes(8, "little") + bytes(8)
    given = rewriter.build(Constant, value=DenseElements(state, key), out=state).result
    algorithm = DialectAttr("stablehlo", "rng_algorithm PHILOX")
    generator = UnregisteredOp("stablehlo.rng_bit_generator", [given], [state, type], {"rng_algorithm": algorithm})
    return rewriter.insert(generator).results[1]


def _place(op: Operation) -> int:
    """The index of an op among the `rng` ops of its program; the first query numbers all of them."""
    if _PLACE not in op.attributes:
        root = op
        while root.parent_op is not None:
            root = root.parent_op
        for number, other in enumerate(one for one in root.walk() if one.name == op.name):
            other.attributes[_PLACE] = IntegerAttr(number)
    place = op.attributes[_PLACE]
    assert isinstance(place, IntegerAttr)
    return place.value
