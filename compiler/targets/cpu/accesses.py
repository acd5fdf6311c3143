"""Renders loads and stores of `kernel` IR as LLVM IR: of one invocation, of neighbouring invocations in the lanes of
vectors, and of vectors that the IR has. The base of `Body`, which renders all other ops.

A value is a scalar if its form (`forms.py`) is known: its base, from which a vector is made where one is needed. Any
other value is a vector. Where lanes take different ways, loads and stores have a mask.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from functools import partial, reduce

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.schema.dtypes import BOOL, BY_NAME, DType

from .code import Code
from .decided import decided, is_decided
from .forms import Form, Forms
from .levels import Level
from .masks import all_of, any_of
from .neighbours import Guard, chosen_base, conjuncts, drop_of, is_near, load_apart, load_masked
from .row_prefetches import Ahead, prefetch_lines
from .scalars import literal, memory_type, splat, suffix, type_of
from .streams import distance_of

#: bytes of the narrowest elements of which levels without masks load some lanes by an instruction
MASKED_BYTES = 4


class Accesses:
    """The code of ops that read or write memory. `names`: value -> name of the scalar, vector or address. `level`: None
    for code without vectors of its own. `prefetches`: loads that ask for other memory; `streams`: memory and index of a
    load in a loop -> a pointer, and elements behind it; `mask`: the lanes that run, or None for all; `dropped`: selects
    whose results are known from the loads that they drop.
    """

    def __init__(self, code: Code, forms: Forms, names: MutableMapping[Value, str], level: Level | None) -> None:
        self.code, self.forms, self.level = code, forms, level
        self.names, self.width = names, forms.width
        self.prefetches: Mapping[Operation, Sequence[Ahead]] = {}
        self.streams: dict[tuple[Value, Value], tuple[str, int]] = {}
        self.mask: str | None = None
        self.dropped = set[Operation]()

    # values

    def scalar(self, value: Value) -> str:
        """The base of a value of known form."""
        known = k.bits_of(value)
        return self.names[value] if known is None else literal(known, k.dtype_of(value))

    def vector(self, value: Value) -> str:
        """A value as a vector of all lanes."""
        stride = self.forms[value].stride
        if stride is None or self.width == 1:
            return self.scalar(value)
        dtype = k.dtype_of(value)
        if isinstance(value.defining_op, k.Constant):
            return splat(self.scalar(value), type_of(dtype), self.width)
        same = self.code.spread(self.scalar(value), type_of(dtype), self.width)
        if not stride:
            return same
        steps = ", ".join(f"{type_of(dtype)} {lane * stride}" for lane in range(self.width))
        return self.code.set(f"add {type_of(dtype, self.width)} {same}, <{steps}>")

    def formed(self, value: Value, form: Form) -> str:
        """A value as a value of that form is represented."""
        return self.vector(value) if form.stride is None else self.scalar(value)

    def type(self, value: Value) -> str:
        """The LLVM type of the representation of a value."""
        varies = self.forms[value].stride is None
        return type_of(k.dtype_of(value), self.width if varies else k.length_of(value))

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
                prefetch_lines(self.code, self.address(ahead.memory, index, f"[{ahead.itemsize} x i8]"), ahead, lanes)
        else:
            found = self._gathered(memory, index, dtype)
        self.names[op.output] = self.flag(found, dtype, lanes)

    def _guarded_load(self, op: k.Load | k.LoadShared, guard: Guard, dtype: DType) -> str:
        """Loads neighbours in the lanes in which they exist. In others the base may lie outside of the memory. If
        scalars decide for nearly all vectors, also drops the others.
        """
        code, (memory, index), type, level = self.code, op.operands, memory_type(dtype), self.level
        at, itype = chosen_base(code, index, self._known), type_of(k.dtype_of(index))
        if itype != "i64":
            at = code.set(f"sext {itype} {at} to i64")
        base = code.set(f"getelementptr {type}, ptr {self.names[memory]}, i64 {at}")
        wide, place = memory_type(dtype, self.width), (type, dtype.itemsize, self.width)
        assert level is not None
        has_masks = abs(guard.stride) == 1 and (level.masks or (level.decides and dtype.itemsize >= MASKED_BYTES))
        if has_masks and level.masks:
            return load_masked(code, base, guard.stride, self._holds(guard.conditions), *place)
        drop = drop_of(op, guard) if level.decides and self.mask is None and dtype.kind != BOOL else None
        if drop is not None and not is_decided(drop.operands[:1], self.forms.stride):
            drop = None
        conditions = guard.conditions if drop is None else tuple(conjuncts(drop.operands[0]))

        def some() -> list[str]:
            mask = self._holds(conditions)
            if not has_masks:
                return [without(mask, self._gathered(memory, index, dtype))]
            masked = partial(load_masked, code, base, guard.stride, mask, *place)
            any_lane = any_of(code, mask, self.width)  # to load no lane takes hundreds of cycles far from the memory
            return code.either(any_lane, lambda: [without(mask, masked())], lambda: [others()], [wide])

        def without(mask: str, found: str) -> str:
            flags = f"<{self.width} x i1>"
            return found if drop is None else code.set(f"select {flags} {mask}, {wide} {found}, {wide} {others()}")

        def others() -> str:
            return "zeroinitializer" if drop is None else self.vector(drop.operands[2])

        plain = partial(load_apart, code, base, guard.stride, *place)
        (found,) = code.either(self._in_all_lanes(conditions), lambda: [plain()], some, [wide])
        if drop is not None:
            self.names[drop.output] = found
            self.dropped.add(drop)
        return found

    def _holds(self, conditions: Sequence[Value]) -> str:
        """The lanes that run and in which conditions hold."""
        mask = reduce(self._within, map(self.vector, conditions), self.mask)
        assert mask is not None
        return mask

    def _in_all_lanes(self, conditions: Sequence[Value]) -> str:
        """Whether conditions hold in all lanes. Scalars that decide it may say no instead."""
        assert self.level is not None, "code with versions has a level"
        if self.mask is None and self.level.decides and is_decided(conditions, self.forms.stride):
            return decided(self.code, conditions, True, self.width, self.forms.stride, self.scalar)
        return all_of(self.code, self._holds(conditions), self.width, self.level)

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
                self._prefetch_next_strip(op, at, memory_type(dtype))
        elif stride == 1 and self._has_lanes(memory, index):
            at = self.address(memory, index, memory_type(dtype))
            old = self.code.set(f"load {wide}, ptr {at}, align {dtype.itemsize}")
            new = self.code.set(f"select <{lanes} x i1> {self.mask}, {wide} {given}, {wide} {old}")
            self.code.do(f"store {wide} {new}, ptr {at}, align {dtype.itemsize}")
        else:
            name, at, mask = self._masked("store", "scatter", memory, index, dtype)
            self.code.do(f"call void @{name}({wide} {given}, {at}, {mask})")

    store_shared = store

    def _prefetch_next_strip(self, op: k.Store | k.StoreShared, at: str, type: str) -> None:
        """Prefetches the place of a store in the next iteration of the outermost loop with a barrier: that of its last
        element, because the store in front of it prefetches the line in which the first one lies.
        """
        apart = 0 if isinstance(op, k.StoreShared) else distance_of(op)
        if apart:
            following = self.code.set(f"getelementptr {type}, ptr {at}, i64 {apart + self.width - 1}")
            self.code.prefetch(following, write=True)

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
        self.code.prefetch(at)

    def _neighbours(self, vector: Value, memory: Value, index: Value) -> tuple[str, str, int]:
        """The type of a vector in memory, its address and its alignment."""
        dtype = k.dtype_of(vector)
        return self.type(vector), self.address(memory, index, type_of(dtype)), dtype.itemsize

    def _within(self, outer: str | None, mask: str) -> str:
        """The lanes of a mask that are in an outer one. Lanes outside of that may be poison, which `and` would keep."""
        if outer is None:
            return mask
        flags = f"<{self.width} x i1>"
        return self.code.set(f"select {flags} {outer}, {flags} {mask}, {flags} zeroinitializer")
