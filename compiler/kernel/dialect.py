"""The kernel dialect: scalar code, structured control flow and flat memory for one invocation of an entry.

Types are the element types of `schema/dtypes.py`; `!ll_seq.binding`, a binding of the entry; `!kernel.shared<64xf32>`,
an array that the invocations of a workgroup share; and `!kernel.vector<8xf32>`, a vector, which the machine of the
target must support (`machine.py`). An index counts elements and is a `ui32`, or a `ui64` in a kernel that addresses
2^31 elements or more. Loads and stores must be in range; code that emits them guards them. The scalar ops are the rows
of `primitives.py`, one class each; they take vectors, too, lane by lane. An `i1` is one byte in memory, 0 or 1.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import ClassVar

from orchestrion.compiler.ir.attributes import BoolAttr, FloatAttr, IntegerAttr, StringAttr, UnitAttr
from orchestrion.compiler.ir.core import Block, Operation, Region, Trait, Value
from orchestrion.compiler.ir.declare import attr, operand, operands, optional, region, result, results
from orchestrion.compiler.ir.dialect import Dialect
from orchestrion.compiler.ir.types import Attribute, Type
from orchestrion.compiler.scalars.lowering import refusal
from orchestrion.compiler.scalars.primitives import PRIMITIVES, Primitive
from orchestrion.compiler.sequencer.ll_seq import BINDING
from orchestrion.schema.dtypes import BOOL, BY_NAME, FLOAT

from .machine import MAX_PARAMETER_WORDS
from .types import VECTOR_LANES as VECTOR_LANES
from .types import dtype_of as dtype_of
from .types import is_carried as is_carried
from .types import is_condition, is_index, is_shared, is_word
from .types import is_scalar as is_scalar
from .types import is_vector as is_vector
from .types import length_of as length_of
from .types import shared_shape as shared_shape
from .types import shared_type as shared_type
from .types import vector_shape as vector_shape
from .types import vector_type as vector_type

PURE = frozenset({Trait.PURE})
#: elements of a wide load
VECTOR = 4


class WorkgroupId(Operation):
    """Linear index of the workgroup: `x + nx * (y + ny * z)`."""

    name = "kernel.workgroup_id"
    output = result(is_index)
    traits = PURE


class LocalId(Operation):
    """Linear index of the invocation in its workgroup."""

    name = "kernel.local_id"
    output = result(is_word)
    traits = PURE


class Parameter(Operation):
    """A parameter word of the dispatch."""

    name = "kernel.parameter"
    ordinal = attr(IntegerAttr)
    output = result(is_word)
    traits = PURE

    def check(self) -> Iterator[str]:
        if not 0 <= self.ordinal.value < MAX_PARAMETER_WORDS:
            yield f"ordinal {self.ordinal.value} is not below {MAX_PARAMETER_WORDS}"


class Constant(Operation):
    """A scalar constant, held as its bits."""

    name = "kernel.constant"
    value = attr(Attribute)
    output = result(is_scalar)
    traits = frozenset({Trait.PURE, Trait.CONSTANT})

    @property
    def bits(self) -> int:
        """The bit pattern, an unsigned number of the type's width."""
        value = self.value
        if isinstance(value, FloatAttr):
            return value.bits
        assert isinstance(value, BoolAttr | IntegerAttr)
        return int(value.value) % (1 << dtype_of(self.output).bits)

    def check(self) -> Iterator[str]:
        value = self.value
        if not isinstance(value, BoolAttr | FloatAttr | IntegerAttr):
            yield f"value {value} is no number"
            return
        given = "i1" if isinstance(value, BoolAttr) else str(value.type)
        if given != str(self.output.type) or isinstance(value, BoolAttr) != (given == "i1"):
            yield f"value {value} of type {given}, result of type {self.output.type}"
        elif isinstance(value, FloatAttr) != (dtype_of(self.output).kind == FLOAT):
            yield f"value {value} is not written as a {given}"


class Load(Operation):
    """The element of a binding at an index."""

    name = "kernel.load"
    binding = operand(BINDING)
    index = operand(is_index)
    output = result(is_scalar)
    traits = frozenset({Trait.REMOVABLE})


class LoadLanes(Operation):
    """As many neighbouring elements of a binding as the vector has lanes, the first at the index; not i1."""

    name = "kernel.load_lanes"
    binding = operand(BINDING)
    index = operand(is_index)
    output = result(is_vector)
    traits = frozenset({Trait.REMOVABLE})

    def check(self) -> Iterator[str]:
        yield from _check_in_memory(self.output)


