"""How the invocations of a dispatch share the work of an entry: a row per schedule.

`thread`: one invocation computes one element of every result, whatever folds it needs in loops of its own.
`workgroup_of_16`, `workgroup_of_128`: a workgroup of so many computes one element: each invocation folds a contiguous
part, a tree in shared memory folds the parts, neighbours with neighbours, so that the order of the elements is kept;
one invocation does the rest.
`tiled`: one invocation computes a block of a dot's results (`tiled.py`).
`blocked`: a workgroup computes a block of a dot's results, staged in shared memory (`blocked.py`).
`packed`: as `tiled`, of operands that lie in such blocks (`packed.py`).
`rows_of_8` to `rows_of_128`: a workgroup of so many takes a row through all reductions of an entry (`rows.py`);
`rows_of_1`: an invocation does, for short rows, on some machines for many.
`pack`: one invocation makes a row of a tile of a result that lies in tiles.
`merge`: one invocation makes neighbours of two merged runs (`merge.py`).
`fft_of_16` to `fft_of_128`: a workgroup of so many transforms a line, or some short ones (`fft.py`).
`solve_rows`: a workgroup substitutes rows in a triangle that it shares (`row_solve.py`).
`scatter`: one invocation makes an update, or all those of the rows that it owns (`scatter.py`).

The kernel counts from the linear workgroup index and does nothing where that is beyond the work.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod

from orchestrion.compiler.flow.fft import LineFft
from orchestrion.compiler.flow.layout import layout_of
from orchestrion.compiler.flow.merge import Merge
from orchestrion.compiler.flow.row_solve import BLOCK, RowSolve
from orchestrion.compiler.flow.scatter import Scatter
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim, bounds, ceildiv, dim_max, is_less, typical
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.indexing import DynamicUpdateSlice

from . import blocked, fft, merge, row_solve, scatter
from .builder import KernelBuilder
from .elemental import Elemental
from .encodings import store, stored_shape
from .fold import FOLDS
from .fold_limits import FEW_FOLDS, SHARED, longest, max_elements, sharing
from .held_rows import HeldRow
from .index import Index, delinearize
from .indexing import moved, starts_of
from .loops import Fold, Loops, Scalars, elements_per_turn, symbolic
from .machine import Machine
from .packed import emit_packed_tile, write_results
from .row_values import HOLDERS, Span, held_lanes, length_of
from .rows import Row, lanes_of
from .rules import element_of, shape_of
from .tiled import FEW_ROWS, Extents, Tile, Write, emit_tile, write_all, write_fresh

#: a fold of more elements than this is worth a workgroup, when there are fewer of them than that
LONG_FOLD = 256
#: invocations that share a fold of a length that is known
SHARING = 128
#: elements of an encoded result that one invocation makes, at most
LONGEST_RUN = 32
#: up to this length a tile that shares its loads well beats a workgroup for each of few results
LONG_TILED_FOLD = 1024


@dataclass(frozen=True, slots=True)
class Output:
    """A value of the body and the binding it is written to: in full, or as the window of an update in place."""

    value: Value
    binding: Value
    window: DynamicUpdateSlice | None = None

    def store(self, elemental: Elemental, at: Index, value: Value) -> None:
        """Writes the value's element at an index."""
        self.store_all(elemental, [at], [value])

    def store_all(self, elemental: Elemental, places: Sequence[Index], values: Sequence[Value]) -> None:
        """Writes the value's elements at some indices, neighbours at once."""
        b = elemental.builder
        if self.window is not None:
            starts = elemental.run(starts_of(b, self.window))
            places = [at.at(shape_of(self.window.out), moved(b, starts, at)) for at in places]
        store(b, values, self.binding, [at.linear for at in places])


