"""`rng`: numbers between two bounds, or of a normal distribution; the specification leaves them to the implementation.

Devices hold no state, so the numbers are those of Philox with a key per op: its index among the program's `rng` ops.
They are the same in each call and on every device, and differ between ops. All iterations of a loop get the same
numbers. Programs that need a stream of numbers carry a state, as `rng_bit_generator` and `jax.random` do.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.attributes import DenseElements, DialectAttr, IntegerAttr
from orchestrion.compiler.ir.core import Operation, UnregisteredOp
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import FLOAT, SIGNED, UNSIGNED

#: The attribute that numbers the `rng` ops of a program while they are expanded.
_PLACE: Final = "orchestrion.place"


def expand_rng(op: Operation, low: Tensor, high: Tensor, shape: Tensor) -> Tensor | None:
    """Expands the op; skips malformed ops."""
    given, out = op.get_as("rng_distribution", DialectAttr), tensor_of(op.results[0])
    if given is None or low.type != out.with_shape(()) or high.type != low.type:
        return None
    kind, is_normal = low.dtype.kind, given.body.split()[-1] == "NORMAL"
    if kind == FLOAT:
        draw = _normal if is_normal else _uniform
    elif kind in (SIGNED, UNSIGNED) and not is_normal:
        draw = _integers
    else:
        return None
    return draw(op, low.broadcast(out.shape), high.broadcast(out.shape))


def _uniform(op: Operation, low: Tensor, high: Tensor) -> Tensor:
    """low + u (high - low), where u is a multiple of 2^-23 or 2^-52 in [0, 1)."""
    unit = _unit(op, low)
    return _moved(unit, low, high - low)


def _normal(op: Operation, mean: Tensor, deviation: Tensor) -> Tensor:
    """The inverse distribution function at midpoints between multiples of 2^-23 or 2^-52."""
    unit = _unit(op, mean)
    centered = unit + 2.0 ** (-24 if unit.dtype.name == "f32" else -53) - 0.5
    return _moved((centered + centered).op("chlo.erf_inv") * 2.0**0.5, mean, deviation)


def _moved(unit: Tensor, start: Tensor, scale: Tensor) -> Tensor:
    """start + unit * scale, computed in the type of `unit`, which may be wider than the result's."""
    wide = unit.dtype.name
    return (start.convert(wide) + unit * scale.convert(wide)).convert(start.dtype.name)


def _unit(op: Operation, like: Tensor) -> Tensor:
    """Uniform numbers in [0, 1), in f64 for f64, else in f32, from random bits as the mantissa of floats in [1, 2)."""
    wide, bits, shift, one = ("f64", 64, 12, 0x3FF << 52) if like.dtype.name == "f64" else ("f32", 32, 9, 0x7F << 23)
    return (_bits(op, like, bits) >> shift | one).bitcast(wide) - 1.0


def _integers(op: Operation, low: Tensor, high: Tensor) -> Tensor:
    """low + bits mod (high - low), in the width of the type; all numbers if both bounds are equal."""
    drawn = _bits(op, low, low.dtype.bits)
    least, most = low.bitcast(drawn.dtype.name), high.bitcast(drawn.dtype.name)
    return (least + drawn.op("remainder", most - least)).bitcast(low.dtype.name)


def _bits(op: Operation, like: Tensor, width: int) -> Tensor:
    """Random unsigned integers of the shape of `like`."""
    state, type = TensorType((2,), scalar("ui64")), like.type.with_element(scalar(f"ui{width}"))
    key = _place(op).to_bytes(8, "little") + bytes(8)
    given = like.build(Constant, value=DenseElements(state, key), out=state).value
    algorithm = DialectAttr("stablehlo", "rng_algorithm PHILOX")
    generator = UnregisteredOp("stablehlo.rng_bit_generator", [given], [state, type], {"rng_algorithm": algorithm})
    return Tensor(like.rewriter, like.rewriter.insert(generator).results[1])


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
