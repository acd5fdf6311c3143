"""From the tensor body of an `ll_seq.entry` to `kernel` IR, in place.

The entry keeps its name, bindings and binding arguments; its body becomes scalar code for one invocation. It gets a
`workgroup_size` and a `workload` in invocations. Everything that has no lowering is reported at once.

Where a call may bring few of something, rows or columns of a dot or elements of a fold, another schedule is faster, and
short rows are in registers. An invocation cannot choose: llvmpipe goes through both arms of a branch. So entries for
such calls stand behind the one for all others, and each dispatch is of one of them (docs/decisions/few-and-many.md,
rows.md).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.flow.dialect import SetEncoding, UnsetEncoding
from orchestrion.compiler.flow.fft import LineFft
from orchestrion.compiler.flow.layout import has_layout
from orchestrion.compiler.flow.merge import Merge
from orchestrion.compiler.flow.row_solve import RowSolve
from orchestrion.compiler.flow.rows import taken_rows
from orchestrion.compiler.flow.scatter import Scatter
from orchestrion.compiler.ir.attributes import ArrayAttr, DenseArray, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.dims import Dim, bounds
from orchestrion.compiler.ir.effects import erase_dead
from orchestrion.compiler.sequencer.in_place import updates_in_place
from orchestrion.compiler.sequencer.ll_seq import End, Entry, LoadInput, Specialization, StoreOutput
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_supported
from orchestrion.compiler.stablehlo.ops.contraction import Return as RegionReturn
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.function_dims import dim_definitions as dims_rows
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice
from orchestrion.compiler.stablehlo.ops.structural import Constant, Reshape
from orchestrion.schema.rows import UP_TO

from .blocked import block_of
from .builder import KernelBuilder
from .dialect import Return
from .elemental import ELEMENT_RULES, Elemental
from .encodings import stored_shape
from .indexing import starts_of
from .lowering import refusal
from .machine import Machine
from .packed import packed_tile_of
from .plan import EntryPlan
from .row_values import Span, held_spans
from .rules import INLINE_CONSTANT_BYTES
from .schedule import SCHEDULES, Output, Schedule, Work, choose, few_of, hero_of, may_tile, narrow_of
from .tiled import count_ops, tile_of
from .vectors import load_lanes

#: an entry that addresses fewer elements than this counts them in 32 bits
WIDE_INDEX = 1 << 31

ABI = (LoadInput, StoreOutput, End)


def lower_entry(entry: Operation, machine: Machine) -> None:
    """Replace the body of an `ll_seq.entry`. CompileError has a diagnostic for each op that cannot be lowered."""
    assert isinstance(entry, Entry)
    problems = list(diagnose(op for op in entry.body.block if not isinstance(op, ABI)))
    if problems:
        raise CompileError(problems)
    plan = _Plan.of(entry, machine)
    *special, rest = _cases(plan, machine)
    if all(_name(entry, case) not in _names(entry) for case in special):
        for case in special:
            _specialize(entry, machine, case)
        plan = _Plan.of(entry, machine, rest) if rest.span is not None else plan.with_case(rest)
    block = plan.emit()
    entry.workgroup_size, entry.workload = plan.workgroup_size, plan.workload
    _replace(entry.body, block)
    erase_dead(entry)


def plan_entry(entry: Operation, machine: Machine) -> list[EntryPlan]:
    """The schedules that `lower_entry` will choose; none for an entry that it will refuse."""
    assert isinstance(entry, Entry)
    if any(True for _ in diagnose(op for op in entry.body.block if not isinstance(op, ABI))):
        return []
    plan = _Plan.of(entry, machine)
    *special, rest = _cases(plan, machine)
    missed = [_missed(plan, machine)]
    if any(_name(entry, case) in _names(entry) for case in special):
        missed = [f"an entry is called {_name(entry, special[0])} already"]
        special, rest = [], _Case()
    schedule = (_Plan.of(entry, machine, rest) if rest.span is not None else plan).schedule.name
    name = entry.sym_name.value
    return [
        EntryPlan(name, schedule),
        *(EntryPlan(_name(entry, case), _Plan.of(entry, machine, case).schedule.name, case.calls) for case in special),
        *(EntryPlan(name, schedule, missed=why) for why in missed if why),
    ]


def _missed(plan: "_Plan", machine: Machine) -> str:
    """Why calls that bring few of something have no entry of their own, where on another machine they would."""
    few = None if machine.few or plan.work.rows is not None else few_of(plan.work, plan.schedule)
    return "" if few is None else f"calls with {few[0]} <= {few[1]} have no entry of their own on this machine"


@dataclass(frozen=True, slots=True)
class _Case:
    """Calls in which a size is at most a number, and what the code for them is told of it. `of`: what there is so much
    of, in the name of the entry.
    """

    size: int = 0
    most: int = 0
    few: bool | None = None
    wide: bool = False
    span: Span | None = None
    of: str = ""

    @property
    def calls(self) -> str:
        return f"{self.size} <= {self.most}"


def _cases(plan: "_Plan", machine: Machine) -> list[_Case]:
    """The cases that an entry has code of its own for; the last one is all others, and its own."""
    work = plan.work
    if work.rows is not None:
        spans = held_spans(work.ops, work.rows, [output.value for output in work.outputs], machine)
        cases = [_Case(span.length, span.most, span=span) for span in spans]
        return cases if spans and spans[-1].most == bounds(spans[-1].length)[1] else [*cases, _Case()]
    few = few_of(work, plan.schedule) if machine.few else None
    narrow = narrow_of(work, plan.schedule)
    many = None if few is None else False
    cases = [] if few is None else [_Case(*few, few=True)]
    if narrow is not None and not (few is not None and few[0] == narrow[0] and few[1] >= narrow[1]):
        cases.append(_Case(*narrow, few=many, of="_columns"))
    return [*cases, _Case(few=many, wide=narrow is not None)]


def _name(entry: Entry, case: _Case) -> str:
    return f"{entry.sym_name.value}{UP_TO}{case.most}{case.of}"


def _names(entry: Entry) -> set[str | None]:
    """What the entries of the executable are called."""
    return {op.symbol for op in entry.parent or ()}


def _specialize(entry: Entry, machine: Machine, case: _Case) -> None:
    """Puts an entry for a case behind the others of an entry whose body is not yet replaced."""
    plan, rows = _Plan.of(entry, machine, case), entry.specialized or ArrayAttr(())
    special = Entry.build(
        sym_name=_name(entry, case),
        workload=plan.workload,
        workgroup_size=plan.workgroup_size,
        bindings=entry.bindings,
        dims=entry.dims,
        source_ops=entry.source_ops,
        binding_types=entry.binding_types,
        body=Region([plan.emit()]),
        loc=entry.loc,
    )
    last: Operation = entry
    for _ in rows:
        last = last.next_op or last
    Builder.after(last).insert(special)
    erase_dead(special)
    entry.specialized = ArrayAttr((*rows, Specialization(special.sym_name.value, case.size, case.most).attribute))


@dataclass
class _Plan:
    """How an entry is computed, and the builder of its new body; the old one stays until that is whole."""

    ops: list[Operation]
    elemental: Elemental
    work: Work
    schedule: Schedule

    @classmethod
    def of(cls, entry: Entry, machine: Machine, case: _Case | None = None) -> "_Plan":
        old = entry.body.block
        ops = [op for op in old if not isinstance(op, ABI)]
        block = Block([argument.type for argument in old.arguments], [argument.loc for argument in old.arguments])
        bindings: dict[Value, Value] = dict(zip(old.arguments, block.arguments, strict=True))
        inputs: dict[Value, Value] = {op.value: bindings[op.binding] for op in old if isinstance(op, LoadInput)}
        outputs = _outputs(old, bindings)
        rows = taken_rows(ops, [output.value for output in outputs])
        case = case or _Case()
        work = Work(outputs, hero_of(ops), ops=ops, rows=rows, few=case.few, wide=case.wide, span=case.span)
        symbols = [symbol.name for symbol, _ in dims_rows(entry.dims)]
        builder = KernelBuilder(block, _index_type(old), machine, symbols)
        builder.loc = entry.loc
        if may_tile(work, machine):
            ops_per_result = _ops_per_result(KernelBuilder(Block(), builder.index_type, symbols=symbols), inputs, work)
            packed = packed_tile_of(work.hero, ops_per_result)
            tile = packed or tile_of(work.hero, ops_per_result, machine.tile)
            if case.few and tile is not None:
                tile = tile.of_few
            share = block_of(work.hero, ops_per_result, machine)
            work = replace(work, tile=tile, packed=packed is not None, block=share)
        return cls(ops, Elemental(builder, inputs), work, choose(work, machine))

    def with_case(self, case: _Case) -> "_Plan":
        """The same for the calls of a case that has neither another tile nor another schedule."""
        return replace(self, work=replace(self.work, few=case.few, wide=case.wide))

    @property
    def workgroup_size(self) -> DenseArray:
        return dense_ints(self.schedule.workgroup_size, 1, 1)

    @property
    def workload(self) -> DenseArray:
        return dense_ints(self.schedule.invocations(self.work), 1, 1)

    def emit(self) -> Block:
        """Writes the new body."""
        builder = self.elemental.builder
        _prepare(self.elemental, self.ops)
        self.schedule.emit(self.elemental, self.work)
        builder.insert(Return())
        if builder.machine.width:
            load_lanes(builder.entry, builder)
        return builder.entry


def _outputs(body: Block, bindings: Mapping[Value, Value]) -> list[Output]:
    """What is written: values as they are, of a slice that is updated in place the window only."""
    updates = updates_in_place(body)
    outputs = []
    for op in body:
        if isinstance(op, StoreOutput):
            update = updates.get(op)
            window = update if isinstance(update, DynamicUpdateSlice) else None
            outputs.append(Output(op.value if window is None else window.update, bindings[op.binding], window))
    return outputs


def _prepare(elemental: Elemental, ops: Iterable[Operation]) -> None:
    """The starts of slices, in front of all loops and branches: every element needs the same ones."""
    for op in ops:
        if isinstance(op, DynamicSlice | DynamicUpdateSlice):
            elemental.run(starts_of(elemental.builder, op))


def _ops_per_result(builder: KernelBuilder, inputs: Mapping[Value, Value], work: Work) -> int:
    """How long the code of one result is, found by writing it."""
    SCHEDULES["thread"].emit(Elemental(builder, inputs), work)
    return count_ops(builder.entry)


def _replace(body: Region, block: Block) -> None:
    for op in reversed(body.block):
        op.erase()
    body.blocks.clear()
    body.add(block)


def _index_type(block: Block) -> str:
    """What a call brings is no larger: it is checked there."""
    sizes = (prod(stored_shape(value)) for op in block for value in op.results)
    most = max((size for size in sizes if not isinstance(size, Dim)), default=0)
    return "ui64" if most >= WIDE_INDEX else "ui32"


def diagnose(ops: Iterable[Operation]) -> Iterator[Diagnostic]:
    """One diagnostic for each op, in regions too, that no kernel can hold."""
    for outer in ops:
        for op in outer.walk():
            if not isinstance(op, RegionReturn):
                yield from (Diagnostic(message, op.loc, op.name) for message in _refusals(op))


def _may_be_encoded(op: Operation, value: Value) -> bool:
    """Whether the value is one that has a layout, as the op's own check has seen."""
    encoded = isinstance(op, SetEncoding) and value is op.output
    return (encoded or (isinstance(op, UnsetEncoding) and value is op.source)) and has_layout(value.type)