@dataclass(frozen=True, slots=True)
class Work:
    """What a body computes: its outputs, the op that folds, and the block of results that an invocation may take, which
    may be a tile of the operands' layouts; `block`: what it may take of a workgroup's block. `ops` and `rows`: of a
    body that takes rows through several reductions. `few`: whether this is for calls that bring few of what `few_of`
    names, or for the others; None for all calls. `wide`: this is for calls that bring as many columns of a dot as its
    tile has (`narrow_of`). `span`: how long rows are, where a call brings that and they are to be held.
    """

    outputs: Sequence[Output]
    hero: Operation | None
    tile: Tile | None = None
    packed: bool = False
    block: Tile | None = None
    ops: Sequence[Operation] = ()
    rows: int | None = None
    few: bool | None = None
    wide: bool = False
    span: Span | None = None

    @property
    def most(self) -> int:
        """The number of elements of the largest output."""
        return reduce(dim_max, (count_of(output.value) for output in self.outputs), 0)


@dataclass(frozen=True, slots=True)
class Schedule:
    """`emit(elemental, work)` writes the body; `invocations(work)` says how many the dispatch needs."""

    name: str
    workgroup_size: int
    invocations: Callable[[Work], int]
    emit: Callable[[Elemental, Work], None]


def count_of(value: Value) -> int:
    """Elements in memory."""
    return prod(stored_shape(value))


def fold_length(hero: Operation) -> int:
    """How many elements one result of a hero folds."""
    axes = hero.dimensions.ints if isinstance(hero, Reduce) else ()
    if isinstance(hero, DotGeneral):
        axes = hero.dimensions.lhs_contract
    return prod(shape_of(hero.operands[0])[axis] for axis in axes)


def hero_of(ops: Sequence[Operation]) -> Operation | None:
    """The op of a body that has schedules of its own; the flow phase puts at most one into a dispatch."""
    return next((op for op in ops if op.name in FOLDS or isinstance(op, Scatter | Merge | LineFft | RowSolve)), None)


def may_tile(work: Work, machine: Machine) -> bool:
    """Whether a tile is worth looking for: not where long folds take a workgroup each anyway."""
    hero = work.hero
    if not isinstance(hero, DotGeneral) or not _one_size(work):
        return False
    length = fold_length(hero)
    if longest(length, machine) > max_elements(machine):
        return False
    many = typical(count_of(hero.out)) >= FEW_FOLDS
    return _tiles_long(length, machine) or typical(length) <= LONG_TILED_FOLD or many


def _tiles_long(length: int, machine: Machine) -> bool:
    """Whether few folds of that length are tiled, too. Where a call brings the length, it may be what a workgroup can
    fold (`limit-reductions`).
    """
    return machine.long_tiles and not isinstance(length, Dim)


def choose(work: Work, machine: Machine) -> Schedule:
    """The schedule of a body."""
    hero, tile = work.hero, work.tile
    if isinstance(hero, Scatter):
        return SCHEDULES["scatter"]
    if isinstance(hero, Merge):
        return SCHEDULES["merge"]
    if isinstance(hero, LineFft):
        return SCHEDULES[f"fft_of_{fft.shares(hero).lanes}"]
    if isinstance(hero, RowSolve):
        return SCHEDULES["solve_rows"]
    if work.rows is not None:
        results = [output.value for output in work.outputs]
        return SCHEDULES[f"rows_of_{lanes_of(work.ops, work.rows, results, machine, work.span)}"]
    if _run_length(work):
        return SCHEDULES["pack"]
    if work.packed:
        return SCHEDULES["packed"]
    if hero is None or not _one_size(work):
        return SCHEDULES["thread"]
    length, folds = fold_length(hero), count_of(hero.results[0])
    long_and_few = not work.few and is_long_and_few(length, folds)
    if work.block is not None and not long_and_few:
        return SCHEDULES["blocked"]
    if tile is not None and (tile.shares or not long_and_few or _tiles_long(length, machine)):
        return SCHEDULES["tiled"]
    if work.few or not long_and_few and longest(length, machine) <= max_elements(machine):
        return SCHEDULES["thread"]
    return SCHEDULES[f"workgroup_of_{sharing(folds) if isinstance(length, Dim) else SHARING}"]


