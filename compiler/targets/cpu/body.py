"""Renders ops of `kernel` IR as LLVM IR, for one invocation or for neighbouring invocations in the lanes of vectors.

A value is a scalar if its form (`forms.py`) is known: its base, from which a vector is made where one is needed. Any
other value is a vector. Where lanes take different ways, both are taken with a mask: loads and stores are masked, and
results are selected.
"""

from __future__ import annotations

import operator
from collections import ChainMap
from collections.abc import Callable, Container, Iterable, Mapping, MutableMapping, Sequence
from functools import partial, reduce

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.targets.kernel_target import methods_of
from orchestrion.schema.dtypes import BOOL, BY_NAME, DType

from .by_vectors import fills_registers, from_lane, sums_to_hold, values_from_outside
from .byte_products import add_byte_products
from .code import UNROLLED, Code
from .divisors import safe_divisor
from .forms import Form, Forms
from .levels import Level
from .loop_parts import Part, parts_of
from .masks import all_of, any_of
from .neighbours import Guard, chosen_base, is_near, load_apart, load_guarded
from .row_prefetches import Ahead, ask_for
from .scalars import instruction, literal, memory_type, splat, suffix, type_of
from .scale import scaled
from .squares import (
    Squares,
    difference,
    exchanged,
    load_square,
    squares_of,
    store_woven,
    straight_squares,
    sum_of,
    woven_stores,
)
from .streams import Stream, distance_of, streams_of

#: ops on integers of which results of constants are constants
_FOLDED = {"add": operator.add, "multiply": operator.mul, "and": operator.and_}
#: finds the name of the function of a call, for vectors of some lanes
Callee = Callable[[k.Call, int], str]


