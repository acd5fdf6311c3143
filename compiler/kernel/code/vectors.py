"""Loads of vectors: a vector of neighbouring elements is loaded at once."""

from collections.abc import Sequence
from typing import TypeGuard

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel.dialect import Call, Load, LoadLanes, Scalar, Vector, vector_type

from .affine import sum_of
from .builder import KernelBuilder

#: ops that widen a bf16 to the f32 with its bits
_WIDENING = ("convert", "unchecked_shift_left", "bitcast")
#: functions that widen
_CALLED = ("decode_f16",)


def load_lanes(block: Block, b: KernelBuilder) -> None:
    """Replaces each vector of loaded neighbours by one load, and of widened ones by a load and vector ops, if the
    machine has products of bf16. The former loads are left without users.
    """
    for top in block:
        for op in top.walk():
            if isinstance(op, Vector) and (made := _loaded(op.values, op, b)) is not None:
                op.output.replace_by(made)
                op.erase()


def _loaded(values: Sequence[Value], before: Vector, b: KernelBuilder) -> Value | None:
    """The vector of loaded neighbours, perhaps widened; None if they are none."""
    first, source = neighbours(values, b), values[0].defining_op
    kind = vector_type(len(values), b.dtype(values[0]))
    made: Operation
    if first is not None:
        made = LoadLanes([first.binding, first.index], [kind])
    elif _is_widening(source) and b.machine.pair_products:
        ops = [value.defining_op for value in values]
        if any(op is None or op.name != source.name or op.properties != source.properties for op in ops):
            return None
        widened, *others = ([op.operands[at] for op in ops if op is not None] for at in range(len(source.operands)))
        inside = _loaded(widened, before, b) if all(len(set(one)) == 1 for one in others) else None
        if inside is None:
            return None
        places = [_insert(Vector(one, [vector_type(len(one), b.dtype(one[0]))]), before) for one in others]
        made = type(source)([inside, *places], [kind], properties=source.properties)
    else:
        return None
    return _insert(made, before)


def _is_widening(op: Operation | None) -> TypeGuard[Scalar | Call]:
    if isinstance(op, Call):
        return op.scalar.value in _CALLED
    return isinstance(op, Scalar) and op.primitive.name in _WIDENING


def neighbours_of(value: Value, lanes: int, b: KernelBuilder) -> Value:
    """The vector of an element that is loaded, and perhaps widened, and its neighbours in memory."""
    op = value.defining_op
    if isinstance(op, Load):
        return b.load_lanes(op, lanes)
    assert _is_widening(op), "an element of memory"
    first, *others = op.operands
    operands = [neighbours_of(first, lanes, b), *(b.vector([one] * lanes) for one in others)]
    made = type(op)(operands, [vector_type(lanes, b.dtype(value))], properties=op.properties)
    return b.insert(made).results[0]


def _insert(op: Operation, before: Operation) -> Value:
    assert before.parent is not None
    op.loc = before.loc
    before.parent.insert_before(op, before)
    return op.results[0]


def neighbours(values: Sequence[Value], b: KernelBuilder) -> Load | None:
    """The first of loads of consecutive elements in one block; None if they are not consecutive."""
    first = values[0].defining_op
    if not isinstance(first, Load) or str(first.output.type) == "i1":
        return None
    start = sum_of(first.index)
    for number, value in enumerate(values):
        load = value.defining_op
        if not isinstance(load, Load) or load.binding is not first.binding or load.parent is not first.parent:
            return None
        if sum_of(load.index) != (start.terms, start.constant + number):
            return None
    return first
