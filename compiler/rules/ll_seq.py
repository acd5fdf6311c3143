"""Rules after the ll_seq phase: setup, run, teardown; entries with a binding ABI; commands over valid ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from orchestrion.compiler.flow.dialect import SetEncoding, UnsetEncoding
from orchestrion.compiler.flow.layout import storage_bytes
from orchestrion.compiler.flow.scatter import Scatter
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import ArrayAttr, DenseElements, DictAttr, DimArray, IntegerAttr, StringAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import BlockArgument, Operation, Value
from orchestrion.compiler.ir.declare import size_in
from orchestrion.compiler.ir.dims import Size, bounds, symbols_of
from orchestrion.compiler.ir.parameters import bytes_of, name_of, problem
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import I32, I64, NONE, Attribute, TensorType, Type
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.sequencer.arena import ALIGNMENT
from orchestrion.compiler.sequencer.hl_seq import Program
from orchestrion.compiler.stablehlo.ops.base import StablehloOp, is_known, is_supported
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.contraction import Return as ReducerReturn
from orchestrion.compiler.stablehlo.ops.func import signature_attributes
from orchestrion.compiler.stablehlo.ops.function_dims import DimDefinition, dim_definitions
from orchestrion.schema.hal_imports import MAX_NESTING
from orchestrion.schema.rows import ACCESSES

from .blocks import blocks
from .encodings import encoded_values, in_entry, is_entry_type
from .engine import Children, Rules
from .globals import store
from .hl_seq import programs, same_exports
from .schedules import known_kind, well_formed

#: The commands of a recording, of a loop and of a branch.
COMMANDS: Final = (ll_seq.Dispatch, ll_seq.Copy, ll_seq.Fill, ll_seq.Barrier, ll_seq.Loop, ll_seq.Branch, ll_seq.End)
#: The op classes outside of the bodies of entries; the same after the executables phase.
AROUND_ENTRIES: Final[Children] = {
    Module: (Program,),
    Program: (
        ll_seq.Executable, util.Global, util.Initializer, ll_seq.SetupFunc, ll_seq.Function, util.Finalizer,
    ),
    ll_seq.Executable: (ll_seq.Entry,),
    util.Initializer: (
        ll_seq.CreateExecutable, ll_seq.Constant, ll_seq.Allocate, ll_seq.Record, ll_seq.Execute, ll_seq.CacheLoad,
        ll_seq.CacheSave, util.Branch, util.CondBranch, *util.HOST_OPS, util.GlobalLoad, util.GlobalStore, util.Return,
    ),
    util.Finalizer: (util.GlobalRelease, util.Return),
    ll_seq.Record: COMMANDS,
    ll_seq.Loop: COMMANDS,
    ll_seq.Branch: COMMANDS,
    ll_seq.SetupFunc: (
        util.Assert, util.DimValue, ll_seq.Size, util.GlobalLoad, ll_seq.Allocate, ll_seq.Record, ll_seq.Return,
    ),
    ll_seq.Function: (
        ll_seq.Check, ll_seq.Measure, ll_seq.CallSetup, ll_seq.Destination, ll_seq.Storage, ll_seq.Enqueue,
        ll_seq.Execute, ll_seq.ImportedCall, ll_seq.Read, *util.HOST_OPS, util.GlobalLoad, util.BranchOp, ll_seq.Return,
    ),
}  # fmt: skip
#: The ops of a tensor body.
BODY: Final = (StablehloOp, SetEncoding, UnsetEncoding, ll_seq.LoadInput, ll_seq.StoreOutput, ll_seq.End)
CHILDREN: Final[Children] = AROUND_ENTRIES | {
    ll_seq.Entry: (*BODY, ll_seq.Loop),
    ll_seq.Part: BODY,
    ll_seq.Loop: (*COMMANDS, ll_seq.Part),
    ll_seq.Branch: (*COMMANDS, ll_seq.Part),
    Reduce: (StablehloOp, ReducerReturn),
    Scatter: (StablehloOp, ReducerReturn),
}


def problems(op: Operation, tables: SymbolTables) -> Iterator[str]:
    yield from encoded_values(op)
    match op:
        case ll_seq.Entry():
            yield from in_entry(op.body.block)
            if op.specialized is not None:
                yield "has specializations, which entries get when they are lowered"
            yield from problems_around_entries(op, tables)
        case ll_seq.LoadInput():
            yield from _access(op.binding, op.value.type, "read")
        case ll_seq.StoreOutput():
            yield from _access(op.binding, op.value.type, "write")
        case _:
            yield from problems_around_entries(op, tables)


def problems_around_entries(op: Operation, tables: SymbolTables) -> Iterator[str]:  # noqa: C901 one case per op
    match op:
        case Module():
            yield from programs(op)
        case Program():
            yield from same_exports(op)
        case ll_seq.Entry():
            yield from _entry(op)
        case util.Global() if op.value is not None or op.parameter is not None or op.type not in _GLOBAL_TYPES:
            yield f"must be a variable of the runtime, is {op.type}"
        case util.GlobalStore():
            yield from store(op, tables)
        case ll_seq.Record():
            yield from _may_alias(op)
        case ll_seq.Loop() | ll_seq.Branch():
            yield from _recorded_flow(op)
        case util.Finalizer():
            yield from _finalizer(op)
        case ll_seq.SetupFunc():
            yield from _setup(op)
        case ll_seq.Function():
            yield from blocks(op.body)
            yield from _function(op)
        case ll_seq.CallSetup():
            yield from _call_setup(op, tables)
        case util.Initializer():
            yield from blocks(op.body)
        case util.CondBranch() | util.Switch() if op.operands[0].type != I32:
            yield f"branches on {op.operands[0].type}, expected {I32}"
        case ll_seq.CreateExecutable() if not isinstance(tables.lookup(op, op.executable), ll_seq.Executable):
            yield f"{op.executable} is not an executable"
        case ll_seq.Dispatch():
            yield from _dispatch(op, tables)
        case ll_seq.Check() | ll_seq.Destination() if not is_known(op.type):
            yield f"checks for {op.type}, which is not supported"
        case ll_seq.Constant():
            yield from values_fit(op.values, op.offsets.ints, op.size.value, op.parameter)
        case ll_seq.Allocate() if bounds(op.size)[1] < 1:
            yield f"allocates {op.size} bytes"
        case ll_seq.Copy():
            yield from _ranges(op.source_offset, op.target_offset, op.length)
        case ll_seq.Fill():
            yield from _ranges(op.offset, op.length)
            if op.value.type.shape or op.length % op.value.itemsize != 0:
                yield f"value of type {op.value.type} does not fill {op.length} bytes"


_GLOBAL_TYPES: Final = (ll_seq.BUFFER, ll_seq.EXECUTABLE, ll_seq.RECORDING)


def _may_alias(op: ll_seq.Record) -> Iterator[str]:
    pairs = op.may_alias.ints if op.may_alias is not None else ()
    slots = len(op.body.block.arguments)
    if len(pairs) % 2 or not all(0 <= slot < slots for slot in pairs):
        yield f"may_alias {list(pairs)} is not pairs of its {slots} slots"


def _finalizer(op: util.Finalizer) -> Iterator[str]:
    """A finalizer releases what the initializers of its kind store, in reverse order; the VM also does so by itself."""
    program = op.parent_op
    assert program is not None
    makers = [i for i in program.regions[0].block.of(util.Initializer) if i.kind == op.kind]
    stored = [s.ref.root for maker in makers for s in maker.body.walk(util.GlobalStore)]
    released = [r.ref.root for r in op.body.walk(util.GlobalRelease)]
    if released != list(reversed(stored)):
        yield f"releases {', '.join(released)}, initializers store, in reverse, {', '.join(reversed(stored))}"


def _recorded_flow(op: ll_seq.Loop | ll_seq.Branch) -> Iterator[str]:
    """A loop or branch stands in a recording, at most `MAX_NESTING` deep, and each of its regions is one block."""
    if any(len(region.blocks) != 1 or region.blocks[0].arguments for region in op.regions):
        yield "needs one block without arguments per region"
    outer: Operation | None = op
    depth = 0
    while isinstance(outer, ll_seq.Loop | ll_seq.Branch):
        depth, outer = depth + 1, outer.parent_op
    if isinstance(outer, ll_seq.Entry):
        yield from _in_entry(op, outer)
    elif not isinstance(outer, ll_seq.Record):
        yield "stands outside of a recording"
    if depth > MAX_NESTING:
        yield f"stands in {depth - 1} loops and branches, at most {MAX_NESTING - 1} are allowed"
    if op.offset.value < 0:
        yield f"offset {op.offset.value} is negative"


def _in_entry(op: ll_seq.Loop | ll_seq.Branch, entry: ll_seq.Entry) -> Iterator[str]:
    """An entry that runs a loop contains nothing else."""
    if [type(inner) for inner in entry.body.block] != [ll_seq.Loop, ll_seq.End]:
        yield "is not all that its entry does"
    if not is_binding_types(entry.binding_types or ArrayAttr(()), len(entry.bindings)):
        yield "its entry does not say the types of its bindings"
    if any(isinstance(inner, ll_seq.Dispatch) for region in op.regions for inner in region.block):
        yield "dispatches from an entry"


def _entry(op: ll_seq.Entry) -> Iterator[str]:
    sizes = op.workload.sizes
    if len(sizes) != 3 or any(bounds(size)[1] < 1 for size in sizes):
        yield f"workload {list(sizes)} must be three positive numbers"
    yield from parameters(op)
    yield from known_kind(op.kind)
    yield from well_formed(op.schedules)
    for index, item in enumerate(op.bindings):
        if not is_binding(item):
            yield f"binding {index} must have an access, {', '.join(ACCESSES)}, and a positive length, is {item}"
    if op.shared is not None:
        numbers = op.shared.ints
        if len(numbers) != len(op.bindings) or [*dict.fromkeys(numbers)] != [*range(max(numbers, default=-1) + 1)]:
            yield f"shared {list(numbers)} is not a number per binding, counted from 0 in their order"
    if op.predicate is not None:
        yield from _predicate(op, op.predicate.value)
    if op.retyped is not None and not set(op.retyped.ints) <= set(range(len(op.bindings))):
        yield f"retyped bindings {', '.join(map(str, op.retyped.ints))}, of {len(op.bindings)}"
    types = [argument.type for argument in op.body.block.arguments]
    if types != [ll_seq.BINDING] * len(op.bindings):
        yield f"takes {len(types)} arguments for {len(op.bindings)} bindings, or others than bindings"


def _predicate(op: ll_seq.Entry, number: int) -> Iterator[str]:
    """The predicate is the last binding, which holds a byte to be read. A body that is not lowered does not use it."""
    last = op.bindings.items[-1] if op.bindings.items else None
    if number != len(op.bindings) - 1 or not isinstance(last, DictAttr) or not is_binding(last):
        yield f"predicate {number} is not its last binding"
    elif ll_seq.access_of(last) != "read":
        yield f"predicate {number} is for {ll_seq.access_of(last)}, not for read only"


def is_binding(item: Attribute) -> bool:
    """Whether this is a binding with a valid access and a positive length."""
    if not isinstance(item, DictAttr) or len(item.items) != 2:
        return False
    access, length = item.get("access"), item.get("length")
    known = isinstance(access, StringAttr) and access.value in ACCESSES
    return known and isinstance(length, IntegerAttr | DimArray) and bounds(size_in(length))[1] > 0


def is_source_ops(item: Attribute) -> bool:
    """Whether this is a list of op names; a source map separates them by blanks."""
    return isinstance(item, ArrayAttr) and all(
        isinstance(name, StringAttr) and name.value.split() == [name.value] for name in item
    )


def is_binding_types(item: Attribute, bindings: int, shared: bool = False) -> bool:
    """Whether this is one tensor type, or `none`, per binding. `shared`: or a text with the operands of a binding."""
    types = (TensorType, StringAttr) if shared else TensorType
    return (
        isinstance(item, ArrayAttr)
        and len(item) == bindings
        and all(isinstance(type, types) or type == NONE for type in item)
    )


def _access(binding: Value, type: Type, wanted: str) -> Iterator[str]:
    """A binding must allow the access, and be long enough for the tensor."""
    entry = binding.parent_block.parent_op if binding.parent_block is not None else None
    if isinstance(entry, ll_seq.Part):
        return
    if not isinstance(binding, BlockArgument) or not isinstance(entry, ll_seq.Entry):
        yield "its binding is not an argument of the entry"
        return
    if not isinstance(type, TensorType) or not is_entry_type(type):
        yield f"moves {type}, which is not supported"
        return
    item = entry.bindings.items[binding.index] if binding.index < len(entry.bindings) else None
    if not isinstance(item, DictAttr) or not is_binding(item):
        return
    access, length = item.get("access"), ll_seq.length_of(item)
    assert isinstance(access, StringAttr)
    if wanted not in access.value:
        yield f"binding {binding.index} is for {access.value} only"
    size = storage_bytes(type)
    if size == 0 or bounds(length - size)[0] < 0:
        yield f"binding {binding.index} of {length} bytes does not hold {type}"


def _function(op: ll_seq.Function) -> Iterator[str]:
    inputs, results = op.signature.inputs, op.signature.results
    if not all(is_supported(type) for type in (*inputs, *results)):
        yield f"signature {op.signature} has types that are not supported"
    taken = [argument.type for block in op.body.blocks[:1] for argument in block.arguments]
    if taken != [ll_seq.VIEW] * (len(inputs) + len(results)):
        yield f"takes {len(taken)} views, expected {len(inputs)} arguments and {len(results)} destinations"
    for number, block in enumerate(op.body.blocks):
        if isinstance(block.last, ll_seq.Return) and len(block.last.operands) != len(results):
            yield f"returns {len(block.last.operands)} views, expected {len(results)}"
        if number and not all(a.type == ll_seq.BUFFER or a.type == I32 for a in block.arguments):
            yield f"block {number} takes an argument that is neither {ll_seq.BUFFER} nor {I32}"
    yield from signature_attributes(op.signature, op.arg_attrs, op.res_attrs)


def symbol_names(op: ll_seq.Entry) -> list[str]:
    """The names of an entry's symbols, in order."""
    return [one.name for one, _ in _rows(op.dims)]


