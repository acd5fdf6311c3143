"""lower-sorts: `sort` becomes elementwise ops, reductions and a loop, which every target has.

Equal keys keep their order, stable or not, so that every device gives the same. Two ways:

- Few elements: the place of an element is how many of its line come before it; each is compared with each, in one
  reduction. A second one turns places into an order, in which every operand is gathered.
- Many: Batcher's bitonic network, a turn of a counted loop per step. Element i meets i ^ mask, the lesser index takes
  the lesser element. The first step of each merge is a reflection (mask 2^k - 1), so all steps sort upwards, and a line
  of any length needs no padding: what would lie behind its end is larger than everything, and stays. Only the operands
  that the comparator reads go through the network, with the numbers of their elements; the others follow at the end.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from orchestrion.compiler.ir.attributes import DenseArray, DenseElements, DialectAttr, IntegerAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I1, I32, TensorType
from orchestrion.compiler.stablehlo.base import dtype_of, tensor_of
from orchestrion.compiler.stablehlo.build import compare, constant, converted, elementwise
from orchestrion.compiler.stablehlo.contraction import Reduce, Return
from orchestrion.compiler.stablehlo.control_flow import While
from orchestrion.compiler.stablehlo.elementwise import OPS as ELEMENTWISE
from orchestrion.compiler.stablehlo.elementwise import Compare
from orchestrion.compiler.stablehlo.indexing import DynamicSlice, Gather
from orchestrion.compiler.stablehlo.scalar_regions import widened
from orchestrion.compiler.stablehlo.sort import Sort
from orchestrion.compiler.stablehlo.structural import BroadcastInDim, Constant, Iota, Reshape
from orchestrion.schema.dtypes import FLOAT

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options

#: comparisons, each element with each of its line, up to which places are counted
MOST_COMPARISONS: Final = 1 << 18


def run(module: Module, options: Options) -> None:
    for op in list(module.walk()):
        if isinstance(op, Sort):
            rewriter = Rewriter({})
            rewriter.at(op)
            rewriter.replace(op, _sorted(op, rewriter))


def _sorted(op: Sort, rewriter: Rewriter) -> list[Value]:
    shape = tensor_of(op.inputs[0]).shape
    size = shape[op.axis]
    if size <= 1 or not prod(shape):
        return list(op.inputs)
    if prod(shape) * size <= MOST_COMPARISONS:
        return _in_order(op, rewriter, {}, _order(op, rewriter))
    return _network(op, rewriter)


# By counting


def _order(op: Sort, rewriter: Rewriter) -> Value:
    """For each place of the results, the number in its line of the element that goes there."""
    shape, axis = tensor_of(op.inputs[0]).shape, op.axis
    pairs = (*shape, shape[axis])
    mine, other = _numbers(rewriter, pairs, axis), _numbers(rewriter, pairs, len(shape))
    ahead = [_paired(rewriter, value, axis, along) for value in op.inputs for along in (True, False)]
    before = widened(rewriter, op.comparator.block, ahead, pairs)[0]
    behind = widened(rewriter, op.comparator.block, _swapped(ahead), pairs)[0]
    ahead_of = elementwise(rewriter, "or", before, _tie(rewriter, behind, other, mine))
    counted = converted(rewriter, ahead_of, "i32")
    place = _paired(rewriter, _sum(rewriter, counted), axis, True)
    here = compare(rewriter, "EQ", place, mine)
    zero = constant(rewriter, 0, tensor_of(other))
    return _sum(rewriter, elementwise(rewriter, "select", here, other, zero))


def _paired(rewriter: Rewriter, value: Value, axis: int, along: bool) -> Value:
    """Every element with every element of its line: element [.., i, .., j] is that of place j, or else of place i."""
    type = tensor_of(value)
    dims = [type.rank if along and dim == axis else dim for dim in range(type.rank)]
    out = type.with_shape((*type.shape, type.shape[axis]))
    return rewriter.build(BroadcastInDim, operand_=value, broadcast_dimensions=DenseArray(tuple(dims)), out=out).result


def _swapped(pairs: list[Value]) -> list[Value]:
    """What a comparator takes, the other way round."""
    return [value for at in range(0, len(pairs), 2) for value in (pairs[at + 1], pairs[at])]


def _sum(rewriter: Rewriter, value: Value) -> Value:
    """The sums along the last axis, of i32."""
    type = tensor_of(value)
    body = Block([type.with_shape(())] * 2)
    added = ELEMENTWISE["stablehlo.add"](body.arguments, [type.with_shape(())])
    body.append(added)
    body.append(Return.build(values=[added.result]))
    return rewriter.build(
        Reduce,
        inputs=[value],
        init_values=[constant(rewriter, 0, type.with_shape(()))],
        dimensions=DenseArray((type.rank - 1,)),
        body=Region([body]),
        out=[type.with_shape(type.shape[:-1])],
    ).results[0]


# By a network


def _network(op: Sort, rewriter: Rewriter) -> list[Value]:
    """Loops over the steps; carries the turn, the keys, and the elements' numbers when anybody needs them."""
    shape = tensor_of(op.inputs[0]).shape
    block = op.comparator.block
    used = [bool(argument.uses) for argument in block.arguments]
    keys = [at for at in range(len(op.inputs)) if any(used[2 * at : 2 * at + 2])]
    inits = [constant(rewriter, 0, TensorType((), I32)), *(op.inputs[at] for at in keys)]
    numbered = len(keys) < len(op.inputs) or not _are_alike(op)
    if numbered:
        inits.append(_numbers(rewriter, shape, op.axis))
    masks = _masks(shape[op.axis])
    types = [tensor_of(value) for value in inits]
    cond, body = Block(types), Block(types)
    for part in (cond, body):
        part.append(Return.build(values=[], loc=op.loc))
    _test(cond, len(masks))
    _step(op, body, keys, masks, numbered)
    loop = rewriter.build(While, inits=inits, cond=Region([cond]), body=Region([body]), out=types)
    done: dict[int, Value] = dict(zip(keys, loop.results[1:], strict=False))
    return _in_order(op, rewriter, done, loop.results[-1])


