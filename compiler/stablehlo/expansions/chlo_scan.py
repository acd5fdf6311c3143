"""`chlo.scan`: a loop along an axis.

The body takes a slice of each input and the carried values, and returns a slice of each output and the next carried
values. Slices lack the axis. A loop with a known iteration count is one submission; the associativity of a body is not
used.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import BoolAttr, DenseArray, IntegerAttr
from orchestrion.compiler.ir.builder import inline_block
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.tensors import Tensor
from orchestrion.compiler.stablehlo.ops.base import is_known, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Return


def expand_scan(op: Operation, rewriter: Rewriter) -> bool:
    """Expands a scan; skips malformed ops."""
    axis, reverse = op.get_as("dimension", IntegerAttr), op.get_as("is_reverse", BoolAttr)
    parts = _parts(op)
    if axis is None or parts is None or len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return False
    inputs, inits, outputs = parts
    sequences, block = (*inputs, *outputs), op.regions[0].block
    if not sequences or not all(0 <= axis.value < tensor_of(value).rank for value in sequences):
        return False
    sizes = {tensor_of(value).shape[axis.value] for value in sequences}
    length = sizes.pop()
    if sizes or not isinstance(length, int) or not _fits(block, axis.value, inputs, inits, outputs):
        return False
    backwards, count = reverse is not None and reverse.value, len(outputs)
    given, first, starts = ([Tensor(rewriter, value) for value in values] for values in (inputs, inits, outputs))

    def body(iteration: Tensor, carried: list[Tensor]) -> Sequence[Tensor]:
        at = length - 1 - iteration if backwards else iteration
        slices = [x.line(axis.value, at).value for x in given]
        values = inline_block(block, [*slices, *(x.value for x in carried[count:])], rewriter.insert)
        made = [Tensor(rewriter, value) for value in values]
        written = [x.with_line(axis.value, at, line) for x, line in zip(carried, made[:count], strict=False)]
        return [*written, *made[count:]]

    made = counted_loop(length, [*(x.zeros() for x in starts), *first], body)
    rewriter.replace(op, [x.value for x in made])
    maker = made[0].value.defining_op
    assert maker is not None
    rewriter.revisit(maker)
    return True


def _parts(op: Operation) -> tuple[list[Value], list[Value], list[Value]] | None:
    """Inputs, initial values and outputs; None if the segment sizes are malformed, or a type is unknown."""
    given = [op.get_as(name, DenseArray) for name in ("operandSegmentSizes", "resultSegmentSizes")]
    counts = [segments.ints for segments in given if segments is not None and len(segments) == 2]
    if [sum(count) for count in counts] != [len(op.operands), len(op.results)] or counts[0][1] != counts[1][1]:
        return None
    if not all(is_known(value.type) for value in (*op.operands, *op.results)):
        return None
    inputs, inits = list(op.operands[: counts[0][0]]), list(op.operands[counts[0][0] :])
    return inputs, inits, list(op.results[: counts[1][0]])


def _fits(block: Block, axis: int, inputs: list[Value], inits: list[Value], outputs: list[Value]) -> bool:
    carried = [value.type for value in inits]
    taken = [*(_without(value, axis) for value in inputs), *carried]
    given = [*(_without(value, axis) for value in outputs), *carried]
    last = block.last
    if not isinstance(last, Return) or [argument.type for argument in block.arguments] != taken:
        return False
    return [value.type for value in last.operands] == given


def _without(value: Value, axis: int) -> TensorType:
    shape = tensor_of(value).shape
    return tensor_of(value).with_shape((*shape[:axis], *shape[axis + 1 :]))