def parameters(op: ll_seq.Entry) -> Iterator[str]:
    """The symbols are unique, and cover all sizes in lengths and workload."""
    names = symbol_names(op)
    if len(names) != len(op.dims or ()):
        yield f"dims {op.dims} is not a list of symbols"
    if len(set(names)) != len(names):
        yield f"names symbols twice: {', '.join(names)}"
    lengths = [ll_seq.length_of(binding) for binding in op.bindings if is_binding(binding)]
    for one in symbols_of(*lengths, *op.workload.sizes):
        if one.name not in names:
            yield f"has the size {one.name}, which is not one of its symbols"


def _setup(op: ll_seq.SetupFunc) -> Iterator[str]:
    names = [name.value for name in op.sizes if isinstance(name, StringAttr)]
    taken = [argument.type for argument in op.body.block.arguments]
    if taken != [I64] * len(names) or len(set(names)) != len(op.sizes):
        yield f"takes {len(taken)} numbers for the sizes {op.sizes}, each an {I64} with a name of its own"
    known = set(names)
    if len(_rows(op.dims)) != len(op.dims):
        yield f"dims {op.dims} is not a list of symbols"
    for symbol, value in _rows(op.dims):
        needed = {one.name for one in symbols_of(0 if value is None else value)}
        if value is None or symbol.name in known or not needed <= known:
            yield f"symbol {symbol.name} must have a value over sizes and symbols before it, and a name of its own"
        known.add(symbol.name)
    for inner in op.body.walk():
        lists = [value.sizes for value in inner.properties.values() if isinstance(value, DimArray)]
        used = {one.name for sizes in lists for one in symbols_of(*sizes)}
        if not used <= known:
            yield f"uses the sizes {', '.join(sorted(used - known))}, which it does not have"


