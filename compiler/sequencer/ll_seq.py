"""The ll_seq dialect: explicit memory, recorded commands, and the binding ABI of executables.

Values are objects of the runtime (`!hal.buffer`, `!hal.view`, `!hal.executable`, `!hal.recording`). Inside a
`record` region stand commands on buffers made outside and on slots, which a call fills. An `entry` takes bindings:
its inputs, then its outputs.

Where sizes come with a call, sizes, offsets and workloads are expressions over the symbols of the function that a
recording belongs to, and everything that depends on them is made by its `setup`: once for each set of sizes, of which
a context keeps those used last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from orchestrion.compiler.ir.attributes import (
    ArrayAttr,
    DenseArray,
    DenseElements,
    DictAttr,
    DimArray,
    IntegerAttr,
    StringAttr,
    SymbolRef,
    attribute_of,
    dense_ints,
)
from orchestrion.compiler.ir.core import Operation, Trait, Value
from orchestrion.compiler.ir.declare import (
    attr,
    operand,
    operands,
    optional,
    region,
    result,
    results,
    size_attr,
    size_in,
)
from orchestrion.compiler.ir.dialect import Dialect
from orchestrion.compiler.ir.dims import Dim
from orchestrion.compiler.ir.types import I32, I64, Attribute, DialectType, FunctionType, TensorType, Type

BINDING: Final = DialectType("ll_seq.binding")
SLOT: Final = DialectType("ll_seq.slot")
BUFFER: Final = DialectType("hal.buffer")
VIEW: Final = DialectType("hal.view")
EXECUTABLE: Final = DialectType("hal.executable")
RECORDING: Final = DialectType("hal.recording")

#: what `read` takes -> its bytes
READ_BYTES: Final[dict[str, int]] = {"i1": 1, "i32": 4}


#: lifetime of an allocation -> who has it
LIFETIMES: Final[dict[str, str]] = {
    "constant": "the program: what an initializer makes",
    "setup": "one run of an initializer",
    "variable": "a context: a mutable global",
    "state": "a context: what a loop carries, twice",
    "transient": "a context: made and used inside one call",
}


def is_binding(type: Type) -> bool:
    """!ll_seq.binding"""
    return type == BINDING


def is_memory(type: Type) -> bool:
    """!hal.buffer or !ll_seq.slot"""
    return type in (BUFFER, SLOT)


def is_buffer(type: Type) -> bool:
    """!hal.buffer"""
    return type == BUFFER


def is_i32(type: Type) -> bool:
    """i32"""
    return type == I32


def is_i64(type: Type) -> bool:
    """i64"""
    return type == I64


def is_view(type: Type) -> bool:
    """!hal.view"""
    return type == VIEW


def is_executable(type: Type) -> bool:
    """!hal.executable"""
    return type == EXECUTABLE


def is_recording(type: Type) -> bool:
    """!hal.recording"""
    return type == RECORDING


class Executable(Operation):
    """Entries that are built together."""

    name = "ll_seq.executable"
    sym_name = attr(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.SYMBOL_TABLE, Trait.NO_TERMINATOR})

    def entries(self) -> Iterator[tuple[SymbolRef, Entry]]:
        """The entries, by what dispatches call them."""
        for op in self.body.block:
            if isinstance(op, Entry):
                yield SymbolRef(self.sym_name.value, (op.sym_name.value,)), op


class Entry(Operation):
    """One entry point: bindings with access and least length, and a workload.

    `dims` are the symbols that its types, lengths and workload have: parameter words of its dispatches, in order, each
    the symbol of that name of the function that dispatches it. `kind` and `schedules` are those of the function that it
    was. Once lowered, also the workgroup size, the names of the source ops that it computes, the main one first, and
    the tensor that each binding holds.

    `specialized` are rows of `Specialization`: entries that are dispatched in place of this one where the sizes of a
    call are small enough, the first that may be. They differ from it in code and in invocations only.
    """

    name = "ll_seq.entry"
    sym_name = attr(StringAttr)
    workload = attr(DenseArray)
    bindings = attr(ArrayAttr)
    dims = optional(ArrayAttr)
    kind = optional(StringAttr)
    schedules = optional(ArrayAttr)
    workgroup_size = optional(DenseArray)
    source_ops = optional(ArrayAttr)
    binding_types = optional(ArrayAttr)
    specialized = optional(ArrayAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL})


class Specialization(NamedTuple):
    """An entry of the same executable, for calls in which `size` is at most `most`."""

    entry: str
    size: int
    most: int

    @property
    def attribute(self) -> Attribute:
        return attribute_of(self._asdict())


def specializations_of(entry: Entry) -> list[Specialization]:
    """The rows of `specialized`. Raises ValueError where it has something else."""
    rows = []
    for item in entry.specialized or ():
        name, size, most = (item.get(key) if isinstance(item, DictAttr) else None for key in Specialization._fields)
        if not isinstance(name, StringAttr) or not isinstance(size, DimArray) or not isinstance(most, IntegerAttr):
            raise ValueError(f"{item} names no entry, or no size and the most that it may be")
        rows.append(Specialization(name.value, size_in(size), most.value))
    return rows


class LoadInput(Operation):
    """The tensor that a binding holds."""

    name = "ll_seq.load_input"
    binding = operand(is_binding)
    value = result(TensorType)


class StoreOutput(Operation):
    """Writes a tensor into a binding."""

    name = "ll_seq.store_output"
    value = operand(TensorType)
    binding = operand(is_binding)


class End(Operation):
    """Ends an entry or a recording."""

    name = "ll_seq.end"
    traits = frozenset({Trait.TERMINATOR})


class CreateExecutable(Operation):
    """The executable, built for the device."""

    name = "ll_seq.create_executable"
    executable = attr(SymbolRef)
    output = result(is_executable)


class Constant(Operation):
    """A read-only buffer of `size` bytes with each of the values at its offset, zero between; named in the module. Or
    one over a parameter, without values.
    """

    name = "ll_seq.constant"
    label = attr(StringAttr)
    values = attr(ArrayAttr)
    offsets = attr(DenseArray)
    size = attr(IntegerAttr)
    parameter = optional(DictAttr)
    output = result(is_buffer)


class Allocate(Operation):
    """Device memory of `size` bytes, undefined content; `label` names it for readers.

    `lifetime` is one of `LIFETIMES`. A transient lives at some positions of its function, pairs of first and last.
    """

    name = "ll_seq.allocate"
    label = attr(StringAttr)
    size = size_attr()
    lifetime = attr(StringAttr)
    live = optional(DenseArray)
    output = result(is_buffer)

    def check(self) -> Iterator[str]:
        if self.lifetime.value not in LIFETIMES:
            yield f"lifetime {self.lifetime} is none of {', '.join(LIFETIMES)}"


class Record(Operation):
    """A recording of the commands inside; block arguments are the slots that a call fills.

    `may_alias` are pairs of slots that a call may fill with one buffer: a donated argument and the result in its place.
    """

    name = "ll_seq.record"
    may_alias = optional(DenseArray)
    body = region()
    output = result(is_recording)


class Dispatch(Operation):
    """Runs an entry on its bindings: each is a buffer or slot from an offset in bytes on."""

    name = "ll_seq.dispatch"
    entry = attr(SymbolRef)
    offsets = attr(DenseArray)
    executable = operand(is_executable)
    bindings = operands(is_memory)

    def check(self) -> Iterator[str]:
        if len(self.offsets) != len(self.operands) - 1:
            yield f"{len(self.offsets)} offsets, {len(self.operands) - 1} bindings"


class Copy(Operation):
    """Copies `length` bytes."""

    name = "ll_seq.copy"
    source_offset = size_attr()
    target_offset = size_attr()
    length = size_attr()
    source = operand(is_memory)
    target = operand(is_memory)


class Fill(Operation):
    """Writes the scalar `value` again and again over `length` bytes."""

    name = "ll_seq.fill"
    offset = size_attr()
    length = size_attr()
    value = attr(DenseElements)
    target = operand(is_memory)


class Barrier(Operation):
    """What stands after it sees the writes of what stands before it."""

    name = "ll_seq.barrier"


class Check(Operation):
    """The storage of an argument; fails, as the caller's mistake, unless it has this element type and shape.

    What sizes that are expressions have to be, assertions say.
    """

    name = "ll_seq.check"
    type = attr(TensorType)
    view = operand(is_view)
    output = result(is_buffer)


class Measure(Operation):
    """The size of an axis of an argument that was checked."""

    name = "ll_seq.measure"
    axis = attr(IntegerAttr)
    view = operand(is_view)
    output = result(is_i64)


class Size(Operation):
    """A size as a number of the host."""

    name = "ll_seq.size"
    value = size_attr()
    output = result(is_i64)
    traits = frozenset({Trait.PURE})


class Destination(Operation):
    """The place for a result: the view given, checked, or for null a new one. `sizes`: those that are expressions."""

    name = "ll_seq.destination"
    type = attr(TensorType)
    view = operand(is_view)
    sizes = operands(is_i64)
    output = result(is_view)

    def check(self) -> Iterator[str]:
        wanted = sum(isinstance(size, Dim) for size in self.type.shape)
        if len(self.sizes) != wanted:
            yield f"has {len(self.sizes)} sizes for the {wanted} expressions of {self.type}"


class Storage(Operation):
    """The buffer behind a view."""

    name = "ll_seq.storage"
    view = operand(is_view)
    output = result(is_buffer)


class Execute(Operation):
    """Submits a recording with these buffers in its slots and waits for it."""

    name = "ll_seq.execute"
    recording = operand(is_recording)
    slots = operands(is_buffer)


class ImportedCall(Operation):
    """Calls a function of another module over whole buffers: those of its arguments, then those of its results."""

    name = "ll_seq.imported_call"
    callee = attr(StringAttr)
    function_type = attr(FunctionType)
    buffers = operands(is_buffer)

    def check(self) -> Iterator[str]:
        wanted = len(self.function_type.inputs) + len(self.function_type.results)
        if len(self.buffers) != wanted:
            yield f"gives {len(self.buffers)} buffers to a function of type {self.function_type}"


class Enqueue(Operation):
    """Adds a recording, with these buffers in its slots, to what the next `execute` submits, in order."""

    name = "ll_seq.enqueue"
    recording = operand(is_recording)
    slots = operands(is_buffer)


class Read(Operation):
    """A predicate (`i1`, one byte) or an index (`i32`, four) from a buffer, after what was executed before."""

    name = "ll_seq.read"
    offset = attr(IntegerAttr)
    type = attr(StringAttr)
    buffer = operand(is_buffer)
    output = result(is_i32)

    def check(self) -> Iterator[str]:
        if self.type.value not in READ_BYTES:
            yield f"reads {self.type}, one of {', '.join(READ_BYTES)} wanted"


class CacheLoad(Operation):
    """1 when the buffer was filled from the user's cache, with what `cache_save` of this key kept there; else 0."""

    name = "ll_seq.cache_load"
    key = attr(IntegerAttr)
    buffer = operand(is_buffer)
    output = result(is_i32)


