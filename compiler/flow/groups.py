"""Groups: sets of ops that run as one dispatch, grown from results towards arguments.

A group computes `workload` elements. Its *roots* are the ops whose values others read, each with that many elements. At
most one op is its *hero*, a reduction or a dot, which must be read on `ROOT`, so that a schedule may compute it element
by element. Only groups of rows, which `row_groups.py` makes by merging, have several heroes and roots of several sizes.
A cheap op may be in several groups; each computes it. A library call shares its group with free ops only.

An update in place is a root: the group computes the update and writes it into the memory of the updated value. Nothing
else in the group reads that value, since elements are computed in any order. A scatter is the only root of its group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from math import inf
from typing import Final

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Size, dim_max, typical
from orchestrion.compiler.ir.types import scalar
from orchestrion.compiler.ir.util import GlobalLoad, GlobalStore
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.compiler.stablehlo.ops.costs import is_expensive
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.compiler.stablehlo.ops.elementwise import Compare, Elementwise, Select
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft, RowSolve
from orchestrion.compiler.stablehlo.ops.structural import Concatenate, Pad, Reshape, Transpose

from .dialect import Windows
from .fusion_reads import HEROES, MOVEMENT, ROOT, WIDENING, Path, count, elements, is_free, is_in_place, operand_paths
from .layout import storage_bytes
from .merge import Merge
from .scatter import Scatter, changes, updated_values

#: most buffers that one dispatch may bind; every supported device allows as many
MAX_BINDINGS: Final = 16
#: greatest size of a group, which limits the size of kernels: an op that is not free counts 1, an expensive one
#: `EXPENSIVE_SIZE`, an op on bit patterns, such as rounding to a narrow float, `BITS_SIZE`
MAX_SIZE: Final = 64
EXPENSIVE_SIZE: Final = 4
BITS_SIZE: Final = 1 / 8
_BITS: Final = frozenset(
    f"stablehlo.{name}" for name in ("and", "bitcast_convert", "or", "shift_left", "shift_right_logical")
)
_WORD: Final = scalar("ui32")
#: most elementwise ops of one group that another group computes, too
MAX_CLONES: Final = 8
#: most paths to one op within a group; each computes it again
MAX_PATHS: Final = 4
#: most groups, per operand, that may accept an op as a further root
MAX_SIBLING_GROUPS: Final = 64
#: most constants of a group that take more than `large` bytes: on devices that bind four buffers, all others share one
MAX_LARGE: Final = 3
#: from this many reads of each element on, the result of an op is put in memory, not fused into a dot: each fused read
#: tests for the edges or for the operand that has the element, or is out of the order of memory
MANY_READS: Final[dict[type[Operation], int]] = {Pad: 16, Concatenate: 64, Transpose: 16}
#: fewest neighbours along the last axis of a concatenation that is put in memory before a transposition turns them: a
#: tile reads one operand
FEWEST_TURNED: Final = 16
#: most reads of each element of f16 by a dot that widens its own left operand; it copies most right operands to panels
MOST_WIDENED: Final = 16


def _size(op: Operation) -> float:
    """The contribution of an op to the size of a kernel."""
    of_bits = isinstance(op, Compare | Select) and tensor_of(op.operands[-1]).element == _WORD
    if of_bits or op.name in _BITS:
        return BITS_SIZE
    return EXPENSIVE_SIZE if is_expensive(op) else not is_free(op)


def is_sink(op: Operation) -> bool:
    """Whether an op takes values out of its block: the terminator, or a store to a global."""
    return op.next_op is None or isinstance(op, GlobalStore)


class Group:
    """Ops of one dispatch. `paths[op]`: path -> number of reads of each result of the op. `large`: bytes above which a
    constant does not share a buffer with others. `widened`: the types that dots widen themselves.
    """

    def __init__(self, number: int, root: Operation, large: float = inf, widened: Collection[str] = ()) -> None:
        self.number = number
        self.large = large
        self.widened = widened
        self.workload = work_of(root)
        self.paths: dict[Operation, dict[Path, int]] = {}
        self.roots: dict[Operation, None] = {}
        self.updated: set[Value] = set()
        self.hero: Operation | None = None
        self.size = 0.0
        self.clones = 0
        self._arguments: set[Value] = set()
        self._outputs = 0
        self.add_root(root)

    def add_root(self, op: Operation) -> None:
        """Adds an op whose results are also read outside of the group."""
        self._add(op, self.paths_to(op) | {ROOT: typical(self.workload)})
        self.roots[op] = None
        self._outputs += len(op.results)
        if is_in_place(op):
            self.updated.update(updated_values(op))

    def add(self, op: Operation, is_clone: bool) -> None:
        """Adds an op that the group reads. `is_clone`: other groups compute it, too."""
        self._add(op, self.paths_to(op))
        self.clones += is_clone and isinstance(op, Elementwise)

    def _add(self, op: Operation, paths: dict[Path, int]) -> None:
        self.paths[op] = paths
        self.size += _size(op)
        self._arguments.update(value for value in op.operands if value.defining_op is None)
        if isinstance(op, HEROES):
            self.hero = op

    def paths_to(self, op: Operation) -> dict[Path, int]:
        """The paths on which the ops of the group read the results of an op outside of it."""
        found: dict[Path, int] = {}
        for result in op.results:
            for user, index in result.uses:
                for path, reads in self.paths.get(user, {}).items():
                    to, count = operand_paths(user, index, path, reads)
                    found[to] = max(count, found.get(to, 0))
        return found

    def captures(self, extra: Operation | None = None) -> dict[Value, None]:
        """The values that the group reads from memory, in order, as if `extra` were in it. Free ops are not counted."""
        inside = [*self.paths, extra] if extra is not None else list(self.paths)
        ops = set(inside)
        found: dict[Value, None] = {}
        for op in inside:
            for value in op.operands:
                source = value.defining_op
                if source is None or value in self.updated or not (source in ops or is_free(source)):
                    found[value] = None
        return found

    def _large_constants(self, values: Iterable[Value]) -> int:
        types = [tensor_of(value) for value in values if isinstance(value.defining_op, GlobalLoad)]
        return sum(type.is_static and int(storage_bytes(type)) > self.large for type in types)

    def is_full(self) -> bool:
        """Whether the group accepts no more roots, except free ones. A full group stays full."""
        return self.size >= MAX_SIZE or self._outputs + len(self._arguments) >= MAX_BINDINGS

    def takes(self, op: Operation, is_clone: bool) -> bool:
        """Whether the group can compute an op. `is_clone`: other groups compute it, too; else nobody else reads it."""
        if is_clone and isinstance(op, Elementwise) and self.clones >= MAX_CLONES:
            return False
        if is_in_place(op):
            return False
        return self._fits(op, self.paths_to(op), self._outputs)

    def repeats(self, op: Operation) -> bool:
        """Whether the group would compute elements of an op several times."""
        return sum(self.paths_to(op).values()) > count(op.results[0])

    def takes_root(self, op: Operation) -> bool:
        """Whether the group can compute an op whose results others read."""
        if work_of(op) != self.workload or any(
            isinstance(one, Scatter | LineFft | RowSolve) for one in (op, self.hero)
        ):
            return False
        if is_in_place(op) and (self.paths_to(op) or not self.captures().keys().isdisjoint(updated_values(op))):
            return False
        paths = self.paths_to(op) | {ROOT: typical(self.workload)}
        return len(paths) == 1 and self._fits(op, paths, self._outputs + len(op.results))

    def _fits(self, op: Operation, paths: dict[Path, int], outputs: int) -> bool:
        if not self.updated.isdisjoint((*op.operands, *op.results)):
            return False
        if is_free(op):
            return True
        if self.size >= MAX_SIZE or len(paths) > MAX_PATHS or (isinstance(op, HEROES) and self.hero is not None):
            return False
        if any(isinstance(one, CustomCall | Merge) for one in (op, *self.roots)):
            return False  # a library function computes whole tensors in memory; a merge reads its own often
        only_reshaped = len(self.roots) == 1 and all(isinstance(one, Reshape) for one in self.paths)
        if isinstance(op, LineFft | RowSolve) and not only_reshaped:
            return False  # it writes what it has in shared memory
        captured = self.captures(op)
        if len(captured) + outputs > MAX_BINDINGS or (self.large < inf and self._large_constants(captured) > MAX_LARGE):
            return False
        if isinstance(op, HEROES):
            return list(paths) == [ROOT] and elements(op.results[0]) == self.workload
        if isinstance(self.hero, DotGeneral) and self._is_slow_to_read(op):
            return sum(paths.values()) < MANY_READS[type(op)] * count(op.results[0])
        if isinstance(op, Concatenate) and tensor_of(op.out).rank and any(map(_turns, self.paths)):
            return typical(tensor_of(op.out).shape[-1]) < FEWEST_TURNED
        if isinstance(op, MOVEMENT) or op.name == "stablehlo.convert":
            return True
        reads, size = sum(paths.values()), count(op.results[0])
        if reads <= size or self._widens(op, reads):
            return True
        return not is_expensive(op) and not isinstance(self.hero, DotGeneral | Scatter)

    def _is_slow_to_read(self, op: Operation) -> bool:
        """Whether a dot reads elements faster from memory than through an op: a transposition, if of windows."""
        if isinstance(op, Transpose):
            return _turns(op) and any(isinstance(one, Windows) for one in self.paths)
        return type(op) in MANY_READS

    def _widens(self, op: Operation, reads: int) -> bool:
        """Whether an op widens an operand of the dot of the group, which does it again for each of `reads` reads, or
        for each copy to a panel.
        """
        type = WIDENING.get(op.name)
        if type not in self.widened or not isinstance(self.hero, DotGeneral):
            return False
        few = reads <= MOST_WIDENED * count(op.results[0])
        return type == "bf16" or few or _moved_from(self.hero.rhs) is op


def _turns(op: Operation) -> bool:
    """Whether an op gives elements other neighbours, along another axis."""
    return isinstance(op, Transpose) and op.permutation.ints[-1:] != (tensor_of(op.out).rank - 1,)


def _moved_from(value: Value) -> Operation | None:
    """The op that computes the elements of a value, which others may move."""
    while isinstance(maker := value.defining_op, MOVEMENT) and len(maker.operands) == 1:
        value = maker.operands[0]
    return maker


def work_of(root: Operation) -> Size:
    """Number of elements that a dispatch computes for a root."""
    return elements(changes(root) if is_in_place(root) else root.results[0])


class Grouping:
    """The groups of one block in the order of their creation, and the groups that compute each op.

    `order`: place of each op in the block. Ops must be added from the last to the first. `large`, `widened`: as for
    `Group`.
    """

    def __init__(self, order: Mapping[Operation, int], large: float = inf, widened: Collection[str] = ()) -> None:
        self.order = order
        self.large = large
        self.widened = widened
        self.groups: list[Group] = []
        self._of: dict[Operation, list[Group]] = {}
        #: value -> workload -> groups that read it and are not full
        self._reading: dict[Value, dict[Size, dict[int, Group]]] = {}

    def of(self, op: Operation) -> list[Group]:
        return self._of.get(op, [])

    def readers(self, op: Operation) -> list[Group]:
        """The groups that read the results of an op, each once, in the order of their creation."""
        found = {group.number: group for result in op.results for user in result.users() for group in self.of(user)}
        return [found[number] for number in sorted(found)]

    def start(self, op: Operation) -> Group:
        """Makes a new group with an op as root."""
        group = Group(len(self.groups), op, self.large, self.widened)
        self.groups.append(group)
        self._joined(op, group)
        return group

    def _joined(self, op: Operation, group: Group) -> None:
        self._of.setdefault(op, []).append(group)
        for value in op.operands:
            self._reading.setdefault(value, {}).setdefault(group.workload, {})[group.number] = group

    def siblings(self, op: Operation) -> list[Group]:
        """The groups that read an operand of `op` and may accept it as a root, in the order of their creation. Of each
        operand only the last `MAX_SIBLING_GROUPS` readers.
        """
        if is_free(op):
            users = [user for value in op.operands for user in value.users()]
            found = {group.number: group for user in users for group in self.of(user)}
            return [found[number] for number in sorted(found)[-MAX_SIBLING_GROUPS:]]
        work = work_of(op)
        found = {}
        for value in op.operands:
            found |= self._open(self._reading.get(value, {}).get(work, {}))
        return [found[number] for number in sorted(found)]

    def _open(self, groups: dict[int, Group]) -> dict[int, Group]:
        """The last `MAX_SIBLING_GROUPS` groups that are not full. Forgets full ones that it meets."""
        found: dict[int, Group] = {}
        full = []
        for number, group in reversed(groups.items()):
            if group.is_full():
                full.append(number)
                continue
            found[number] = group
            if len(found) == MAX_SIBLING_GROUPS:
                break
        for number in full:
            del groups[number]
        return found

    def join(self, op: Operation, groups: Iterable[Group]) -> None:
        groups = list(groups)
        for group in groups:
            group.add(op, len(groups) > 1)
            self._joined(op, group)

    def join_as_root(self, op: Operation, group: Group) -> None:
        """Adds an op to a group as a further root."""
        group.add_root(op)
        self._joined(op, group)

    def merge(self, cluster: Sequence[Group]) -> None:
        """Replaces the groups by one, in the place of the first. Values that only they read are no roots any more."""
        first = cluster[0]
        rooted = dict.fromkeys(op for group in cluster for op in group.roots)
        kept = [op for op in rooted if any(self.escapes(result, *cluster) for result in op.results)]
        first.paths = {op: paths for group in cluster for op, paths in group.paths.items()}
        first.roots = dict.fromkeys(sorted(kept, key=self.order.__getitem__, reverse=True))
        first.size = sum(group.size for group in cluster)
        first.workload = reduce(dim_max, (work_of(op) for op in kept))
        for op in first.paths:
            self._of[op] = list(dict.fromkeys(first if group in cluster else group for group in self._of[op]))
        self.groups = [group for group in self.groups if group is first or group not in cluster]
        for number, group in enumerate(self.groups):
            group.number = number

    def consumers(self, group: Group) -> Iterator[Group]:
        """The groups that read the roots of a group."""
        for root in group.roots:
            for reader in self.readers(root):
                if reader is not group:
                    yield reader

    def escapes(self, value: Value, *groups: Group) -> bool:
        """Whether a group other than these, another block or a sink reads a value that one of them computes."""
        for user in value.users():
            of = self.of(user)
            if is_sink(user) or not of or any(group not in groups for group in of):
                return True
        return False

    def reaches(self, first: Iterable[Group], last: Collection[Group]) -> bool:
        """Whether one of `last` is in `first` or depends, directly or not, on one of `first`."""
        seen: set[int] = set()
        stack = list(first)
        while stack:
            group = stack.pop()
            if group in last:
                return True
            if group.number not in seen:
                seen.add(group.number)
                stack.extend(self.consumers(group))
        return False

    def place(self, group: Group) -> int:
        """Place of the first root of a group. Roots are ordered from the last to the first; readers come later."""
        return self.order[next(reversed(group.roots))]