def _are_alike(op: Sort) -> bool:
    """Whether elements of which neither comes first are the same: one operand of integers, compared as they are."""
    first, *rest = op.comparator.block.ops
    if (
        not isinstance(first, Compare)
        or len(rest) != 1
        or first.lhs is first.rhs
        or first.direction not in ("LT", "GT")
    ):
        return False
    values = set(op.comparator.block.arguments)
    return {first.lhs, first.rhs} == values and dtype_of(first.lhs).kind != FLOAT and len(op.inputs) == 1


def _masks(size: int) -> list[int]:
    """What the index of the partner differs in, step by step."""
    found: list[int] = []
    width = 2
    while width < 2 * size:
        found.append(width - 1)
        found += [width >> step for step in range(2, width.bit_length())]
        width *= 2
    return found


def _test(block: Block, turns: int) -> None:
    end = block.ops[-1]
    rewriter = Rewriter({})
    rewriter.at(end)
    bound = constant(rewriter, turns, TensorType((), I32))
    end.set_operands([compare(rewriter, "LT", block.arguments[0], bound)])


def _step(op: Sort, block: Block, keys: list[int], masks: list[int], numbered: bool) -> None:
    """One comparison of each element with its partner; both find the same, and take what is theirs."""
    end = block.ops[-1]
    rewriter = Rewriter({})
    rewriter.at(end)
    turn, *carried = block.arguments
    shape, axis = tensor_of(carried[0]).shape, op.axis
    place, is_first, is_there = _partners(rewriter, turn, masks, shape[axis])
    is_first, is_there = (_along(rewriter, value, shape, axis) for value in (is_first, is_there))
    others = [_taken(rewriter, value, place, axis) for value in carried]
    low = [elementwise(rewriter, "select", is_first, mine, other) for mine, other in zip(carried, others, strict=True)]
    high = [elementwise(rewriter, "select", is_first, other, mine) for mine, other in zip(carried, others, strict=True)]
    pairs: list[Value] = []
    for at, value in enumerate(op.inputs):
        number = keys.index(at) if at in keys else None
        pairs += [value, value] if number is None else [high[number], low[number]]
    swap = widened(rewriter, op.comparator.block, pairs, shape)[0]
    if numbered:
        behind = widened(rewriter, op.comparator.block, _swapped(pairs), shape)[0]
        swap = elementwise(rewriter, "or", swap, _tie(rewriter, behind, high[-1], low[-1]))
    swap = elementwise(rewriter, "and", swap, is_there)
    after = [elementwise(rewriter, "select", swap, other, mine) for mine, other in zip(carried, others, strict=True)]
    one = constant(rewriter, 1, TensorType((), I32))
    end.set_operands([elementwise(rewriter, "add", turn, one), *after])