def is_long_and_few(length: int, folds: int) -> bool:
    """Whether folds are worth a workgroup each. Where a call brings the length they are, if few; where it brings how
    many there are, they are many.
    """
    if isinstance(folds, Dim):
        return False
    return bounds(length)[1] > LONG_FOLD and folds < FEW_FOLDS


def few_of(work: Work, schedule: Schedule) -> tuple[int, int] | None:
    """A size that a call brings, and a number: where it is no more, code of another shape is faster, such as it would
    have if the size were known. The rows of a dot, where there are fewer than a tile has; the elements of a fold, where
    they are not worth a workgroup.
    """
    if work.hero is None:
        return None
    size, most = 0, 0
    if schedule.name == "tiled" and work.tile is not None and work.tile.rows > FEW_ROWS:
        assert isinstance(work.hero, DotGeneral)
        size, most = Extents.of(work.hero).rows, work.tile.rows - 1
    elif schedule.name.startswith("workgroup"):
        size, most = fold_length(work.hero), LONG_FOLD
    return (size, most) if isinstance(size, Dim) and bounds(size)[0] <= most else None


def narrow_of(work: Work, schedule: Schedule) -> tuple[int, int] | None:
    """The columns of a dot, and as many as are no tile, if a call may bring so few. Where there are more, those of the
    last tile are neighbours, too, as vectors want them.
    """
    if schedule.name != "tiled" or work.tile is None:
        return None
    assert isinstance(work.hero, DotGeneral)
    columns, most = Extents.of(work.hero).columns, work.tile.columns - 1
    return (columns, most) if isinstance(columns, Dim) and bounds(columns)[0] <= most else None


def _rows_fit(work: Work, tile: Tile) -> bool:
    """Whether there are as many rows as the tile of a dot has: by what is known of them, or as there are no fewer than
    columns.
    """
    assert isinstance(work.hero, DotGeneral)
    extents = Extents.of(work.hero)
    square = tile.rows <= tile.columns and is_less(extents.columns - 1, extents.rows)
    return work.few is False or (work.wide and square)


def _one_size(work: Work) -> bool:
    assert work.hero is not None
    return all(count_of(output.value) == count_of(work.hero.results[0]) for output in work.outputs)


# thread


def emit_thread(elemental: Elemental, work: Work) -> None:
    """Results of the same number of elements are computed together, all of them before the first is written."""
    b, position = elemental.builder, _position(elemental.builder, "thread")
    counts = {count_of(output.value) for output in work.outputs}
    for count in sorted(counts, key=lambda size: (typical(size), str(size))):
        branch = b.begin_if(b.op("compare_lt", position, b.index(count)))
        _write(elemental, [output for output in work.outputs if count_of(output.value) == count], position)
        b.end_if(branch)


def _position(b: KernelBuilder, name: str) -> Value:
    """The linear index of the invocation in the dispatch, in workgroups of a schedule's size."""
    local = b.op("convert", b.local_id(), to=b.index_type)
    return b.op("add", b.op("multiply", b.workgroup_id(), b.index(SCHEDULES[name].workgroup_size)), local)


def _write(elemental: Elemental, outputs: Sequence[Output], position: Value) -> None:
    b = elemental.builder
    places = [Index(b, stored_shape(output.value), None, position) for output in outputs]
    values = [elemental.element(output.value, at) for output, at in zip(outputs, places, strict=True)]
    for output, at, value in zip(outputs, places, values, strict=True):
        output.store(elemental, at, value)


# pack


def _run_length(work: Work) -> int:
    """How many neighbours in memory an invocation makes of an encoded result; 0 where it should make one element."""
    if work.hero is not None or len(work.outputs) != 1:
        return 0
    layout = layout_of(tensor_of(work.outputs[0].value))
    length = layout.tiles[layout.inner[-1]] if layout is not None and layout.inner else 0
    return length if length <= LONGEST_RUN else 0


def runs(work: Work) -> int:
    return work.most // stored_shape(work.outputs[0].value)[-1]


