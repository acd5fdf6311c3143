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

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Region, Value
from orchestrion.compiler.ir.dims import is_dynamic, typical
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.builders.loops import counted_loop
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, build, iota
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors
from orchestrion.compiler.stablehlo.ops.sort import Sort
from orchestrion.compiler.stablehlo.ops.structural import Iota

from .merge import Merge

#: most comparisons of each element with each of its line; beyond, runs are merged. Lines of dynamic length are always
#: compared, because merges need a static number of iterations
MAX_COMPARISONS: Final = 1 << 18


def run(module: Module) -> None:
    """Lowers all sorts."""
    for op in list(module.walk(Sort)):
        rewriter = Rewriter.before(op)
        rewriter.replace(op, _sorted(op, rewriter))


def _sorted(op: Sort, rewriter: Rewriter) -> list[Value]:
    operands = [Tensor(rewriter, value) for value in op.inputs]
    shape = operands[0].shape
    size = shape[op.axis]
    if size in (0, 1) or prod(shape) == 0:
        return list(op.inputs)
    if is_dynamic(size) or typical(prod(shape)) * size <= MAX_COMPARISONS:
        return _in_order(op, operands, {}, _order(op, operands))
    return _merged(op, operands)


# By counting


def _order(op: Sort, operands: list[Tensor]) -> Tensor:
    """For each place of the results, the number in its line of the element that belongs there."""
    shape, axis, rewriter = operands[0].shape, op.axis, operands[0].rewriter
    pairs, rank = (*shape, shape[axis]), len(shape)
    mine, other = (iota(rewriter, pairs, along) for along in (axis, rank))
    sides = [[_paired(x, axis, along).value for along in (True, False)] for x in operands]
    before, behind = (
        Tensor(rewriter, apply_to_tensors(rewriter, op.comparator.block, values, pairs)[0])
        for values in ([value for pair in sides for value in pair], [value for pair in sides for value in pair[::-1]])
    )
    goes_first = before | (~behind & (other < mine))
    place = _paired(goes_first.convert("i32").reduce([rank]), axis, True)
    return place.eq(mine).select(other, 0).reduce([rank])


def _paired(x: Tensor, axis: int, along: bool) -> Tensor:
    """Pairs each element with each of its line: element [.., i, .., j] is the element at place j, or at place i."""
    rank = len(x.shape)
    dims = [rank if along and dim == axis else dim for dim in range(rank)]
    return x.broadcast((*x.shape, x.shape[axis]), dims)


# By merging


def _merged(op: Sort, operands: list[Tensor]) -> list[Value]:
    """The loop over the merges. It carries the keys, and one more operand or the numbers of the elements."""
    axis, rewriter = op.axis, operands[0].rewriter
    used = [bool(argument.uses) for argument in op.comparator.block.arguments]
    keys = [at for at in range(len(operands)) if any(used[2 * at : 2 * at + 2])]
    rest = [at for at in range(len(operands)) if at not in keys]
    numbered = len(rest) > 1 or any(_is_numbers(op.inputs[at], axis) for at in rest)
    carried = keys if numbered else list(range(len(operands)))

    def merge_runs(iteration: Tensor, values: list[Tensor]) -> list[Tensor]:
        """Merges runs of 2^iteration elements."""
        types = [x.type for x in values]
        fields = {"dimension": axis, "comparator": _comparator(op, carried, types), "loc": op.loc}
        return build(rewriter, Merge, inputs=values, step=iteration, **fields, out=types)

    inits = [*(operands[at] for at in carried), *([operands[0].iota(axis)] if numbered else [])]
    made = counted_loop(int(operands[0].shape[axis] - 1).bit_length(), inits, merge_runs)
    return _in_order(op, operands, dict(zip(carried, made, strict=False)), made[-1])


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


def _in_order(op: Sort, operands: list[Tensor], done: dict[int, Tensor], order: Tensor) -> list[Value]:
    """The operands in the sorted order. Those that were merged are sorted already."""
    results = []
    for at, x in enumerate(operands):
        if at in done:
            results.append(done[at])
        elif _is_numbers(x.value, op.axis):
            results.append(order.convert(x.dtype.name))
        else:
            results.append(x.take_along(order, op.axis))
    return [x.value for x in results]


def _is_numbers(value: Value, axis: int) -> bool:
    maker = value.defining_op
    return isinstance(maker, Iota) and maker.iota_dimension.value == axis