class CacheSave(Operation):
    """Keeps what the buffer holds in the user's cache, under this key of the program."""

    name = "ll_seq.cache_save"
    key = attr(IntegerAttr)
    buffer = operand(is_buffer)


class PerShape(Operation):
    """What a function needs once for each set of measured sizes. Lives only inside the phase."""

    name = "ll_seq.per_shape"
    sizes = operands(is_i64)
    body = region()
    outputs = results()


class Setup(Operation):
    """Makes what a function needs for the sizes of a call, which `sizes` names: `argI_J` is axis J of argument I.

    `dims` says what symbols they give (`flow/util.py`).
    """

    name = "ll_seq.setup"
    sym_name = attr(StringAttr)
    sizes = attr(ArrayAttr)
    dims = attr(ArrayAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL})


class SetUp(Operation):
    """What a setup gives for these sizes; it runs when the context does not have that of an earlier call."""

    name = "ll_seq.set_up"
    callee = attr(SymbolRef)
    sizes = operands(is_i64)
    outputs = results()


class Instance(Operation):
    """All that one user of the program does: setup, then `serve` for each function. Lives only inside the phase."""

    name = "ll_seq.instance"
    body = region()
    traits = frozenset({Trait.NO_TERMINATOR})


class Serve(Operation):
    """The run loop of a function: its body serves one request, again and again; what stands before runs once.

    Takes and gives what `function` does, and uses values of the instance. Lives only inside the phase.
    """

    name = "ll_seq.serve"
    sym_name = attr(StringAttr)
    signature = attr(FunctionType)
    arg_attrs = optional(ArrayAttr)
    res_attrs = optional(ArrayAttr)
    dims = optional(ArrayAttr)
    body = region()