def _rows(dims: ArrayAttr | None) -> list[DimDefinition]:
    try:
        return dim_definitions(dims)
    except ValueError:
        return []


def _call_setup(op: ll_seq.CallSetup, tables: SymbolTables) -> Iterator[str]:
    setup = tables.lookup(op, op.callee)
    if not isinstance(setup, ll_seq.SetupFunc):
        yield f"{op.callee} is not a setup function"
        return
    last = setup.body.block.last
    given = [value.type for value in last.operands] if isinstance(last, ll_seq.Return) else []
    if given != [value.type for value in op.outputs] or len(op.sizes) != len(setup.sizes):
        wanted = f"{len(setup.sizes)} sizes and {len(given)} results"
        yield f"has {len(op.sizes)} sizes and {len(op.outputs)} results, {op.callee} {wanted}, or of other types"


def _dispatch(op: ll_seq.Dispatch, tables: SymbolTables) -> Iterator[str]:
    entry = tables.lookup(op, op.entry)
    if not isinstance(entry, ll_seq.Entry):
        yield f"{op.entry} is not an entry of an executable"
    elif len(entry.bindings) != len(op.bindings):
        yield f"{op.entry} has {len(entry.bindings)} bindings, dispatched with {len(op.bindings)}"
    elif entry.shared is not None or op.spans is not None:
        yield from _shared(op, entry)
    if any(bounds(offset)[1] < 0 for offset in op.offsets.sizes):
        yield f"offsets {list(op.offsets.sizes)} are negative"


