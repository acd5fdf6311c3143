"""How a value differs between the lanes of a vector: neighbouring invocations of a workgroup, which run together.

A value of form `(stride, multiple)` is `base + stride * lane`, where `base`, modulo the width of the type, is a
multiple of `multiple`, a power of two. Stride 0: all lanes have the same value. Stride None: any values. Lane 0 of a
vector is an invocation whose number is a multiple of the number of lanes.

Forms follow from the operands. Quotients and remainders by a constant that the lanes divide keep their form, as do
comparisons with a multiple of such a constant: no vector then crosses the end of a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.schema.dtypes import BY_NAME, FLOAT, UNSIGNED

from .decided import is_decided
from .neighbours import Guard, guard_of, is_near


class Form(NamedTuple):
    """The form of a value; see the file."""

    stride: int | None
    multiple: int = 1


SAME, VARYING = Form(0), Form(None)
_GREATEST = 1 << 62
#: most branches in a branch of which each has code for lanes that go the same way: code grows with their square
_MOST_VERSIONS = 12


def has_barrier(op: Operation) -> bool:
    """Whether the invocations of a workgroup wait for each other inside an op."""
    return any(isinstance(inner, k.Barrier) for inner in op.walk())


def power_of_two(value: int) -> int:
    """The greatest power of two that divides a number."""
    return value & -value if value else _GREATEST


@dataclass
class Forms:
    """The forms of the values of a piece of code, for vectors of `width` lanes. `of`: those known beforehand.

    `whole_workgroup`: the forms say which values a workgroup computes once, so loads, and loops and branches without
    barriers, give any values. `guarded`: loads of some lanes of a vector cost little more than those of all; `decides`:
    so do branches that scalars decide for nearly all vectors (`decided.py`). After `visit`: `gathers`, the number of
    loads and stores whose elements are far apart; `shuffled`, the number of loads that `neighbours.py` renders for all
    vectors; `guards`, their guards; `masked`, the number of accesses that only some lanes run; `versioned`, the
    branches that scalars decide, or that access neighbours and hold no such branch, of which a version for all lanes
    needs no masks; `always_masked`, the number of accesses with masks elsewhere; `diverges`, whether lanes leave a loop
    at different times; `explicit`, whether the code has vectors of its own.
    """

    width: int
    of: dict[Value, Form]
    whole_workgroup: bool = False
    guarded: bool = False
    decides: bool = False
    gathers: int = 0
    shuffled: int = 0
    guards: dict[Operation, Guard] = field(default_factory=dict)
    masked: int = 0
    always_masked: int = 0
    versioned: set[Operation] = field(default_factory=set)
    diverges: bool = False
    explicit: bool = False
    _apart: int = 0
    _decided: int = 0

    def __getitem__(self, value: Value) -> Form:
        """The form of a value; values from outside of the code are the same in all lanes."""
        if self.width == 1:
            return SAME
        if value not in self.of:
            self.of[value] = Form(0, self._multiple(value))
        return self.of[value]

    def _multiple(self, value: Value) -> int:
        """A power of two that divides a value from outside of the code, such as the first number of a workgroup."""
        op, known = value.defining_op, k.bits_of(value)
        if known is not None:
            return power_of_two(known)
        if isinstance(op, k.Scalar) and op.primitive.name in ("add", "multiply", "select"):
            *_, x, y = (self[operand].multiple for operand in op.operands)
            return min(x * y, _GREATEST) if op.primitive.name == "multiply" else min(x, y)
        return 1

    def visit(self, ops: Iterable[Operation]) -> None:
        """Finds the forms of the results of ops, in order."""
        if self.width == 1:
            return
        for op in ops:
            self._op(op)

    def _op(self, op: Operation) -> None:
        match op:
            case k.Scalar():
                self.of[op.output] = self._scalar(op)
            case k.Call():
                same = all(self[value].stride == 0 for value in op.values)
                self.of[op.output] = SAME if same else VARYING
            case k.Load() | k.LoadShared():
                stride = self[op.operands[1]].stride
                self.of[op.output] = SAME if stride == 0 and not self.whole_workgroup else VARYING
                self._load(op, stride)
            case k.LoadBytes() if k.is_vector(op.output.type):
                self._explicit(op)
            case k.LoadBytes():
                stride = self[op.index].stride
                self.of[op.output] = SAME if stride == 0 and not self.whole_workgroup else VARYING
                self._access(0 if stride == 0 else 1 if stride == 4 // BY_NAME[op.element.value].itemsize else None)
            case k.Store() | k.StoreShared():
                self._access(self[op.operands[2]].stride)
            case k.For() | k.If():
                self._loop(op) if isinstance(op, k.For) else self._branch(op)
                if self.whole_workgroup and not has_barrier(op):
                    self.of.update(dict.fromkeys(op.results, VARYING))
            case k.LoadVector() | k.StoreVector() | k.LoadLanes() | k.Vector() | k.Lanes():
                self._explicit(op)
            case k.LoadSharedLanes() | k.StoreSharedLanes() | k.Transpose() | k.MultiplyAddBytes():
                self._explicit(op)
            case k.MultiplyAdd() if k.is_vector(op.output.type):
                self._explicit(op)
            case k.Everywhere():
                self.of[op.output] = SAME
            case k.MultiplyAdd() | k.Scale():
                same = not self.whole_workgroup and all(self[value].stride == 0 for value in op.operands)
                self.of[op.output] = SAME if same else VARYING

    def _explicit(self, op: Operation) -> None:
        self.explicit = True
        self.of.update(dict.fromkeys(op.results, VARYING))

    def _load(self, op: k.Load | k.LoadShared, stride: int | None) -> None:
        guard = guard_of(op, self.stride, self.width) if self.guarded and stride is None else None
        if guard is not None:
            self.guards[op] = guard
            self.shuffled += not (self.decides and guard.stride == 1 and is_decided(guard.conditions, self.stride))
            stride = 1
        elif stride not in (0, 1) and not self._apart and is_near(stride, self.width):
            self.shuffled += 1
            stride = 1
        self._access(stride)

    def stride(self, value: Value) -> int | None:
        """The stride of a value."""
        return self[value].stride

    def _access(self, stride: int | None) -> None:
        self.gathers += stride not in (0, 1)
        self.masked += self._apart + self._decided > 0

    def _loop(self, op: k.For) -> None:
        index, *carried = op.body.block.arguments
        if self.splits_whole_vectors(op):
            self.diverges = True
            self.of.update(dict.fromkeys((index, *carried, *op.outputs), VARYING))
            self._visit_apart(op.body.block)
            return
        self.of[index] = Form(self[op.lower].stride, min(self[op.lower].multiple, self[op.step].multiple))
        forms = [self[value] for value in op.start]
        forms = [SAME if form.stride == 0 else form for form in forms]
        while True:
            self.of.update(zip(carried, forms, strict=True))
            before = self.gathers, self.masked, self.always_masked
            self.visit(op.body.block)
            joined = [_joined(form, self[value]) for form, value in zip(forms, k.yielded(op.body.block), strict=True)]
            if joined == forms:
                break
            forms, (self.gathers, self.masked, self.always_masked) = joined, before
        self.of.update(zip(op.outputs, forms, strict=True))

    def splits_whole_vectors(self, op: k.For) -> bool:
        """Whether lanes may leave a loop at different times. They do not if each takes every n-th number, and only
        whole vectors of numbers are below the upper bound.
        """
        lower, upper, step = (self[bound] for bound in (op.lower, op.upper, op.step))
        if upper.stride != 0 or step.stride != 0 or lower.stride not in (0, 1) or self.whole_workgroup:
            return (lower.stride, upper.stride, step.stride) != (0, 0, 0)
        return lower.stride == 1 and min(lower.multiple, upper.multiple, step.multiple) % self.width != 0

    def _visit_apart(self, block: Block) -> None:
        """The ops of a block that only some lanes run."""
        self._apart += 1
        self.visit(block)
        self._apart -= 1

    def _branch(self, op: k.If) -> None:
        if self.decides and not self._apart and self[op.condition].stride is None and self._decided_branch(op):
            return
        if self[op.condition].stride != 0:
            masked, others = self.masked, (self.gathers, self.always_masked, self.diverges)
            self._visit_apart(op.yes.block)
            self._visit_apart(op.no.block)
            self.of.update(dict.fromkeys(op.outputs, VARYING))
            self.versioned.discard(op)
            if not self._apart and others == (self.gathers, self.always_masked, self.diverges):
                self.versioned.add(op)
            else:
                self.always_masked += self.masked - masked
            return
        self.visit(op.yes.block)
        self.visit(op.no.block)
        for output, x, y in zip(op.outputs, k.yielded(op.yes.block), k.yielded(op.no.block), strict=True):
            self.of[output] = _joined(self[x], self[y])

    def _decided_branch(self, op: k.If) -> bool:
        """Visits a branch that scalars decide for all lanes of nearly all vectors, and that accesses neighbours. False
        for any other branch.
        """
        inner = sum(isinstance(each, k.If) for each in op.walk())
        if inner > _MOST_VERSIONS or not is_decided((op.condition,), self.stride):
            return False
        before = self.gathers, self.shuffled, self.masked, self.always_masked
        self._decided += 1
        self.visit(op.yes.block)
        self.visit(op.no.block)
        self._decided -= 1
        if (self.gathers, self.always_masked) != (before[0], before[-1]):
            self.gathers, self.shuffled, self.masked, self.always_masked = before
            return False
        self.of.update(dict.fromkeys(op.outputs, VARYING))
        self.versioned.add(op)
        return True

    def _scalar(self, op: k.Scalar) -> Form:
        forms = [self[operand] for operand in op.operands]
        if any(form.stride is None for form in forms):
            return VARYING
        if self.whole_workgroup:
            return SAME if all(form.stride == 0 for form in forms) else VARYING
        found = _of_integers(op, forms, self.width) if k.dtype_of(op.output).kind != FLOAT else None
        if found is not None:
            return found
        if op.primitive.name == "select" and forms[0].stride == 0:
            return _joined(forms[1], forms[2])
        return SAME if all(form.stride == 0 for form in forms) else VARYING


def _joined(x: Form, y: Form) -> Form:
    if x.stride is None or x.stride != y.stride:
        return VARYING
    return Form(x.stride, min(x.multiple, y.multiple))


def _of_integers(op: k.Scalar, forms: list[Form], width: int) -> Form | None:
    """The form of an integer result that needs no vector; None if it is not known. No operand varies freely."""
    name, x = op.primitive.name, forms[0]
    assert x.stride is not None
    if name in ("convert", "bitcast"):
        source, result = k.dtype_of(op.operands[0]), k.dtype_of(op.output)
        if source.kind != FLOAT and source.bits == result.bits:
            return x
        return Form(0, x.multiple) if x.stride == 0 and source.kind == UNSIGNED else None
    if len(forms) != 2:
        return None
    y, (left, right) = forms[1], op.operands
    if name == "multiply" and k.bits_of(left) is not None:
        x, y, left, right = y, x, right, left
    assert x.stride is not None and y.stride is not None
    constant = k.bits_of(right)
    match name:
        case "add":
            return Form(x.stride + y.stride, min(x.multiple, y.multiple))
        case "subtract":
            return Form(x.stride - y.stride, min(x.multiple, y.multiple))
        case "multiply" if constant is not None:
            return Form(x.stride * constant, min(x.multiple * power_of_two(constant), _GREATEST))
        case "multiply" if x.stride == y.stride == 0:
            return Form(0, min(x.multiple * y.multiple, _GREATEST))
        case "unchecked_shift_left" if constant is not None:
            return Form(x.stride << constant, min(x.multiple << constant, _GREATEST))
        case "unchecked_divide" | "unchecked_remainder" | "and" if constant:
            return _by_rows(name, op, x, constant, width)
        case "compare_lt" | "compare_ge" if y.stride == 0 and constant != 0:
            return _by_rows(name, op, x, y.multiple, width)
    return None


def _by_rows(name: str, op: k.Scalar, x: Form, constant: int, width: int) -> Form | None:
    """Quotient or remainder of unsigned numbers by a constant that is a multiple of whole vectors, or their comparison
    with a value that is a multiple of the constant.
    """
    assert x.stride is not None
    if name == "and":
        constant += 1
        if constant & (constant - 1):
            return None
    span = x.stride * width
    if k.dtype_of(op.operands[0]).kind != UNSIGNED or x.stride <= 0 or span & (span - 1):
        return None
    if constant % span or x.multiple % span:
        return None
    if name in ("unchecked_remainder", "and"):
        return Form(x.stride, min(x.multiple, power_of_two(constant)))
    return SAME
