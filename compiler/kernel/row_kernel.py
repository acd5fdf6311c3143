"""`rows`: one workgroup takes a row through all reductions of an entry and writes the row's share of every result.

The invocations of a workgroup share the elements of the row, each folds its own, the parts are folded through shared
memory, and every invocation then has the result; so it goes on with what depends on it. What several turns over the
row need and is expensive is computed in the first of them and kept in shared memory. A short row is one invocation's.

The elements of a fold keep their order unless the reducer is known to be commutative: then neighbours go to
neighbouring invocations, which is how memory is read best.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.flow.fusion_reads import elements
from orchestrion.compiler.flow.structure import row_axes
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim, ceildiv, dim_max, dim_min, typical
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.reducers import is_commutative

from . import dialect as k
from .builder import KernelBuilder
from .elemental import Elemental
from .index import Index, delinearize
from .loops import Fold, Scalars, sequential, symbolic
from .reduction_limits import longest, max_loop_turns
from .reductions import FOLDS
from .row_values import array_length, kept_values, of_a_row, reached
from .rules import element_of, shape_of

#: parts that every invocation folds by itself; more are folded in groups of `RADIX` first
FEW_PARTS, RADIX = 16, 8

#: a result and what writes its element at an index
Result = tuple[Value, Callable[[Sequence[Index], Sequence[Value]], None]]


@dataclass(slots=True)
class Row:
    """A row under way: its number, who computes it, and what its turns have left for later ones."""

    elemental: Elemental
    ops: Sequence[Operation]
    rows: int
    number: Value
    lanes: int
    #: expensive values that several turns need, and the shared arrays of those that are there
    kept: dict[Value, Value | None] = field(default_factory=dict)

    @property
    def builder(self) -> KernelBuilder:
        return self.elemental.builder

    @property
    def local(self) -> Value:
        return self.builder.local_id()

    def emit(self, outputs: Sequence[Result], writes: Value) -> None:
        """All reductions, in order, then the results, where `writes` is true."""
        self._plan([value for value, _ in outputs])
        bound = of_a_row(self.ops, self.rows)
        for op in self.ops:
            if isinstance(op, Reduce):
                self._reduce(op)
            elif op in bound:
                self._bind(op.results[0], self.elemental.element(op.results[0], self._at(op.results[0])))
        b = self.builder
        branch = b.begin_if(writes)
        lengths = {elements(value) // self.rows for value, _ in outputs}
        for length in sorted(lengths, key=lambda size: (typical(size), str(size))):
            self._write([output for output in outputs if elements(output[0]) // self.rows == length], length)
        b.end_if(branch)

    def _plan(self, results: Sequence[Value]) -> None:
        """Chooses what is kept."""
        self.kept = dict.fromkeys(kept_values(self.ops, self.rows, results))

    def _bind(self, value: Value, scalar: Value) -> None:
        """The value has one element in the row, this one."""
        self.elemental.bound[value] = lambda at: scalar

    def _remember(self, value: Value, place: Index, scalar: Value) -> None:
        """The value has this element at that place, in whichever way it is asked for."""
        self.builder.memo.set((value, place.linear), scalar)
        self.builder.memo.set((value, place.coordinates), scalar)

    def _at(self, value: Value, position: Value | None = None) -> Index:
        """The place of an element of the row, by its position in the row, in a value."""
        b, shape = self.builder, shape_of(value)
        length, first = prod(shape) // self.rows, row_axes(shape, self.rows)
        position = b.index(0) if position is None else position
        linear = b.op("add", b.op("multiply", self.number, b.index(length)), position)
        if first is None:
            return Index(b, shape, None, linear)
        coordinates = delinearize(b, self.number, shape[:first]) + delinearize(b, position, shape[first:])
        return Index(b, shape, coordinates, linear)

    # reductions

    def _reduce(self, op: Reduce) -> None:
        b = self.builder
        b.loc = op.loc
        values = self._folded(op, FOLDS[op.name](b, op, self._at(op.results[0])))
        for result, value in zip(op.results, values, strict=True):
            self._bind(result, value)

    def _folded(self, op: Reduce, fold: Fold) -> list[Value]:
        """What a reduction gives for the row, in every invocation."""
        if self.lanes == 1:
            return self.elemental.run(sequential(self.builder, fold))
        parts, count = self._parts(op, fold)
        return self.elemental.run(self._all(fold, parts, count))

    def _parts(self, op: Reduce, fold: Fold) -> tuple[list[Value], int]:
        """Every invocation folds its elements; gives shared arrays of what came out, and how many parts there are."""
        b, lanes = self.builder, self.lanes
        each = dim_max(ceildiv(fold.count, lanes), 1)
        limit = max_loop_turns(b.machine)
        if longest(fold.count, b.machine) > limit * lanes:
            message = f"one invocation would fold {each} elements of a row, {limit} are the most"
            raise CompileError([Diagnostic(message, op.loc, op.name)])
        shared = [b.shared(lanes, element_of(result)) for result in op.results]
        first = b.op("convert", self.local, to=b.index_type)
        if is_commutative(op.body.block):
            parts, lower, upper, step = self._filled(fold), first, b.index(fold.count), lanes
        else:
            parts, step = ceildiv(fold.count, each), 1
            lower = b.op("multiply", first, b.index(each))
            upper = b.op("minimum", b.op("add", lower, b.index(each)), b.index(fold.count))
        fills = self._fills(op)
        branch = b.begin_if(b.op("compare_lt", self.local, b.word(parts)))
        if isinstance(fold.count, Dim):
            values = self.elemental.run(self._blocks(fold, lower, upper, step))
        else:
            values = self.elemental.run(self._share(fold, fills, lower, upper, step))
        store_parts(b, values, shared, self.local)
        b.end_if(branch)
        for value in fills:
            self._keep(value)
        b.barrier()
        return shared, parts

    def _filled(self, fold: Fold) -> int:
        """How many invocations have elements where neighbours go to neighbours, or what changes nothing."""
        return self.lanes if fold.neutral is not None else dim_min(fold.count, self.lanes)

    def _blocks(self, fold: Fold, lower: Value, upper: Value, step: int) -> Scalars:
        """The elements of an invocation where a call brings how many there are."""
        b = self.builder

        def element(place: Sequence[Value]) -> Scalars:
            return fold.at(b, b.op("add", lower, b.op("multiply", place[0], b.index(step))))

        own = replace(fold, sizes=(fold.count,), element=element)
        most = ceildiv(longest(fold.count, b.machine), self.lanes)
        count = b.op("unchecked_divide", b.op("subtract", b.op("add", upper, b.index(step - 1)), lower), b.index(step))
        return symbolic(b, own, most).block(b.index(0), count, most)

    def _share(self, fold: Fold, fills: Sequence[Value], lower: Value, upper: Value, step: int) -> Scalars:
        b, start = self.builder, fold.neutral
        if start is None:
            start = yield from self._element(fold, fills, lower)
            lower = b.op("add", lower, b.index(step))
        loop = b.begin_loop(lower, upper, b.index(step), start)
        element = yield from self._element(fold, fills, loop.index)
        return b.end_loop(loop, (yield from fold.combine(loop.carried, element)))

    def _element(self, fold: Fold, fills: Sequence[Value], position: Value) -> Scalars:
        """An element of the fold, after those of what is to be kept."""
        for value in fills:
            place = self._at(value, position)
            scalar = yield value, place
            array = self.kept[value]
            assert array is not None
            self.builder.store_shared(scalar, array, self._place(array_length(value, self.rows), position))
            self._remember(value, place, scalar)
        return (yield from fold.at(self.builder, position))

    def _fills(self, op: Reduce) -> list[Value]:
        """What is kept and first computed by this fold, with arrays to lie in."""
        fills = [value for value in reached(list(op.inputs), self.rows) if self.kept.get(value, value) is None]
        for value in fills:
            self.kept[value] = self.builder.shared(array_length(value, self.rows), element_of(value))
        return [value for value in self.kept if value in fills]

    def _keep(self, value: Value) -> None:
        """From now on the elements of a value are in its array."""
        b, array, size = self.builder, self.kept[value], elements(value) // self.rows
        assert array is not None
        base = b.op("multiply", self.number, b.index(size))

        def load(at: Index) -> Value:
            position = b.op("subtract", at.linear, base)
            return b.load_shared(array, self._place(array_length(value, self.rows), position))

        self.elemental.bound[value] = load

    def _place(self, length: int, position: Value) -> Value:
        """A position in an array of a power of two; the mask proves that it is in there."""
        b = self.builder
        return b.op("and", b.op("convert", position, to="ui32"), b.const(length - 1, "ui32"))

    def _all(self, fold: Fold, parts: Sequence[Value], count: int) -> Scalars:
        """The fold of all parts and the initial value, in every invocation."""
        b, most = self.builder, self.lanes if isinstance(count, Dim) else count
        while most > FEW_PARTS:
            parts, count = self._fewer(fold, parts, count)
            most = ceildiv(most, RADIX)
        values = yield from fold.start()
        for at in range(most):
            place = b.const(at, "ui32")
            if isinstance(count, Dim):
                values = self._and_part(fold, parts, values, place, count)
            else:
                values = yield from fold.combine(values, _loaded(b, parts, place))
        return values

    def _fewer(self, fold: Fold, parts: Sequence[Value], count: int) -> tuple[list[Value], int]:
        """Folds each `RADIX` neighbours into one."""
        b, fewer = self.builder, ceildiv(count, RADIX)
        size = FEW_PARTS
        shared = [b.shared(size, k.dtype_of_shared(array)) for array in parts]
        branch = b.begin_if(b.op("compare_lt", self.local, b.word(fewer)))
        first = b.op("multiply", self.local, b.const(RADIX, "ui32"))
        values = _loaded(b, parts, self._masked(first))
        for at in range(1, RADIX):
            place = b.op("add", first, b.const(at, "ui32"))
            values = self._and_part(fold, parts, values, place, count)
        store_parts(b, values, shared, b.op("and", self.local, b.const(size - 1, "ui32")))
        b.end_if(branch)
        b.barrier()
        return shared, fewer

    def _and_part(
        self, fold: Fold, parts: Sequence[Value], values: list[Value], place: Value, count: int
    ) -> list[Value]:
        """The values folded with a part, if there is one at that place."""
        b = self.builder

        def folded() -> list[Value]:
            return self.elemental.run(fold.combine(values, _loaded(b, parts, self._masked(place))))

        if count % RADIX == 0:
            return folded()
        return b.branch(b.op("compare_lt", place, b.word(count)), folded, lambda: values)

    def _masked(self, place: Value) -> Value:
        return self.builder.op("and", place, self.builder.const(self.lanes - 1, "ui32"))

    # results

    def _write(self, outputs: Sequence[Result], length: int) -> None:
        """The row's share of results that have `length` elements a row."""
        b = self.builder
        if self.lanes == 1:
            loop = b.begin_loop(b.index(0), b.index(length), b.index(1), ())
        else:
            first = b.op("convert", self.local, to=b.index_type)
            loop = b.begin_loop(first, b.index(length), b.index(self.lanes), ())
        places = [self._at(value, loop.index) for value, _ in outputs]
        values = [self.elemental.element(value, at) for (value, _), at in zip(outputs, places, strict=True)]
        for (_, store), at, value in zip(outputs, places, values, strict=True):
            store([at], [value])
        b.end_loop(loop, ())


def _loaded(b: KernelBuilder, shared: Sequence[Value], place: Value) -> list[Value]:
    return [b.load_shared(array, place) for array in shared]


def store_parts(b: KernelBuilder, values: Sequence[Value], shared: Sequence[Value], place: Value) -> None:
    for value, array in zip(values, shared, strict=True):
        b.store_shared(value, array, place)
