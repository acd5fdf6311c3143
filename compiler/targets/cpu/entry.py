"""Renders an entry as an LLVM function that runs a range of workgroups.

The function loads the addresses of its bindings and its parameter words, and loops over workgroups. In a workgroup each
segment (`workgroup.py`) is a loop over the invocations, several at a time in the lanes of vectors where the code allows
it. If only the number of the invocation in the dispatch matters, one loop runs all invocations of all workgroups.

Shared arrays and kept values are on the stack.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from functools import partial
from math import prod

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.signature import Signature
from orchestrion.schema.dtypes import BOOL, UNSIGNED

from .body import Body, Callee
from .code import ROLLED, Code
from .forms import Forms
from .levels import Level
from .row_prefetches import row_prefetches
from .scalars import literal, memory_type, type_of
from .workgroup import Segment, WorkgroupOps

#: most bytes of the stack that an entry may use
MOST_STACK = 384 << 10
#: vectors of a workgroup that run a segment with masks each, if some of its invocations do
FEW = 4
_SCALAR = Forms(1, {})


class EntryText(WorkgroupOps):
    """The text of one entry. `function`: its name in the text."""

    def __init__(self, function: str, block: Block, signature: Signature, level: Level, callee: Callee) -> None:
        facts = {k.HasPairProducts: level.pair_products, k.PrefersPanels: level.prefers_panels}
        absent = tuple(fact for fact, holds in facts.items() if not holds)
        flags = level.masks, level.versions, absent, level.asks
        super().__init__(block, prod(signature.workgroup_size), level.lanes, *flags)
        self.function, self.signature, self.level, self.callee = function, signature, level, callee
        self.code = Code()
        self.stack = 0
        self.sizes = _dynamic_sizes(block)
        self.prefetches = row_prefetches(block) if level.prefetches else {}

    def text(self) -> str:
        """The function."""
        self._load_arguments()
        if self.place is not None:
            self._workgroup(self.block)
        else:
            with self.code.counting("i64", "%begin", "%end", "1") as loop:
                loop.run()
                self._name_workgroup(loop.counter)
                self._workgroup(self.block)
        self.code.do("ret void")
        if self.stack > MOST_STACK:
            raise CompileError(
                f"entry {self.signature.name} needs {self.stack} bytes of the stack for a workgroup, "
                f"{MOST_STACK} are allowed"
            )
        head = f"define hidden void @{self.function}(ptr readonly %arguments, i64 %begin, i64 %end) #0 {{"
        return "\n".join([head, "entry:", *self.code.prologue, *self.code.lines, "}", ""])

    def _load_arguments(self) -> None:
        code = self.code
        for ordinal, binding in enumerate(self.block.arguments):
            at = code.set(f"getelementptr inbounds i8, ptr %arguments, i64 {8 * ordinal}")
            self.names[binding] = code.set(f"load ptr, ptr {at}, align 8")
        first, loaded = 8 * len(self.block.arguments), dict[int, str]()
        for op in self.block.walk(k.Parameter):
            ordinal = op.ordinal.value
            if ordinal not in loaded:
                at = code.set(f"getelementptr inbounds i8, ptr %arguments, i64 {first + 4 * ordinal}")
                loaded[ordinal] = code.set(f"load i32, ptr {at}, align 4")
            self.names[op.output] = loaded[ordinal]

    def _name_workgroup(self, number: str) -> None:
        names: dict[str, str] = {"i64": number}
        for op in self.block.walk(k.WorkgroupId):
            type = type_of(k.dtype_of(op.output))
            if type not in names:
                names[type] = self.code.set(f"trunc i64 {number} to {type}")
            self.names[op.output] = names[type]

    # a workgroup

    def _body(self, forms: Forms, names: MutableMapping[Value, str], level: Level | None = None) -> Body:
        body = Body(self.code, forms, names, self.callee, level)
        body.sizes, body.prefetches = self.sizes, self.prefetches
        return body

    def _common(self, op: Operation) -> None:
        self._body(_SCALAR, self.names, self.level).ops([op])

    def _reserve_shared(self, op: k.Shared) -> None:
        count, dtype = k.length_of(op.output), k.dtype_of(op.output)
        self.names[op.output] = self.code.reserve(f"[{count} x {memory_type(dtype)}]")
        self.stack += count * dtype.itemsize

    def _loop(self, op: k.For) -> None:
        """A loop with barriers, which all invocations run together."""
        index, *carried = op.body.block.arguments
        lower, upper, step = (self._one(bound) for bound in (op.lower, op.upper, op.step))
        common = [self.analysis.is_common(value) for value in carried]
        kept = [(v, s, r) for v, s, r, c in zip(carried, op.start, op.outputs, common, strict=True) if not c]
        for value, _, result in kept:
            self.kept[result] = self.kept[value] = self._reserve(value)
        self._copy([(start, self.kept[value]) for value, start, _ in kept])
        with self.code.counting(type_of(k.dtype_of(index)), lower, upper, step) as loop:
            self.names[index] = loop.counter
            for value, start, result, is_common in zip(carried, op.start, op.outputs, common, strict=True):
                if is_common:
                    name = loop.carry(type_of(k.dtype_of(value)), self._one(start))
                    self.names[value] = self.names[result] = name
            loop.run()
            self._workgroup(op.body.block)
            given = list(zip(carried, k.yielded(op.body.block), common, strict=True))
            self._copy([(new, self.kept[value]) for value, new, is_common in given if not is_common])
            loop.yield_values([self._one(new) for _, new, is_common in given if is_common])

    def _branch(self, op: k.If) -> None:
        """A branch with barriers, which all invocations take alike."""
        flag, common = self._one(op.condition), [value for value in op.outputs if self.analysis.is_common(value)]
        self.kept |= {value: self._reserve(value) for value in op.outputs if value not in common}

        def arm(block: Block) -> list[str]:
            self._workgroup(block)
            given = dict(zip(op.outputs, k.yielded(block), strict=True))
            self._copy([(new, self.kept[value]) for value, new in given.items() if value not in common])
            return [self._one(given[value]) for value in common]

        types = (type_of(k.dtype_of(value)) for value in common)
        arms = partial(arm, op.yes.block), partial(arm, op.no.block)
        self.names.update(zip(common, self.code.either(flag, *arms, types), strict=True))

    def _one(self, value: Value) -> str:
        """A value of which all invocations have the same, as that of the first one."""
        if self.analysis.is_common(value):
            known = k.bits_of(value)
            return self.names[value] if known is None else literal(known, k.dtype_of(value))
        names: MutableMapping[Value, str] = ChainMap({}, self.names)
        body = self._body(_SCALAR, names)
        self._name_place(names, "0")
        body.ops(self._cheap_ops([value]))
        self._load_kept(body, "0", [value])
        return body.scalar(value)

    # memory for each invocation

    def _reserve(self, value: Value) -> str:
        """An array with a value of each invocation."""
        lanes, dtype = k.length_of(value), k.dtype_of(value)
        self.stack += self.size * lanes * dtype.itemsize
        return self.code.reserve(f"[{self.size} x {memory_type(dtype, lanes)}]")

    def _keep(self, body: Body, number: str, value: Value, array: str) -> None:
        """Stores a value to its array."""
        dtype, lanes = k.dtype_of(value), body.width * k.length_of(value)
        type, text = memory_type(dtype, lanes), body.vector(value)
        if dtype.kind == BOOL:
            text = self.code.set(f"zext {type_of(dtype, lanes)} {text} to {type}")
        self.code.do(f"store {type} {text}, ptr {self._slot(value, array, number)}, align {dtype.itemsize}")

    def _slot(self, value: Value, array: str, number: str) -> str:
        element = memory_type(k.dtype_of(value), k.length_of(value))
        return self.code.set(f"getelementptr inbounds {element}, ptr {array}, i64 {number}")

    def _load_kept(self, body: Body, number: str, values: Iterable[Value]) -> None:
        """Loads kept values from their arrays."""
        for value in values:
            if value not in self.kept or value in body.names:
                continue
            at = self._slot(value, self.kept[value], number)
            dtype, lanes = k.dtype_of(value), body.width * k.length_of(value)
            found = self.code.set(f"load {memory_type(dtype, lanes)}, ptr {at}, align {dtype.itemsize}")
            body.names[value] = body.flag(found, dtype, lanes)

    # a loop over invocations

    def _run(self, segment: Segment, keeps: Sequence[tuple[Value, str]]) -> None:
        """A loop over the invocations that run a segment. `keeps`: values that it stores to arrays."""
        needed = self._needed(segment, [value for value, _ in keeps])
        cheap = self._cheap_ops(needed)
        ways = self._ways([*cheap, *segment.ops], [value for value in needed if value in self.kept])
        lower, upper, count = self._range(segment)
        if count == 0:
            return

        def body(forms: Forms, number: str, mask: str | None = None) -> None:
            names: MutableMapping[Value, str] = ChainMap({}, self.names)
            made = self._body(forms, names, self.level)
            made.mask = mask
            made.single = ways[-1] if forms in ways[:-1] else None
            self._name_place(names, number)
            made.ops(cheap)
            self._load_kept(made, number, needed)
            made.ops(segment.ops)
            for value, array in keeps:
                self._keep(made, number, value, array)

        width = ways[-1].width if self.masks and ways and not ways[-1].gathers else 0
        if width and count is None and self.place is None and not segment.first_only and self.size <= FEW * width:
            for first in range(0, self.size, width):  # at known places, so that accesses to parts need no masks
                body(ways[-1], str(first), self._below(first, upper, width))
            return
        for forms in ways if not segment.first_only else ():
            width = forms.width
            middle = self._whole(lower, upper, width) if count is None else str(count // width * width)
            if lower != middle:
                self._count(lower, middle, width, partial(body, forms), self._copies(segment))
            lower = middle
        rest = 0 if count is None else count - int(lower)
        if self.masks and ways and rest > 1 and not ways[-1].gathers:
            flags = (f"i1 {'true' if lane < rest else 'false'}" for lane in range(ways[-1].width))
            body(ways[-1], lower, f"<{', '.join(flags)}>")
        elif self.masks and ways and count is None and self.place is None and not ways[-1].gathers:
            self._masked_rest(lower, upper, ways[-1].width, partial(body, ways[-1]))
        elif lower != str(count):
            self._count(lower, upper, 1, partial(body, _SCALAR))

    def _below(self, first: int, upper: str, width: int) -> str:
        """The mask of lanes whose numbers, from `first` on, are below a bound."""
        code = self.code
        bound = code.spread(code.set(f"trunc i64 {upper} to i32"), "i32", width)
        numbers = ", ".join(f"i32 {lane}" for lane in range(first, first + width))
        return code.set(f"icmp ugt <{width} x i32> {bound}, <{numbers}>")

    def _masked_rest(self, lower: str, upper: str, width: int, body: Callable[[str, str], None]) -> None:
        """Runs the invocations behind the last whole vector, fewer than a vector, as one with a mask."""
        code, rest, done = self.code, self.code.new("rest"), self.code.new("done")
        code.fork(code.set(f"icmp ult i64 {lower}, {upper}"), rest, done)
        code.begin(rest)
        body(lower, self._below(0, code.set(f"sub i64 {upper}, {lower}"), width))
        code.jump(done)
        code.begin(done)

    def _copies(self, segment: Segment) -> int:
        """How many iterations of a loop over vectors of invocations are written out."""
        return 1 if any(isinstance(op, k.For) for top in segment.ops for op in top.walk()) else self.level.copies

    def _count(self, lower: str, upper: str, step: int, body: Callable[[str], None], copies: int = 1) -> None:
        if lower.isdecimal() and upper.isdecimal() and int(upper) - int(lower) <= copies * step:
            for number in range(int(lower), int(upper), step):
                body(str(number))
            return
        with self.code.counting("i64", lower, upper, str(step), wraps=False, note=ROLLED) as loop:
            loop.run()
            body(loop.counter)

    def _whole(self, lower: str, upper: str, width: int) -> str:
        """The end of the whole vectors between two numbers, of which the first is a multiple of the width."""
        whole = self.code.set(f"and i64 {upper}, {-width}")
        return self.code.set(f"call i64 @llvm.umax.i64(i64 {whole}, i64 {lower})")

    def _range(self, segment: Segment) -> tuple[str, str, int | None]:
        """The first number of an invocation, the last one and one, and how many these are if that is known."""
        code, size = self.code, self.size
        lower, upper = "0", str(size)
        if self.place is not None:
            lower = code.set(f"mul i64 %begin, {size}")
            upper = code.set(f"mul i64 %end, {size}")
        elif not segment.conditions and all(k.bits_of(limit) is not None for limit in segment.limits):
            count = self._most(segment)
            return "0", str(count), count
        for limit in segment.limits:
            text, type = self._one(limit), type_of(k.dtype_of(limit))
            if type != "i64":
                text = code.set(f"zext {type} {text} to i64")
            upper = code.set(f"call i64 @llvm.umin.i64(i64 {upper}, i64 {text})")
        if segment.first_only:
            upper = code.set(f"call i64 @llvm.umin.i64(i64 {upper}, i64 1)")
        for condition in segment.conditions:
            upper = code.set(f"select i1 {self._one(condition)}, i64 {upper}, i64 {lower}")
        return lower, upper, None

    def _name_place(self, names: MutableMapping[Value, str], number: str) -> None:
        """Names the number of the invocation."""
        made: dict[str, str] = {"i64": number}
        values = [self.place] if self.place is not None else self.local_ids
        for value in values:
            type = type_of(k.dtype_of(value))
            if type not in made:
                made[type] = number if number.isdecimal() else self.code.set(f"trunc i64 {number} to {type}")
            names[value] = made[type]


def _dynamic_sizes(block: Block) -> set[Value]:
    """The unsigned values that are computed from parameters, which are dynamic sizes."""
    found = set[Value]()
    for op in block.walk():
        is_size = isinstance(op, k.Scalar) and k.dtype_of(op.output).kind == UNSIGNED
        if isinstance(op, k.Parameter) or (is_size and any(operand in found for operand in op.operands)):
            found.update(op.results)
    return found