def emit_pack(elemental: Elemental, work: Work) -> None:
    """An invocation makes what lies in one row of a tile: it divides once for all of it."""
    b, (output,) = elemental.builder, work.outputs
    *outer, length = stored_shape(output.value)
    number = _position(b, "pack")
    branch = b.begin_if(b.op("compare_lt", number, b.index(runs(work))))
    place = delinearize(b, number, tuple(outer))
    first = b.op("multiply", number, b.index(length))
    indices = [Index(b, (*outer, length), (*place, b.index(at))) for at in range(length)]
    values = [elemental.element(output.value, index) for index in indices]
    for at, value in enumerate(values):
        b.store(value, output.binding, b.op("add", first, b.index(at)))
    b.end_if(branch)


# workgroup


def emit_workgroup(elemental: Elemental, work: Work, size: int) -> None:
    """A workgroup beyond the work computes the last element again, so that all invocations meet at the barriers."""
    hero = work.hero
    assert hero is not None
    b = elemental.builder
    count = count_of(hero.results[0])
    group, local = b.workgroup_id(), b.local_id()
    position = b.index(0) if count == 1 else b.op("minimum", group, b.index(count - 1))
    at = Index(b, shape_of(hero.results[0]), None, position)
    fold = FOLDS[hero.name](b, hero, at)
    shared = [b.shared(size, element_of(result)) for result in hero.results]
    parts = _fold_parts(elemental, fold, shared, local, size)
    _fold_tree(elemental, fold, shared, local, size, parts)
    first = b.op("compare_eq", local, b.const(0, "ui32"))
    branch = b.begin_if(b.op("and", first, b.op("compare_lt", group, b.index(count))))
    values = elemental.run(_finish(b, fold, _loaded(b, shared, local)))
    for result, value in zip(hero.results, values, strict=True):
        b.memo.set((result, at.key), value)
    _write(elemental, work.outputs, position)
    b.end_if(branch)


def _workgroup_schedule(size: int) -> Schedule:
    emit = partial(emit_workgroup, size=size)
    return Schedule(f"workgroup_of_{size}", size, lambda work: size * work.most, emit)


def _fold_parts(elemental: Elemental, fold: Fold, shared: Sequence[Value], local: Value, size: int) -> int:
    """Each invocation folds its part into its place of the shared arrays; gives the number of parts."""
    b = elemental.builder
    length = dim_max(ceildiv(fold.count, size), 1)
    parts = ceildiv(fold.count, length)
    lower = b.op("multiply", b.op("convert", local, to=b.index_type), b.index(length))
    upper = b.op("minimum", b.op("add", lower, b.index(length)), b.index(fold.count))
    branch = b.begin_if(b.op("compare_lt", local, b.word(parts)))
    most = longest(length, b.machine)
    static = not isinstance(length, Dim)
    loops = Loops(b, fold, elements_per_turn(length, b.machine)) if static else symbolic(b, fold, most)
    _store(b, elemental.run(loops.block(lower, upper, most)), shared, local)
    b.end_if(branch)
    return parts


def _fold_tree(elemental: Elemental, fold: Fold, shared: Sequence[Value], local: Value, size: int, parts: int) -> None:
    """Folds neighbours at growing distance until place 0 holds all. The mask proves that a place is in the array."""
    b = elemental.builder
    distance = 1
    while distance < (size if isinstance(parts, Dim) else parts):
        b.barrier()
        other = b.op("add", local, b.const(distance, "ui32"))
        aligned = b.op("compare_eq", b.op("and", local, b.const(2 * distance - 1, "ui32")), b.const(0, "ui32"))
        branch = b.begin_if(b.op("and", aligned, b.op("compare_lt", other, b.word(parts))))
        masked = b.op("and", other, b.const(size - 1, "ui32"))
        mine, theirs = _loaded(b, shared, local), _loaded(b, shared, masked)
        _store(b, elemental.run(fold.combine(mine, theirs)), shared, local)
        b.end_if(branch)
        distance *= 2


