"""The ll_seq dialect: explicit memory, recorded commands, and the binding ABI of executables.

Values are objects of the runtime (`!hal.buffer`, `!hal.view`, `!hal.executable`, `!hal.recording`). The commands in a
`record` region work on buffers from outside and on slots, which each call fills. An `entry` takes bindings: its inputs,
then its outputs.

In functions with dynamic shapes, sizes, offsets and workloads are expressions over the symbols of the function that the
recording belongs to. The function's `setup_func` makes everything that depends on them, once per set of sizes. A
context keeps the results for the sets used last.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final, NamedTuple

from orchestrion.compiler.ir import dims
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
)
from orchestrion.compiler.ir.core import Operation, Trait, Value
from orchestrion.compiler.ir.declare import (
    attr,
    operand,
    operands,
    optional,
    region,
    regions,
    result,
    results,
    size_attr,
    size_in,
)
from orchestrion.compiler.ir.dialect import Dialect, ops_in
from orchestrion.compiler.ir.dims import is_dynamic
from orchestrion.compiler.ir.types import I32, I64, Attribute, DialectType, FunctionType, TensorType, Type
from orchestrion.compiler.stablehlo.ops.function_dims import dim_definitions

BINDING: Final = DialectType("ll_seq.binding")
SLOT: Final = DialectType("ll_seq.slot")
BUFFER: Final = DialectType("hal.buffer")
VIEW: Final = DialectType("hal.view")
EXECUTABLE: Final = DialectType("hal.executable")
RECORDING: Final = DialectType("hal.recording")

#: Type of the value that `read` reads -> its size in bytes.
READ_BYTES: Final[dict[str, int]] = {"i1": 1, "i32": 4}


class Lifetime(NamedTuple):
    """A lifetime of allocations: the kind of initializer that makes them, what they live with, and what they hold."""

    initializer: str
    doc: str


#: Name of a lifetime -> its row.
LIFETIMES: Final[dict[str, Lifetime]] = {
    "constant": Lifetime("program", "the program: what an initializer makes"),
    "setup": Lifetime("program", "one run of an initializer"),
    "variable": Lifetime("context", "a context: a mutable global"),
    "state": Lifetime("context", "a context: what a loop carries, twice"),
    "transient": Lifetime("context", "a context: made and used inside one call"),
}


def is_memory(type: Type) -> bool:
    """!hal.buffer or !ll_seq.slot; !ll_seq.binding in an entry that runs a loop"""
    return type in (BUFFER, SLOT, BINDING)


class Executable(Operation):
    """Entries that the driver builds together."""

    name = "ll_seq.executable"
    sym_name = attr(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.SYMBOL_TABLE, Trait.NO_TERMINATOR})

    def entries(self) -> Iterator[tuple[SymbolRef, Entry]]:
        """Yields each entry with the reference that dispatches use for it."""
        for op in self.body.block.of(Entry):
            yield SymbolRef(self.sym_name.value, (op.sym_name.value,)), op


class Entry(Operation):
    """One entry point: bindings with access and least length in bytes, and a workload.

    `dims` are the symbols in its types, lengths and workload: the parameter words of its dispatches, in order. A
    dispatch passes the symbols of the same names of its own function. `kind` and `schedules` are those of the function
    in `hl_seq`. After lowering an entry also has its workgroup size, the names of the source ops that it computes, the
    main one first, and the tensor type of each binding.
    `predicate`: the number of a binding of one byte. If it is 0, the entry writes nothing.

    The body of an entry may be a `loop`. Its `binding_types` then say which elements copies and fills move. `retyped`
    are the numbers of bindings in whose memory the entry keeps values of several types in turn.

    `shared`, where devices bind few buffers: per binding the number of the device's binding that it lies in. The byte
    offset of each binding that shares one is a further parameter word, in their order behind the symbols.

    `code`, after lowering: the program of the first level whose entry of the same name has the code of this one.

    `specialized` is a list of `Specialization`s: entries that replace this one in calls with small sizes. The first one
    whose bound holds is dispatched. They compute the same results with other code and another number of invocations.
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
    predicate = optional(IntegerAttr)
    shared = optional(DenseArray)
    retyped = optional(DenseArray)
    code = optional(StringAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.ONE_BLOCK})

    def places(self) -> list[tuple[int, int | None]]:
        """Per binding: the device's binding that it lies in, and the parameter word with its offset there, in bytes;
        None for the start of a binding of its own.
        """
        numbers = range(len(self.bindings)) if self.shared is None else self.shared.ints
        words = count(len(self.dims or ()))
        return [(number, next(words) if [*numbers].count(number) > 1 else None) for number in numbers]

    @property
    def parameter_words(self) -> int:
        return len(self.dims or ()) + sum(word is not None for _, word in self.places())


