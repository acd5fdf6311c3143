"""Padded copies of a tensor whose workgroups write lines: the elements from the last padded axis on.

A line of an image with 3 channels is no whole number of vectors. With an element per invocation, neighbours then lie in
different lines, are padding or not, and are loaded one by one. A line has at most three parts, padding, elements of the
operand and padding. Invocations take neighbours of each part in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from math import prod

from orchestrion.compiler.flow.layout import layout_of
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.dims import is_dynamic, numbers
from orchestrion.compiler.kernel.elements.elemental import Elemental
from orchestrion.compiler.kernel.elements.index import Index, delinearize, linearize
from orchestrion.compiler.kernel.elements.parts import each
from orchestrion.compiler.kernel.elements.rules import scalar_index, shape_of, unpadded
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.structural import Pad, Reshape

#: writes a value at a position of the result
Write = Callable[[Value, Value], None]


@dataclass(frozen=True, slots=True)
class PaddedLines:
    """The lines of a result. `axis`: the last padded one. `before`, `width`: elements of a line in front of those of
    the operand, and of the operand; `inner`: neighbours that are padded alike.
    """

    pad: Pad
    axis: int
    inner: int
    before: int
    width: int

    @classmethod
    def of(cls, result: Value) -> PaddedLines | None:
        """None if a result is no padded tensor of known size, if neighbours are padded one by one, as `ResultLines` has
        them, or if there is padding between elements or less than none.
        """
        op, layout = result.defining_op, layout_of(tensor_of(result))
        while isinstance(op, Reshape):
            op = op.operand_.defining_op
        if not isinstance(op, Pad) or layout is not None or is_dynamic(*shape_of(op.operand_), *shape_of(op.out)):
            return None
        low, high, shape = op.edge_padding_low.sizes, op.edge_padding_high.sizes, numbers(shape_of(op.operand_))
        padded = [axis for axis, sizes in enumerate(zip(low, high, strict=True)) if any(sizes)]
        if any(op.interior_padding.sizes) or min((*numbers(low), *numbers(high)), default=0) < 0:
            return None
        if not padded or not prod(shape):
            return None
        axis, inner = padded[-1], prod(shape[padded[-1] + 1 :])
        if inner == 1:
            return None
        return cls(op, axis, inner, numbers(low)[axis] * inner, shape[axis] * inner)

    @property
    def count(self) -> int:
        """Number of lines."""
        return prod(numbers(shape_of(self.pad.out))[: self.axis])

    @property
    def length(self) -> int:
        """Elements of a line."""
        return prod(numbers(shape_of(self.pad.out))[self.axis :])

    def emit(self, elemental: Elemental, lanes: int, number: Value, write: Write) -> None:
        """The code of line `number`, for `lanes` invocations of a workgroup."""
        b, shape, outer = elemental.builder, shape_of(self.pad.operand_), shape_of(self.pad.out)[: self.axis]
        padding = elemental.element(self.pad.padding_value, scalar_index(b))
        target, low = b.op("multiply", number, b.index(self.length)), self.pad.edge_padding_low.sizes
        axes = zip(delinearize(b, number, outer), outer, shape, low, strict=False)
        places = [unpadded(b, at, count, size, start, 1) for at, count, size, start in axes]

        def part(first: int, size: int, source: Value | None = None) -> list[Value]:
            if not size:
                return []
            with each(b, lanes, b.word(1), size) as (_, word):
                at, value = b.index(word), padding
                if source is not None:
                    value = elemental.element(self.pad.operand_, Index(b, shape, None, b.op("add", source, at)))
                write(b.op("add", target, b.op("add", b.index(first), at)), value)
            return []

        def copied() -> list[Value]:
            line = linearize(b, [place for place, _ in places], shape[: self.axis])
            after = self.before + self.width
            part(0, self.before)
            part(self.before, self.width, b.op("multiply", line, b.index(self.width)))
            return part(after, self.length - after)

        holds = reduce(partial(b.op, "and"), [inside for _, inside in places], b.const(True, "i1"))
        b.branch(holds, copied, partial(part, 0, self.length))
