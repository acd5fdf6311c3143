"""Renders ops of `kernel` IR as statements in C."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.targets.c_text.body import BodyText
from orchestrion.compiler.targets.cpu.forms import Forms
from orchestrion.schema.dtypes import BY_NAME, FLOAT

from .language import LANGUAGE
from .vectors import ARITHMETIC, WRAPPING, WRAPPING_BITS

#: least vectors that a loop sums up for which registers are short
MANY_SUMS = 12


def _vectors(loop: k.For) -> int:
    """The number of vectors that a loop carries."""
    return sum(k.is_vector(value.type) for value in loop.outputs)


def _nan_or_compared(op: k.Scalar) -> k.Scalar | None:
    """For whether a float is NaN, by its bits, or compares with a constant that is not: the comparison."""
    if op.primitive.name != "or" or str(op.output.type) != "i1":
        return None
    test, compared = (value.defining_op for value in op.operands)
    if not isinstance(compared, k.Scalar) or compared.primitive.name not in ("compare_gt", "compare_lt"):
        return None
    value, bound = compared.operands[0], k.bits_of(compared.operands[1])
    dtype = k.dtype_of(value)
    if dtype.kind != FLOAT or bound is None:
        return None
    magnitude, infinity = (1 << dtype.bits - 1) - 1, _infinity(dtype.bits)
    if bound & magnitude > infinity or not _is(test, "compare_gt", infinity):
        return None
    masked = test.operands[0].defining_op if test is not None else None
    bits = masked.operands[0].defining_op if masked is not None and _is(masked, "and", magnitude) else None
    is_of_value = isinstance(bits, k.Scalar) and bits.primitive.name == "bitcast" and bits.operands[0] is value
    return compared if is_of_value else None


def _infinity(bits: int) -> int:
    return 0x7FF << 52 if bits == 64 else 0xFF << 23


def _is(op: Operation | None, name: str, constant: int) -> bool:
    """Whether an op is that primitive on a value and a constant."""
    return isinstance(op, k.Scalar) and op.primitive.name == name and k.bits_of(op.operands[1]) == constant


class CBody(BodyText):
    """The statements of ops in C."""

    language = LANGUAGE
    kernels = "kernels in C"
    fuses = True
    #: while ops are written for several lanes, how their values differ between these
    forms: Forms | None = None

    def _place(self, value: Value, text: str, compound: bool = True) -> None:
        """Floats are always variables: an assignment rounds where expressions have more precision (s390x)."""
        if k.length_of(value) > 1 or k.dtype_of(value).kind == FLOAT:
            self._define(value, text)
        else:
            super()._place(value, text, compound)

    def scalar_op(self, op: k.Scalar) -> None:
        """A selection by two conditions is two selections: GCC vectorizes no loop in which flags are combined. One by a
        condition that is the same in all lanes combines bits: GCC would make a branch of it.
        """
        flag = op.operands[0]
        compared = _nan_or_compared(op)
        if compared is not None:
            x, y = (self.names[value] for value in compared.operands)
            dtype, relation = k.dtype_of(compared.operands[0]).name, compared.primitive.name.removeprefix("compare_")
            self._place(op.output, f"nan_or_{relation}_{dtype}({x}, {y})", compound=False)
            return
        if self._is_blend(op):
            names = ", ".join(self.names[value] for value in op.operands)
            self._define(op.output, f"choose_{k.dtype_of(op.output).name}({names})")
            return
        joined = (
            flag.defining_op
            if k.length_of(op.output) == 1 and op.primitive.name == "select" and flag in self.compound
            else None
        )
        if not isinstance(joined, k.Scalar) or joined.primitive.name not in ("and", "or"):
            self._plain_op(op)
            return
        first, second = (self.operand(value) for value in joined.operands)
        yes, no = (self.operand(value) for value in op.operands[1:])
        inner = f"({second} ? {yes} : {no})"
        text = f"{first} ? {yes} : {inner}" if joined.primitive.name == "or" else f"{first} ? {inner} : {no}"
        self._place(op.output, text)

    def loop(self, op: k.For) -> None:
        """In front of a loop with many sums, those of the loop around it move to memory: compilers would keep all of
        them, and too few registers for what they are made of.
        """
        outer = op.parent_op
        if isinstance(outer, k.For) and all(_vectors(one) >= MANY_SUMS for one in (op, outer)):
            for value in outer.body.block.arguments[1:]:
                self.line(f"IN_MEMORY({self.names[value]});")
        super().loop(op)

    def call(self, op: k.Call) -> None:
        if k.length_of(op.output) > 1:
            raise CompileError([Diagnostic("style c: no function on vectors", op.loc, op.name)])
        super().call(op)

    def _is_blend(self, op: k.Scalar) -> bool:
        if self.forms is None or op.primitive.name != "select" or k.dtype_of(op.output).kind != FLOAT:
            return False
        return self.forms[op.output].stride is None and self.forms[op.operands[0]].stride == 0

    def _plain_op(self, op: k.Scalar) -> None:
        if k.length_of(op.output) > 1 and not self.is_by_lanes(op):
            names = ", ".join(self.names[value] for value in op.operands)
            self._define(op.output, f"{self.type(op.output)}_{op.primitive.name}({names})")
        else:
            super().scalar_op(op)

    def is_by_lanes(self, op: k.Scalar) -> bool:
        """All but arithmetic of two floats, or two integers that are wide enough."""
        dtype = k.dtype_of(op.output)
        whole = ARITHMETIC if dtype.kind == FLOAT else WRAPPING if dtype.bits >= WRAPPING_BITS else ()
        return k.length_of(op.output) > 1 and op.primitive.name not in whole

    def lane(self, vector: Value, lane: int) -> str:
        return f"{self.type(vector)}_lane({self.names[vector]}, {lane})"

    def joined(self, vector: Value, lanes: Sequence[str]) -> str:
        return f"{self.type(vector)}_of({', '.join(lanes)})"

    def load_vector(self, op: k.LoadVector) -> None:
        index = f"{self.operand(op.index)} * {k.length_of(op.output)}u"
        self._define(op.output, f"{self.type(op.output)}_load({self.names[op.binding]} + {index})")

    def load_lanes(self, op: k.LoadLanes | k.LoadSharedLanes) -> None:
        memory, index = op.operands
        self._define(op.output, f"{self.type(op.output)}_load({self.names[memory]} + {self.operand(index)})")

    load_shared_lanes = load_lanes

    def store_shared_lanes(self, op: k.StoreSharedLanes) -> None:
        place = f"{self.names[op.shared]} + {self.operand(op.index)}"
        self.line(f"{self.type(op.vector)}_store({place}, {self.names[op.vector]});")

    def prefetch(self, op: k.Prefetch) -> None:
        self.line(f"PREFETCH({self.names[op.binding]}, (uintptr_t){self.operand(op.index)} * {op.size.value}u);")

    def make_vector(self, op: k.Vector) -> None:
        names = [self.names[value] for value in op.values]
        same = f"{self.type(op.output)}_splat({names[0]})"
        self._define(op.output, same if len(set(names)) == 1 else self.joined(op.output, names))

    def lanes(self, op: k.Lanes) -> None:
        for lane, output in enumerate(op.outputs):
            self._define(output, self.lane(op.vector, lane))

    def transpose(self, op: k.Transpose) -> None:
        type, array = self.type(op.outputs[0]), self.new_name("t")
        self.line(f"{type} {array}[] = {{{', '.join(self.names[value] for value in op.vectors)}}};")
        self.line(f"{type}_transpose({array});")
        self.names.update((value, f"{array}[{number}]") for number, value in enumerate(op.outputs))

    def multiply_add(self, op: k.MultiplyAdd) -> None:
        type = k.dtype_of(op.output).name if k.length_of(op.output) == 1 else ""
        function = f"multiply_add_{type}" if type else f"{self.type(op.output)}_multiply_add"
        self._define(op.output, f"{function}({', '.join(self.names[value] for value in op.operands)})")

    def byte_offset(self, op: k.ByteOffset) -> None:
        """It has its name already, as constants do."""

    has_pair_products = prefers_panels = byte_offset

    def multiply_add_bytes(self, op: k.MultiplyAddBytes) -> None:
        names = ", ".join(self.names[value] for value in op.operands)
        self._define(op.output, f"{self.type(op.output)}_multiply_add_bytes({names})")

    def load_bytes(self, op: k.LoadBytes) -> None:
        word, place = f"word_{op.element.value}", f"{self.names[op.binding]} + {self.operand(op.index)}"
        lanes, apart = k.length_of(op.output), 4 // BY_NAME[op.element.value].itemsize
        words = [f"{word}({place} + {apart * lane}u)" if lane else f"{word}({place})" for lane in range(lanes)]
        self._define(op.output, words[0] if lanes == 1 else self.joined(op.output, words))

    def store_vector(self, op: k.StoreVector) -> None:
        place = f"{self.names[op.binding]} + {self.operand(op.index)} * {k.length_of(op.value)}u"
        self.line(f"{self.type(op.value)}_store({place}, {self.names[op.value]});")

    workgroup_id = local_id = BodyText.nothing

    # what entries add

    def define_as(self, name: str, value: Value, text: str) -> None:
        """Defines a value under a name that the caller gives."""
        self.line(f"const {self.type(value)} {name} = {text};")

    def new_name(self, letter: str = "v") -> str:
        """A name for a variable, an array or a pointer."""
        self.count += 1
        return f"{letter}{self.count - 1}"

    def variable(self, value: Value, text: str = "") -> str:
        """Declares a variable for a value, and returns its name."""
        name = self._new(value)
        self.line(f"{self.type(value)} {name}{text and f' = {text}'};")
        return name

    @contextmanager
    def braces(self, head: str) -> Iterator[None]:
        """The lines of the body are indented."""
        self.line(f"{head} {{".lstrip())
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    @contextmanager
    def scope(self, names: MutableMapping[Value, str]) -> Iterator[None]:
        """The body uses other names."""
        outer, self.names = self.names, names
        yield
        self.names = outer
