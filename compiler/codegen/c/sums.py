"""Renders loops that sum up floats of the lanes (`lanes.py`) with vector types, so that the sums stay in registers.

Compilers keep an array that several loops over the lanes read and write in memory, or gather its elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.targets.cpu.forms import Forms
from orchestrion.schema.dtypes import FLOAT

from .language import LANGUAGE
from .vectors import ARITHMETIC

if TYPE_CHECKING:
    from .lanes import Lanes


def is_sum(op: k.For, forms: Forms) -> bool:
    """Whether vectors have all that a loop does: each value that differs between lanes is a float."""
    values = (*op.start, *op.body.block.arguments[1:])
    carried = all(k.dtype_of(value).kind == FLOAT for value in values) and forms[op.outputs[0]].stride is None
    bounds = all(forms[value].stride == 0 for value in (op.lower, op.upper, op.step))
    alike = all(forms[value].stride is None for value in op.outputs)
    return carried and bounds and alike and all(_is_known(inner, forms) for inner in op.body.block)


def _is_known(op: Operation, forms: Forms) -> bool:
    match op:
        case k.For():
            return bool(op.outputs) and is_sum(op, forms)
        case k.Constant() | k.Yield():
            return True
        case k.Load() | k.LoadShared():
            stride = forms[op.operands[1]].stride
            return stride == 0 or (stride == 1 and k.dtype_of(op.output).kind == FLOAT)
        case k.Scalar() | k.Call() if forms[op.output].stride is not None:
            return True
        case k.Scalar() if k.dtype_of(op.output).kind == FLOAT:
            is_choice = op.primitive.name == "select" and forms[op.operands[0]].stride == 0
            return is_choice or op.primitive.name in ARITHMETIC
        case k.MultiplyAdd():
            return True
    return False


class Sums:
    """The code of such loops. Their results are arrays with an element per lane."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes, self.body, self.forms = lanes, lanes.body, lanes.forms
        #: value -> the vector of its lanes
        self.vectors: dict[Value, str] = {}

    def loop(self, op: k.For) -> None:
        self.lanes.end_run()
        self._loop(op)
        for value in op.outputs:
            element = self.lanes.arrays[value] = self.lanes.array(value)
            self.body.line(f"{self._type(value)}_store({_array(element)}, {self.vectors[value]});")

    def _type(self, value: Value) -> str:
        return LANGUAGE.vector_type(self.forms.width, k.dtype_of(value))

    def _loop(self, op: k.For) -> None:
        index, *carried = op.body.block.arguments
        for value, start, result in zip(carried, op.start, op.outputs, strict=True):
            name = self.body.new_name()
            self.body.line(f"{self._type(value)} {name} = {self._vector(start)};")
            self.vectors[value] = self.vectors[result] = name
        with self.body.braces(self.lanes.loop_head(op)):
            self._block(op.body.block, [self.vectors[value] for value in carried])

    def _block(self, block: Block, targets: list[str]) -> None:
        for op in block:
            self._op(op)
        given = [self._vector(value) for value in k.yielded(block)]
        for number, value in enumerate(k.yielded(block) if len(given) > 1 else ()):
            name = self.body.new_name()
            self.body.line(f"const {self._type(value)} {name} = {given[number]};")
            given[number] = name
        for target, text in zip(targets, given, strict=True):
            self.body.line(f"{target} = {text};")

    def _op(self, op: Operation) -> None:
        if isinstance(op, k.For):
            self._loop(op)
        elif op.results and self.forms[op.results[0]].stride is None:
            self._define(op)
        else:
            self.body.ops([op])

    def _define(self, op: Operation) -> None:
        """Renders an op whose result differs between lanes."""
        (output,) = op.results
        type, name = self._type(output), self.body.new_name()
        if isinstance(op, k.Load | k.LoadShared):
            memory, index = op.operands
            text = f"{type}_load({self.body.names[memory]} + {self.body.operand(index)})"
        else:
            text = f"{type}_{_function(op)}({', '.join(self._operands(op))})"
        self.body.line(f"const {type} {name} = {text};")
        self.vectors[output] = name

    def _operands(self, op: Operation) -> Iterator[str]:
        for value in op.operands:
            is_flag = k.dtype_of(value).kind != FLOAT
            yield self.body.names[value] if is_flag else self._vector(value)

    def _vector(self, value: Value) -> str:
        if value in self.vectors:
            return self.vectors[value]
        if value in self.lanes.arrays:
            return f"{self._type(value)}_load({_array(self.lanes.arrays[value])})"
        return f"{self._type(value)}_splat({self.body.names[value]})"


def _function(op: Operation) -> str:
    """The name of the function on vectors."""
    if isinstance(op, k.MultiplyAdd):
        return "multiply_add"
    assert isinstance(op, k.Scalar)
    return "choose" if op.primitive.name == "select" else op.primitive.name


def _array(element: str) -> str:
    """The array of the text of an element of a lane."""
    return element.rpartition("[")[0]
