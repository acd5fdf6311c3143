"""Elementwise ops on narrow types: operands become wide or stored, results are rounded or wrapped."""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import dtype_of, tensor_of
from orchestrion.compiler.stablehlo.ops.elementwise import BitcastConvert, Convert, Elementwise, Select
from orchestrion.schema.dtypes import BOOL, BY_NAME, FLOAT, FLOAT_FORMATS, SIGNED, DType

from .floats import from_integer, round_to_odd
from .integers import saturate, unsigned, wrap
from .narrow_values import NarrowValues, narrow_dtype, replace_operands

#: Ops on floats whose results are as exact as their operands.
_EXACT: Final = frozenset({"abs", "clamp", "maximum", "minimum", "negate", "sign"})
#: Ops with integral results, which formats of 16 bits hold whenever they hold the operand.
_INTEGRAL: Final = frozenset({"ceil", "floor", "round_nearest_afz", "round_nearest_even"})
#: Ops on integers whose results are in range if the operands are.
_IN_RANGE: Final = frozenset({"and", "clamp", "maximum", "minimum", "or", "remainder", "sign", "xor"})
#: Ops on signed integers that read the bits above the width as zeros.
_UNSIGNED: Final = frozenset({"count_leading_zeros", "popcnt", "shift_right_logical"})


def expand_elementwise(op: Elementwise, values: NarrowValues) -> bool:
    """Changes an op with a narrow operand or result. Returns whether the op was replaced."""
    match op:
        case Convert():
            return _convert(op, values)
        case BitcastConvert():
            return _bitcast(op, values)
        case Select():
            return _select(op, values)
    dtype = values.dtype(op.operands[-1])
    assert dtype is not None, f"{op.name} has an operand of the result's type"
    if dtype.kind == FLOAT:
        replace_operands(op, values.wide_form)
        values.register_computed(op.results[0], _is_exact(op, dtype))
    else:
        _integer(op, values, dtype)
    return False


def _is_exact(op: Elementwise, dtype: DType) -> bool:
    name = op.scalar.name
    format = FLOAT_FORMATS[dtype.name]
    if not format.has_negative_zero:
        return name in ("clamp", "maximum", "minimum")
    if name == "remainder":  # by zero it is NaN
        return format.has_nan
    return name in _EXACT or name in _INTEGRAL and dtype.bits == 16


def _integer(op: Elementwise, values: NarrowValues, dtype: DType) -> None:
    replace_operands(op, values.stored_form)
    name, first = op.scalar.name, Tensor(Rewriter.before(op), op.operands[0])
    if name in _UNSIGNED:
        op.set_operand(0, unsigned(first, dtype).value)
    elif name == "shift_right_arithmetic" and dtype.kind != SIGNED:
        by = first.of(8 - dtype.bits)
        op.set_operand(0, (first << by).op("shift_right_arithmetic", by).value)
    values.register_computed(op.results[0], exact=name in _IN_RANGE)
    if name == "count_leading_zeros":
        result = op.results[0]
        assert op.next_op is not None
        counted = wrap(Tensor(Rewriter.before(op.next_op, op.loc), result) - (8 - dtype.bits), dtype)
        values.register_bits(result, counted.value, dtype)


def _select(op: Select, values: NarrowValues) -> bool:
    chosen = op.operands[1:]
    dtype = values.dtype(op.on_true)
    assert dtype is not None
    if dtype.kind == FLOAT and (values.unrounded or any(map(values.is_wide, chosen))):
        replace_operands(op, values.wide_form)
        values.register_computed(op.results[0], exact=True)
    else:
        replace_operands(op, values.stored_form)
        values.register_stored(op.results[0])
    return False


def _bitcast(op: BitcastConvert, values: NarrowValues) -> bool:
    """A bitcast between types of equal width, at least one of them narrow."""
    source, target = values.dtype(op.operand_), narrow_dtype(op.out.type)
    given = BY_NAME[source.storage] if source is not None else dtype_of(op.operand_)
    wanted = BY_NAME[target.storage] if target is not None else BY_NAME[str(tensor_of(op.out).element)]
    bits = Tensor(Rewriter.before(op), values.stored_form(op.operand_))
    if target is None:
        op.set_operand(0, bits.value)
        return False
    if given is not wanted:
        bits = bits.bitcast(wanted.name)
    if target.bits < 8 and source is not None and source.kind != target.kind:
        bits = wrap(bits, target)
    values.register_bits(op.result, bits.value, target)
    return True


def _convert(op: Convert, values: NarrowValues) -> bool:
    source, target = values.dtype(op.operand_), narrow_dtype(op.out.type)
    number = Tensor(Rewriter.before(op), values.wide_form(op.operand_))
    if target is None:  # the target may already be f32: a form of a narrow value must not stand for another value
        op.set_operand(0, number.value)
        return False
    exact = source is target
    if target.kind == FLOAT:
        number = _as_f32(number)
    elif number.dtype.kind == FLOAT:
        number, exact = saturate(number.convert(target.storage), target), True
    else:
        number, exact = number.convert(target.storage), False
    values.register_replacement(op.result, number.value, target, exact)
    return True


def _as_f32(number: Tensor) -> Tensor:
    """A number of any type that devices compute on, as an f32 that can be rounded once more."""
    if number.dtype.name == "f64":
        return round_to_odd(number)
    return number.convert("f32") if number.dtype.kind in (BOOL, FLOAT) else from_integer(number)
