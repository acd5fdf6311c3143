"""Patterns of `canonicalize` for `if`, `case` and `while`.

Selections known at compile time are made there. A `case` of two branches becomes an `if`, whose predicate is one byte
instead of four. Nothing reads a value in a loop that never changes, or that equals another carried value. Results and
carried values that nothing reads, or that are equal in all branches, go later, with the block arguments that they
become (`flow/simplify_branches.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from operator import itemgetter
from typing import Final

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import I1
from orchestrion.compiler.stablehlo.builders.loops import move_block
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, splat
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.control_flow import Case, If, While
from orchestrion.compiler.stablehlo.ops.elementwise import Convert
from orchestrion.compiler.stablehlo.ops.structural import Constant

from .trip_count import integer, step_of, trip_count


def _constant_if(op: If, rewriter: Rewriter) -> bool:
    maker = op.pred.defining_op
    if not isinstance(maker, Constant):
        return False
    chosen = op.true_branch if maker.value.scalars()[0] else op.false_branch
    return rewriter.replace(op, move_block(chosen.block, rewriter))


def _constant_case(op: Case, rewriter: Rewriter) -> bool:
    index = 0 if len(op.branches) == 1 else integer(op.index)
    if index is None:
        return False
    last = len(op.branches) - 1
    chosen = op.branches[index if 0 <= index < last else last]
    return rewriter.replace(op, move_block(chosen.block, rewriter))


def _case_of_two(op: Case, rewriter: Rewriter) -> bool:
    """A `case` of two branches: an index converted from a predicate is that predicate; any other is compared with 0."""
    if len(op.branches) != 2:
        return False
    first, second = op.branches
    maker = op.index.defining_op
    if isinstance(maker, Convert) and tensor_of(maker.operand_).element == I1:
        predicate, branches = maker.operand_, (second, first)
    else:
        predicate, branches = Tensor(rewriter, op.index).eq(0).value, (first, second)
    op.regions.clear()
    types = [result.type for result in op.results]
    made = rewriter.build(If, pred=predicate, true_branch=branches[0], false_branch=branches[1], out=types)
    return rewriter.replace(op, made.results)


def _is_same(first: Value, second: Value) -> bool:
    """Whether two values are the same, or equal constants."""
    a, b = first.defining_op, second.defining_op
    return first is second or isinstance(a, Constant) and isinstance(b, Constant) and a.value == b.value


def _known_final_counter(op: While, rewriter: Rewriter) -> bool:
    """The counter of a loop with a known iteration count has a known final value."""
    trips = trip_count(op)
    if isinstance(trips, Dim):
        return False
    changed = False
    for index, result in enumerate(op.results if trips is not None else ()):
        start, step = integer(op.inits[index]), step_of(op, index)
        if result.uses and start is not None and step is not None and trips is not None:
            rewriter.replace_value(result, splat(rewriter, start + trips * step, tensor_of(result)).value)
            changed = True
    return changed


def _carried_unchanged(op: While, rewriter: Rewriter) -> bool:
    """Replaces a carried value that no iteration changes by its initial value."""
    changed = False
    for index, (init, following) in enumerate(zip(op.inits, op.body.block.end.operands, strict=True)):
        argument = op.body.block.arguments[index]
        if following is not argument and not _is_same(following, init):
            continue
        for value in (argument, op.cond.block.arguments[index], op.results[index]):
            if value.uses:
                rewriter.replace_value(value, init)
                changed = True
    return changed


def _carried_twice(op: While, rewriter: Rewriter) -> bool:
    """Of two carried values with the same initial and next value, keeps one."""
    following, arguments = op.body.block.end.operands, op.body.block.arguments
    known: dict[Hashable, int] = {}
    changed = False
    for index, argument in enumerate(arguments):
        start = _identity(op.inits[index])
        ways = [(start, way) for way in _update_descriptions(following[index], argument)]
        first = min((known[way] for way in ways if way in known), default=index)
        known.update((way, first) for way in ways if way not in known)
        values = (argument, op.cond.block.arguments[index], op.results[index])
        if first == index or not any(value.uses for value in values):
            continue
        others = (arguments[first], op.cond.block.arguments[first], op.results[first])
        for value, other in zip(values, others, strict=True):
            rewriter.replace_value(value, other)
        op.body.block.end.set_operand(index, following[first])
        changed = True
    return changed


def _update_descriptions(value: Value, carried: Value) -> Iterator[Hashable]:
    """Descriptions of how a loop computes the next value of a carried one. If two values share one, the second is
    computed from itself or from others in the same way as the first.
    """
    op = value.defining_op
    yield value
    if op is None or op.regions:
        return
    made = op.name, tuple(sorted(op.properties.items(), key=itemgetter(0))), value.type
    yield (*made, *(None if operand is carried else _identity(operand) for operand in op.operands))
    yield (*made, *(_identity(operand) for operand in op.operands))


def _identity(value: Value) -> Hashable:
    """Equal for the same value and for equal constants (`_is_same`)."""
    op = value.defining_op
    return op.value if isinstance(op, Constant) else value


_OF: Final[dict[type[Operation], tuple[Pattern, ...]]] = {
    If: (_constant_if,),
    Case: (_constant_case, _case_of_two),
    While: (_known_final_counter, _carried_unchanged, _carried_twice),
}

PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {cls.name: patterns for cls, patterns in _OF.items()}