class LoadBytes(Operation):
    """Four neighbouring bytes of a binding from the index on, as a word, lowest first; or a vector of such words."""

    name = "kernel.load_bytes"
    binding = operand(BINDING)
    index = operand(is_index)
    element = attr(StringAttr)
    output = result(is_carried)
    traits = frozenset({Trait.REMOVABLE})

    def check(self) -> Iterator[str]:
        if self.element.value not in ("i8", "ui8", "ui16"):
            yield f"element {self.element.value} is no part of a word"
        if dtype_of(self.output).name != "ui32":
            yield f"does not give {self.output.type}"


class LoadVector(LoadLanes):
    """As `kernel.load_lanes`, but the index counts vectors."""

    name = "kernel.load_vector"


class Vector(Operation):
    """The vector whose lanes are the operands."""

    name = "kernel.vector"
    values = operands(is_scalar)
    output = result(is_vector)
    traits = PURE

    def check(self) -> Iterator[str]:
        yield from _check_lanes(self.values, self.output)


class Lanes(Operation):
    """The scalars in the lanes of a vector."""

    name = "kernel.lanes"
    vector = operand(is_vector)
    outputs = results(is_scalar)
    traits = PURE

    def check(self) -> Iterator[str]:
        yield from _check_lanes(self.outputs, self.vector)


class _OnFloats(Operation):
    """An op on floats, or vectors of floats, of one type."""

    def check(self) -> Iterator[str]:
        types = {value.type for value in (*self.operands, *self.results)}
        if len(types) > 1 or dtype_of(self.results[0]).kind != FLOAT:
            yield f"does not take {_types(self.operands)} -> {self.results[0].type}"


class MultiplyAdd(_OnFloats):
    """x * y + z of floats, also lane by lane; rounded once if the instruction set can do so, else twice."""

    name = "kernel.multiply_add"
    x = operand(is_carried)
    y = operand(is_carried)
    z = operand(is_carried)
    output = result(is_carried)
    traits = PURE


class Scale(_OnFloats):
    """x * 2^exponent of floats, rounded once; the exponent is a float with an integral value."""

    name = "kernel.scale"
    x = operand(is_scalar)
    exponent = operand(is_scalar)
    output = result(is_scalar)
    traits = PURE


class Everywhere(Operation):
    """True if the condition holds in all invocations that run together, as lanes of vectors."""

    name = "kernel.everywhere"
    condition = operand(is_condition)
    output = result(is_condition)
    traits = PURE


class ByteOffset(Operation):
    """Four bytes that code adds to x before `kernel.multiply_add_bytes`: 128s or zeros, by the instruction set."""

    name = "kernel.byte_offset"
    output = result(is_word)
    traits = PURE


class MultiplyAddBytes(Operation):
    """z + the sum of the 4 products of bytes of x and y, by lane; y is signed, x unsigned unless `byte_offset` is 0."""

    name = "kernel.multiply_add_bytes"
    x = operand(is_vector)
    y = operand(is_vector)
    z = operand(is_vector)
    output = result(is_vector)
    traits = PURE
    element: ClassVar[str] = "i32"

    def check(self) -> Iterator[str]:
        names = [dtype_of(value).name for value in (*self.operands, self.output)]
        lanes = {length_of(value) for value in (*self.operands, self.output)}
        if names != ["ui32", "ui32", self.element, self.element] or len(lanes) > 1 or min(lanes) < 4:
            yield f"does not take {_types(self.operands)} -> {self.output.type}"


class MultiplyAddPairs(MultiplyAddBytes):
    """z + x * y of the upper, then of the lower halves of words, as bf16; each sum is rounded; subnormals are zeros."""

    name = "kernel.multiply_add_pairs"
    element = "f32"


class HasPairProducts(Operation):
    """True if the instruction set has `kernel.multiply_add_pairs`; only branches on this condition may contain it."""

    name = "kernel.has_pair_products"
    output = result(is_condition)
    traits = PURE


class PrefersPanels(Operation):
    """True if processors of the instruction set compute a dot of few rows faster from a copy of its columns."""

    name = "kernel.prefers_panels"
    output = result(is_condition)
    traits = PURE


class Transpose(Operation):
    """Transposes n vectors of n lanes: lane `i` of result `j` is lane `j` of operand `i`."""

    name = "kernel.transpose"
    vectors = operands(is_vector)
    outputs = results(is_vector)
    traits = PURE

    def check(self) -> Iterator[str]:
        types = {value.type for value in (*self.vectors, *self.outputs)}
        shape = vector_shape(self.vectors[0].type) if self.vectors else None
        if shape is None or len(types) > 1 or not len(self.vectors) == len(self.outputs) == shape[0]:
            yield f"does not take {_types(self.vectors)} -> {_types(self.outputs)}"