def _scatter(op: Scatter) -> Iterator[str]:
    """It has no elements of its own: it changes what is loaded where that lies, and nothing else reads its results."""
    for value, result in zip(op.inputs, op.results, strict=True):
        load, stores = value.defining_op, list(result.users())
        store = stores[0] if len(stores) == 1 else None
        in_place = isinstance(load, LoadInput) and isinstance(store, StoreOutput) and load.binding is store.binding
        if not in_place:
            yield "no kernel computes this op but in place: of what is loaded from a binding and then stored to it"


def _stored(op: Operation) -> Iterator[str]:
    """It has no elements of its own: its results are stored, and read by nothing else."""
    stores = [user for result in op.results for user in _readers(result)]
    if len(stores) != len(op.results) or not all(isinstance(user, StoreOutput) for user in stores):
        yield "no kernel computes this op but to store each of its results once"


def _readers(value: Value) -> Iterator[Operation]:
    """Who reads a value, in whatever shape."""
    for user in value.users():
        yield from _readers(user.results[0]) if isinstance(user, Reshape) else (user,)


def _refusals(op: Operation) -> Iterator[str]:
    if isinstance(op, Merge | LineFft | RowSolve):
        yield from _stored(op)
    elif isinstance(op, Scatter):
        yield from _scatter(op)
    elif op.name not in ELEMENT_RULES:
        yield "no kernel computes this op"
        return
    plain = [value for value in (*op.operands, *op.results) if not _may_be_encoded(op, value)]
    unknown = [str(value.type) for value in plain if not is_supported(value.type)]
    if unknown:
        yield f"no kernel holds values of type {', '.join(dict.fromkeys(unknown))}"
        return
    if isinstance(op, Constant) and len(op.value.data) > INLINE_CONSTANT_BYTES:
        yield f"a constant of {len(op.value.data)} bytes inside a kernel, which holds {INLINE_CONSTANT_BYTES} at most"
    if isinstance(op, Elementwise):
        message = refusal(op.scalar.name, [dtype_of(operand) for operand in op.operands], dtype_of(op.results[0]))
        if message:
            yield message
