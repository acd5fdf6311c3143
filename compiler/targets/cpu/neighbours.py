"""Loads whose lanes read elements a few places apart, backwards, or only where a condition holds, without a gather."""

from __future__ import annotations

from collections.abc import Callable
from itertools import dropwhile
from typing import NamedTuple

from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.kernel import dialect as k

from .code import Code
from .scalars import instruction

#: most places between elements that are loaded with those between them
MOST_APART = 4
#: most ops between a load and the selects that drop it
_MOST_OPS = 64


class Guard(NamedTuple):
    """Lanes where all conditions hold read at the base of an index plus `stride` per lane; others need no element."""

    conditions: tuple[Value, ...]
    stride: int


def is_near(stride: int | None, width: int) -> bool:
    """Whether vectors of neighbours and shuffles load the elements of lanes that are `stride` places apart."""
    return stride is not None and (-1 <= stride <= 1 or 1 < stride <= min(MOST_APART, width // 2))


def guard_of(load: k.Load | k.LoadShared, stride_of: Callable[[Value], int | None], width: int) -> Guard | None:
    """The guard of a load as padding makes it: where a condition does not hold, its index is a place that exists, and
    its element is dropped. None if it has none.
    """
    found = _chosen(load.operands[1], stride_of)
    if found is None or not found.stride or not is_near(found.stride, width):
        return None
    return found if all(_is_dropped(load.output, one, [_MOST_OPS]) for one in found.conditions) else None


def _chosen(index: Value, stride_of: Callable[[Value], int | None]) -> Guard | None:
    """The conditions of the selects in a sum, and the stride of the sum with the first choice of each."""
    op = index.defining_op
    if not isinstance(op, k.Scalar):
        return None
    name, operands = op.primitive.name, op.operands
    if name == "select":
        condition, yes, no = operands
        if stride_of(no) != 0:
            return None
        stride = stride_of(yes)
        inner = _chosen(yes, stride_of) if stride is None else Guard((), stride)
        return None if inner is None else Guard((condition, *inner.conditions), inner.stride)
    if name not in ("add", "subtract"):
        return None
    other = [value for value in operands if stride_of(value) == 0]
    if len(other) != 1:
        return None
    place = operands.index(other[0])
    found = _chosen(operands[1 - place], stride_of)
    return found._replace(stride=-found.stride) if found and name == "subtract" and place == 0 else found


def _is_dropped(value: Value, condition: Value, rest: list[int]) -> bool:
    """Whether selects drop a value, and all that is computed from it, where a condition does not hold. `rest`: number
    of ops that may still be visited.
    """
    for user, place in value.uses:
        rest[0] -= 1
        if not isinstance(user, k.Scalar) or rest[0] < 0:
            return False
        drops = user.primitive.name == "select" and place == 1 and _implies(user.operands[0], condition)
        if not drops and not _is_dropped(user.output, condition, rest):
            return False
    return True


def _implies(condition: Value, other: Value) -> bool:
    return set(conjuncts(other)) <= set(conjuncts(condition))


def conjuncts(value: Value) -> list[Value]:
    """The conditions that all hold if and only if a condition does."""
    op = value.defining_op
    if isinstance(op, k.Scalar) and op.primitive.name == "and" and str(value.type) == "i1":
        return [part for operand in op.operands for part in conjuncts(operand)]
    return [value]


def drop_of(load: k.Load | k.LoadShared, guard: Guard) -> k.Scalar | None:
    """The select that drops a loaded element if its guard does not hold. None if the element has other uses, or if the
    select depends on ops behind the load.
    """
    if len(load.output.uses) != 1 or load.parent is None:
        return None
    user, place = next(iter(load.output.uses))
    if not isinstance(user, k.Scalar) or user.primitive.name != "select" or place != 1 or user.parent != load.parent:
        return None
    behind, parts = set(dropwhile(lambda op: op is not load, load.parent)), conjuncts(user.operands[0])
    if any(value.defining_op in behind for value in (*parts, user.operands[2])):
        return None
    return user if {part for one in guard.conditions for part in conjuncts(one)} <= {*parts} else None


def chosen_base(code: Code, index: Value, known: Callable[[Value], str | None]) -> str:
    """The base of an index with a guard, for lanes whose conditions hold. `known`: the base of a value that has one."""
    base, op = known(index), index.defining_op
    if base is not None:
        return base
    assert isinstance(op, k.Scalar)
    if op.primitive.name == "select":
        return chosen_base(code, op.operands[1], known)
    operands, dtype = [chosen_base(code, operand, known) for operand in op.operands], k.dtype_of(index)
    text = instruction(op.primitive.name, operands, dtype, dtype, 1)
    assert text is not None
    return code.set(text)


def load_apart(code: Code, base: str, stride: int, type: str, align: int, lanes: int) -> str:
    """Loads elements that are `stride` places apart, or backwards if it is -1. `base`: the address of the first one."""
    wide, last = f"<{lanes} x {type}>", (lanes - 1) * stride
    if stride == -1:
        found = code.set(f"load {wide}, ptr {_behind(code, base, type, last)}, align {align}")
        return _backwards(code, found, wide, lanes)
    result = ""
    for number in range(stride):
        start = min(number * lanes, last - lanes + 1)
        part = code.set(f"load {wide}, ptr {_behind(code, base, type, start)}, align {align}")
        places = [lane * stride - start for lane in range(lanes)]
        order = [lanes + place if 0 <= place < lanes else lane for lane, place in enumerate(places)]
        result = code.shuffle(wide, result or part, order, part)
    return result


def load_masked(code: Code, base: str, stride: int, mask: str, type: str, align: int, lanes: int) -> str:
    """Loads neighbours in the lanes of a mask, backwards if the stride is -1. `base`: the address for lane 0, which may
    lie outside of the memory.
    """
    wide, flags = f"<{lanes} x {type}>", f"<{lanes} x i1>"
    at = _behind(code, base, type, 1 - lanes) if stride < 0 else base
    given = _backwards(code, mask, flags, lanes) if stride < 0 else mask
    kind = {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16"}.get(type, type)
    place = f"ptr align {align} {at}, {flags} {given}"
    found = code.set(f"call {wide} @llvm.masked.load.v{lanes}{kind}.p0({place}, {wide} zeroinitializer)")
    return _backwards(code, found, wide, lanes) if stride < 0 else found


def _behind(code: Code, base: str, type: str, places: int) -> str:
    """The address of the element `places` elements behind another one."""
    return code.set(f"getelementptr {type}, ptr {base}, i64 {places}") if places else base


def _backwards(code: Code, vector: str, wide: str, lanes: int) -> str:
    """A vector with its lanes in the opposite order."""
    return code.shuffle(wide, vector, list(range(lanes - 1, -1, -1)), vector)
