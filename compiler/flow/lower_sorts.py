"""lower-sorts: `sort` becomes elementwise ops and reductions, or a loop of merges, which every target supports.

Equal keys keep their order even if the sort need not be stable, so that all devices give equal results. Two ways:

- Few elements: the place of an element is the number of elements of its line that precede it. One reduction compares
  each element with each. A second one turns places into an order, and every operand is gathered in that order.
- Many elements: a counted loop of merges of runs (`merge.py`), one iteration per run length, beginning with single
  elements. The operands that the comparator reads are merged, and one that it does not read. If there are several
  of the latter, or if it holds the numbers of the elements, these numbers are merged instead, and the operands are
  gathered at the end.
"""

from __future__ import annotations

from math import prod
from typing import Final

from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.dims import Dim, typical
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I32, TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, constant, convert, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, iota, reduce_axes, take_along
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Return
from orchestrion.compiler.stablehlo.ops.control_flow import While
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors
from orchestrion.compiler.stablehlo.ops.sort import Sort
from orchestrion.compiler.stablehlo.ops.structural import Iota

from .merge import Merge

#: most comparisons of each element with each of its line; beyond, runs are merged. Lines of dynamic length are always
#: compared, because merges need a static number of iterations
MAX_COMPARISONS: Final = 1 << 18


def run(module: Module) -> None:
    """Lowers all sorts."""
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
    """For each place of the results, the number in its line of the element that belongs there."""
    shape, axis = tensor_of(op.inputs[0]).shape, op.axis
    pairs = (*shape, shape[axis])
    mine, other = iota(rewriter, pairs, axis), iota(rewriter, pairs, len(shape))
    ahead = [_paired(rewriter, value, axis, along) for value in op.inputs for along in (True, False)]
    before = apply_to_tensors(rewriter, op.comparator.block, ahead, pairs)[0]
    behind = apply_to_tensors(rewriter, op.comparator.block, _swapped(ahead), pairs)[0]
    ahead_of = elementwise(rewriter, "or", before, _tie(rewriter, behind, other, mine))
    counted = convert(rewriter, ahead_of, "i32")
    place = _paired(rewriter, reduce_axes(rewriter, counted, (len(shape),)), axis, True)
    here = compare(rewriter, "EQ", place, mine)
    zero = constant(rewriter, 0, tensor_of(other))
    return reduce_axes(rewriter, elementwise(rewriter, "select", here, other, zero), (len(shape),))


def _paired(rewriter: Rewriter, value: Value, axis: int, along: bool) -> Value:
    """Pairs each element with each of its line: element [.., i, .., j] is the element at place j, or else at place
    i.
    """
    type = tensor_of(value)
    dims = [type.rank if along and dim == axis else dim for dim in range(type.rank)]
    return broadcast(rewriter, value, (*type.shape, type.shape[axis]), dims)


def _swapped(pairs: list[Value]) -> list[Value]:
    """The arguments of a comparator with both sides swapped."""
    return [value for at in range(0, len(pairs), 2) for value in (pairs[at + 1], pairs[at])]


# By merging


def _merged(op: Sort, rewriter: Rewriter) -> list[Value]:
    """The loop over the merges. It carries the iteration, the keys, and one more operand or the numbers of the
    elements.
    """
    shape, axis = tensor_of(op.inputs[0]).shape, op.axis
    block = op.comparator.block
    used = [bool(argument.uses) for argument in block.arguments]
    keys = [at for at in range(len(op.inputs)) if any(used[2 * at : 2 * at + 2])]
    rest = [at for at in range(len(op.inputs)) if at not in keys]
    numbered = len(rest) > 1 or any(_is_numbers(op.inputs[at], axis) for at in rest)
    carried = keys if numbered else list(range(len(op.inputs)))
    inits = [constant(rewriter, 0, TensorType((), I32)), *(op.inputs[at] for at in carried)]
    if numbered:
        inits.append(iota(rewriter, shape, axis))
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
    """The comparator of the sort, with arguments for the carried values only."""
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
    """The operands in the sorted order. Those that were merged are sorted already."""
    results = []
    for at, value in enumerate(op.inputs):
        if at in done:
            results.append(done[at])
        elif _is_numbers(value, op.axis):
            results.append(convert(rewriter, order, str(tensor_of(value).element)))
        else:
            results.append(take_along(rewriter, value, order, op.axis))
    return results


def _is_numbers(value: Value, axis: int) -> bool:
    maker = value.defining_op
    return isinstance(maker, Iota) and maker.iota_dimension.value == axis


def _tie(rewriter: Rewriter, behind: Value, number: Value, other: Value) -> Value:
    """Whether an element that does not come behind another one had the lower number."""
    return elementwise(rewriter, "and", elementwise(rewriter, "not", behind), compare(rewriter, "LT", number, other))