def _finish(b: KernelBuilder, fold: Fold, folded: Sequence[Value]) -> Scalars:
    """The initial values in front; they are all there is where a call brings nothing to fold."""
    start = yield from fold.start()
    values = yield from fold.combine(start, folded)
    if is_less(0, fold.count):
        return values
    some = b.op("compare_ne", b.index(fold.count), b.index(0))
    return [b.select(some, value, first) for value, first in zip(values, start, strict=True)]


def _loaded(b: KernelBuilder, shared: Sequence[Value], place: Value) -> list[Value]:
    return [b.load_shared(array, place) for array in shared]


def _store(b: KernelBuilder, values: Sequence[Value], shared: Sequence[Value], place: Value) -> None:
    for value, array in zip(values, shared, strict=True):
        b.store_shared(value, array, place)


# merge


def merging(work: Work) -> int:
    assert isinstance(work.hero, Merge)
    return merge.invocations(work.hero)


def emit_merge(elemental: Elemental, work: Work) -> None:
    assert isinstance(work.hero, Merge)
    bindings = {output.value: output.binding for output in work.outputs}
    merge.emit(elemental, work.hero, bindings, _position(elemental.builder, "merge"))


# fft


def _fft_schedule(lanes: int) -> Schedule:
    def invocations(work: Work) -> int:
        assert isinstance(work.hero, LineFft)
        return fft.shares(work.hero).groups * lanes

    return Schedule(f"fft_of_{lanes}", lanes, invocations, emit_fft)


def emit_fft(elemental: Elemental, work: Work) -> None:
    assert isinstance(work.hero, LineFft)
    (output,) = work.outputs
    fft.emit(elemental, work.hero, output.binding)


# solve_rows


def solving(work: Work) -> int:
    assert isinstance(work.hero, RowSolve)
    return row_solve.groups(work.hero) * BLOCK


def emit_solve(elemental: Elemental, work: Work) -> None:
    assert isinstance(work.hero, RowSolve)
    (output,) = work.outputs
    row_solve.emit(elemental, work.hero, output.binding)


# scatter


def scattering(work: Work) -> int:
    assert isinstance(work.hero, Scatter)
    return scatter.invocations(work.hero)


def emit_scatter(elemental: Elemental, work: Work) -> None:
    assert isinstance(work.hero, Scatter)
    bindings = {output.value: output.binding for output in work.outputs}
    scatter.emit(elemental, work.hero, bindings, _position(elemental.builder, "scatter"))


# tiled


def tiles(work: Work) -> int:
    assert isinstance(work.hero, DotGeneral) and work.tile is not None
    return prod(work.tile.grid(Extents.of(work.hero)))


def emit_tiled(elemental: Elemental, work: Work) -> None:
    """All results of a tile are computed before the first is written."""
    dot, tile = work.hero, work.tile
    assert isinstance(dot, DotGeneral) and tile is not None
    b, number = elemental.builder, _position(elemental.builder, "tiled")
    branch = b.begin_if(b.op("compare_lt", number, b.index(tiles(work))))
    places, rows, columns = emit_tile(elemental, dot, tile, number, (_rows_fit(work, tile), work.wide))
    write = _writer(elemental, work, tile, places)
    if rows.ragged and columns.ragged:
        moved = b.op("or", rows.moved(b), columns.moved(b))
        b.branch(moved, lambda: write_fresh(b, rows, columns, write), lambda: write_all(tile, write))
    else:  # a condition per line costs less than the code of both
        write_fresh(b, rows, columns, write)
    b.end_if(branch)


def emit_packed(elemental: Elemental, work: Work) -> None:
    """As `emit_tiled`, with other edges."""
    dot, tile = work.hero, work.tile
    assert isinstance(dot, DotGeneral) and tile is not None
    b, number = elemental.builder, _position(elemental.builder, "packed")
    branch = b.begin_if(b.op("compare_lt", number, b.index(tiles(work))))
    places, rows, columns = emit_packed_tile(elemental, dot, tile, number)
    write_results(b, tile, rows, columns, _writer(elemental, work, tile, places))
    b.end_if(branch)


