"""The kernel of kind `rows`: a workgroup takes a row through all reductions of an entry and writes its results.

The invocations of a workgroup share the elements of the row. Each reduces its own elements, the partial results are
combined through shared memory, and every invocation then has the result and continues with the ops that depend on it.
Expensive values that several passes over the row need are computed in the first pass and stored in shared memory. A
single invocation takes a short row.

A reduction keeps the order of its elements unless the reducer is known to be commutative. Then neighbouring invocations
take neighbouring elements, which is the fastest way to read memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from orchestrion.compiler.flow.structure import row_axes
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import Size, ceildiv, typical
from orchestrion.compiler.kernel.body import Rows
from orchestrion.compiler.kernel.elements.elemental import ElementalCode
from orchestrion.compiler.kernel.elements.extrema import from_bits, is_extremum, of_bits
from orchestrion.compiler.kernel.elements.index import Index, delinearize
from orchestrion.compiler.kernel.elements.loops import Reduction, Scalars, sequential
from orchestrion.compiler.kernel.elements.parts import lane_ranges, parts_of
from orchestrion.compiler.kernel.elements.reductions import REDUCTIONS
from orchestrion.compiler.kernel.elements.rules import element_of, shape_of
from orchestrion.compiler.kernel.reduction_limits import longest
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.reducers import is_commutative

from .values import array_length, pass_values, row_scalars, shared_values

#: a result and the function that writes its elements
Result = tuple[Value, Callable[[Sequence[Index], Sequence[Value]], None]]


@dataclass(slots=True)
class Row(ElementalCode):
    """The code for one row in the making. `number`: the row; `lanes`: invocations that share it; `most`: greatest
    length of a row of dynamic length, if the kernel has one.
    """

    rows: Rows
    number: Value
    lanes: int
    most: int | None = None
    #: expensive values that several passes need
    costly: Sequence[Value] = ()
    #: those that a pass has stored -> their shared arrays
    kept: dict[Value, Value] = field(default_factory=dict)
    #: position in a tensor -> position in the row, of elements that were asked for
    positions: dict[Value, Value] = field(default_factory=dict)

    @property
    def local(self) -> Value:
        """The number of this invocation in its workgroup."""
        return self.builder.local_id()

    def emit(self, outputs: Sequence[Result], writes: Value) -> None:
        """All reductions in order, then the results. `writes`: whether this invocation writes results."""
        self._plan()
        bound = row_scalars(self.rows)
        for op in self.rows.ops:
            if isinstance(op, Reduce):
                self._reduce(op)
            elif op in bound:
                self._bind(op.results[0], self.elemental.element(op.results[0], self._at(op.results[0])))
        lengths = set(map(self.rows.length_of, self.rows.results))
        shares = [
            ([output for output in outputs if self.rows.length_of(output[0]) == length], length)
            for length in sorted(lengths, key=lambda size: (typical(size), str(size)))
        ]
        with self.builder.when(writes):
            for share in shares:
                self._write(*share)
        for share in shares:
            self._write_rest(*share, writes)

    def _plan(self) -> None:
        """Chooses the values to store in shared memory."""
        self.costly = shared_values(self.rows, self.most)

    def _bind(self, value: Value, scalar: Value) -> None:
        """`value` has one element per row, `scalar`."""
        self.elemental.bound[value] = lambda at: scalar

    def _remember(self, value: Value, place: Index, scalar: Value) -> None:
        """`scalar` is the element of `value` at a place, whether it is asked for by position or by coordinates."""
        self.builder.memo.set((value, place.linear), scalar)
        self.builder.memo.set((value, place.coordinates), scalar)

    def _at(self, value: Value, position: Value | None = None) -> Index:
        """The index in `value` of the element at a position in the row."""
        b, shape = self.builder, shape_of(value)
        length, first = prod(shape) // self.rows.count, row_axes(shape, self.rows.count)
        position = b.index(0) if position is None else position
        linear = b.place(self.number, length, position)
        self.positions[linear] = position
        if first is None:
            return Index(b, shape, None, linear)
        coordinates = delinearize(b, self.number, shape[:first]) + delinearize(b, position, shape[first:])
        return Index(b, shape, coordinates, linear)

    # reductions

    def _reduce(self, op: Reduce) -> None:
        b = self.builder
        b.loc = op.loc
        reduction = REDUCTIONS[op.name](b, op, self._at(op.results[0]))
        if b.machine.lanes and self.lanes > 1 and is_extremum(op):
            values = [from_bits(b, op, self._reduced(op, of_bits(b, reduction)))]
        else:
            values = self._reduced(op, reduction)
        for result, value in zip(op.results, values, strict=True):
            self._bind(result, value)

    def _reduced(self, op: Reduce, reduction: Reduction) -> list[Value]:
        """The results of a reduction for the row, in every invocation."""
        b, count = self.builder, reduction.count
        if self.lanes == 1:
            return self.elemental.run(sequential(b, reduction))
        fills = self._fills(op)
        filling = replace(reduction, sizes=(count,), element=lambda at: self._element(reduction, fills, at[0]))
        most = ceildiv(longest(count, b.machine), self.lanes)
        in_order = not is_commutative(op.body.block)
        parts = parts_of(self.elemental, filling if fills else reduction, self.lanes, in_order, most)
        for value in fills:
            self._keep(value)
        return self.elemental.run(parts.total())

    def _element(self, reduction: Reduction, fills: Sequence[Value], position: Value) -> Scalars:
        """An element of the reduction. Stores the elements of `fills` first."""
        for value in fills:
            place = self._at(value, position)
            scalar = yield value, place
            self.builder.store_shared(scalar, self.kept[value], self._place(self.kept[value], position))
            self._remember(value, place, scalar)
        return (yield from reduction.at(self.builder, position))

    def _fills(self, op: Reduce) -> list[Value]:
        """The values that this reduction computes first and stores. Allocates their arrays."""
        needed = pass_values(list(op.inputs), self.rows)
        fills = [value for value in self.costly if value in needed and value not in self.kept]
        for value in fills:
            self.kept[value] = self.builder.shared(array_length(value, self.rows, self.most), element_of(value))
        return fills

    def _keep(self, value: Value) -> None:
        """From now on the elements of a value are read from its array."""
        b, array, size = self.builder, self.kept[value], self.rows.length_of(value)
        base = b.op("multiply", self.number, b.index(size))

        def load(at: Index) -> Value:
            position = self.positions.get(at.linear)
            return b.load_shared(array, self._place(array, position or b.op("subtract", at.linear, base)))

        self.elemental.bound[value] = load

    def _place(self, array: Value, position: Value) -> Value:
        """The place in an array of the element at a position in the row."""
        return self.builder.inside(array, self.builder.word(position))

    # results

    def _write(self, outputs: Sequence[Result], length: Size) -> None:
        """The row's share of results that have `length` elements per row."""
        b = self.builder
        first = 0 if self.lanes == 1 else self.local
        with b.indices(self._whole(length), first, self.lanes) as position:
            self._write_at(outputs, position)

    def _write_rest(self, outputs: Sequence[Result], length: Size, writes: Value) -> None:
        """The elements of results that `_write` leaves."""
        b, whole = self.builder, self._whole(length)
        if whole == length:
            return
        with b.when(b.op("and", writes, b.op("compare_lt", self.local, b.word(length - whole)))):
            self._write_at(outputs, b.op("add", b.index(self.local), b.index(whole)))

    def _whole(self, length: Size) -> Size:
        """Number of elements of a row that loops take: the same for all invocations if those are lanes of vectors."""
        if self.lanes == 1 or not self.builder.machine.lanes:
            return length
        return lane_ranges(length, self.lanes)[0]

    def _write_at(self, outputs: Sequence[Result], position: Value) -> None:
        places = [self._at(value, position) for value, _ in outputs]
        values = [self.elemental.element(value, at) for (value, _), at in zip(outputs, places, strict=True)]
        for (_, store), at, value in zip(outputs, places, values, strict=True):
            store([at], [value])
