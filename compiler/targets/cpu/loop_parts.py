"""Divides a loop that adds products in vectors into loops whose sums fit the registers of a level.

One `kernel` IR serves all levels, and its tiles fill the registers of the widest vectors. On other levels a sum takes
several registers. A loop for some of the sums repeats their loads, which costs less than sums that move to memory and
back in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import ceildiv
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.code.affine import sum_of

from .levels import Level

_ADDS = k.MultiplyAdd | k.MultiplyAddBytes


@dataclass(frozen=True, slots=True)
class Part:
    """A loop of some results, by their numbers, and the ops of the body that it needs. `adds`: it adds products in
    vectors to its results, and does nothing else; `ordered`: by columns (`ordered_parts.py`).
    """

    results: Sequence[int]
    ops: Sequence[Operation]
    adds: bool = False
    ordered: bool = False


def parts_of(loop: k.For, level: Level | None) -> list[Part]:
    """The parts of a loop, one for all results unless sums would not fit the registers."""
    body, last = loop.body.block, k.yielded(loop.body.block)
    whole = [Part(range(len(loop.outputs)), list(body))]
    sums = [value.defining_op for value in last]
    if level is None or not sums:
        return whole
    groups: dict[Value, list[int]] = {}
    for number, one in enumerate(sums):
        if not isinstance(one, _ADDS) or _start(one) is not body.arguments[1 + number]:
            return whole
        groups.setdefault(one.y, []).append(number)
    shape = k.vector_shape(last[0].type)
    if shape is None or any(op.regions or k.writes(op) for op in body):
        return whole
    whole = [Part(range(len(loop.outputs)), list(body), adds=True)]
    each = ceildiv(shape[0] * shape[1].itemsize, 4 * level.lanes)
    if each * (len(sums) + len(groups)) < level.registers:
        return whole
    most = max((level.registers - 1) // each - 1, 1)  # beside a vector of columns and an element of a row
    found = []
    for group in groups.values():
        count = ceildiv(len(group), ceildiv(len(group), most))
        chunks = [group[at : at + count] for at in range(0, len(group), count)]
        found += [Part(chunk, needed(loop, [last[number] for number in chunk]), adds=True) for chunk in chunks]
    return found


def stores_behind(loop: k.For, parts: Sequence[Part], ops: Iterable[Operation]) -> list[list[Operation]]:
    """For each part, the ops that run right behind it, of the `ops` behind the loop: stores of its sums, which leave
    their registers then, instead of moving to memory and back while the other parts run. The first part has, too, the
    scalars in front of the stores, which are the same without the loop.
    """
    found: list[list[Operation]] = [[] for _ in parts]
    parts_of_sums = {loop.outputs[at]: number for number, part in enumerate(parts) for at in part.results}
    read = {value for op in loop.walk() for value in op.operands}
    stores: list[k.StoreSharedLanes] = []
    for op in ops:
        if isinstance(op, k.StoreSharedLanes) and op.vector in parts_of_sums and op.shared not in read:
            if not all(_is_apart(op, other) for other in stores):
                break
            stores.append(op)
            found[parts_of_sums[op.vector]].append(op)
        elif isinstance(op, k.Scalar | k.Constant) and not any(value in parts_of_sums for value in op.operands):
            found[0].append(op)
        else:
            break
    return found


def _is_apart(x: k.StoreSharedLanes, y: k.StoreSharedLanes) -> bool:
    """Whether two stores of vectors are known to write different elements. Sums of indices may wrap."""
    (terms, at), (other_terms, other) = sum_of(x.index), sum_of(y.index)
    lanes, span = max(k.length_of(x.vector), k.length_of(y.vector)), 1 << k.dtype_of(x.index).bits
    return x.shared is not y.shared or (terms == other_terms and lanes <= (at - other) % span <= span - lanes)


def _start(one: Operation) -> Value:
    """The number to which a chain of products of an iteration is added."""
    assert isinstance(one, _ADDS)
    before = one.z.defining_op
    return _start(before) if isinstance(before, _ADDS) and before.parent is one.parent else one.z


def needed(loop: k.For, values: Sequence[Value]) -> list[Operation]:
    """The ops of the body that compute values, in order."""
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        op = pending.pop().defining_op
        if op is not None and op.parent is loop.body.block and op not in found:
            found.add(op)
            pending += op.operands
    return [op for op in loop.body.block if op in found]