class Store(Operation):
    """Writes the element of a binding at an index."""

    name = "kernel.store"
    value = operand(is_scalar)
    binding = operand(BINDING)
    index = operand(is_index)


class StoreVector(Operation):
    """Writes a vector to neighbouring elements of a binding. The index counts vectors; not i1."""

    name = "kernel.store_vector"
    value = operand(is_vector)
    binding = operand(BINDING)
    index = operand(is_index)

    def check(self) -> Iterator[str]:
        yield from _check_in_memory(self.value)


class StoreBits(Operation):
    """Atomically sets the masked bits of a word of a binding. Bits of the value outside of the mask are zero."""

    name = "kernel.store_bits"
    value = operand(is_word)
    mask = operand(is_word)
    binding = operand(BINDING)
    index = operand(is_index)


class Shared(Operation):
    """An array that the invocations of a workgroup share, undefined at first; not in loops or branches."""

    name = "kernel.shared"
    output = result(is_shared)

    def check(self) -> Iterator[str]:
        if isinstance(self.parent_op, For | While | If):
            yield f"stands inside a {self.parent_op.name}"


class _SharedAccess(Operation):
    """Loads or stores an element or a vector of a shared array."""

    def check(self) -> Iterator[str]:
        (value,) = self.results or self.operands[:1]
        element = next(dtype_of(array) for array in self.operands if is_shared(array.type))
        if element is not dtype_of(value):
            yield f"{'vector' if is_vector(value.type) else 'element'} of type {value.type}, array of {element}"


class LoadShared(_SharedAccess):
    """The element of a shared array at an index."""

    name = "kernel.load_shared"
    shared = operand(is_shared)
    index = operand(is_word)
    output = result(is_scalar)
    traits = frozenset({Trait.REMOVABLE})


class StoreShared(_SharedAccess):
    """Writes the element of a shared array at an index."""

    name = "kernel.store_shared"
    value = operand(is_scalar)
    shared = operand(is_shared)
    index = operand(is_word)


class LoadSharedLanes(_SharedAccess):
    """As many neighbouring elements of a shared array as the vector has lanes, the first at the index."""

    name = "kernel.load_shared_lanes"
    shared = operand(is_shared)
    index = operand(is_word)
    output = result(is_vector)
    traits = frozenset({Trait.REMOVABLE})


class StoreSharedLanes(_SharedAccess):
    """Writes the lanes of a vector to neighbouring elements of a shared array, the first at the index."""

    name = "kernel.store_shared_lanes"
    vector = operand(is_vector)
    shared = operand(is_shared)
    index = operand(is_word)


class Prefetch(Operation):
    """A hint that an element of `size` bytes is needed soon. The address may lie outside of the binding."""

    name = "kernel.prefetch"
    binding = operand(BINDING)
    index = operand(is_index)
    size = attr(IntegerAttr)


class Barrier(Operation):
    """Waits until all invocations of the workgroup are here; all or none come. Earlier shared writes are visible."""

    name = "kernel.barrier"


class For(Operation):
    """For i = lower, lower + step, ... below upper: the region takes i and carried values, and yields their next."""

    name = "kernel.for"
    lower = operand(is_index)
    upper = operand(is_index)
    step = operand(is_index)
    start = operands(is_carried)
    body = region()
    outputs = results(is_carried)
    traits = frozenset({Trait.ONE_BLOCK})

    def check(self) -> Iterator[str]:
        carried = [value.type for value in self.start]
        if len(types := {str(bound.type) for bound in (self.lower, self.upper, self.step)}) > 1:
            yield f"bounds and step have the types {', '.join(sorted(types))}"
        if [value.type for value in self.outputs] != carried:
            yield f"results {_types(self.outputs)}, carried values {_types(self.start)}"
        arguments = self.body.block.arguments
        if [value.type for value in arguments] != [self.lower.type, *carried]:
            yield f"region arguments {_types(arguments)}, index and carried values {_types((self.lower, *self.start))}"
        yield from _check_yield(self.body, carried)


class While(Operation):
    """Runs the region while a condition holds, at most `most` times; `start` is the first, it yields the next."""

    name = "kernel.while"
    most = operand(is_word)
    start = operand(is_condition)
    body = region()
    traits = frozenset({Trait.ONE_BLOCK})

    def check(self) -> Iterator[str]:
        yield from _check_yield(self.body, [self.start.type], arguments=False)


class If(Operation):
    """Runs the first region if the condition is true, otherwise the second. Results are the values that it yields.

    `rare`: the first region hardly ever runs, so its code should be small.
    """

    name = "kernel.if"
    condition = operand(is_condition)
    yes = region()
    no = region()
    outputs = results(is_scalar)
    rare = optional(UnitAttr)
    traits = frozenset({Trait.ONE_BLOCK})

    def check(self) -> Iterator[str]:
        for arm in (self.yes, self.no):
            yield from _check_yield(arm, [value.type for value in self.outputs], arguments=False)