class Specialization(NamedTuple):
    """An entry of the same executable, for calls in which `size` is at most `most`."""

    entry: str
    size: dims.Size
    most: int

    @property
    def attribute(self) -> Attribute:
        """The item of `specialized` for it."""
        return attribute_of(self._asdict())


def specializations_of(entry: Entry) -> list[Specialization]:
    """The items of `specialized`. Raises ValueError for an item that is malformed."""
    rows = []
    for item in entry.specialized or ():
        name, size, most = (item.get(key) if isinstance(item, DictAttr) else None for key in Specialization._fields)
        if not isinstance(name, StringAttr) or not isinstance(size, DimArray) or not isinstance(most, IntegerAttr):
            raise ValueError(f"{item} names no entry, or no size and the most that it may be")
        rows.append(Specialization(name.value, size_in(size), most.value))
    return rows


class Part(Operation):
    """Runs a tensor body on these bindings of the entry around it, each from an offset in bytes, as a dispatch of an
    entry with that body does.
    """

    name = "ll_seq.part"
    kind = optional(StringAttr)
    offsets = attr(DenseArray)
    bindings = operands(BINDING)
    body = region()
    traits = frozenset({Trait.ONE_BLOCK})

    def check(self) -> Iterator[str]:
        if not len(self.offsets) == len(self.bindings) == len(self.body.block.arguments):
            yield f"{len(self.offsets)} offsets, {len(self.bindings)} bindings"


class LoadInput(Operation):
    """Loads the tensor in a binding."""

    name = "ll_seq.load_input"
    binding = operand(BINDING)
    value = result(TensorType)


class StoreOutput(Operation):
    """Stores a tensor into a binding."""

    name = "ll_seq.store_output"
    value = operand(TensorType)
    binding = operand(BINDING)


class End(Operation):
    """Ends an entry or a recording."""

    name = "ll_seq.end"
    traits = frozenset({Trait.TERMINATOR})


class CreateExecutable(Operation):
    """An executable, built for the device."""

    name = "ll_seq.create_executable"
    executable = attr(SymbolRef)
    output = result(EXECUTABLE)


class Constant(Operation):
    """A read-only buffer of `size` bytes: each value at its offset, zeros between them; `label` is its name in the
    module. Or a buffer over a parameter, without values.
    """

    name = "ll_seq.constant"
    label = attr(StringAttr)
    values = attr(ArrayAttr)
    offsets = attr(DenseArray)
    size = attr(IntegerAttr)
    parameter = optional(DictAttr)
    output = result(BUFFER)


class Allocate(Operation):
    """Device memory of `size` bytes with undefined content; `label` is its name in the text.

    `lifetime` is a key of `LIFETIMES`. `live`, for a transient: the positions of its function at which it is live, as
    pairs of first and last.
    """

    name = "ll_seq.allocate"
    label = attr(StringAttr)
    size = size_attr()
    lifetime = attr(StringAttr)
    live = optional(DenseArray)
    output = result(BUFFER)

    def check(self) -> Iterator[str]:
        if self.lifetime.value not in LIFETIMES:
            yield f"lifetime {self.lifetime} is not one of {', '.join(LIFETIMES)}"


class Record(Operation):
    """A recording of the commands in its region; block arguments are the slots that each call fills.

    `may_alias`: pairs of slots that a call may fill with the same buffer, a donated argument and the result in its
    place.
    """

    name = "ll_seq.record"
    may_alias = optional(DenseArray)
    body = region()
    output = result(RECORDING)
    traits = frozenset({Trait.ONE_BLOCK})

    @property
    def alias_pairs(self) -> list[tuple[int, int]]:
        """The pairs of `may_alias`."""
        slots = self.may_alias.ints if self.may_alias is not None else ()
        return list(zip(slots[::2], slots[1::2], strict=True))