class Body:
    """The code of ops. `names`: value -> name of the scalar, vector or address. `callee`: finds functions. `level`:
    None for code without vectors of its own. `sizes`: values of dynamic sizes, which LLVM would move into loops;
    `prefetches`: loads that ask for other memory; `single`: the forms for the lanes of one vector, if this code runs
    those of several.
    """

    def __init__(
        self, code: Code, forms: Forms, names: MutableMapping[Value, str], callee: Callee, level: Level | None = None
    ) -> None:
        self.code, self.forms, self.callee, self.level = code, forms, callee, level
        self.names, self.width = names, forms.width
        self.sizes: Container[Value] = ()
        self.prefetches: Mapping[Operation, Sequence[Ahead]] = {}
        self.streams: dict[tuple[Value, Value], tuple[str, int]] = {}
        self.mask: str | None = None
        self.single: Forms | None = None

    # values

    def scalar(self, value: Value) -> str:
        """The base of a value of known form."""
        op = value.defining_op
        if isinstance(op, k.Constant):
            return literal(op.bits, k.dtype_of(value))
        return self.names[value]

    def vector(self, value: Value) -> str:
        """A value as a vector of all lanes."""
        stride = self.forms[value].stride
        if stride is None or self.width == 1:
            return self.scalar(value)
        dtype = k.dtype_of(value)
        if isinstance(value.defining_op, k.Constant):
            return splat(self.scalar(value), type_of(dtype), self.width)
        same = self.spread(self.scalar(value), type_of(dtype), self.width)
        if not stride:
            return same
        steps = ", ".join(f"{type_of(dtype)} {lane * stride}" for lane in range(self.width))
        return self.code.set(f"add {type_of(dtype, self.width)} {same}, <{steps}>")

    def spread(self, scalar: str, type: str, lanes: int) -> str:
        """A vector with a scalar in all lanes."""
        wide = f"<{lanes} x {type}>"
        one = self.code.set(f"insertelement {wide} poison, {type} {scalar}, i64 0")
        return self.code.set(f"shufflevector {wide} {one}, {wide} poison, <{lanes} x i32> zeroinitializer")

    def formed(self, value: Value, form: Form) -> str:
        """A value as a value of that form is represented."""
        return self.vector(value) if form.stride is None else self.scalar(value)

    def type(self, value: Value) -> str:
        """The LLVM type of the representation of a value."""
        varies = self.forms[value].stride is None
        return type_of(k.dtype_of(value), self.width if varies else k.length_of(value))

    # ops

    def ops(self, ops: Iterable[Operation]) -> None:
        """Renders ops, in order."""
        ops = list(ops)
        far = self.mask is None and self.forms.gathers > 0
        squares = straight_squares(ops, self.forms) if far else {}
        woven = woven_stores(ops, self.forms) if far else {}
        last, sums = sums_to_hold(ops, self.forms, self.level) if self.mask is None else (None, ())
        for op in ops:
            if op in squares:
                self._square(op, squares[op])
            elif op in woven:
                self._weave(woven[op])
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

    def _weave(self, stores: Sequence[k.Store]) -> None:
        """Stores neighbours of all lanes at their last store. `stores`: empty for all stores but the last."""
        for first in stores[:1]:
            dtype, columns = k.dtype_of(first.operands[0]), [self.vector(store.operands[0]) for store in stores]
            at = self.address(first.operands[1], first.operands[2], memory_type(dtype))
            store_woven(self.code, at, columns, dtype, self.width)

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
        if k.length_of(op.output) > 1:
            raise CompileError([Diagnostic("native kernels call no functions on vectors", op.loc, op.name)])
        varies = self.forms[op.output].stride is None
        lanes = self.width if varies else 1
        given = [value for value in op.values if not isinstance(value.defining_op, k.Constant)]
        texts = [f"{type_of(k.dtype_of(v), lanes)} {self.vector(v) if varies else self.scalar(v)}" for v in given]
        type = type_of(k.dtype_of(op.output), lanes)
        self.names[op.output] = self.code.set(f"call {type} @{self.callee(op, lanes)}({', '.join(texts)})")

    def nothing(self, op: Operation) -> None:
        """Constants are written where they are used; the op that opened a region ends it."""

    constant = workgroup_id = local_id = parameter = nothing

    # memory

    def address(self, memory: Value, index: Value, type: str) -> str:
        """The address of the element at the base of an index.

        In masked code it may lie outside of the memory: lane 0 has the index -1 where lane 1 has 0. The index, which is
        below 2^31, is then sign-extended.
        """
        if (memory, index) in self.streams:
            base, place = self.streams[memory, index]
            return self.code.set(f"getelementptr inbounds {type}, ptr {base}, i64 {place}")
        at, itype = self.scalar(index), type_of(k.dtype_of(index))
        if itype != "i64":
            at = self.code.set(f"{'zext' if self.mask is None else 'sext'} {itype} {at} to i64")
        inbounds = "inbounds " if self.mask is None else ""
        return self.code.set(f"getelementptr {inbounds}{type}, ptr {self.names[memory]}, i64 {at}")

    def _addresses(self, memory: Value, index: Value, type: str) -> str:
        """The addresses of the elements at an index that varies. Indices of 32 bits are below 2^31."""
        at, itype = self.vector(index), type_of(k.dtype_of(index), self.width)
        return self.code.set(f"getelementptr inbounds {type}, ptr {self.names[memory]}, {itype} {at}")

    def load(self, op: k.Load | k.LoadShared) -> None:
        memory, index = op.operands
        dtype, stride = k.dtype_of(op.output), self.forms[index].stride
        lanes = 1 if stride == 0 else self.width
        wide = memory_type(dtype, lanes)
        if op in self.forms.guards and self.width > 1:
            found = self._guarded_load(op, self.forms.guards[op], dtype)
        elif self.mask is None and stride not in (0, 1) and is_near(stride, self.width):
            base, type = self.address(memory, index, memory_type(dtype)), memory_type(dtype)
            found = load_apart(self.code, base, stride or 0, type, dtype.itemsize, lanes)
        elif stride == 0 or (stride == 1 and (self.mask is None or self._has_lanes(memory, index))):
            at = self.address(memory, index, memory_type(dtype))
            found = self.code.set(f"load {wide}, ptr {at}, align {dtype.itemsize}")
            for ahead in self.prefetches.get(op, ()) if lanes > 1 else ():
                ask_for(self.code, self.address(ahead.memory, index, f"[{ahead.itemsize} x i8]"), ahead, lanes)
        else:
            found = self._gathered(memory, index, dtype)
        self.names[op.output] = self.flag(found, dtype, lanes)

    def _guarded_load(self, op: k.Load | k.LoadShared, guard: Guard, dtype: DType) -> str:
        """Loads neighbours in the lanes in which they exist. In others the base may lie outside of the memory."""
        code, (memory, index), type = self.code, op.operands, memory_type(dtype)
        at, itype = chosen_base(code, index, self._known), type_of(k.dtype_of(index))
        if itype != "i64":
            at = code.set(f"sext {itype} {at} to i64")
        base = code.set(f"getelementptr {type}, ptr {self.names[memory]}, i64 {at}")
        mask = reduce(self._within, map(self.vector, guard.conditions), self.mask)
        assert mask is not None and self.level is not None
        others = None if self.level.masks and abs(guard.stride) == 1 else partial(self._gathered, memory, index, dtype)
        return load_guarded(code, base, guard.stride, mask, type, dtype.itemsize, self.width, others)

    def _known(self, value: Value) -> str | None:
        """The base of a value of known form; None for any other value."""
        return None if self.forms[value].stride is None else self.scalar(value)

    def _gathered(self, memory: Value, index: Value, dtype: DType) -> str:
        """Loads elements one by one, or neighbours with a mask."""
        wide = memory_type(dtype, self.width)
        name, at, mask = self._masked("load", "gather", memory, index, dtype)
        return self.code.set(f"call {wide} @{name}({at}, {mask}, {wide} zeroinitializer)")

    def _has_lanes(self, memory: Value, index: Value) -> bool:
        """Whether all lanes of a vector are known to be in a shared array. Those outside of the mask then stay as they
        are: a plain load may follow a plain store at once, and waits for a masked one.
        """
        at = self.scalar(index)
        if not isinstance(memory.defining_op, k.Shared) or not at.isdecimal():
            return False
        return int(at) + self.width <= k.length_of(memory)

    def _masked(self, near: str, far: str, memory: Value, index: Value, dtype: DType) -> tuple[str, str, str]:
        """An intrinsic for the lanes of the mask, and its operands: the places of elements, and the mask. `near`: its
        verb for neighbours; `far`: for other elements.
        """
        of = f"v{self.width}{suffix(dtype) if dtype.kind != BOOL else 'i8'}"
        mask = f"<{self.width} x i1> {self.mask or 'splat (i1 true)'}"
        type, align = memory_type(dtype), dtype.itemsize
        if self.forms[index].stride == 1:
            return f"llvm.masked.{near}.{of}.p0", f"ptr align {align} {self.address(memory, index, type)}", mask
        at = f"<{self.width} x ptr> align {align} {self._addresses(memory, index, type)}"
        return f"llvm.masked.{far}.{of}.v{self.width}p0", at, mask

    def flag(self, found: str, dtype: DType, lanes: int) -> str:
        """An element from memory as a value: a byte becomes an i1."""
        if dtype.kind != BOOL:
            return found
        return self.code.set(f"icmp ne {memory_type(dtype, lanes)} {found}, {splat('0', 'i8', lanes)}")

    load_shared = load

    def store(self, op: k.Store | k.StoreShared) -> None:
        value, memory, index = op.operands
        dtype, stride = k.dtype_of(value), self.forms[index].stride
        one_place = stride == 0 and (self.forms[value].stride == 0 or self.width == 1)
        lanes = 1 if one_place else self.width
        given = self.scalar(value) if one_place else self.vector(value)
        if dtype.kind == BOOL:
            given = self.code.set(f"zext {type_of(dtype, lanes)} {given} to {memory_type(dtype, lanes)}")
        wide = memory_type(dtype, lanes)
        if one_place or (stride == 1 and self.mask is None):
            at = self.address(memory, index, memory_type(dtype))
            self.code.do(f"store {wide} {given}, ptr {at}, align {dtype.itemsize}")
            if not one_place and self.level is not None and self.level.prefetches:
                self._ask_ahead(op, at, memory_type(dtype))
        elif stride == 1 and self._has_lanes(memory, index):
            at = self.address(memory, index, memory_type(dtype))
            old = self.code.set(f"load {wide}, ptr {at}, align {dtype.itemsize}")
            new = self.code.set(f"select <{lanes} x i1> {self.mask}, {wide} {given}, {wide} {old}")
            self.code.do(f"store {wide} {new}, ptr {at}, align {dtype.itemsize}")
        else:
            name, at, mask = self._masked("store", "scatter", memory, index, dtype)
            self.code.do(f"call void @{name}({wide} {given}, {at}, {mask})")

    store_shared = store

    def _ask_ahead(self, op: k.Store | k.StoreShared, at: str, type: str) -> None:
        """Asks caches for the place of a store in the next iteration of the outermost loop with a barrier."""
        apart = 0 if isinstance(op, k.StoreShared) else distance_of(op)
        if apart:
            following = self.code.set(f"getelementptr {type}, ptr {at}, i64 {apart}")
            self.code.do(f"call void @llvm.prefetch.p0(ptr {following}, i32 1, i32 3, i32 1)")

    def load_vector(self, op: k.LoadVector) -> None:
        at, align = self._group(op.binding, op.index, op.output), k.dtype_of(op.output).itemsize
        self.names[op.output] = self.code.set(f"load {self.type(op.output)}, ptr {at}, align {align}")

    def _group(self, binding: Value, index: Value, vector: Value) -> str:
        dtype, itype = k.dtype_of(vector), type_of(k.dtype_of(index))
        first = self.code.set(f"mul {itype} {self.scalar(index)}, {k.length_of(vector)}")
        if itype != "i64":
            first = self.code.set(f"zext {itype} {first} to i64")
        return self.code.set(f"getelementptr inbounds {type_of(dtype)}, ptr {self.names[binding]}, i64 {first}")

    def store_vector(self, op: k.StoreVector) -> None:
        at, align = self._group(op.binding, op.index, op.value), k.dtype_of(op.value).itemsize
        self.code.do(f"store {self.type(op.value)} {self.names[op.value]}, ptr {at}, align {align}")

    # vectors that the IR has, in code of one invocation

    def load_lanes(self, op: k.LoadLanes | k.LoadSharedLanes) -> None:
        memory, index = op.operands
        wide, at, align = self._neighbours(op.output, memory, index)
        self.names[op.output] = self.code.set(f"load {wide}, ptr {at}, align {align}")

    load_shared_lanes = load_lanes

    def load_bytes(self, op: k.LoadBytes) -> None:
        binding, index = op.operands
        stride, part = self.forms[index].stride, BY_NAME[op.element.value]
        type, align = memory_type(part), part.itemsize
        if k.is_vector(op.output.type) or stride == 0 or (stride == 4 // align and self.mask is None):
            wide = self.type(op.output)
            text = f"load {wide}, ptr {self.address(binding, index, type)}, align {align}"
        else:
            wide, mask = f"<{self.width} x i32>", f"<{self.width} x i1> {self.mask or 'splat (i1 true)'}"
            at = f"<{self.width} x ptr> align {align} {self._addresses(binding, index, type)}"
            name = f"llvm.masked.gather.v{self.width}i32.v{self.width}p0"
            text = f"call {wide} @{name}({at}, {mask}, {wide} zeroinitializer)"
        self.names[op.output] = self.code.set(text)

    def store_shared_lanes(self, op: k.StoreSharedLanes) -> None:
        wide, at, align = self._neighbours(op.vector, op.shared, op.index)
        self.code.do(f"store {wide} {self.names[op.vector]}, ptr {at}, align {align}")

    def prefetch(self, op: k.Prefetch) -> None:
        at = self.address(op.binding, op.index, f"[{op.size.value} x i8]")
        self.code.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")

    def _neighbours(self, vector: Value, memory: Value, index: Value) -> tuple[str, str, int]:
        """The type of a vector in memory, its address and its alignment."""
        dtype = k.dtype_of(vector)
        return self.type(vector), self.address(memory, index, type_of(dtype)), dtype.itemsize

    def make_vector(self, op: k.Vector) -> None:
        scalars, type = [self.scalar(value) for value in op.values], type_of(k.dtype_of(op.output))
        if len(set(scalars)) == 1:
            self.names[op.output] = self.spread(scalars[0], type, len(scalars))
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
        self.names[op.output] = all_of(self.code, self.vector(op.condition), lanes, bits, 32 * self.level.lanes // bits)

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

    def loop(self, op: k.For) -> None:
        if self.forms.leaves_apart(op):
            self._masked_loop(op)
            return
        if self.single is not None and not op.outputs and fills_registers(list(op.body.block), self.level):
            self._loop_by_vectors(op, self.single)
            return
        for part in parts_of(op, self.level):
            if part.adds and self.mask is None and self.level is not None and self.level.unrolled > 1:
                self._joined_loop(op, part)
            else:
                self._loop_of(op, part)

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
            loop.give([])

    def _loop_of(self, op: k.For, part: Part) -> None:
        """A loop that computes some of the results of a loop."""
        index = op.body.block.arguments[0]
        carried = [op.body.block.arguments[1 + at] for at in part.results]
        lower, upper, step = (self.scalar(bound) for bound in (op.lower, op.upper, op.step))
        wraps = not isinstance(op.step.defining_op, k.Constant) or op.step.defining_op.bits >= 1 << 30
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
        with self.code.counting(type, lower, upper, step, wraps) as loop:
            nodes = [loop.hand(self.type(value), start) for value, start in zip(carried, starts, strict=True)]
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
            loop.give(given)
        self.names.update(zip((op.outputs[at] for at in part.results), nodes, strict=True))
        return nodes

    def _joined_loop(self, op: k.For, part: Part) -> None:
        """A loop that adds products, some iterations of which LLVM joins: loads go along streams."""
        code, index, last = self.code, op.body.block.arguments[0], k.yielded(op.body.block)
        carried = {op.body.block.arguments[1 + at]: at for at in part.results}
        type, (lower, upper, step) = type_of(k.dtype_of(index)), map(self.scalar, (op.lower, op.upper, op.step))
        count = difference(sum_of(op.upper), sum_of(op.lower)) if step == "1" else None
        streams = streams_of(op, part.ops, self.forms) if step == "1" else []
        bases = [self._base_of(stream, type, lower) for stream in streams]
        first, bound = (lower, upper) if count is None else ("0", str(count))
        with code.counting(type, first, bound, step, wraps=count is None, note=UNROLLED) as loop:
            for value, at in carried.items():
                self.names[value] = loop.hand(self.type(value), self.formed(op.start[at], self.forms[value]))
                self.names[op.outputs[at]] = self.names[value]
            pointers = [loop.hand("ptr", base) for base in bases]
            loop.run()
            self.names[index] = loop.counter if first == lower else code.set(f"add {type} {lower}, {loop.counter}")
            for stream, pointer in zip(streams, pointers, strict=True):
                self.streams |= {(stream.memory, at): (pointer, place) for at, place in stream.places.items()}
            self.ops(part.ops)
            self.streams.clear()
            moved = [
                code.set(f"getelementptr {memory_type(stream.dtype)}, ptr {pointer}, i64 {stream.step}")
                for stream, pointer in zip(streams, pointers, strict=True)
            ]
            loop.give([*(self.formed(last[at], self.forms[value]) for value, at in carried.items()), *moved])

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

    def _within(self, outer: str | None, mask: str) -> str:
        """The lanes of a mask that are in an outer one. Lanes outside of that may be poison, which `and` would keep."""
        if outer is None:
            return mask
        flags = f"<{self.width} x i1>"
        return self.code.set(f"select {flags} {outer}, {flags} {mask}, {flags} zeroinitializer")

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
            mask = loop.hand(flags, start)
            self.names[index] = loop.hand(type, lower)
            for value, first, result in zip(carried, firsts, op.outputs, strict=True):
                self.names[value] = self.names[result] = loop.hand(self.type(value), first)
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
            loop.give([self._within(mask, inside), following, *given])
        self.mask = outer

    def branch(self, op: k.If) -> None:
        if self.forms[op.condition].stride != 0:
            if op in self.forms.versioned and self.level is not None and self.level.versions:
                self._versioned_branch(op)
            else:
                self._masked_branch(op)
            return

        def arm(block: Block) -> list[str]:
            self.ops(block)
            return [self.formed(v, self.forms[out]) for v, out in zip(k.yielded(block), op.outputs, strict=True)]

        arms = partial(arm, op.yes.block), partial(arm, op.no.block)
        found = self.code.either(self.scalar(op.condition), *arms, map(self.type, op.outputs))
        self.names.update(zip(op.outputs, found, strict=True))

    def _yielded(self, block: Block) -> list[str]:
        return [self.vector(value) for value in k.yielded(block)]

    def _versioned_branch(self, op: k.If) -> None:
        """If all lanes take the first arm, it runs without masks, which are slow here."""
        flags, code = f"<{self.width} x i1>", self.code
        whole, part, done = code.new("whole"), code.new("part"), code.new("done")
        condition = code.set(f"freeze {flags} {self.vector(op.condition)}")
        code.fork(code.set(f"call i1 @llvm.vector.reduce.and.v{self.width}i1({flags} {condition})"), whole, part)
        code.begin(whole)
        self.ops(op.yes.block)
        values, end = self._yielded(op.yes.block), code.label
        code.jump(done)
        code.begin(part)
        self._masked_branch(op)
        others, other_end = [self.names[output] for output in op.outputs], code.label
        code.jump(done)
        code.begin(done)
        for output, x, y in zip(op.outputs, values, others, strict=True):
            self.names[output] = code.join(self.type(output), (x, end), (y, other_end))

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