def _shared(op: ll_seq.Dispatch, entry: ll_seq.Entry) -> Iterator[str]:
    """Bindings that share one lie in one buffer, at multiples of the alignment."""
    numbers = entry.shared.ints if entry.shared is not None else ()
    spans = op.spans.sizes if op.spans is not None else ()
    if len(numbers) != len(op.bindings) or len(spans) != len(set(numbers)):
        yield f"has {len(spans)} spans, {op.entry} shares {len(set(numbers))} bindings"
        return
    for number in set(numbers):
        members = [index for index, other in enumerate(numbers) if other == number]
        offsets = [op.offsets.sizes[index] for index in members] if len(op.offsets) == len(numbers) else []
        if len({op.bindings[index] for index in members}) > 1:
            yield f"bindings {members} share one, but lie in several buffers"
        if len(members) > 1 and any(bounds(offset % ALIGNMENT)[1] for offset in offsets):
            yield f"bindings {members} share one, at offsets {offsets} that are not all multiples of {ALIGNMENT}"


def values_fit(values: ArrayAttr, offsets: Sequence[int], size: int, parameter: DictAttr | None) -> Iterator[str]:
    """Dense values in order at their offsets inside `size` bytes; or a parameter of `size` bytes, without values."""
    if parameter is not None:
        wrong = problem(parameter) or (f"has values beside parameter {name_of(parameter)}" if values else "")
        if wrong or bytes_of(parameter) != size:
            yield wrong or f"parameter {name_of(parameter)} is of {bytes_of(parameter)} bytes, size is {size}"
        return
    if len(values) != len(offsets):
        yield f"{len(values)} values, {len(offsets)} offsets"
    end = 0
    for value, offset in zip(values, offsets, strict=False):
        if not isinstance(value, DenseElements):
            yield f"value {value} is not dense elements"
            return
        if offset < end:
            yield f"offset {offset} lies before the end {end} of the value before"
        end = offset + value.nbytes
    if end > size or not offsets:
        yield f"values end at byte {end}, size is {size}"


def _ranges(*values: Size) -> Iterator[str]:
    if any(bounds(value)[1] < 0 for value in values) or values[-1] == 0:
        yield f"range of offsets {list(values[:-1])} and length {values[-1]} is empty or negative"


RULES: Final = Rules(CHILDREN, problems)