class Function(Operation):
    """The run part of an exported function: takes views of arguments and destinations, gives views of results.

    `signature` is the exported one, in tensors. `arg_attrs`, `res_attrs` and `dims`, its symbols, belong to it.
    """

    name = "ll_seq.function"
    sym_name = attr(StringAttr)
    signature = attr(FunctionType)
    arg_attrs = optional(ArrayAttr)
    res_attrs = optional(ArrayAttr)
    dims = optional(ArrayAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL})


class Return(Operation):
    """The results of a function, or what a setup has made."""

    name = "ll_seq.return"
    values = operands()
    traits = frozenset({Trait.TERMINATOR})


#: a range of memory that a command touches: memory, first byte, end, whether it is written
Range = tuple[Value, int, int, bool]


def ranges(op: Operation, entry: Entry | None) -> list[Range]:
    """What a command reads and writes; `entry` is a dispatch's."""
    match op:
        case Copy():
            source, target, length = op.source_offset, op.target_offset, op.length
            return [(op.source, source, source + length, False), (op.target, target, target + length, True)]
        case Fill():
            return [(op.target, op.offset, op.offset + op.length, True)]
        case Dispatch():
            assert entry is not None
            found: list[Range] = []
            for memory, start, binding in zip(op.bindings, op.offsets.ints, entry.bindings, strict=True):
                assert isinstance(binding, DictAttr)
                access = binding.get("access")
                assert isinstance(access, StringAttr)
                found.append((memory, start, start + length_of(binding), "write" in access.value))
            return found
        case _:
            return []


