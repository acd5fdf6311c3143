"""Rewrites an entry for a device that lacks integers of some widths.

Scalars become their parts (`scalars.py`), in loops and branches as well. In memory an element keeps its place, so hosts
and other devices see the same bytes, but the code reads and writes 32-bit words only:
- A narrow element, or an i1, is extracted from its word.
- If an invocation stores all elements of a word one after the other, it stores the word. Otherwise it replaces the bits
  of its element (`kernel.store_bits`), because other invocations may store the other elements of the word.
- An invocation that computes one element of a result computes all elements of a word instead (`whole_words.py`).
- A 64-bit element is two words.

A narrow element in shared memory takes a word, and a 64-bit one two words.

An index below the number of elements of a binding fits in 32 bits, because a binding has fewer than 2^32 bytes. So
indices of memory and of loops have a low word only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.effects import erase_dead
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.code.affine import aligned, group_of
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.methods import methods_of
from orchestrion.compiler.scalars.math.number import Number
from orchestrion.compiler.sequencer.level_code import code_of
from orchestrion.compiler.sequencer.ll_seq import Entry, Executable
from orchestrion.schema.dtypes import BOOL, BY_NAME, DType

from .scalars import WIDTHS, WORD, Emulator, wrapped
from .whole_words import Neighbours, WholeWords

BYTE = BY_NAME["ui8"]


def emulate(executable: Operation, features: frozenset[str]) -> Operation:
    """A copy of an `ll_seq.executable` with lowered entries that computes the same without integers that need these
    features (`scalars.WIDTHS`).
    """
    assert isinstance(executable, Executable)
    widths, block = frozenset(WIDTHS[feature] for feature in features), Block()
    for entry in executable.body.block:
        if isinstance(entry, Entry):
            assert entry.workgroup_size is not None
            size = prod(entry.workgroup_size.ints)
            block.append(_with_body(entry, _Rewriter(code_of(entry), widths, size).rewritten()))
    return _with_body(executable, block)


def _with_body(op: Operation, body: Block) -> Operation:
    """A copy of an entry or executable with another body, without dead code."""
    properties = {name: value for name, value in op.properties.items() if name != "code"}
    made = type(op)([], [], properties, op.attributes, [Region([body])], loc=op.loc)
    erase_dead(made)
    return made


class _Rewriter:
    """Copies ops to a new block, op by op. `parts`: value of the old block -> its parts in the new one."""

    def __init__(self, source: Block, widths: frozenset[int], workgroup_size: int) -> None:
        self.source = source
        self.block = Block([argument.type for argument in source.arguments])
        wide = any(isinstance(op, k.WorkgroupId) and k.dtype_of(op.output).bits > WORD for op in source)
        self.b = KernelBuilder(self.block, "ui64" if wide and 2 * WORD not in widths else "ui32")
        self.emulator = Emulator(self.b, widths)
        self.parts: dict[Value, tuple[Value, ...]] = {
            old: (new,) for old, new in zip(source.arguments, self.block.arguments, strict=True)
        }
        self.stored = {op.binding for op in source.walk() if isinstance(op, k.Store | k.StoreVector)}
        self.vectors: dict[Value, list[tuple[Value, ...]]] = {}  #: vector -> the parts of its lanes
        self.done: set[Operation] = set()  #: stores that an earlier one was joined with
        self.whole_words = WholeWords(source, self.narrow, workgroup_size)

    def rewritten(self) -> Block:
        """The new block."""
        self.ops(self.source)
        self.b.insert(k.Return())
        return self.block

    def ops(self, ops: Iterable[Operation]) -> None:
        """Copies ops to the open region."""
        for op in ops:
            self.b.loc = op.loc
            _OPS.get(op.name, _Rewriter.copied)(self, op)

    def copied(self, op: Operation) -> None:
        """An op of which neither operands nor results are emulated."""
        made = self.b.insert(op.clone({old: self.one(old) for old in op.operands}))
        self.parts |= {old: (new,) for old, new in zip(op.results, made.results, strict=True)}

    def one(self, value: Value) -> Value:
        """The only part of a value; the low word of an index."""
        return self.parts[value][0]

    def word(self, value: Value) -> Number:
        """An index as a number."""
        return Number(self.b, self.one(value))

    def lacks(self, dtype: DType) -> bool:
        """Whether elements of a type in memory are emulated."""
        return self.emulator.lacks(BYTE if dtype.kind == BOOL else dtype)

    def narrow(self, dtype: DType) -> int:
        """Elements per word, of which each is emulated as a part of the word; 1 for other types."""
        return WORD // _bits(dtype) if _bits(dtype) < WORD and self.lacks(dtype) else 1

    # scalars

    def scalar_op(self, op: k.Scalar) -> None:
        types, result = [k.dtype_of(value) for value in op.operands], k.dtype_of(op.output)
        if not k.is_vector(op.output.type):
            operands = [self.parts[value] for value in op.operands]
            self.parts[op.output] = self.emulator.primitive(op.primitive, operands, types, result)
            return
        lanes = zip(*(self.vectors[value] for value in op.operands), strict=True)
        self.vectors[op.output] = [self.emulator.primitive(op.primitive, lane, types, result) for lane in lanes]

    def make_vector(self, op: k.Vector) -> None:
        self.vectors[op.output] = [self.parts[value] for value in op.values]

    def lanes(self, op: k.Lanes) -> None:
        self.parts.update(zip(op.outputs, self.vectors[op.vector], strict=True))

    def constant(self, op: k.Constant) -> None:
        self.parts[op.output] = self.emulator.constant(op.bits, k.dtype_of(op.output))

    def workgroup_id(self, op: k.WorkgroupId) -> None:
        if not self.emulator.lacks(k.dtype_of(op.output)):
            return self.copied(op)
        self.parts[op.output] = (self.b.workgroup_id(), self.b.word(0))

    # bindings

    def load(self, op: k.Load) -> None:
        dtype = k.dtype_of(op.output)
        if not self.lacks(dtype):
            return self.copied(op)
        index = self.word(op.index)
        if dtype.bits > WORD:
            first = index * 2
            self.parts[op.output] = (self._word_at(op.binding, first), self._word_at(op.binding, first + 1))
            return
        number, place = self._place(index, dtype)
        word = Number(self.b, self._word_at(op.binding, number))
        self.parts[op.output] = (self._element(word, (place * _bits(dtype)).to("ui32"), dtype),)

    def load_vector(self, op: k.LoadVector) -> None:
        dtype, index, binding = k.dtype_of(op.output), self.word(op.index), self.one(op.binding)
        if not self.lacks(dtype):
            self.vectors[op.output] = [(one,) for one in self.b.load_vector(binding, index.value, dtype.name)]
            return
        if dtype.bits > WORD:
            halves = ((index * 2).value, (index * 2 + 1).value)
            words = [word for half in halves for word in self.b.load_vector(binding, half, "ui32")]
            self.vectors[op.output] = list(zip(words[::2], words[1::2], strict=True))
            return
        lanes: list[tuple[Value, ...]] = []
        count = WORD // dtype.bits
        for at in range(k.VECTOR):
            word = Number(self.b, self._word_at(op.binding, index * (k.VECTOR // count) + at // count))
            lanes.append((self._element(word, word.constant(at % count * dtype.bits), dtype),))
        self.vectors[op.output] = lanes

    def _place(self, index: Number, dtype: DType) -> tuple[Number, Number]:
        """The word of an element of a narrow type, and the number of the element in it."""
        count = self.narrow(dtype)
        known = aligned(self.b, index.value, count)
        if known is None:
            return index >> count.bit_length() - 1, index & count - 1
        return Number(self.b, known[0]), index.constant(known[1])

    def _word_at(self, binding: Value, index: Number) -> Value:
        """A word of a binding. An entry that stores to the binding may load an element again."""
        load = self.b.load_again if binding in self.stored else self.b.load
        return load(self.one(binding), index.value, "ui32")

    def _element(self, word: Number, shift: Number, dtype: DType) -> Value:
        """The element of a narrow type, or i1, from a bit of a word on."""
        bits = word >> shift
        found = (bits & 0xFF).differs(0) if dtype.kind == BOOL else wrapped(bits, dtype.bits, dtype.kind)
        value: Value = found.value
        return value

    def store(self, op: k.Store) -> None:
        if op in self.done:
            return
        group: list[k.Store] = [op]
        while len(group) < self.narrow(k.dtype_of(op.value)) and isinstance(group[-1].next_op, k.Store):
            group.append(group[-1].next_op)
        if all(one.binding is op.binding for one in group) and self._joined(op, [self._stored(one) for one in group]):
            self.done.update(group)
        else:
            self._store_one(op)

    def _store_one(self, op: k.Store) -> None:
        dtype, index, binding = k.dtype_of(op.value), self.word(op.index), self.one(op.binding)
        if not self.lacks(dtype):
            return self.copied(op)
        if dtype.bits > WORD:
            for at, part in enumerate(self.parts[op.value]):
                self.b.store(part, binding, (index * 2 + at).value)
            return None
        number, place = self._place(index, dtype)
        shift = (place * _bits(dtype)).to("ui32")
        value, mask = self._field(self.one(op.value), dtype) << shift, shift.constant((1 << _bits(dtype)) - 1) << shift
        return self.b.store_bits(value.value, mask.value, binding, number.value)

    def _stored(self, op: k.Store) -> tuple[Value, Value]:
        """The value and the index of a store of a narrow element."""
        return self.one(op.value), self.one(op.index)

    def _joined(self, op: k.Store, stored: Sequence[tuple[Value, Value]]) -> bool:
        """Stores a word if these values and indices are those of its elements in order, else nothing."""
        dtype = k.dtype_of(op.value)
        count = self.narrow(dtype)
        number = group_of(self.b, [index for _, index in stored], count) if count > 1 else None
        if number is not None:
            self._store_word([value for value, _ in stored], dtype, op.binding, number)
        return number is not None

    def _store_word(self, values: Sequence[Value], dtype: DType, binding: Value, index: Value) -> None:
        """Stores the narrow values, or i1, of a word."""
        fields = [self._field(value, dtype) for value in values]
        word = fields[0]
        for at, field in enumerate(fields[1:], 1):
            word = word | field << at * (WORD // len(fields))
        self.b.store(word.value, self.one(binding), index)

    def _field(self, value: Value, dtype: DType) -> Number:
        """A narrow value, or i1, as its bits in memory, in the low bits of a `ui32`."""
        number = Number(self.b, value)
        return number.to("ui32") if dtype.kind == BOOL else wrapped(number, dtype.bits, BYTE.kind)

    def store_vector(self, op: k.StoreVector) -> None:
        dtype, index, binding = k.dtype_of(op.value), self.word(op.index), self.one(op.binding)
        lanes = [part for parts in self.vectors[op.value] for part in parts]
        if not self.lacks(dtype):
            return self.b.store_vector(lanes, binding, index.value)
        if dtype.bits > WORD:
            self.b.store_vector(lanes[: k.VECTOR], binding, (index * 2).value)
            return self.b.store_vector(lanes[k.VECTOR :], binding, (index * 2 + 1).value)
        count = WORD // dtype.bits
        each = k.VECTOR // count
        for at in range(each):
            self._store_word(lanes[count * at :][:count], dtype, op.binding, (index * each + at).value)
        return None

    # shared memory

    def shared(self, op: k.Shared) -> None:
        parts = self.emulator.parts_of(k.dtype_of(op.output))
        self.parts[op.output] = (self.b.shared(k.length_of(op.output) * len(parts), parts[0]),)

    def load_shared(self, op: k.LoadShared) -> None:
        array = self.one(op.shared)
        places = self._places(op.index, k.dtype_of(op.output))
        self.parts[op.output] = tuple(self.b.load_shared(array, place) for place in places)

    def store_shared(self, op: k.StoreShared) -> None:
        places = self._places(op.index, k.dtype_of(op.value))
        for part, place in zip(self.parts[op.value], places, strict=True):
            self.b.store_shared(part, self.one(op.shared), place)

    def _places(self, index: Value, dtype: DType) -> list[Value]:
        """The indices of the parts of an element."""
        count = len(self.emulator.parts_of(dtype))
        return [(self.word(index) * count + at).value for at in range(count)]

    # control flow

    def flat(self, values: Sequence[Value]) -> list[Value]:
        """The parts of some values."""
        return [part for value in values for part in self.parts[value]]

    def name(self, values: Sequence[Value], parts: Sequence[Value]) -> None:
        """Notes the parts of values."""
        at = 0
        for value in values:
            count = len(self.emulator.parts_of(k.dtype_of(value)))
            self.parts[value] = tuple(parts[at : at + count])
            at += count

    def loop(self, op: k.For) -> None:
        if (found := self.whole_words.of_loop(op)) is not None:
            return self._loop_of_words(op, found)
        lower, upper, step = (self.one(bound) for bound in (op.lower, op.upper, op.step))
        opened = self.b.begin_loop(lower, upper, step, self.flat(op.start))
        index, *carried = op.body.block.arguments
        self._set_index(index, opened.index)
        self.name(carried, opened.carried)
        self.name(op.outputs, self.b.end_loop(opened, self.arm(op.body.block)))

    def repeat(self, op: k.While) -> None:
        opened = self.b.begin_while(self.one(op.most), self.one(op.start))
        (following,) = self.arm(op.body.block)
        self.b.end_while(opened, following)

    def _set_index(self, index: Value, value: Value) -> None:
        """Gives an index the low word `value`."""
        dtype = k.dtype_of(index)
        wide = self.emulator.lacks(dtype)
        self.parts[index] = (value, self.b.word(0)) if wide else (self.b.op("convert", value, to=dtype.name),)

    def _loop_of_words(self, op: k.For, found: Neighbours) -> None:
        """A loop whose iterations compute `found.count` neighbours each."""
        upper = self.word(op.upper) >> found.count.bit_length() - 1
        opened = self.b.begin_loop(self.one(op.lower), upper.value, self.one(op.step), [])
        self._words(found, Number(self.b, opened.index) * found.count)
        self.b.end_loop(opened, [])

    def _branch_of_words(self, found: Neighbours, number: Number, limit: Number) -> None:
        """A branch for the invocations below a limit, `found.count` neighbours per invocation. The last ones, if they
        are fewer, are stored one by one.
        """
        b, parts, first = self.b, dict(self.parts), number * found.count
        whole = limit >> found.count.bit_length() - 1
        self.parts |= {value: self.emulator.constant(0, k.dtype_of(value)) for value in found.zeros}
        branch = b.begin_if((number < whole).value)
        self._words(found, first)
        b.begin_else(branch)
        if b.known((limit & found.count - 1).value) != 0:
            rest = b.begin_if(number.equals(whole).value)
            opened = b.begin_loop(first.value, limit.value, b.index(1), [])
            self._set_index(found.index, opened.index)
            self.ops([*found.ops, *found.stores])
            b.end_loop(opened, [])
            b.end_if(rest)
        b.end_if(branch)
        self.parts = parts

    def _words(self, found: Neighbours, first: Number) -> None:
        """Computes neighbours from the index `first` on, then stores them."""
        lanes = []
        for at in range(found.count):
            self._set_index(found.index, (first + at).value)
            self.ops(found.ops)
            lanes.append([(self.parts[op.value], self.parts[op.index]) for op in found.stores])
        for number, op in enumerate(found.stores):
            each = self.narrow(k.dtype_of(op.value))
            for at in range(0, found.count, each):
                group = [lane[number] for lane in lanes[at : at + each]]
                if not self._joined(op, [(value[0], index[0]) for value, index in group]):
                    for self.parts[op.value], self.parts[op.index] in group:
                        self._store_one(op)

    def branch(self, op: k.If) -> None:
        if (found := self.whole_words.of_branch(op)) is not None:
            return self._branch_of_words(found, *map(self.word, found.condition))
        opened = self.b.begin_if(self.one(op.condition))
        self.b.begin_else(opened, self.arm(op.yes.block))
        self.name(op.outputs, self.b.end_if(opened, self.arm(op.no.block)))

    def arm(self, block: Block) -> list[Value]:
        """Copies a region without its end. Returns the parts of the values that it yields."""
        self.ops(block)
        return self.flat(k.yielded(block))

    def nothing(self, op: Operation) -> None:
        """The op around a region ends it, `rewritten` the entry."""


def _bits(dtype: DType) -> int:
    """Bits of an element in memory."""
    return 8 * dtype.itemsize


_OPS = methods_of(_Rewriter)
