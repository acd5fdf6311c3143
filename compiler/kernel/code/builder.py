"""Builds `kernel` IR: an emitter of scalar ops that also knows memory, loops and branches.

Pure ops are numbered by value: if an equal op exists in this block or one around it, it is used instead of a new one.
Ops on constants are evaluated with the NumPy meaning of the primitives, and integer identities (`x + 0`, `x * 1`) are
removed. Constants are at the top of the entry.

A region is open between `begin_...` and `end_...`. Value numbers of a region are forgotten when it closes. A pure op
whose operands are available in front of a loop is inserted there, so loops contain no invariant ops.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from orchestrion.compiler.ir.attributes import IntegerAttr, StringAttr, UnitAttr
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.dims import Dim, Size
from orchestrion.compiler.ir.locations import UNKNOWN, Location
from orchestrion.compiler.ir.types import ScalarType, scalar
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.machine import PLAIN, Machine
from orchestrion.compiler.scalars.emitter import Number
from orchestrion.compiler.scalars.expand import Expansion
from orchestrion.compiler.scalars.lowering import LoweringEmitter
from orchestrion.compiler.scalars.primitives import Primitive
from orchestrion.schema.dtypes import BY_NAME, FLOAT, SIGNED, UNSIGNED, DType

from . import size_arithmetic
from .folding import array_of, attribute_of, folded, is_nan, unchanged
from .open_regions import OpenIf, OpenLoop, OpenWhile, Scopes

#: least number of ops of an expansion that becomes a function; a shorter one is about as long as its call
LEAST_CALLED = 5
#: op -> comparison that holds if its first operand is the result
EXTREMA = {"maximum": "compare_gt", "minimum": "compare_lt"}


class KernelBuilder(LoweringEmitter[Value]):
    """Appends to `block`, the body of an entry. `index_type`: the type of every element index, ui32 or ui64.

    `machine`: the machine that the kernel is for. `symbols`: the symbols of sizes, in the order of the dispatch
    parameters.
    """

    def __init__(
        self,
        entry: Block,
        index_type: str = "ui32",
        machine: Machine = PLAIN,
        symbols: Sequence[str] = (),
        unroll: int = 1,
    ) -> None:
        self.entry = entry
        self.block = entry
        self.index_type = index_type
        self.machine = machine
        self.unroll = unroll
        self.loc: Location = UNKNOWN
        self.numbering = Scopes()
        self.memo = Scopes()
        self._constants: dict[tuple[int, str], Value] = {}
        self._known: dict[Value, int] = {}
        #: the open regions from the entry inwards, and the number of them that contain a value
        self._open: list[Block] = [entry]
        self._levels: dict[Value, int] = {}
        #: the level from which on only loops are open
        self._in_loops = [0]
        self._last_constant: Operation | None = None
        self._symbols = tuple(symbols)

    @property
    def depth(self) -> int:
        """Number of open regions."""
        return len(self.numbering.stack) - 1

    def is_open(self, region: Block) -> bool:
        """Whether a region is open."""
        return any(block is region for block in self._open)

    def level(self, value: Value) -> int:
        """Number of open regions that contain a value."""
        return self._levels.get(value, 0)

    # scalars

    def dtype(self, value: Value) -> str:
        type = value.type
        return type.name if isinstance(type, ScalarType) else k.dtype_of(value).name

    def bits(self, pattern: int, dtype: str) -> Value:
        found = self._constants.get((pattern, dtype))
        if found is not None:
            return found
        op = k.Constant(result_types=[scalar(dtype)], properties={"value": attribute_of(pattern, BY_NAME[dtype])})
        anchor = self._last_constant.next_op if self._last_constant is not None else self.entry.first
        self.entry.insert_before(op, anchor)
        self._last_constant = op
        self._constants[pattern, dtype] = op.result
        self._known[op.result] = pattern
        return op.result

    def word(self, number: Size | Value) -> Value:
        """A number, a size or a value as a 32-bit word."""
        if isinstance(number, int):
            return self.const(number, "ui32")
        return self.op("convert", number if isinstance(number, Value) else self.index(number), to="ui32")

    def pattern(self, value: Value) -> int | None:
        """The bits of a constant; None for any other value."""
        return self._known.get(value)

    def known(self, value: Value) -> Number | None:
        pattern = self._known.get(value)
        if pattern is None:
            return None
        number: Number = array_of(pattern, BY_NAME[self.dtype(value)])[()].item()
        return number

    def low_bits(self, value: Value, bits: int) -> Value:
        op, mask = value.defining_op, (1 << bits) - 1
        if op is None or op.name not in ("kernel.and", "kernel.bitcast", "kernel.unchecked_shift_right_arithmetic"):
            return value
        first, known = op.operands[0], self._known.get(op.operands[-1])
        if op.name == "kernel.bitcast":
            return self.low_bits(first, bits) if BY_NAME[self.dtype(first)].kind in (SIGNED, UNSIGNED) else value
        if op.name == "kernel.and":
            return value if known is None or known & mask != mask else self.low_bits(first, bits)
        shift = first.defining_op  # x << n >> n extends the sign
        if known is None or known + bits > 32 or shift is None or shift.name != "kernel.unchecked_shift_left":
            return value
        return self.low_bits(shift.operands[0], bits) if self._known.get(shift.operands[1]) == known else value

    def primitive(self, row: Primitive, operands: Sequence[Value], result: DType) -> Value:
        patterns = [self._known.get(operand) for operand in operands]
        if row.name == "select" or patterns.count(None) < len(patterns):
            if (found := unchanged(row, operands, patterns)) is not None:
                return found
            if (bits := folded(row, operands, patterns, result)) is not None:
                return self.bits(bits, result.name)

        key = (row.name, result.name, *operands)
        found = self.numbering.get(key)
        if found is None:
            lanes = k.length_of(operands[0])
            type = scalar(result.name) if lanes == 1 else k.vector_type(lanes, result.name)
            found = self._pure(key, k.SCALARS[row.name](operands, [type]))
        return found

    def expanded(self, name: str, way: Expansion, operands: Sequence[Value], result: DType) -> Value:
        """A call if the machine has functions and the expansion is long; else the ops of the expansion. Vectors are
        expanded lane by lane.
        """
        if k.length_of(operands[0]) > 1:
            lanes = zip(*map(self.lanes, operands), strict=True)
            return self.vector([self.op(name, *values, to=result.name) for values in lanes])
        constants = tuple(self._known.get(operand) for operand in operands)
        if name in EXTREMA and self.machine.chooses_extrema and (found := self._chosen(name, operands)) is not None:
            return found
        if not self.machine.quirks.functions or None not in constants:
            return super().expanded(name, way, operands, result)
        function = Function(name, tuple(map(self.dtype, operands)), constants, result.name)
        if body_of(function).length < LEAST_CALLED:
            return super().expanded(name, way, operands, result)
        key = ("call", name, result.name, *operands)
        found = self.numbering.get(key)
        if found is None:
            call = k.Call(operands, [scalar(result.name)], properties={"scalar": StringAttr(name)})
            found = self._pure(key, call)
        return found

    def _chosen(self, name: str, operands: Sequence[Value]) -> Value | None:
        """The maximum or minimum of a float and a number, by one comparison; None without a number. If the comparison
        does not hold, the float is chosen: NaN, or a zero, whose sign an addition of zero corrects.
        """
        number, x = operands if self._known.get(operands[0]) is not None else operands[::-1]
        bits, dtype = self._known.get(number), BY_NAME[self.dtype(number)]
        if bits is None or dtype.kind != FLOAT or is_nan(bits, dtype):
            return None
        if name == "minimum" and bits == 1 << dtype.bits - 1:  # -0.0 is below 0.0, to no comparison
            return None
        found = self.select(self.op(EXTREMA[name], number, x), number, x)
        return self.op("add", found, number) if name == "maximum" and not bits else found

    def _pure(self, key: Hashable, op: Operation) -> Value:
        """Inserts a pure op in front of the loops in which it is invariant. Returns its value, which the key finds."""
        level = self._in_loops[-1]
        for operand in op.operands:
            level = max(level, self._levels.get(operand, 0))
        self._open[level].append(op)
        op.loc, value = self.loc, op.results[0]
        if level:
            self._levels[value] = level
        self.numbering.set(key, value, level)
        return value

    # control

    def insert(self, op: Operation, level: int = -1) -> Operation:
        """Appends to the open region of that level. Outside of an open loop that means in front of the loop."""
        op.loc = self.loc
        self._open[level].append(op)
        depth = self.depth if level < 0 else level
        if depth:
            self._levels.update(dict.fromkeys(op.results, depth))
        return op

    def begin_loop(self, lower: Value, upper: Value, step: Value, start: Sequence[Value]) -> OpenLoop:
        """Opens a `kernel.for` with carried values that start as `start`."""
        block = Block([lower.type, *(value.type for value in start)])
        loop = OpenLoop((lower, upper, step), list(start), block, self.block)
        self._in_loops.append(self._in_loops[-1])
        self._enter(block)
        return loop

    def end_loop(self, loop: OpenLoop, next_values: Sequence[Value]) -> list[Value]:
        """Closes a loop with the next carried values. Returns the final ones."""
        self._leave(next_values, loop.outer)
        types = [value.type for value in loop.start]
        op = self.insert(k.For([*loop.bounds, *loop.start], types, regions=[Region([loop.block])]))
        return list(op.results)

    def begin_while(self, most: Value, start: Value) -> OpenWhile:
        """Opens a `kernel.while`. Memory changes in it, so invariant ops stay inside."""
        loop = OpenWhile(most, start, self.block)
        self._in_loops.append(len(self._open))
        self._enter(Block())
        return loop

    def end_while(self, loop: OpenWhile, following: Value) -> None:
        """Closes a `kernel.while` with the next condition."""
        block = self.block
        self._leave([following], loop.outer)
        self.insert(k.While([loop.most, loop.start], regions=[Region([block])]))

    def begin_if(self, condition: Value) -> OpenIf:
        """Opens a `kernel.if` with its first arm."""
        branch = OpenIf(condition, self.block)
        branch.arms.append(Block())
        self._in_loops.append(len(self._open))
        self._enter(branch.arms[0])
        return branch

    def begin_else(self, branch: OpenIf, values: Sequence[Value] = ()) -> None:
        """Ends the first arm with its values and opens the second."""
        self._leave(values, branch.outer)
        branch.types = [value.type for value in values]
        branch.arms.append(Block())
        self._in_loops.append(len(self._open))
        self._enter(branch.arms[1])

    def end_if(self, branch: OpenIf, values: Sequence[Value] = ()) -> list[Value]:
        """Closes a `kernel.if` with the values of the last arm. Returns its results."""
        if len(branch.arms) == 1:
            self.begin_else(branch)
        self._leave(values, branch.outer)
        op = k.If([branch.condition], branch.types, regions=[Region([arm]) for arm in branch.arms])
        if branch.rare:
            op.rare = UnitAttr()
        return list(self.insert(op).results)

    @contextmanager
    def words(self, upper: Size | Value, lower: Size | Value = 0, step: Size | Value = 1) -> Iterator[Value]:
        """A loop over words, from `lower` below `upper`: its index."""
        loop = self.begin_loop(self.word(lower), self.word(upper), self.word(step), ())
        yield loop.index
        self.end_loop(loop, ())

    @contextmanager
    def indices(self, upper: Size | Value, lower: Size | Value = 0, step: Size | Value = 1) -> Iterator[Value]:
        """A loop over values of the index type, from `lower` below `upper`: its index."""
        loop = self.begin_loop(self.index(lower), self.index(upper), self.index(step), ())
        yield loop.index
        self.end_loop(loop, ())

    @contextmanager
    def when(self, condition: Value | None, rare: bool = False) -> Iterator[None]:
        """Code that runs if a condition is true, or always if there is none. `rare`: it is hardly ever true."""
        branch = None if condition is None else self.begin_if(condition)
        if branch is not None:
            branch.rare = rare
        yield
        if branch is not None:
            self.end_if(branch)

    def _enter(self, block: Block) -> None:
        self.block = block
        self._open.append(block)
        self._levels.update(dict.fromkeys(block.arguments, len(self._open) - 1))
        self.numbering.push()
        self.memo.push()

    def _leave(self, values: Sequence[Value], outer: Block) -> None:
        self.insert(k.Yield(values))
        self.block = outer
        self._open.pop()
        self._in_loops.pop()
        self.numbering.pop()
        self.memo.pop()

    def branch(
        self, condition: Value, yes: Callable[[], Sequence[Value]], no: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        taken = self.known(condition)
        if taken is not None:
            return list(yes() if taken else no())
        branch = self.begin_if(condition)
        self.begin_else(branch, yes())
        return self.end_if(branch, no())

    def everywhere(
        self, condition: Value, yes: Callable[[], Sequence[Value]], no: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        if not self.asks:
            return super().everywhere(condition, yes, no)
        return self.branch(self.insert(k.Everywhere([condition], [scalar("i1")])).result, yes, no)

    def loop(
        self, count: Value, start: Sequence[Value], body: Callable[[Sequence[Value]], Sequence[Value]]
    ) -> list[Value]:
        upper = self.op("bitcast", count, to="ui32")
        loop = self.begin_loop(self.const(0, "ui32"), upper, self.const(1, "ui32"), start)
        return self.end_loop(loop, body(loop.carried))

    # memory and place

    def index(self, number: Size | Value) -> Value:
        """A number, a size or a value as a value of the index type."""
        if isinstance(number, Value):
            return self.op("convert", number, to=self.index_type)
        return size_arithmetic.emit(self, number) if isinstance(number, Dim) else self.bits(number, self.index_type)

    def place(self, outer: Value, size: Size, inner: Value) -> Value:
        """outer * size + inner, of words or of indices: a position in rows of `size` elements."""
        pitch = self.word(size) if self.dtype(outer) == "ui32" else self.index(size)
        return self.op("add", self.op("multiply", outer, pitch), inner)

    def symbol(self, name: str) -> Value:
        """A symbol of a size as a value of the index type."""
        found = self.numbering.get(("parameter", name))
        if found is None:
            ordinal = IntegerAttr(self._symbols.index(name))
            op = k.Parameter(result_types=[scalar("ui32")], properties={"ordinal": ordinal})
            found = self.insert(op, 0).result
            self.numbering.set(("parameter", name), found, 0)
        return self.op("convert", found, to=self.index_type)

    def _numbered(self, key: Hashable, op: Operation) -> Value:
        found = self.numbering.get(key)
        if found is None:
            found = self.insert(op).result
            self.numbering.set(key, found)
        return found

    def workgroup_id(self) -> Value:
        """The linear index of the workgroup."""
        return self.fact(k.WorkgroupId, self.index_type)

    def local_id(self) -> Value:
        """The linear index of the invocation in its workgroup, a ui32."""
        return self.fact(k.LocalId, "ui32")

    def load(self, binding: Value, index: Value, dtype: str) -> Value:
        """An element of a binding. Loads are numbered, too, because an entry loads everything before it stores."""
        found = self.numbering.get(("load", binding, index, dtype))
        if found is None:
            found = self.insert(k.Load([binding, index], [scalar(dtype)])).result
            self.numbering.set(("load", binding, index, dtype), found)
        return found

    def load_again(self, binding: Value, index: Value, dtype: str) -> Value:
        """An element of a binding that this invocation may have written: always a new load."""
        return self.insert(k.Load([binding, index], [scalar(dtype)])).result

    def load_vector(self, binding: Value, index: Value, dtype: str) -> list[Value]:
        """As `load`, for four neighbours; `index` counts groups of four."""
        keys = [("vector", binding, index, dtype, lane) for lane in range(k.VECTOR)]
        found = [value for key in keys if (value := self.numbering.get(key)) is not None]
        if not found:
            found = self.lanes(self.insert(k.LoadVector([binding, index], [k.vector_type(k.VECTOR, dtype)])).result)
            for key, value in zip(keys, found, strict=True):
                self.numbering.set(key, value)
        return found

    def vector(self, values: Sequence[Value]) -> Value:
        """A vector with these lanes."""
        type = k.vector_type(len(values), self.dtype(values[0]))
        return self._numbered(("lanes", *values), k.Vector(values, [type]))

    def has_multiply_add(self, dtype: str) -> bool:
        """Whether the machine adds products of that type by one op."""
        return self.machine.multiply_add and BY_NAME[dtype].kind == FLOAT

    def multiply_add(self, x: Value, y: Value, z: Value) -> Value:
        """x * y + z, of floats or lane by lane."""
        return self.insert(k.MultiplyAdd([x, y, z], [x.type])).result

    def add_product(self, x: Value, y: Value, z: Value) -> Value:
        """x * y + z, by one op if the machine has it."""
        fuses = self.has_multiply_add(self.dtype(z))
        return self.multiply_add(x, y, z) if fuses else self.op("add", z, self.op("multiply", x, y))

    def fused(self, x: Value, y: Value, z: Value) -> Value:
        return self.multiply_add(x, y, z) if self.fuses else super().fused(x, y, z)

    def scale(self, x: Value, exponent: Value) -> Value:
        return self.insert(k.Scale([x, exponent], [x.type])).result

    def fact(self, op: type[Operation], dtype: str) -> Value:
        """A fact about the instruction set or the invocation, which an op without operands gives."""
        return self._numbered(op.name, op(result_types=[scalar(dtype)]))

    def multiply_add_words(self, op: type[k.MultiplyAddBytes], x: Value, y: Value, z: Value) -> Value:
        """z and the products of the parts of words, lane by lane, by `kernel.multiply_add_bytes` or `_pairs`."""
        return self.insert(op([x, y, z], [z.type])).result

    def load_bytes(self, load: k.Load, lanes: int = 1) -> Value:
        """Four bytes for each lane, as words: neighbours in a binding, the first of which is that of a load."""
        type = scalar("ui32") if lanes == 1 else k.vector_type(lanes, "ui32")
        element = StringAttr(self.dtype(load.output))
        return self.insert(k.LoadBytes([load.binding, load.index], [type], {"element": element})).result

    def transpose(self, vectors: Sequence[Value]) -> list[Value]:
        """The vectors of the lanes of as many vectors as they have lanes."""
        return list(self.insert(k.Transpose(vectors, [vector.type for vector in vectors])).results)

    def load_lanes(self, load: k.Load, lanes: int) -> Value:
        """A vector of neighbouring elements of a binding, the first of which is that of a load."""
        type = k.vector_type(lanes, self.dtype(load.output))
        return self.insert(k.LoadLanes([load.binding, load.index], [type])).result

    def prefetch(self, value: Value) -> None:
        """Prefetches the cache line of a value, if that is a load. The load itself has no user."""
        load = value.defining_op
        if isinstance(load, k.Load):
            size = IntegerAttr(BY_NAME[self.dtype(value)].itemsize, scalar("ui32"))
            self.insert(k.Prefetch([load.binding, load.index], properties={"size": size}))

    def lanes(self, vector: Value) -> list[Value]:
        """The scalars of a vector."""
        return list(self.insert(k.Lanes([vector], [scalar(self.dtype(vector))] * k.length_of(vector))).results)

    def store(self, value: Value, binding: Value, index: Value) -> None:
        """Writes an element of a binding."""
        self.insert(k.Store([value, binding, index]))

    def store_vector(self, values: Sequence[Value], binding: Value, index: Value) -> None:
        """As `store`, for four neighbours; `index` counts groups of four."""
        self.insert(k.StoreVector([self.vector(values), binding, index]))

    def store_bits(self, value: Value, mask: Value, binding: Value, index: Value) -> None:
        """Replaces the bits of a word of a binding that are ones in the mask."""
        self.insert(k.StoreBits([value, mask, binding, index]))

    def shared(self, count: int, dtype: str) -> Value:
        """An array in shared memory."""
        return self.insert(k.Shared(result_types=[k.shared_type(count, dtype)]), 0).result

    def load_shared(self, shared: Value, index: Value) -> Value:
        """An element of a shared array."""
        return self.insert(k.LoadShared([shared, index], [scalar(self.dtype(shared))])).result

    def store_shared(self, value: Value, shared: Value, index: Value) -> None:
        """Writes an element of a shared array."""
        self.insert(k.StoreShared([value, shared, index]))

    def inside(self, shared: Value, place: Value) -> Value:
        """A place in a shared array whose length is a power of two, a word. The mask proves that it is inside."""
        return self.op("and", place, self.const(k.length_of(shared) - 1, "ui32"))

    def load_shared_lanes(self, shared: Value, index: Value, lanes: int) -> Value:
        """A vector of neighbouring elements of a shared array."""
        type = k.vector_type(lanes, self.dtype(shared))
        return self.insert(k.LoadSharedLanes([shared, index], [type])).result

    def store_shared_lanes(self, vector: Value, shared: Value, index: Value) -> None:
        """Writes a vector to neighbouring elements of a shared array."""
        self.insert(k.StoreSharedLanes([vector, shared, index]))

    def barrier(self) -> None:
        """A barrier of the workgroup."""
        self.insert(k.Barrier())


@dataclass(frozen=True, slots=True)
class Function:
    """The function that a `kernel.call` calls. `operands`: element types; `constants`: the bits of constant operands,
    which are no parameters, None for a parameter; `result`: element type.
    """

    scalar: str
    operands: tuple[str, ...]
    constants: tuple[int | None, ...]
    result: str

    @classmethod
    def of(cls, call: k.Call) -> "Function":
        """The function of a call."""
        made = [value.defining_op for value in call.values]
        return cls(
            call.scalar.value,
            tuple(k.dtype_of(value).name for value in call.values),
            tuple(op.bits if isinstance(op, k.Constant) else None for op in made),
            k.dtype_of(call.output).name,
        )


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """The ops of a function, ended by a `kernel.yield` of its result. Its parameters are the arguments of the block.
    `length`: number of ops except constants and the end; `dtypes`: element types of their results.
    """

    block: Block
    length: int
    dtypes: frozenset[DType]


@lru_cache(maxsize=512)
def body_of(function: Function, fuses: bool = False, scales: bool = False, asks: bool = False) -> FunctionBody:
    """The body of a function, in primitives, and in `kernel.multiply_add`, `kernel.scale` and `kernel.everywhere` if
    the target `fuses`, `scales` and `asks`. The result is cached and must not be changed.
    """
    given = [scalar(dtype) for dtype, bits in zip(function.operands, function.constants, strict=True) if bits is None]
    block = Block(given)
    builder, parameters = KernelBuilder(block), iter(block.arguments)
    builder.fuses, builder.scales, builder.asks = fuses, scales, asks
    operands: list[Value] = []
    for dtype, bits in zip(function.operands, function.constants, strict=True):
        operands.append(next(parameters) if bits is None else builder.bits(bits, dtype))
    result = builder.op(function.scalar, *operands, to=function.result)
    builder.insert(k.Yield([result]))
    ops = list(block.walk())
    length = sum(not isinstance(op, k.Constant | k.Yield) for op in ops)
    return FunctionBody(block, length, frozenset(k.dtype_of(value) for op in ops for value in op.results))