def _partners(rewriter: Rewriter, turn: Value, masks: list[int], size: int) -> tuple[Value, Value, Value]:
    """Along a line: who each element meets in this turn, whether it is the first of the two, whether there is one."""
    table = DenseElements.of(np.array(masks, dtype="<i4"), "i32")
    listed = rewriter.build(Constant, value=table, out=table.type).result
    type = TensorType((1,), I32)
    one = rewriter.build(
        DynamicSlice, operand_=listed, start_indices=[turn], slice_sizes=DenseArray((1,)), out=type
    ).result
    mask = rewriter.build(Reshape, operand_=one, out=type.with_shape(())).result
    line = type.with_shape((size,))
    mine = _numbers(rewriter, (size,), 0)
    spread = rewriter.build(BroadcastInDim, operand_=mask, broadcast_dimensions=DenseArray(()), out=line).result
    place = elementwise(rewriter, "xor", mine, spread)
    is_there = compare(rewriter, "LT", place, constant(rewriter, size, line))
    return place, compare(rewriter, "LT", mine, place), is_there


def _along(rewriter: Rewriter, line: Value, shape: tuple[int, ...], axis: int) -> Value:
    out = TensorType(shape, I1)
    return rewriter.build(BroadcastInDim, operand_=line, broadcast_dimensions=DenseArray((axis,)), out=out).result


# What both use


def _numbers(rewriter: Rewriter, shape: tuple[int, ...], axis: int) -> Value:
    """0, 1, 2, ... along an axis."""
    return rewriter.build(Iota, iota_dimension=IntegerAttr(axis), out=TensorType(shape, I32)).result


def _in_order(op: Sort, rewriter: Rewriter, done: dict[int, Value], order: Value) -> list[Value]:
    """The operands in an order, but for those that are so already."""
    results = []
    for at, value in enumerate(op.inputs):
        if at in done:
            results.append(done[at])
        elif _is_numbers(value, op.axis):
            results.append(converted(rewriter, order, str(tensor_of(value).element)))
        else:
            results.append(_gathered(rewriter, value, order, op.axis))
    return results


def _is_numbers(value: Value, axis: int) -> bool:
    maker = value.defining_op
    return isinstance(maker, Iota) and maker.iota_dimension.value == axis


def _tie(rewriter: Rewriter, behind: Value, number: Value, other: Value) -> Value:
    """Whether an element that does not come behind another had the lower number."""
    return elementwise(rewriter, "and", elementwise(rewriter, "not", behind), compare(rewriter, "LT", number, other))


def _taken(rewriter: Rewriter, value: Value, places: Value, axis: int) -> Value:
    """The elements at places along an axis, the same in every line."""
    shape = tensor_of(value).shape
    kept = [dim for dim in range(len(shape)) if dim != axis]
    numbers = f"offset_dims = {kept}, collapsed_slice_dims = [{axis}], start_index_map = [{axis}], index_vector_dim = 1"
    sizes = tuple(1 if dim == axis else size for dim, size in enumerate(shape))
    return _gather(rewriter, value, places, numbers, sizes)


def _gathered(rewriter: Rewriter, value: Value, order: Value, axis: int) -> Value:
    """The elements at places along an axis, in every line its own."""
    rank = tensor_of(value).rank
    kept = [dim for dim in range(rank) if dim != axis]
    batching = f"operand_batching_dims = {kept}, start_indices_batching_dims = {kept}, "
    numbers = f"collapsed_slice_dims = [{axis}], {batching if kept else ''}start_index_map = [{axis}], "
    return _gather(rewriter, value, order, f"{numbers}index_vector_dim = {rank}", (1,) * rank)


def _gather(rewriter: Rewriter, value: Value, places: Value, numbers: str, sizes: tuple[int, ...]) -> Value:
    return rewriter.build(
        Gather,
        operand_=value,
        start_indices=places,
        dimension_numbers=DialectAttr("stablehlo.gather", numbers),
        slice_sizes=DenseArray(sizes),
        out=tensor_of(value),
    ).result
