"""Renders ops of `kernel` IR as LLVM IR, for one invocation or for neighbouring invocations in the lanes of vectors.

A value is a scalar if its form (`forms.py`) is known: its base, from which a vector is made where one is needed. Any
other value is a vector. Where lanes take different ways, both are taken with a mask: loads and stores are masked, and
results are selected.
"""

from __future__ import annotations

import operator
from collections import ChainMap
from collections.abc import Callable, Container, Iterable, Mapping, MutableMapping, Sequence
from functools import partial

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.code.affine import difference, sum_of
from orchestrion.compiler.kernel.methods import methods_of

from .accesses import Accesses
from .by_vectors import fills_registers, from_lane, sums_to_hold, values_from_outside
from .byte_products import add_byte_products
from .code import ROLLED, Code, joined, joins
from .decided import decided, is_decided
from .divisors import safe_divisor
from .forms import Forms
from .levels import Level
from .loop_parts import Part, parts_of, stores_behind
from .masks import all_of, any_of
from .ordered_parts import MOST_JOINED_IN_ORDER, add_by_columns, ordered_parts_of
from .scalars import instruction, memory_type, suffix, type_of
from .scale import scaled
from .squares import (
    Squares,
    exchanged,
    interleaved_stores,
    load_square,
    squares_of,
    store_interleaved,
    straight_squares,
)
from .streams import Stream, streams_of

#: ops on integers of which results of constants are constants
_FOLDED = {"add": operator.add, "multiply": operator.mul, "and": operator.and_}
#: ops that write to bindings
_STORES = k.Store | k.StoreVector
#: most iterations of a loop with branches and without results of which LLVM may write copies
MOST_COPIED = 4
#: finds the name of the function of a call, for vectors of some lanes
Callee = Callable[[k.Call, int], str]