class Dispatch(Operation):
    """Runs an entry on its bindings: each is a buffer or slot, from an offset in bytes.

    `spans`, if the entry has `shared`: bytes that a binding of the device which is shared covers, from the start of the
    buffer; any number for others.
    """

    name = "ll_seq.dispatch"
    entry = attr(SymbolRef)
    offsets = attr(DenseArray)
    spans = optional(DenseArray)
    executable = operand(EXECUTABLE)
    bindings = operands(is_memory)

    def check(self) -> Iterator[str]:
        if len(self.offsets) != len(self.operands) - 1:
            yield f"{len(self.offsets)} offsets, {len(self.operands) - 1} bindings"

    def device_bindings(self, entry: Entry) -> list[tuple[Value, dims.Size, dims.Size]]:
        """The device's bindings: buffer or slot, offset and length in bytes. Shared ones begin with their buffer."""
        found: dict[int, tuple[Value, dims.Size, dims.Size]] = {}
        rows = zip(self.bindings, self.offsets.sizes, entry.bindings, entry.places(), strict=True)
        for memory, offset, binding, (number, word) in rows:
            if word is None:
                found[number] = memory, offset, length_of(binding)
            else:
                assert self.spans is not None, "bindings that share a buffer have its span"
                found[number] = memory, 0, self.spans.sizes[number]
        return [found[number] for number in sorted(found)]

    def words(self, entry: Entry) -> list[dims.Size]:
        """The parameter words: the symbols of `entry`, then the offsets of bindings that share one."""
        offsets = zip(self.offsets.sizes, entry.places(), strict=True)
        symbols = [dims.symbol(one.name) for one, _ in dim_definitions(entry.dims)]
        return [*symbols, *(offset for offset, (_, word) in offsets if word is not None)]


class Copy(Operation):
    """Copies `length` bytes."""

    name = "ll_seq.copy"
    source_offset = size_attr()
    target_offset = size_attr()
    length = size_attr()
    source = operand(is_memory)
    target = operand(is_memory)


class Fill(Operation):
    """Repeats the scalar `value` over `length` bytes."""

    name = "ll_seq.fill"
    offset = size_attr()
    length = size_attr()
    value = attr(DenseElements)
    target = operand(is_memory)


class Loop(Operation):
    """Runs the commands of its region while the predicate, the byte at this offset, is not 0. The device reads it
    before each iteration. Writes before each read of it are visible, as behind a barrier, and so are those of the loop
    to the commands after it.

    In an entry or in a batch it runs at most `most` iterations; the predicate then tells whether there are more.
    """

    name = "ll_seq.loop"
    offset = attr(IntegerAttr)
    most = optional(IntegerAttr)
    predicate = operand(is_memory)
    body = region()


class Branch(Operation):
    """Runs the commands of one region. A selector of type `i1`, one byte, selects the first of two if it is not 0; one
    of type `i32` is an index, which selects the last region if it is none of the others. Barriers as for `loop`.
    """

    name = "ll_seq.branch"
    offset = attr(IntegerAttr)
    type = attr(StringAttr)
    selector = operand(is_memory)
    arms = regions()

    def check(self) -> Iterator[str]:
        if self.type.value not in READ_BYTES:
            yield f"reads {self.type}, expected one of {', '.join(READ_BYTES)}"
        elif self.offset.value % READ_BYTES[self.type.value]:
            yield f"offset {self.offset.value} is not a multiple of {READ_BYTES[self.type.value]}"
        least = 2 if self.type.value == "i1" else 1
        if len(self.arms) < least or self.type.value == "i1" and len(self.arms) > least:
            yield f"has {len(self.arms)} arms for a selector of type {self.type.value}"


class Barrier(Operation):
    """Makes the writes of all commands before it visible to all commands after it."""

    name = "ll_seq.barrier"


class Check(Operation):
    """Returns the storage of an argument; fails as the caller's error if element type or static sizes differ from
    `type`.

    Assertions check the sizes that are expressions.
    """

    name = "ll_seq.check"
    type = attr(TensorType)
    view = operand(VIEW)
    output = result(BUFFER)


class Measure(Operation):
    """The size of one axis of a checked argument."""

    name = "ll_seq.measure"
    axis = attr(IntegerAttr)
    view = operand(VIEW)
    output = result(I64)


class Size(Operation):
    """A size as a host value."""

    name = "ll_seq.size"
    value = size_attr()
    output = result(I64)
    traits = frozenset({Trait.PURE})


class Destination(Operation):
    """The view of a result: the given one after a check, or a new one if the given one is null. `sizes`: the sizes of
    the type that are expressions, in order.
    """

    name = "ll_seq.destination"
    type = attr(TensorType)
    view = operand(VIEW)
    sizes = operands(I64)
    output = result(VIEW)

    def check(self) -> Iterator[str]:
        wanted = sum(is_dynamic(size) for size in self.type.shape)
        if len(self.sizes) != wanted:
            yield f"has {len(self.sizes)} sizes for the {wanted} expressions of {self.type}"


