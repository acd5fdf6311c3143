"""Short forms for passes that sort: places along an axis, and elements at places."""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import DenseArray, DialectAttr, IntegerAttr
from orchestrion.compiler.ir.core import Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.indexing import Gather
from orchestrion.compiler.stablehlo.ops.structural import Iota


def numbers(rewriter: Rewriter, shape: tuple[int, ...], axis: int) -> Value:
    """0, 1, 2, ... along an axis."""
    return rewriter.build(Iota, iota_dimension=IntegerAttr(axis), out=TensorType(shape, I32)).result


def gathered(rewriter: Rewriter, value: Value, order: Value, axis: int) -> Value:
    """The elements at places along an axis, in every line its own."""
    rank = tensor_of(value).rank
    kept = [dim for dim in range(rank) if dim != axis]
    batching = f"operand_batching_dims = {kept}, start_indices_batching_dims = {kept}, "
    axes = f"collapsed_slice_dims = [{axis}], {batching if kept else ''}start_index_map = [{axis}], "
    return rewriter.build(
        Gather,
        operand_=value,
        start_indices=order,
        dimension_numbers=DialectAttr("stablehlo.gather", f"{axes}index_vector_dim = {rank}"),
        slice_sizes=DenseArray((1,) * rank),
        out=tensor_of(value),
    ).result
