"""form-dispatch-regions: every op of a function or an initializer goes into a `flow.dispatch_region`.

Blocks are handled one by one. Values that another block uses, or that a branch passes on, are in memory. The ops of a
block are visited from the last to the first, so that all readers of an op are in groups already:
- one group reads the op: the op joins it, if each of its elements is then read a bounded number of times; an op that
  the group of a dot or a reduction in front of it can compute joins it only if each element is then computed once;
- several groups read it and it is cheap (generators, movement): each of them computes it;
- otherwise its results are in memory: it becomes a further root of a group of the same workload, or a new group.
Groups that reduce rows are then merged with the groups around them (`row_groups.py`). A splat that a function returns,
that is passed to another block, or that a scatter updates becomes `flow.splat`. Every block computes its own copy of
free ops. A region comes after the regions that it reads. Otherwise the order of the program is kept, but readers
of a tensor come before a region that updates it in place. Stores to globals come last.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from graphlib import TopologicalSorter
from math import inf
from typing import Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import DenseElements, SymbolRef, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, OpResult, Region, Value
from orchestrion.compiler.ir.dominance import closure
from orchestrion.compiler.ir.effects import is_dead
from orchestrion.compiler.ir.util import HOST_OPS, Assert, GlobalLoad, GlobalStore
from orchestrion.compiler.options import Options
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.costs import is_expensive
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.indexing import Gather
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Concatenate, Constant, Reshape

from .blocks import code_of
from .dialect import DispatchRegion, Empty, Splat, Yield
from .fusion_reads import GENERATORS, HEROES, MOVEMENT, count, elements, is_free, is_in_place, narrows
from .groups import MAX_BINDINGS, Group, Grouping, is_sink, work_of
from .row_groups import merge_rows
from .scatter import Scatter, updated_values
from .split_large_constants import binding_limit

#: ops that stay in the function
OUTSIDE: Final = (GlobalLoad, GlobalStore, Splat, Empty, Assert, *HOST_OPS)


def run(module: Module, options: Options) -> None:
    """Puts all ops of all functions and initializers into dispatch regions."""
    limit = binding_limit(options)
    large = inf if limit is None else limit / 4
    for op in code_of(module):
        blocks = op.regions[0].blocks
        _copy_free(blocks)
        for block in blocks:
            _form(block, large, options.widened_by_dots)


def _copy_free(blocks: list[Block]) -> None:
    """Gives each block its own copy of free ops that are in other blocks."""
    for block in blocks:
        copies: dict[Value, Value] = {}
        for op in block:
            for index, value in enumerate(op.operands):
                maker = value.defining_op
                if maker is not None and maker.parent is not block and is_free(maker):
                    op.set_operand(index, _copied(value, op, copies))
    for block in reversed(blocks):
        for op in reversed(block):
            if not isinstance(op, OUTSIDE) and is_dead(op):
                op.erase()


def _copied(value: Value, user: Operation, copies: dict[Value, Value]) -> Value:
    """Copies a free op, and the ops that it depends on, in front of `user`."""
    if value not in copies:
        maker = value.defining_op
        assert maker is not None, "what is free has a maker"
        for operand in maker.operands:
            _copied(operand, user, copies)
        Builder.before(user).insert(maker.clone(copies))
    return copies[value]


def _form(block: Block, large: float, widened: Collection[str]) -> None:
    _refuse_wide(block)
    _sink_stores(block)
    _place_splats(block)
    order = {op: index for index, op in enumerate(block)}
    grouping, behind = Grouping(order, large, widened), _behind_heroes(block)
    for op in reversed(list(block)[:-1]):
        if not isinstance(op, OUTSIDE) and not is_sink(op):
            _place(op, grouping, op in behind)
    merge_rows(grouping)
    _emit(block, grouping)


def _refuse_wide(block: Block) -> None:
    """Raises CompileError if an op alone needs more buffers than a dispatch may bind."""
    wide = []
    for op in block:
        sources = {value for value in op.operands if not isinstance(value.defining_op, GENERATORS)}
        needed = len(sources) + len(op.results)
        if op.next_op is not None and not isinstance(op, OUTSIDE) and needed > MAX_BINDINGS:
            wide.append(Diagnostic(f"needs {needed} buffers, a dispatch has at most {MAX_BINDINGS}", op.loc, op.name))
    if wide:
        raise CompileError(wide)


def _sink_stores(block: Block) -> None:
    """Moves stores behind all computation. A load behind a store of the same global becomes the stored value."""
    stored: dict[SymbolRef, GlobalStore] = {}
    for op in block.ops:
        if isinstance(op, GlobalLoad) and op.ref in stored:
            op.result.replace_by(stored[op.ref].value)
            op.erase()
        elif isinstance(op, GlobalStore):
            if op.ref in stored:
                stored[op.ref].erase()
            stored[op.ref] = op
            block.take([op], block.last)


def _place_splats(block: Block) -> None:
    """Constants that are returned, passed to a block, stored, or updated by a scatter become filled memory, not
    dispatches. An operand that a scatter updates and also reads is copied.
    """
    for op in block:
        in_memory = op.next_op is None or isinstance(op, OUTSIDE)
        given = op.operands if in_memory else updated_values(op) if isinstance(op, Scatter) else ()
        for index, value in enumerate(given):
            source = _repeated(value)
            if isinstance(op, Scatter) and op.operands.count(value) > 1 and source is None:
                op.set_operand(index, Builder(block, op, op.loc).build(Reshape, operand_=value, out=value.type).result)
            if source is None:
                continue
            scalar = DenseElements(source.value.type.with_shape(()), source.value.data)
            splat = Builder(block, op, value.loc).build(Splat, value=scalar, output=value.type)
            op.set_operand(index, splat.output)


def _repeated(value: Value) -> Constant | None:
    """The constant that a value consists of: itself, or a scalar broadcast to a dynamic shape; else None."""
    maker = value.defining_op
    if isinstance(maker, BroadcastInDim) and not tensor_of(maker.out).is_static:
        maker = maker.operand_.defining_op
    if not isinstance(maker, Constant):
        return None
    assert maker.value.is_splat, "hoist-constants runs before"
    return maker


def _is_cheap(op: Operation) -> bool:
    """Whether each reader should compute an op again: it reads at most one tensor of its own size."""
    if is_free(op):
        return True
    if isinstance(op, MOVEMENT):
        return not isinstance(op, Concatenate | Gather)
    if not isinstance(op, Elementwise) or is_expensive(op) or narrows(op):
        return False
    size = elements(op.results[0])
    sources = {value for value in op.operands if value.defining_op is None or not is_free(value.defining_op)}
    return size == 1 or sum(elements(value) == size and not _is_broadcast(value) for value in sources) <= 1


def _is_broadcast(value: Value) -> bool:
    """Whether a value is broadcast from fewer elements, so that few are read."""
    source = value.defining_op
    return isinstance(source, BroadcastInDim) and count(source.operand_) < count(value)


def _place(op: Operation, grouping: Grouping, behind: bool) -> None:
    """Puts an op into groups. `behind`: it is one of `_behind_heroes`, whose group computes each element once."""
    readers = grouping.readers(op)
    users = [user for result in op.results for user in result.users()]
    escapes = any(user.parent is not op.parent or is_sink(user) for user in users)
    if not readers and not escapes:
        return
    alone = len(readers) == 1
    joins = not escapes and (alone or _is_cheap(op))
    if joins and all(group.takes(op, not alone) and not (behind and group.repeats(op)) for group in readers):
        grouping.join(op, readers)
        return
    group = _host(op, readers, grouping)
    if group is None or behind and group.hero is not None:
        grouping.start(op)
    else:
        grouping.join_as_root(op, group)


def _behind_heroes(block: Block) -> set[Operation]:
    """The ops that can be computed with each result of a dot or reduction, which only they and ops between read."""
    found: set[Operation] = set()
    for op in block:
        if isinstance(op, Elementwise | Reshape):
            makers = [value.defining_op for value in op.operands if len(value.uses) == 1]
            if any(isinstance(one, HEROES) or one in found for one in makers if one and work_of(one) == work_of(op)):
                found.add(op)
    return found


def _host(op: Operation, readers: list[Group], grouping: Grouping) -> Group | None:
    """A group that can compute `op` for all readers: one that reads it, else one that shares an operand with it."""
    for group in readers:
        others = [reader for reader in readers if reader is not group]
        if group.takes_root(op) and not grouping.reaches(others, [group]):
            return group
    reached: set[Group] | None = None
    for group in grouping.siblings(op):  # that share an operand
        if group in readers or not group.takes_root(op):
            continue
        reached = closure(readers, grouping.consumers) if reached is None else reached
        if group not in reached:
            return group
    return None


def _emit(block: Block, grouping: Grouping) -> None:
    """Inserts the regions in front of the first sink, and erases the ops that they were made from."""
    ending = next(op for op in block if is_sink(op))
    order = grouping.order
    made: dict[Value, Value] = {}
    for group in _sorted(grouping):
        ops = sorted(group.roots, key=order.__getitem__)
        roots = [r for op in ops for r in op.results if grouping.escapes(r, group) or isinstance(op, Scatter)]
        made.update(_build(group, roots, made, ending, order))
    for old, new in made.items():
        for user, index in list(old.uses):
            if user.parent is not block or is_sink(user):
                user.set_operand(index, new)
    for op in sorted(order, key=lambda op: -order[op]):
        if not is_sink(op) and not isinstance(op, OUTSIDE):
            op.erase()


def _sorted(grouping: Grouping) -> list[Group]:
    """The groups in an order in which each comes after those it reads; otherwise in the order of the program."""
    place = {group.number: min(grouping.order[op] for op in group.roots) for group in grouping.groups}
    readers = {group.number: {g.number for g in grouping.consumers(group)} for group in grouping.groups}
    _read_first(grouping, readers)
    sorter: TopologicalSorter[int] = TopologicalSorter({number: () for number in place})
    for number, others in readers.items():
        for reader in others:
            sorter.add(reader, number)
    sorter.prepare()
    ready: list[tuple[int, int]] = []
    result = []
    while sorter.is_active():
        for number in sorter.get_ready():
            heapq.heappush(ready, (place[number], number))
        _, number = heapq.heappop(ready)
        sorter.done(number)
        result.append(grouping.groups[number])
    return result


def _read_first(grouping: Grouping, readers: dict[int, set[int]]) -> None:
    """Orders readers of a tensor before the group that updates it in place, if possible: else it is copied."""
    reading: dict[Value, list[int]] = {value: [] for group in grouping.groups for value in group.updated}
    for group in grouping.groups if reading else ():
        for value in group.captures():
            if value in reading:
                reading[value].append(group.number)
    for group in grouping.groups:
        for other in sorted({number for value in group.updated for number in reading[value]} - {group.number}):
            if other not in closure([group.number], readers.__getitem__):
                readers[other].add(group.number)


def _build(
    group: Group, roots: list[OpResult], made: dict[Value, Value], ending: Operation, order: Mapping[Operation, int]
) -> dict[Value, Value]:
    """Inserts one region. Returns the values that replace the roots of the group."""
    body = Block()
    inside = dict(made)
    for op in sorted(group.paths, key=order.__getitem__):
        body.append(op.clone(inside))
    main = group.hero or max(group.roots, key=order.__getitem__)
    body.append(Yield.build(values=[inside[root] for root in roots], loc=main.loc))
    types = [root.type for root in roots]
    built = Builder.before(ending).build(DispatchRegion, body=Region([body]), outputs=types, loc=main.loc)
    if group.updated:
        built.updates = dense_ints(*(int(is_in_place(root.owner)) for root in roots))
    return dict(zip(roots, built.outputs, strict=True))
