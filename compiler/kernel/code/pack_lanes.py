"""Ops on each lane of a vector become one op on the vector: superword-level parallelism (Larsen and Amarasinghe, PLDI
2000) in kernels that contain vectors.

A dot computes neighbouring columns in the lanes of a vector. The ops that are fused behind it are emitted element by
element. The values that are stored to as many neighbours as there are lanes are a *group*. A group of equal ops on
floats becomes one op on the groups of their operands, and a group of loads from neighbours becomes one load. Any other
group becomes a vector of its scalars. The scalars of a packed group are left without users.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from orchestrion.compiler.ir.core import Operation, Trait, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.schema.dtypes import BOOL, FLOAT

from .affine import sum_of
from .builder import Function, KernelBuilder, body_of
from .vectors import neighbours

Group = tuple[Value, ...]


def pack_lanes(b: KernelBuilder, lanes: int) -> None:
    """Packs, in the entry of a builder, what is stored to `lanes` neighbours of a binding."""
    ops = list(b.entry.walk())
    packing = _Packing(b, {op: number for number, op in enumerate(ops)})
    for stores in _neighbouring_stores(ops, b, lanes):
        packing.pack(stores)


def _neighbouring_stores(ops: Sequence[Operation], b: KernelBuilder, lanes: int) -> Iterator[list[k.Store]]:
    """Runs of stores to `lanes` consecutive elements of a binding."""
    found: dict[Hashable, dict[int, k.Store]] = {}
    for op in ops:
        if isinstance(op, k.Store):
            where = sum_of(op.index)
            found.setdefault((op.binding, frozenset(where.terms.items())), {})[where.constant] = op
    for stores in found.values():
        run: list[k.Store] = []
        for constant in sorted(stores):
            run = [*run, stores[constant]] if constant - 1 in stores else [stores[constant]]
            if len(run) == lanes:
                yield run
                run = []


@dataclass(slots=True)
class _Packing:
    """`place`: the position of each op of the scalar code."""

    b: KernelBuilder
    place: dict[Operation, int]
    vectors: dict[Group, Value] = field(default_factory=dict)
    _effects: list[int] = field(init=False)

    def __post_init__(self) -> None:
        movable = (Trait.PURE, Trait.REMOVABLE, Trait.TERMINATOR)
        self._effects = [at for op, at in self.place.items() if not any(map(op.has, movable)) and not op.regions]

    def pack(self, stores: Sequence[k.Store]) -> None:
        """Packs the values of some stores, if more groups become ops on vectors than are made of scalars."""
        root = tuple([store.value for store in stores])
        order = self._groups(root)
        packed = sum(self._operands(group) is not None for group in order)
        if packed <= sum(map(self._is_made, order)) or any(value.defining_op is None for one in order for value in one):
            return
        if self._operands(root) is None or max(map(self._at, root)) > min(self.place[store] for store in stores):
            return
        for group in order:
            if group not in self.vectors:
                self.vectors[group] = self._vector(group)
        vector = self.vectors[root]
        lanes = k.Lanes([vector], [root[0].type] * len(root))
        _insert(lanes, vector.defining_op)
        for store, value in zip(stores, lanes.results, strict=True):
            store.set_operand(0, value)

    def _groups(self, root: Group) -> list[Group]:
        """The groups that a group consists of, operands first."""
        order: dict[Group, None] = {}
        stack = [(root, False)]
        while stack:
            group, is_ready = stack.pop()
            if is_ready:
                order[group] = None
            elif group not in order:
                stack.append((group, True))
                stack += [(one, False) for one in self._operands(group) or ()]
        return list(order)

    def _operands(self, group: Group) -> list[Group] | None:
        """The operands of a group of equal ops that have a form on vectors; None for any other group."""
        ops = [value.defining_op for value in group]
        first = ops[0]
        if not isinstance(first, k.Scalar | k.Call) or len(set(group)) == 1:
            return None
        if any(op is None or op.name != first.name or op.parent is not first.parent for op in ops):
            return None
        if not takes_vectors(first) or len({Function.of(op) for op in ops if isinstance(op, k.Call)}) > 1:
            return None
        groups = list(zip(*(op.operands for op in ops if op is not None), strict=True))
        return groups if isinstance(first, k.Scalar) else [one for one in groups if not _is_constant(one[0])]

    def _is_made(self, group: Group) -> bool:
        """Whether a group is neither a vector already, nor one op, nor the same value in all lanes."""
        source = group[0].defining_op
        is_vector = isinstance(source, k.Lanes) and tuple(source.outputs) == group
        return not is_vector and len(set(group)) > 1 and self._operands(group) is None and self._load(group) is None

    def _load(self, group: Group) -> k.Load | None:
        """The first of loads of neighbours between which nothing is written; None for any other group."""
        first = neighbours(group, self.b)
        if first is None:
            return None
        places = list(map(self._at, group))
        return None if any(min(places) < at < max(places) for at in self._effects) else first

    def _vector(self, group: Group) -> Value:
        source = group[0].defining_op
        assert source is not None
        if isinstance(source, k.Lanes) and tuple(source.outputs) == group:
            return source.vector
        vector = k.vector_type(len(group), k.dtype_of(group[0]).name)
        operands, load = self._operands(group), self._load(group)
        made: Operation
        if operands is not None:
            vectors = iter(self.vectors[one] for one in operands)
            is_call = isinstance(source, k.Call)
            given = [value if is_call and _is_constant(value) else next(vectors) for value in source.operands]
            made = type(source)(given, [vector], properties=source.properties)
        elif load is not None:
            made = k.LoadLanes([load.binding, load.index], [vector])
        else:
            made = k.Vector(group, [vector])
        _insert(made, max(group, key=self._at).defining_op)
        return made.results[0]

    def _at(self, value: Value) -> int:
        """The position of the op that computes a value."""
        assert value.defining_op is not None
        return self.place[value.defining_op]


def _insert(op: Operation, after: Operation | None) -> None:
    assert after is not None and after.parent is not None
    op.loc = after.loc
    after.parent.insert_before(op, after.next_op)


def _is_constant(value: Value) -> bool:
    return isinstance(value.defining_op, k.Constant)


def takes_vectors(op: k.Scalar | k.Call) -> bool:
    """Whether an op computes floats from floats of the same type; a function, also only with values of 32 bits and
    without branches, so that conditions have as many bits as what they select.
    """
    types = {k.dtype_of(value) for value in (*op.operands, op.output)}
    if len(types) > 1 or k.dtype_of(op.output).kind != FLOAT:
        return False
    if isinstance(op, k.Scalar):
        return True
    body = body_of(Function.of(op))
    simple = all(isinstance(one, k.Scalar | k.Constant | k.Yield) for one in body.block)
    return simple and all(dtype.bits == 32 or dtype.kind == BOOL for dtype in (*types, *body.dtypes))