class Yield(Operation):
    """Ends a region and gives its results."""

    name = "kernel.yield"
    values = operands(is_carried)
    traits = frozenset({Trait.TERMINATOR})


class Return(Operation):
    """Ends an entry."""

    name = "kernel.return"
    traits = frozenset({Trait.TERMINATOR})


class Scalar(Operation):
    """One scalar op, on scalars or lane by lane on vectors; `primitive` is its row."""

    primitive: ClassVar[Primitive]
    output = result(is_carried)
    traits = PURE
    checks_types = True

    def check(self) -> Iterator[str]:
        if not _fits(self.primitive.name, *[value.type for value in (*self.operands, self.output)]):
            yield f"does not take {_types(self.operands)} -> {self.output.type}"


class Call(Operation):
    """A scalar op that is no primitive, also lane by lane. The target writes a function for it, once per executable."""

    name = "kernel.call"
    scalar = attr(StringAttr)
    values = operands(is_carried)
    output = result(is_carried)
    traits = PURE

    def check(self) -> Iterator[str]:
        if message := refusal(self.scalar.value, [dtype_of(value) for value in self.values], dtype_of(self.output)):
            yield message
        varying = [value for value in self.values if not isinstance(value.defining_op, Constant)]
        if len({length_of(value) for value in (*varying, self.output)}) > 1:
            yield f"does not take {_types(self.values)} -> {self.output.type}"


def _scalar_class(row: Primitive) -> type[Scalar]:
    fields = {f"x{position}": operand(is_carried) for position in range(len(row.operands))}
    title = row.name.title().replace("_", "")
    return type(title, (Scalar,), {"name": f"kernel.{row.name}", "primitive": row, "__doc__": row.doc, **fields})


@cache
def _fits(primitive: str, *types: Type) -> bool:
    """Whether a primitive takes operands of these types, the last of which is that of the result."""
    *operands, output = (vector_shape(type) or (1, BY_NAME[str(type)]) for type in types)
    accepted = SCALARS[primitive].primitive.accepts([dtype for _, dtype in operands], output[1])
    return accepted and all(lanes == output[0] for lanes, _ in operands)


def _types(values: Sequence[Value]) -> str:
    return f"({', '.join(str(value.type) for value in values)})"


def _check_in_memory(vector: Value) -> Iterator[str]:
    if is_vector(vector.type) and dtype_of(vector).kind == BOOL:
        yield f"memory holds no {vector.type}"


def _check_lanes(scalars: Sequence[Value], vector: Value) -> Iterator[str]:
    shape = vector_shape(vector.type)
    if shape is not None and [str(value.type) for value in scalars] != [shape[1].name] * shape[0]:
        yield f"scalars {_types(scalars)}, vector of type {vector.type}"


def _check_yield(body: Region, types: list[Type], arguments: bool = True) -> Iterator[str]:
    last = body.block.last
    if body.block.arguments and not arguments:
        yield "a region has arguments"
    if not isinstance(last, Yield):
        yield "region does not end with kernel.yield"
    elif [value.type for value in last.values] != types:
        yield f"region yields {_types(last.values)}, needs ({', '.join(map(str, types))})"


def bits_of(value: Value) -> int | None:
    """The bits of a constant; None for any other value."""
    op = value.defining_op
    return op.bits if isinstance(op, Constant) else None


def yielded(block: Block) -> Sequence[Value]:
    """The values that a region yields."""
    assert isinstance(block.last, Yield)
    return block.last.values


def writes(op: Operation) -> bool:
    """Whether an op writes to a binding or a shared array."""
    return isinstance(op, Store | StoreVector | StoreShared | StoreSharedLanes)


#: name of a primitive -> its operation class
SCALARS: dict[str, type[Scalar]] = {row.name: _scalar_class(row) for row in PRIMITIVES}

DIALECT = Dialect(
    "kernel",
    [
        WorkgroupId, LocalId, Parameter, Constant, Load, LoadVector, LoadLanes, LoadBytes, Store, StoreVector,
        StoreBits, Shared, LoadShared, StoreShared, LoadSharedLanes, StoreSharedLanes, Prefetch, Barrier, Vector, Lanes,
        MultiplyAdd, Scale, Everywhere, ByteOffset, MultiplyAddBytes, MultiplyAddPairs, HasPairProducts, PrefersPanels,
        Transpose, Call, For, While, If, Yield, Return, *SCALARS.values(),
    ],
)  # fmt: skip
