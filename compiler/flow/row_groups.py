"""Merges the dispatches around row reductions into one: softmax and the norms become one dispatch each.

Grouping makes one dispatch of each reduction and one of its readers. This pass starts from a group that reduces rows
and adds the groups that read its results and the groups that it reads, as long as each value stays in its row
(`row_bodies.py`). Intermediate values of the merged group then need no memory. A value that other groups read becomes
a result of the merged group, whatever its size.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Size, bounds, is_dynamic, typical
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall

from .fusion_reads import elements
from .groups import MAX_BINDINGS, MAX_SIZE, Group, Grouping
from .row_bodies import rows_of

#: most elements of a row that one workgroup computes
MAX_ROW: Final = 1 << 14
#: with fewer rows than this, a row of more than `SHORT_ROW` elements is faster in several workgroups
FEW_ROWS: Final = 16
SHORT_ROW: Final = 1 << 11


def merge_rows(grouping: Grouping) -> None:
    """Merges groups as long as a merge is possible, in the order of the program."""
    for start in sorted(filter(_reduces, grouping.groups), key=grouping.place):
        if start not in grouping.groups:
            continue
        cluster = _grown([start], grouping)
        if len(cluster) > 1:
            grouping.merge(cluster)


def _reduces(group: Group) -> bool:
    """Whether a group reduces rows that a workgroup can take."""
    if not isinstance(group.hero, Reduce) or not _may_join(group):
        return False
    rows = rows_of([group.hero], ())
    if rows is None:
        return False
    length = elements(group.hero.inputs[0]) // rows
    if is_dynamic(length) and is_dynamic(rows):
        return typical(rows) >= FEW_ROWS or typical(length) <= SHORT_ROW
    longest = bounds(length)[1]
    return length != 1 and longest <= MAX_ROW and (typical(rows) >= FEW_ROWS or longest <= SHORT_ROW)


def _may_join(group: Group) -> bool:
    """Whether a group has no hero or a reduction, and neither updates in place nor calls a library."""
    alone = any(isinstance(op, CustomCall) for op in group.roots)
    return isinstance(group.hero, Reduce | None) and not group.updated and not alone


def _grown(cluster: list[Group], grouping: Grouping) -> list[Group]:
    """The groups of `cluster` and all groups that can be merged with them."""
    found = True
    while found:
        found = False
        for group in _neighbours(cluster, grouping):
            if _may_join(group) and _is_whole([*cluster, group], grouping):
                cluster.append(group)
                found = True
                break
    return cluster


def _neighbours(cluster: list[Group], grouping: Grouping) -> list[Group]:
    """The groups that read the roots of a cluster, and those that it reads, in the order of the program."""
    found = {reader.number: reader for group in cluster for reader in grouping.consumers(group)}
    for group in cluster:
        for value in group.captures():
            for maker in grouping.of(value.defining_op) if value.defining_op is not None else ():
                if value.defining_op in maker.roots:
                    found[maker.number] = maker
    inside = {group.number for group in cluster}
    return sorted((g for n, g in found.items() if n not in inside), key=grouping.place)


def _is_whole(cluster: list[Group], grouping: Grouping) -> bool:
    """Whether groups can be one dispatch: equal numbers of rows, no dependency through other groups, and within the
    limits of size and bindings.
    """
    ops = sorted({op for group in cluster for op in group.paths}, key=grouping.order.__getitem__)
    if sum(group.size for group in cluster) > MAX_SIZE:
        return False
    roots: list[Value] = [result for group in cluster for op in group.roots for result in op.results]
    rows = elements(cluster[0].hero.results[0]) if cluster[0].hero is not None else 0
    if rows_of(ops, roots, _handed(cluster, roots)) != rows:
        return False
    reduced = {elements(op.inputs[0]) // rows for op in ops if isinstance(op, Reduce)}
    if not all(_ends(elements(root) // rows, reduced) for root in roots):
        return False
    inside = {op for group in cluster for op in group.paths}
    if len(_bindings(cluster, inside, roots, grouping)) > MAX_BINDINGS:
        return False
    others = [reader for group in cluster for reader in grouping.consumers(group) if reader not in cluster]
    return not grouping.reaches(others, cluster)


def _ends(length: Size, reduced: Collection[Size]) -> bool:
    """Whether a workgroup may write so many elements of a row: few, or as many as it reduces. `limit-reductions` bounds
    the latter on machines that need it.
    """
    return bounds(length)[1] <= MAX_ROW or (is_dynamic(length) and length in reduced)


def _handed(cluster: list[Group], roots: list[Value]) -> set[Value]:
    """The values that one of the groups computes and another reads."""
    return {
        root
        for root in roots
        for user in root.users()
        if any(user in group.paths and root.defining_op not in group.paths for group in cluster)
    }


def _bindings(
    cluster: list[Group], inside: set[Operation], roots: list[Value], grouping: Grouping
) -> dict[Value, None]:
    read = [value for group in cluster for value in group.captures() if value.defining_op not in inside]
    written = [root for root in roots if grouping.escapes(root, *cluster)]
    return dict.fromkeys([*read, *written])