# blocked


def blocks(work: Work) -> int:
    assert isinstance(work.hero, DotGeneral) and work.block is not None
    return prod(blocked.block(work.block).grid(Extents.of(work.hero)))


def emit_blocked(elemental: Elemental, work: Work) -> None:
    """A workgroup beyond the work computes the last block again, so that all invocations meet at the barriers."""
    dot, tile = work.hero, work.block
    assert isinstance(dot, DotGeneral) and tile is not None
    b, count = elemental.builder, blocks(work)
    number = b.op("minimum", b.workgroup_id(), b.index(count - 1))
    places, rows, columns = blocked.emit_block(elemental, dot, tile, number)
    branch = b.begin_if(b.op("compare_lt", b.workgroup_id(), b.index(count)))
    write_results(b, tile, rows, columns, _writer(elemental, work, tile, places))
    b.end_if(branch)


def _writer(elemental: Elemental, work: Work, tile: Tile, places: Sequence[Index]) -> Write:
    """Computes all results of a tile; gives what writes them."""
    b = elemental.builder
    results = [[elemental.element(o.value, _same(b, place, o.value)) for o in work.outputs] for place in places]

    def write(row: int, column: int) -> None:
        at = row * tile.columns + column
        for output, value in zip(work.outputs, results[at], strict=True):
            output.store(elemental, _same(b, places[at], output.value), value)

    return write


def _same(b: KernelBuilder, place: Index, value: Value) -> Index:
    """The same position in a value that may have another shape."""
    return place if shape_of(value) == place.shape else Index(b, shape_of(value), None, place.linear)


# rows


def _emit_rows(lanes: int) -> Callable[[Elemental, Work], None]:
    """How so many invocations take a row. Those beyond the rows take the last again, so that all meet at barriers."""

    def emit(elemental: Elemental, work: Work) -> None:
        b, rows = elemental.builder, work.rows
        assert rows is not None
        outputs = [(output.value, partial(output.store_all, elemental)) for output in work.outputs]
        number = _position(b, "rows_of_1") if lanes == 1 else b.workgroup_id()
        inside = b.op("compare_lt", number, b.index(rows))
        number = b.op("minimum", number, b.index(rows - 1))
        span = work.span or _span_of(work, rows, b.machine, lanes)
        row = elemental, work.ops, rows, number, lanes
        (Row(*row) if span is None else HeldRow(*row, span=span)).emit(outputs, inside)

    return emit


def _span_of(work: Work, rows: int, machine: Machine, lanes: int) -> Span | None:
    """How long rows are that so many invocations hold; None where they do not."""
    length = length_of(work.ops, rows, [output.value for output in work.outputs])
    if isinstance(length, Dim) or held_lanes(work.ops, length, machine) != lanes:
        return None
    return Span(length, length, length)


def _row_schedule(lanes: int) -> Schedule:
    def invocations(work: Work) -> int:
        assert work.rows is not None
        return work.rows * lanes

    return Schedule(f"rows_of_{lanes}", 64 if lanes == 1 else lanes, invocations, _emit_rows(lanes))


#: name -> how it writes a body. Workgroup sizes are powers of two that every Vulkan device takes (128 at most).
SCHEDULES: dict[str, Schedule] = {
    row.name: row
    for row in (
        Schedule("thread", 64, lambda work: work.most, emit_thread),
        *map(_workgroup_schedule, sorted(SHARED.values())),
        Schedule("tiled", 32, tiles, emit_tiled),
        Schedule("packed", 32, tiles, emit_packed),
        Schedule("blocked", blocked.LANES, lambda work: blocked.LANES * blocks(work), emit_blocked),
        Schedule("pack", 64, runs, emit_pack),
        Schedule("merge", 64, merging, emit_merge),
        Schedule("scatter", 64, scattering, emit_scatter),
        *map(_row_schedule, (1, *HOLDERS)),
        *map(_fft_schedule, fft.LANES),
        Schedule("solve_rows", BLOCK, solving, emit_solve),
    )
}
