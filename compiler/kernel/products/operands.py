"""How the operands of a reduction or a dot lie in memory, through the ops that are fused in front of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orchestrion.compiler.flow.dialect import UnsetEncoding, Windows
from orchestrion.compiler.flow.fusion_reads import WIDENING
from orchestrion.compiler.flow.layout import layout_of
from orchestrion.compiler.flow.structure import axes_in_memory, fastest_axis, joined
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.sequencer.ll_seq import LoadInput
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.elementwise import Convert
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Reshape, Reverse, Slice, Transpose

#: ops whose elements are those of their one operand, found by an index map
_MOVES = (BroadcastInDim, Reshape, Reverse, Slice, Transpose, UnsetEncoding, Windows)


def packed_tile(dot: DotGeneral, index: int) -> int | None:
    """Tile size along the free axes in the layout of an operand of a dot; None if the operand has no such layout.
    `index`: 0 for the left operand, 1 for the right one.
    """
    op = dot.operands[index].defining_op
    while op is not None and not isinstance(op, UnsetEncoding) and len(op.operands) == 1:
        op = op.operands[0].defining_op
    if not isinstance(op, UnsetEncoding):
        return None
    axes, layout = axes_in_memory(dot.operands[index], op.output), layout_of(tensor_of(op.source))
    if axes is None or layout is None:
        return None
    free = joined(axes, dot.dimensions.free(len(axes), index == 0))
    group = layout.axes.index(free) if free in layout.axes else None
    return layout.tiles[group] if group is not None and layout.inner == (group,) else None


def is_read(value: Value, encoded: bool = True) -> bool:
    """Whether the elements of a value are elements of memory, found by index maps alone. `encoded`: also in tiles."""
    while isinstance(op := value.defining_op, _MOVES) and (encoded or not isinstance(op, UnsetEncoding)):
        value = op.operands[0]
    return op is None or isinstance(op, LoadInput)


def lies_along(value: Value, contract: Sequence[int]) -> bool:
    """Whether neighbours in memory lie along the innermost of the contracted axes that have more than one place."""
    inner = next((axis for axis in reversed(contract) if tensor_of(value).shape[axis] != 1), None)
    return inner is not None and fastest_axis(value) == inner


def is_element(value: Value, encoded: bool = True) -> bool:
    """Whether the elements of a value are those of memory, perhaps widened. `encoded`: also in tiles."""
    return is_read(widened_of(value) or value, encoded)


def bytes_of(value: Value) -> Value | None:
    """The value of bytes whose elements, moved and converted, are those of a value; None if there is none."""
    while str(tensor_of(value).element) not in ("i8", "ui8"):
        op = value.defining_op
        if not isinstance(op, (Convert, *_MOVES)):
            return None
        value = op.operands[0]
    return value


def bf16_of(value: Value) -> Value | None:
    """The bits of bf16, in ui16, whose widened numbers, moved, are a value; None if there are none."""
    return widened_of(value, ("bf16",))


def widened_of(value: Value, types: Collection[str] = tuple(WIDENING.values())) -> Value | None:
    """The bits of floats of 16 bits, in ui16, whose widened numbers, moved, are a value; None if there are none."""
    while isinstance(op := value.defining_op, _MOVES):
        value = op.operands[0]
    return op.operands[0] if op is not None and WIDENING.get(op.name) in types else None


def is_loaded(op: Reduce) -> bool:
    """Whether the reduced elements are loaded from memory without other ops. Loop overhead then exceeds the work of an
    iteration.
    """
    value = op.inputs[0]
    while isinstance(value.defining_op, Reshape):
        value = value.defining_op.operand_
    return len(op.inputs) == 1 and (value.defining_op is None or isinstance(value.defining_op, LoadInput))