class Body(Accesses):
    """The code of ops. `callee`: finds functions. `sizes`: values of dynamic sizes, which LLVM would move into loops;
    `single`: the forms for the lanes of one vector, if this code runs those of several.
    """

    def __init__(
        self, code: Code, forms: Forms, names: MutableMapping[Value, str], callee: Callee, level: Level | None = None
    ) -> None:
        super().__init__(code, forms, names, level)
        self.callee = callee
        self.sizes: Container[Value] = ()
        self.single: Forms | None = None

    # ops

    def ops(self, ops: Iterable[Operation]) -> None:
        """Renders ops, in order."""
        ops = list(ops)
        far = self.mask is None and self.forms.gathers > 0
        squares = straight_squares(ops, self.forms) if far else {}
        interleaved = interleaved_stores(ops, self.forms) if far else {}
        last, sums = sums_to_hold(ops, self.forms, self.level) if self.mask is None else (None, ())
        done = set[Operation]()
        for number, op in enumerate(ops):
            if op in done:
                continue
            if op in squares:
                self._square(op, squares[op])
            elif op in interleaved:
                self._interleave(interleaved[op])
            elif isinstance(op, k.For):
                done |= self.loop(op, ops[number + 1 :])
            elif op.name not in _OPS:
                raise CompileError([Diagnostic("native kernels have no such op", op.loc, op.name)])
            else:
                _OPS[op.name](self, op)
            if op is last:
                held = self.code.held(self.type(sums[0]), [self.names[value] for value in sums])
                self.names.update(zip(sums, held, strict=True))

    def _square(self, op: k.Load, loads: Sequence[k.Load]) -> None:
        """Loads a square at its first load. `loads`: one per column; empty for all loads but the first."""
        if not loads:
            return
        columns = self._columns(op, loads.index(op))
        self.names.update((load.output, column) for load, column in zip(loads, columns, strict=True))

    def _interleave(self, stores: Sequence[k.Store]) -> None:
        """Stores neighbours of all lanes at their last store. `stores`: empty for all stores but the last."""
        for first in stores[:1]:
            dtype, columns = k.dtype_of(first.operands[0]), [self.vector(store.operands[0]) for store in stores]
            at = self.address(first.operands[1], first.operands[2], memory_type(dtype))
            store_interleaved(self.code, at, columns, dtype, self.width)

    def _columns(self, op: k.Load, place: int) -> list[str]:
        """The columns of the square in which a load has this place."""
        memory, index = op.operands
        dtype, stride = k.dtype_of(op.output), self.forms[index].stride
        first = self.address(memory, index, memory_type(dtype))
        if place:
            first = self.code.set(f"getelementptr inbounds {memory_type(dtype)}, ptr {first}, i64 {-place}")
        assert stride is not None
        return load_square(self.code, first, stride, dtype, self.width)

    def scalar_op(self, op: k.Scalar) -> None:
        varies = self.forms[op.output].stride is None
        get, lanes = (self.vector, self.width) if varies else (self.scalar, k.length_of(op.output))
        subject, result = k.dtype_of(op.operands[-1]), k.dtype_of(op.output)
        name = op.primitive.name
        if op in self.dropped:
            self.dropped.remove(op)
            return
        if name == "select":
            self.names[op.output] = self._select(op, varies)
            return
        operands = [get(operand) for operand in op.operands]
        if name in ("unchecked_divide", "unchecked_remainder"):
            if not isinstance(op.operands[1].defining_op, k.Constant):
                operands[1] = safe_divisor(self.code, operands[0], operands[1], subject, lanes)
        if name in _FOLDED and lanes == 1 and all(text.isdecimal() for text in operands):
            self.names[op.output] = str(_FOLDED[name](*map(int, operands)) & (1 << result.bits) - 1)
            return
        text = instruction(name, operands, subject, result, lanes)
        self.names[op.output] = operands[0] if text is None else self.code.set(text)
        if name == "multiply" and op.output in self.sizes and lanes == 1:
            self.names[op.output] = self.code.opaque(type_of(result), self.names[op.output])

    def _select(self, op: k.Scalar, varies: bool) -> str:
        condition, yes, no = op.operands
        by_lane = varies and self.forms[condition].stride is None
        flag = self.vector(condition) if by_lane else self.scalar(condition)
        flags, type = self.type(condition), self.type(op.output)
        x, y = (self.vector(v) if varies else self.scalar(v) for v in (yes, no))
        found = self.code.set(f"select {flags} {flag}, {type} {x}, {type} {y}")
        return self.code.opaque(type, found) if op.output in self.sizes and not varies else found

    def call(self, op: k.Call) -> None:
        varies = self.forms[op.output].stride is None
        lanes = self.width if varies else k.length_of(op.output)
        given = [value for value in op.values if not isinstance(value.defining_op, k.Constant)]
        texts = [f"{type_of(k.dtype_of(v), lanes)} {self.vector(v) if varies else self.scalar(v)}" for v in given]
        type = type_of(k.dtype_of(op.output), lanes)
        self.names[op.output] = self.code.set(f"call {type} @{self.callee(op, lanes)}({', '.join(texts)})")

    def nothing(self, op: Operation) -> None:
        """Constants are written where they are used; the op that opened a region ends it."""

    constant = workgroup_id = local_id = parameter = nothing

    def make_vector(self, op: k.Vector) -> None:
        scalars, type = [self.scalar(value) for value in op.values], type_of(k.dtype_of(op.output))
        if len(set(scalars)) == 1:
            self.names[op.output] = self.code.spread(scalars[0], type, len(scalars))
            return
        made = "poison"
        for lane, scalar in enumerate(scalars):
            made = self.code.set(f"insertelement {self.type(op.output)} {made}, {type} {scalar}, i64 {lane}")
        self.names[op.output] = made

    def lanes(self, op: k.Lanes) -> None:
        wide, vector = self.type(op.vector), self.names[op.vector]
        for lane, output in enumerate(op.outputs):
            self.names[output] = self.code.set(f"extractelement {wide} {vector}, i64 {lane}")

    def transpose(self, op: k.Transpose) -> None:
        found = exchanged(self.code, [self.names[value] for value in op.vectors], self.type(op.outputs[0]))
        self.names.update(zip(op.outputs, found, strict=True))

    def multiply_add(self, op: k.MultiplyAdd) -> None:
        varies, dtype = self.forms[op.output].stride is None, k.dtype_of(op.output)
        lanes = self.width if varies else k.length_of(op.output)
        type, (x, y, z) = self.type(op.output), map(self.vector if varies else self.scalar, op.operands)
        if self.level is not None and self.level.fused:
            text = f"call {type} @llvm.fma.{suffix(dtype, lanes)}({type} {x}, {type} {y}, {type} {z})"
        else:
            text = f"fadd {type} {self.code.set(f'fmul {type} {x}, {y}')}, {z}"
        self.names[op.output] = self.code.set(text)

    def scale(self, op: k.Scale) -> None:
        """Instructions take 512 bits or less: wider vectors are scaled in parts."""
        dtype, lanes = k.dtype_of(op.output), self.width if self.forms[op.output].stride is None else 1
        x, exponent = (self.vector(value) if lanes > 1 else self.scalar(value) for value in op.operands)
        self.names[op.output] = scaled(self.code, x, exponent, dtype, lanes)

    def everywhere(self, op: k.Everywhere) -> None:
        assert self.level is not None, "functions have a level"
        lanes = self.width if self.forms[op.condition].stride is None else 1
        test = op.condition.defining_op
        bits = k.dtype_of(test.operands[0]).bits if isinstance(test, k.Scalar) else 32
        self.names[op.output] = all_of(self.code, self.vector(op.condition), lanes, self.level, bits)

    def byte_offset(self, op: k.ByteOffset) -> None:
        signed = self.level is None or self.level.byte_products != "vnni"
        self.names[op.output] = "0" if signed else str(0x80808080)

    def multiply_add_bytes(self, op: k.MultiplyAddBytes) -> None:
        assert self.level is not None, "code with vectors of its own has a level"
        names = [self.names[value] for value in op.operands]
        self.names[op.output] = add_byte_products(self.code, self.level, k.length_of(op.output), names)

    def has_pair_products(self, op: k.HasPairProducts) -> None:
        self.names[op.output] = "true" if self.level is not None and self.level.pair_products else "false"

    def prefers_panels(self, op: k.PrefersPanels) -> None:
        self.names[op.output] = "true" if self.level is not None and self.level.prefers_panels else "false"

    def multiply_add_pairs(self, op: k.MultiplyAddPairs) -> None:
        assert self.level is not None and self.level.pair_products, "code on the condition that the level has it"
        lanes, (x, y, z) = k.length_of(op.output), (self.names[value] for value in op.operands)
        wide, half = f"<{lanes} x float>", f"<{2 * lanes} x bfloat>"
        x, y = (self.code.set(f"bitcast <{lanes} x i32> {word} to {half}") for word in (x, y))
        name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
        self.names[op.output] = self.code.set(f"call {wide} @{name}({wide} {z}, {half} {x}, {half} {y})")

    # control

    def loop(self, op: k.For, after: Sequence[Operation] = ()) -> set[Operation]:
        """A loop, and those of the ops behind it that run behind a part of it; returns them."""
        if self.forms.splits_whole_vectors(op):
            self._masked_loop(op)
            return set()
        if self.single is not None and not op.outputs and fills_registers(list(op.body.block), self.level):
            self._loop_by_vectors(op, self.single)
            return set()
        parts, unrolled = parts_of(op, self.level), self.level.unrolled if self.level is not None else 1
        if unrolled == 1 or self.mask is not None or not all(part.adds for part in parts):
            for part in parts:
                self._loop_of(op, part)
            return set()
        if self.level is not None:
            parts = ordered_parts_of(op, parts, self.level)
        behind = stores_behind(op, parts, after)
        for part, ops in zip(parts, behind, strict=True):
            self._joined_loop(op, part, unrolled)
            self.ops(ops)
        return {each for ops in behind for each in ops}

    def _loop_by_vectors(self, op: k.For, single: Forms) -> None:
        """A loop without results of which each iteration runs one vector after the other."""
        lower, upper, step = (self.scalar(bound) for bound in (op.lower, op.upper, op.step))
        outer = [value for value in values_from_outside(op) if value in self.names]
        with self.code.counting(type_of(k.dtype_of(op.lower)), lower, upper, step) as loop:
            loop.run()
            self.names[op.body.block.arguments[0]] = loop.counter
            for at in range(0, self.width, single.width):
                names = {v: from_lane(self.code, v, self.names[v], self.forms, at, single) for v in outer}
                part = Body(self.code, single, ChainMap(names, self.names), self.callee, self.level)
                part.sizes, part.prefetches = self.sizes, self.prefetches
                part.ops(op.body.block)
            loop.yield_values([])

    def _loop_of(self, op: k.For, part: Part) -> None:
        """A loop that computes some of the results of a loop."""
        index = op.body.block.arguments[0]
        carried = [op.body.block.arguments[1 + at] for at in part.results]
        lower, upper, step = (self.scalar(bound) for bound in (op.lower, op.upper, op.step))
        step_bits = k.bits_of(op.step)
        wraps = step_bits is None or step_bits >= 1 << 30
        starts = [self.formed(op.start[at], self.forms[value]) for at, value in zip(part.results, carried, strict=True)]
        whole = self.mask is None and len(part.results) == len(op.outputs)
        squares = squares_of(op, self.forms) if whole else None
        if squares is not None:
            type = type_of(k.dtype_of(index))
            middle = str(int(lower) + squares.whole) if lower.isdecimal() else self.code.set(
                f"add {type} {lower}, {squares.whole}")  # fmt: skip
            starts = self._iterate(op, part, lower, middle, str(squares.turns), False, starts, squares)
            if squares.whole == squares.count:
                return
            lower = middle
        self._iterate(op, part, lower, upper, step, wraps, starts, None)

    def _iterate(
        self,
        op: k.For,
        part: Part,
        lower: str,
        upper: str,
        step: str,
        wraps: bool,
        starts: list[str],
        squares: Squares | None,
    ) -> list[str]:
        """A loop over some iterations, one or those of a square at a time. Returns the results."""
        index, last = op.body.block.arguments[0], k.yielded(op.body.block)
        carried = [op.body.block.arguments[1 + at] for at in part.results]
        type = type_of(k.dtype_of(index))
        with self.code.counting(type, lower, upper, step, wraps, self._note_of(op, step)) as loop:
            nodes = [loop.carry(self.type(value), start) for value, start in zip(carried, starts, strict=True)]
            loop.run()
            given, columns = nodes, dict[int, list[str]]()
            for turn in range(squares.turns if squares is not None else 1):
                self.names[index] = self.code.set(f"add {type} {loop.counter}, {turn}") if turn else loop.counter
                self.names.update(zip(carried, given, strict=True))
                if squares is None:
                    self.ops(part.ops)
                else:
                    self._turn(part.ops, squares, turn, columns)
                yielded = zip(part.results, carried, strict=True)
                given = [self.formed(last[at], self.forms[value]) for at, value in yielded]
            loop.yield_values(given)
        self.names.update(zip((op.outputs[at] for at in part.results), nodes, strict=True))
        return nodes

    def _note_of(self, op: k.For, step: str) -> str:
        """The note of a loop. LLVM does not copy branches of iterations, if these have results or write to bindings; of
        few iterations without results it may.
        """
        inner = list(op.body.block.walk())
        copies = self.level is None or self.level.unrolled == 1 or not any(isinstance(one, k.If) for one in inner)
        if copies or not (op.outputs or any(isinstance(one, _STORES) for one in inner)):
            return ""
        count = difference(sum_of(op.upper), sum_of(op.lower))
        few = count is not None and step.isdecimal() and count <= MOST_COPIED * int(step)
        return "" if few and not op.outputs else ROLLED

    def _joined_loop(self, op: k.For, part: Part, unrolled: int) -> None:
        """A loop that adds products, about `unrolled` iterations of which LLVM joins: loads go along streams. What is
        left of a known number of iterations follows it, as a way out of joined iterations keeps LLVM from ordering
        them.
        """
        code, index = self.code, op.body.block.arguments[0]
        carried: dict[Value, int] = {op.body.block.arguments[1 + at]: at for at in part.results}
        type, (lower, upper, step) = type_of(k.dtype_of(index)), map(self.scalar, (op.lower, op.upper, op.step))
        count = difference(sum_of(op.upper), sum_of(op.lower)) if step == "1" else None
        streams = streams_of(op, part.ops, self.forms) if step == "1" else []
        streams = [stream for stream in streams if all(term in self.names for term in stream.terms)]
        bases = [self._base_of(stream, type, lower) for stream in streams]
        number = joined(unrolled, count, MOST_JOINED_IN_ORDER) if part.ordered else joined(unrolled, count)
        rest = (count or 0) % number
        first, bound = (lower, upper) if count is None else ("0", str(count - rest))
        with code.counting(type, first, bound, step, wraps=count is None, note=joins(number)) as loop:
            for value, at in carried.items():
                self.names[value] = loop.carry(self.type(value), self.formed(op.start[at], self.forms[value]))
                self.names[op.outputs[at]] = self.names[value]
            pointers = [loop.carry("ptr", base) for base in bases]
            loop.run()
            self.names[index] = loop.counter if first == lower else code.set(f"add {type} {lower}, {loop.counter}")
            self._stream_ops(part, dict(zip(pointers, streams, strict=True)))
            moved = [
                code.set(f"getelementptr {memory_type(stream.dtype)}, ptr {pointer}, i64 {stream.step}")
                for stream, pointer in zip(streams, pointers, strict=True)
            ]
            loop.yield_values([*self._given(op, carried).values(), *moved])
        for turn in range(rest):
            self.names[index] = code.set(f"add {type} {lower}, {int(bound) + turn}")
            self.names.update((value, self.names[op.outputs[at]]) for value, at in carried.items())
            self._stream_ops(part, dict(zip(pointers, streams, strict=True)), turn)
            self.names.update((op.outputs[at], text) for at, text in self._given(op, carried).items())

    def _stream_ops(self, part: Part, streams: Mapping[str, Stream], turn: int = 0) -> None:
        """Ops of an iteration of a part, whose loads go along streams. `streams`: by the pointers of the iteration
        `turn` turns before.
        """
        for pointer, stream in streams.items():
            places = ((at, place + turn * stream.step) for at, place in stream.places.items())
            self.streams |= {(stream.memory, at): (pointer, place) for at, place in places}
        if part.ordered:
            add_by_columns(self, part.ops, self.ops)
        else:
            self.ops(part.ops)
        self.streams.clear()

    def _given(self, op: k.For, carried: Mapping[Value, int]) -> dict[int, str]:
        """The values that an iteration yields, by their numbers. `carried`: values -> their numbers."""
        last = k.yielded(op.body.block)
        return {at: self.formed(last[at], self.forms[value]) for value, at in carried.items()}

    def _base_of(self, stream: Stream, type: str, lower: str) -> str:
        """The address of a stream in the first iteration."""
        code, terms = self.code, [(self.scalar(term), factor) for term, factor in stream.terms.items()]
        total = str(stream.constant)
        for value, factor in [*terms, (lower, stream.step)]:
            total = code.set(f"add {type} {total}, {code.set(f'mul {type} {value}, {factor}')}")
        at = total if type == "i64" else code.set(f"zext {type} {total} to i64")
        return code.set(f"getelementptr {memory_type(stream.dtype)}, ptr {self.names[stream.memory]}, i64 {at}")

    def _turn(self, ops: Iterable[Operation], squares: Squares, turn: int, columns: dict[int, list[str]]) -> None:
        """An iteration of a square. `columns`: those of the squares that were loaded."""
        for op in ops:
            if not isinstance(op, k.Load) or op not in squares.places:
                self.ops([op])
                continue
            place = squares.places[op]
            if place.square not in columns:
                columns[place.square] = self._columns(op, place.first)
            self.names[op.output] = columns[place.square][place.first + place.step * turn]

    def _masked_loop(self, op: k.For) -> None:
        """Iterations go on while any lane is in the loop. Values of lanes that left it stay."""
        index, *carried = op.body.block.arguments
        flags, type = f"<{self.width} x i1>", type_of(k.dtype_of(index), self.width)
        lower, upper, step = (self.vector(bound) for bound in (op.lower, op.upper, op.step))
        outer, code = self.mask, self.code
        start = code.set(f"icmp ult {type} {lower}, {upper}")
        start = self._within(outer, start)
        firsts = [self.vector(first) for first in op.start]
        with code.counting("i64", "0", "-1", "1") as loop:
            mask = loop.carry(flags, start)
            self.names[index] = loop.carry(type, lower)
            for value, first, result in zip(carried, firsts, op.outputs, strict=True):
                self.names[value] = self.names[result] = loop.carry(self.type(value), first)
            code.fork(any_of(code, mask, self.width), loop.body, loop.done)
            code.begin(loop.body)
            self.mask = mask
            self.ops(op.body.block)
            given = []
            for value, new in zip(carried, k.yielded(op.body.block), strict=True):
                wide = self.type(value)
                given.append(code.set(f"select {flags} {mask}, {wide} {self.vector(new)}, {wide} {self.names[value]}"))
            following = code.set(f"add {type} {self.names[index]}, {step}")
            inside = code.set(f"icmp ult {type} {following}, {upper}")
            loop.yield_values([self._within(mask, inside), following, *given])
        self.mask = outer

    def branch(self, op: k.If) -> None:
        if self.forms[op.condition].stride != 0:
            versions = self.mask is None and self.level is not None and self.level.versions
            if versions and op in self.forms.versioned:
                self._versioned_branch(op)
            else:
                self._masked_branch(op)
            return

        def arm(block: Block) -> list[str]:
            before = self.code.is_rare
            self.code.is_rare |= op.rare is not None and block is op.yes.block
            self.ops(block)
            self.code.is_rare = before
            return [self.formed(v, self.forms[out]) for v, out in zip(k.yielded(block), op.outputs, strict=True)]

        arms = partial(arm, op.yes.block), partial(arm, op.no.block)
        found = self.code.either(self.scalar(op.condition), *arms, map(self.type, op.outputs))
        self.names.update(zip(op.outputs, found, strict=True))

    def _yielded(self, block: Block) -> list[str]:
        return [self.vector(value) for value in k.yielded(block)]

    def _versioned_branch(self, op: k.If) -> None:
        """If all lanes take the first arm, or scalars decide that all take the second one, it runs without masks, which
        are slow here.
        """
        types = [self.type(output) for output in op.outputs]

        def arm(block: Block) -> list[str]:
            self.ops(block)
            return self._yielded(block)

        def masked() -> list[str]:
            self._masked_branch(op)
            return [self.names[output] for output in op.outputs]

        def second() -> list[str]:
            none = decided(self.code, (op.condition,), False, self.width, self.forms.stride, self.scalar)
            return self.code.either(none, partial(arm, op.no.block), masked, types)

        decides = self.level is not None and self.level.decides and is_decided((op.condition,), self.forms.stride)
        other = second if decides else masked
        found = self.code.either(self._in_all_lanes((op.condition,)), partial(arm, op.yes.block), other, types)
        self.names.update(zip(op.outputs, found, strict=True))

    def _masked_branch(self, op: k.If) -> None:
        """Each arm runs if any lane takes it."""
        flags, outer, code = f"<{self.width} x i1>", self.mask, self.code
        condition = self.vector(op.condition)
        opposite = code.set(f"xor {flags} {condition}, splat (i1 true)")
        results: list[list[str]] = []
        for chosen, arm in ((condition, op.yes.block), (opposite, op.no.block)):
            if arm.first is arm.last:
                results.append(self._yielded(arm))
                continue
            mask = self._within(outer, chosen)
            taken, done, before = code.new("taken"), code.new("done"), code.label
            code.fork(any_of(code, mask, self.width), taken, done)
            code.begin(taken)
            self.mask = mask
            self.ops(arm)
            values, end = self._yielded(arm), code.label
            self.mask = outer
            code.jump(done)
            code.begin(done)
            types = [self.type(output) for output in op.outputs]
            results.append(
                [
                    code.join(type, (value, end), ("zeroinitializer", before))
                    for type, value in zip(types, values, strict=True)
                ]
            )
        for output, yes, no in zip(op.outputs, *results, strict=True):
            type = self.type(output)
            self.names[output] = code.set(f"select {flags} {condition}, {type} {yes}, {type} {no}")


_OPS = methods_of(Body)