def length_of(binding: Attribute) -> int:
    """The least length of a binding, in bytes."""
    length = binding.get("length") if isinstance(binding, DictAttr) else None
    assert length is not None
    return size_in(length)


def shift(op: Operation, index: int, by: int) -> None:
    """Moves an operand of a command or a read, which is memory, by so many bytes."""
    match op:
        case Dispatch():
            offsets = list(op.offsets.ints)
            offsets[index - 1] += by
            op.offsets = dense_ints(*offsets)
        case Copy() if index == 0:
            op.source_offset += by
        case Copy():
            op.target_offset += by
        case Fill():
            op.offset += by
        case Read():
            assert not isinstance(by, Dim), "predicates are of static size, which goes first"
            op.offset = IntegerAttr(op.offset.value + by, op.offset.type)
        case _:
            raise AssertionError(f"{op.name} does not use memory at an offset")


DIALECT = Dialect(
    "ll_seq",
    [
        Executable, Entry, LoadInput, StoreOutput, End,
        CreateExecutable, Constant, Allocate, Record, Dispatch, Copy, Fill, Barrier,
        Check, Measure, Size, Destination, Storage, Enqueue, Execute, ImportedCall, Read, CacheLoad, CacheSave,
        Instance, Serve, PerShape, Setup, SetUp, Function, Return,
    ],
)  # fmt: skip
