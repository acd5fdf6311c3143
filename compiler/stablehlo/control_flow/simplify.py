"""Patterns of `canonicalize` for `if`, `case` and `while`.

Selections known at compile time are made there. A loop does not carry values that never change, that equal another
carried value, or that nothing reads. Unused results, and results that are equal in all branches, are dropped. A `case`
of two branches becomes an `if`, whose predicate is one byte instead of four.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final

from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Region, Value
from orchestrion.compiler.ir.dims import Dim
from orchestrion.compiler.ir.effects import is_dead
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import I1
from orchestrion.compiler.stablehlo.builders.loops import move_block
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, splat
from orchestrion.compiler.stablehlo.ops.base import rebuilt, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Return
from orchestrion.compiler.stablehlo.ops.control_flow import Case, Choice, If, While
from orchestrion.compiler.stablehlo.ops.elementwise import Convert
from orchestrion.compiler.stablehlo.ops.structural import Constant

from .trip_count import integer, step_of, trip_count


def _constant_if(op: If, rewriter: Rewriter) -> bool:
    maker = op.pred.defining_op
    if not isinstance(maker, Constant):
        return False
    _put_in_place(op, op.true_branch if maker.value.scalars()[0] else op.false_branch, (), rewriter)
    return True


def _constant_case(op: Case, rewriter: Rewriter) -> bool:
    index = 0 if len(op.branches) == 1 else integer(op.index)
    if index is None:
        return False
    last = len(op.branches) - 1
    _put_in_place(op, op.branches[index if 0 <= index < last else last], (), rewriter)
    return True


def _put_in_place(op: Operation, region: Region, arguments: Sequence[Value], rewriter: Rewriter) -> None:
    """Replaces an op by the ops of one of its regions."""
    for argument, value in zip(region.block.arguments, arguments, strict=True):
        argument.replace_by(value)
    rewriter.replace(op, move_block(region.block, rewriter))


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


def _not(op: If, rewriter: Rewriter) -> bool:
    """An `if` over a negated predicate swaps its branches."""
    maker = op.pred.defining_op
    if maker is None or maker.name != "stablehlo.not":
        return False
    op.regions.reverse()
    rewriter.set_operand(op, 0, maker.operands[0])
    return True


def _equal_results(op: Choice, rewriter: Rewriter) -> bool:
    """Replaces a result for which every branch returns the same outside value, or equal constants."""
    changed = False
    for index, result in enumerate(op.results):
        if not result.uses:
            continue
        first, *rest = op.regions
        value = first.block.end.operands[index]
        if not all(_is_same(value, region.block.end.operands[index]) for region in rest):
            continue
        if value.parent_block is first.block:
            assert isinstance(value.defining_op, Constant)
            value = rewriter.insert(value.defining_op.clone()).result
        rewriter.replace_value(result, value)
        changed = True
    return changed


def _is_same(first: Value, second: Value) -> bool:
    """Whether two values are the same, or equal constants."""
    a, b = first.defining_op, second.defining_op
    return first is second or isinstance(a, Constant) and isinstance(b, Constant) and a.value == b.value


def _unused_results(op: Choice, rewriter: Rewriter) -> bool:
    used = [index for index, result in enumerate(op.results) if result.uses]
    if len(used) in (0, len(op.results)):
        return False
    _keep_results(op, used, rewriter)
    return True


def _keep_results(op: Operation, kept: Sequence[int], rewriter: Rewriter) -> None:
    """Rebuilds the op with some of its results; the regions no longer return the others."""
    gone = sorted(set(range(len(op.results))).difference(kept))
    for region in op.regions:
        last = region.block.end
        if len(last.operands) == len(op.results):  # not the terminator of a loop's predicate
            last.set_operands([last.operands[index] for index in kept])
        for inner in reversed(region.block):
            if is_dead(inner):
                rewriter.erase(inner)
        region.block.erase_arguments(gone if region.block.arguments else ())
    operands = [op.operands[index] for index in kept] if isinstance(op, While) else op.operands
    made = rewriter.insert(rebuilt(op, operands, [op.results[index].type for index in kept]))
    for index, new in zip(kept, made.results, strict=True):
        rewriter.replace_value(op.results[index], new)
    rewriter.erase(op)


def _few_iterations(op: While, rewriter: Rewriter) -> bool:
    """A loop that never runs returns its initial values; one that runs once is its body."""
    predicate = op.cond.block.end.operands[0].defining_op
    trips = trip_count(op)
    if isinstance(predicate, Constant) and not predicate.value.scalars()[0]:
        trips = 0
    if trips == 0:
        rewriter.replace(op, list(op.inits))
    elif trips == 1:
        _put_in_place(op, op.body, list(op.inits), rewriter)
    return trips in (0, 1)


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


def _carried_unused(op: While, rewriter: Rewriter) -> bool:
    """Drops a carried value that neither affects the predicate nor a used result."""
    following = op.body.block.end.operands
    live = {index for index, result in enumerate(op.results) if result.uses}
    live |= _arguments_behind(op.cond.block, op.cond.block.end.operands, set())
    fresh, seen = live, set[Operation]()
    while fresh:
        fresh = _arguments_behind(op.body.block, [following[index] for index in fresh], seen) - live
        live |= fresh
    if len(live) == len(op.results):
        return False
    _keep_results(op, sorted(live), rewriter)
    return True


def _arguments_behind(block: Block, values: Iterable[Value], seen: set[Operation]) -> set[int]:
    """Indices of the block arguments on which values depend, except through ops in `seen`."""
    found: set[int] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        maker = value.defining_op
        if isinstance(value, BlockArgument) and value.block is block:
            found.add(value.index)
        elif maker is not None and maker.parent is block and maker not in seen:
            seen.add(maker)
            stack += [operand for inner in maker.walk() for operand in inner.operands]
    return found


def _revisit_owner(op: Operation, rewriter: Rewriter) -> bool:
    """Visits the op that owns a region again, once for all its regions, after the region's results may have changed."""
    outer = op.parent_op
    if isinstance(outer, Choice | While) and outer.parent is not None:
        rewriter.postpone(outer)
    return False


_CHOICE: Final[tuple[Pattern, ...]] = (_equal_results, _unused_results)
_OF: Final[dict[type[Operation], tuple[Pattern, ...]]] = {
    If: (_constant_if, _not, *_CHOICE),
    Case: (_constant_case, _case_of_two, *_CHOICE),
    While: (_few_iterations, _known_final_counter, _carried_unchanged, _carried_twice, _carried_unused),
}

PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    **{cls.name: patterns for cls, patterns in _OF.items()},
    Return.name: (_revisit_owner,),
}