class Storage(Operation):
    """The buffer of a view."""

    name = "ll_seq.storage"
    view = operand(VIEW)
    output = result(BUFFER)


class Execute(Operation):
    """Submits a recording with these buffers in its slots, and waits for it."""

    name = "ll_seq.execute"
    recording = operand(RECORDING)
    slots = operands(BUFFER)


class ImportedCall(Operation):
    """Calls a function of another module on whole buffers: those of its arguments, then those of its results."""

    name = "ll_seq.imported_call"
    callee = attr(StringAttr)
    function_type = attr(FunctionType)
    buffers = operands(BUFFER)

    def check(self) -> Iterator[str]:
        wanted = len(self.function_type.inputs) + len(self.function_type.results)
        if len(self.buffers) != wanted:
            yield f"gives {len(self.buffers)} buffers to a function of type {self.function_type}"


class Enqueue(Operation):
    """Adds a recording, with these buffers in its slots, to the batch that the next `execute` submits, in order."""

    name = "ll_seq.enqueue"
    recording = operand(RECORDING)
    slots = operands(BUFFER)


class Read(Operation):
    """Reads a predicate (`i1`, 1 byte) or an index (`i32`, 4 bytes) from a buffer, after all executed recordings."""

    name = "ll_seq.read"
    offset = attr(IntegerAttr)
    type = attr(StringAttr)
    buffer = operand(BUFFER)
    output = result(I32)

    def check(self) -> Iterator[str]:
        if self.type.value not in READ_BYTES:
            yield f"reads {self.type}, expected one of {', '.join(READ_BYTES)}"


class CacheLoad(Operation):
    """1 if the buffer was filled from the user's cache with the bytes that `cache_save` stored under the key, or 0."""

    name = "ll_seq.cache_load"
    key = attr(IntegerAttr)
    buffer = operand(BUFFER)
    output = result(I32)


class CacheSave(Operation):
    """Stores the content of a buffer in the user's cache, under this key of the program."""

    name = "ll_seq.cache_save"
    key = attr(IntegerAttr)
    buffer = operand(BUFFER)


class SetupFunc(Operation):
    """Makes everything that a function needs for one set of sizes; `sizes` names them: `argI_J` is axis J of argument
    I.

    `dims` are the symbols that follow from the sizes (`stablehlo/ops/function_dims.py`).
    """

    name = "ll_seq.setup_func"
    sym_name = attr(StringAttr)
    sizes = attr(ArrayAttr)
    dims = attr(ArrayAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.ONE_BLOCK})


class CallSetup(Operation):
    """The results of a setup function for these sizes; it runs unless the context kept them from an earlier call."""

    name = "ll_seq.call_setup"
    callee = attr(SymbolRef)
    sizes = operands(I64)
    outputs = results()


class Instance(Operation):
    """All work for one user of the program: setup, then a `run_loop` per function. Exists only inside the phase."""

    name = "ll_seq.instance"
    body = region()
    traits = frozenset({Trait.NO_TERMINATOR})


class Exported(Operation):
    """The run part of an exported function: takes views of arguments and destinations, returns views of the results.

    `signature` is the exported signature over tensors; `arg_attrs`, `res_attrs` and its symbols `dims` describe it.
    """

    sym_name = attr(StringAttr)
    signature = attr(FunctionType)
    arg_attrs = optional(ArrayAttr)
    res_attrs = optional(ArrayAttr)
    dims = optional(ArrayAttr)
    body = region()


class RunLoop(Exported):
    """The run loop of a function: the body serves one request, and runs for each; everything before it runs once.

    Uses values of the instance. Exists only inside the phase.
    """

    name = "ll_seq.run_loop"


class Function(Exported):
    """A run part by itself."""

    name = "ll_seq.function"
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL})


class Return(Operation):
    """Returns the results of a function, or of a setup function."""

    name = "ll_seq.return"
    values = operands()
    traits = frozenset({Trait.TERMINATOR})


def access_of(binding: Attribute) -> str:
    access = binding.get("access") if isinstance(binding, DictAttr) else None
    assert isinstance(access, StringAttr)
    return access.value


def length_of(binding: Attribute) -> dims.Size:
    """The least length of a binding, in bytes."""
    length = binding.get("length") if isinstance(binding, DictAttr) else None
    assert length is not None
    return size_in(length)


DIALECT = Dialect("ll_seq", ops_in(globals()))
