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
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import constant, elementwise
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.shape_builders import dynamic_slice, dynamic_update_slice, reshape, zeros
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
    backwards = reverse is not None and reverse.value

    def body(rewriter: Rewriter, iteration: Value, carried: list[Value]) -> Sequence[Value]:
        last = constant(rewriter, length - 1, TensorType((), I32))
        at = elementwise(rewriter, "subtract", last, iteration) if backwards else iteration
        slices = [_slice(rewriter, value, axis.value, at) for value in inputs]
        made = inline_block(block, [*slices, *carried[len(outputs) :]], rewriter.insert)
        written = [
            _written(rewriter, whole, value, axis.value, at)
            for whole, value in zip(carried, made[: len(outputs)], strict=False)
        ]
        return [*written, *made[len(outputs) :]]

    starts = [zeros(rewriter, tensor_of(value)) for value in outputs]
    made = counted_loop(rewriter, length, [*starts, *inits], body)
    rewriter.replace(op, made)
    maker = made[0].defining_op
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


def _starts(rewriter: Rewriter, rank: int, axis: int, at: Value) -> list[Value]:
    zero = constant(rewriter, 0, tensor_of(at))
    return [at if place == axis else zero for place in range(rank)]


def _slice(rewriter: Rewriter, value: Value, axis: int, at: Value) -> Value:
    shape = tensor_of(value).shape
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    one = dynamic_slice(rewriter, value, _starts(rewriter, len(shape), axis, at), sizes)
    return reshape(rewriter, one, _without(value, axis).shape)


def _written(rewriter: Rewriter, whole: Value, value: Value, axis: int, at: Value) -> Value:
    shape = tensor_of(whole).shape
    update = reshape(rewriter, value, (*shape[:axis], 1, *shape[axis + 1 :]))
    return dynamic_update_slice(rewriter, whole, update, _starts(rewriter, len(shape), axis, at))
