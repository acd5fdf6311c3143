"""lower-sorts: `sort` becomes elementwise ops and reductions, or a loop of merges, which every target has.

Equal keys keep their order, stable or not, so that every device gives the same. Two ways:

- Few elements: the place of an element is how many of its line come before it; each is compared with each, in one
  reduction. A second one turns places into an order, in which every operand is gathered.
- Many: merges of runs (`merge.py`), one iteration of a counted loop for each length, from single elements on. What the
  comparator reads is merged, and one operand that it does not read; were there several, or is that one the elements'
  numbers, these are merged instead, and the operands follow at the end.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.ir.attributes import DenseArray, IntegerAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.dims import Dim, typical
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, convert, elementwise
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Reduce, Return
from orchestrion.compiler.stablehlo.ops.control_flow import While
from orchestrion.compiler.stablehlo.ops.elementwise import OPS as ELEMENTWISE
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors
from orchestrion.compiler.stablehlo.ops.sort import Sort
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Iota

from .merge import Merge
from .sort_builders import gathered, numbers

if TYPE_CHECKING:
    from orchestrion.compiler.options import Options

#: comparisons, each element with each of its line, up to which places are counted; lines of a length that a call brings
#: always are, since merges take a number of iterations
MAX_COMPARISONS: Final = 1 << 18


def run(module: Module, options: Options) -> None:
    for op in list(module.walk()):
        if isinstance(op, Sort):
            rewriter = Rewriter({})
            rewriter.at(op)
            rewriter.replace(op, _sorted(op, rewriter))


def _sorted(op: Sort, rewriter: Rewriter) -> list[Value]:
    shape = tensor_of(op.inputs[0]).shape
    size = shape[op.axis]
    if size in (0, 1) or prod(shape) == 0:
        return list(op.inputs)
    if isinstance(size, Dim) or typical(prod(shape)) * size <= MAX_COMPARISONS:
        return _in_order(op, rewriter, {}, _order(op, rewriter))
    return _merged(op, rewriter)


# By counting


def _order(op: Sort, rewriter: Rewriter) -> Value:
    """For each place of the results, the number in its line of the element that goes there."""
    shape, axis = tensor_of(op.inputs[0]).shape, op.axis
    pairs = (*shape, shape[axis])
    mine, other = numbers(rewriter, pairs, axis), numbers(rewriter, pairs, len(shape))
    ahead = [_paired(rewriter, value, axis, along) for value in op.inputs for along in (True, False)]
    before = apply_to_tensors(rewriter, op.comparator.block, ahead, pairs)[0]
    behind = apply_to_tensors(rewriter, op.comparator.block, _swapped(ahead), pairs)[0]
    ahead_of = elementwise(rewriter, "or", before, _tie(rewriter, behind, other, mine))
    counted = convert(rewriter, ahead_of, "i32")
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


# By merging


def _merged(op: Sort, rewriter: Rewriter) -> list[Value]:
    """Loops over the merges; carries the iteration, the keys, and one operand more, or the elements' numbers."""
    shape, axis = tensor_of(op.inputs[0]).shape, op.axis
    block = op.comparator.block
    used = [bool(argument.uses) for argument in block.arguments]
    keys = [at for at in range(len(op.inputs)) if any(used[2 * at : 2 * at + 2])]
    rest = [at for at in range(len(op.inputs)) if at not in keys]
    numbered = len(rest) > 1 or any(_is_numbers(op.inputs[at], axis) for at in rest)
    carried = keys if numbered else list(range(len(op.inputs)))
    inits = [constant(rewriter, 0, TensorType((), I32)), *(op.inputs[at] for at in carried)]
    if numbered:
        inits.append(numbers(rewriter, shape, axis))
    types = [tensor_of(value) for value in inits]
    cond, body = Block(types), Block(types)
    for part in (cond, body):
        part.append(Return.build(values=[], loc=op.loc))
    _test(cond, (shape[axis] - 1).bit_length())
    _merge_runs(op, body, carried)
    loop = rewriter.build(While, inits=inits, cond=Region([cond]), body=Region([body]), out=types)
    done: dict[int, Value] = dict(zip(carried, loop.results[1:], strict=False))
    return _in_order(op, rewriter, done, loop.results[-1])


def _test(block: Block, iterations: int) -> None:
    end = block.end
    rewriter = Rewriter({})
    rewriter.at(end)
    bound = constant(rewriter, iterations, TensorType((), I32))
    end.set_operands([compare(rewriter, "LT", block.arguments[0], bound)])


def _merge_runs(op: Sort, block: Block, carried: list[int]) -> None:
    """Merges runs of 2^iteration elements."""
    end = block.end
    rewriter = Rewriter({})
    rewriter.at(end)
    iteration, *values = block.arguments
    merge = rewriter.build(
        Merge,
        inputs=values,
        step=iteration,
        dimension=IntegerAttr(op.axis),
        comparator=_comparator(op, carried, [tensor_of(value) for value in values]),
        out=[value.type for value in values],
        loc=op.loc,
    )
    one = constant(rewriter, 1, TensorType((), I32))
    end.set_operands([elementwise(rewriter, "add", iteration, one), *merge.results])


def _comparator(op: Sort, carried: list[int], types: list[TensorType]) -> Region:
    """The sort's comparator, of what is carried only."""
    old = op.comparator.block
    block = Block([type.with_shape(()) for type in types for _ in range(2)])
    mapping: dict[Value, Value] = {}
    for place, at in enumerate(carried):
        for side in range(2):
            mapping[old.arguments[2 * at + side]] = block.arguments[2 * place + side]
    for inner in old:
        block.append(inner.clone(mapping))
    return Region([block])


# What both use


def _in_order(op: Sort, rewriter: Rewriter, done: dict[int, Value], order: Value) -> list[Value]:
    """The operands in an order, but for those that are so already."""
    results = []
    for at, value in enumerate(op.inputs):
        if at in done:
            results.append(done[at])
        elif _is_numbers(value, op.axis):
            results.append(convert(rewriter, order, str(tensor_of(value).element)))
        else:
            results.append(gathered(rewriter, value, order, op.axis))
    return results


def _is_numbers(value: Value, axis: int) -> bool:
    maker = value.defining_op
    return isinstance(maker, Iota) and maker.iota_dimension.value == axis


def _tie(rewriter: Rewriter, behind: Value, number: Value, other: Value) -> Value:
    """Whether an element that does not come behind another had the lower number."""
    return elementwise(rewriter, "and", elementwise(rewriter, "not", behind), compare(rewriter, "LT", number, other))
