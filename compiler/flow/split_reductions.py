"""split-reductions: a long reduction with few results becomes two, so that many workgroups share the first.

The first reduces parts of the elements, each by `LANES` invocations, of which one takes every `LANES`-th element: so
neighbours read neighbours, and a part is read from end to end. The second reduces what came out. Only where the order
of elements may change and the initial value changes nothing, which then fills up the last part. Rows that a workgroup
can take with what depends on them (`row_groups.py`) are left whole.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter, rewrite
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.reducers import is_neutral
from orchestrion.compiler.stablehlo.ops.structural import Pad

from .row_groups import FEW_ROWS, MAX_ROW
from .window_builders import reshape

if TYPE_CHECKING:
    from orchestrion.compiler.options import Options

#: invocations that the first reduction is given, about
INVOCATIONS: Final = 1 << 12
#: elements that each of them takes at least
LEAST: Final = 1 << 6
#: invocations that read side by side
LANES: Final = 1 << 6


def run(module: Module, options: Options) -> None:
    rewrite(module, PATTERNS)


def _split(op: Operation, rewriter: Rewriter) -> bool:
    assert isinstance(op, Reduce)
    dims = sorted(op.dimensions.ints)
    if len(op.inputs) != 1 or not dims or dims != list(range(dims[0], dims[-1] + 1)):
        return False
    if not tensor_of(op.inputs[0]).is_static:
        return False  # it is cut into numbers of parts
    shape = tensor_of(op.inputs[0]).shape
    before, length, behind = map(prod, (shape[: dims[0]], shape[dims[0] : dims[-1] + 1], shape[dims[-1] + 1 :]))
    parts, lanes = _parts(before, length, behind)
    if parts < 2 or not is_neutral(op.body.block, op.init_values[0]):
        return False
    value = reshape(rewriter, op.inputs[0], (before, length, behind))
    value = _filled(value, op.init_values[0], parts * lanes, rewriter)
    iterations = tensor_of(value).shape[1] // (parts * lanes)
    value = reshape(rewriter, value, (before, parts, iterations, lanes, behind))
    first = _reduced(op, rewriter, value, (2,))
    second = _reduced(op, rewriter, first, (1, 2))
    rewriter.replace(op, [reshape(rewriter, second, tensor_of(op.results[0]).shape)])
    return True


def _parts(before: int, length: int, behind: int) -> tuple[int, int]:
    """How many parts each fold is made of, 1 where it stays whole, and how many invocations read side by side in one.

    Numbers that leave nothing to fill up are preferred, and iterations that can be taken in fours.
    """
    results = before * behind
    if not results or length < INVOCATIONS or (behind == 1 and before >= FEW_ROWS and length <= MAX_ROW):
        return 1, 1
    widest = max(LANES // behind, 1)
    for iterations, lanes in [
        (iterations, lanes) for iterations in (4, 1) for lanes in (widest, widest // 2, widest // 4) if lanes
    ]:
        most = min(INVOCATIONS // results, length // LEAST) // lanes
        for parts in range(most, max(most // 2, 1), -1):
            if length % (parts * lanes * iterations) == 0:
                return parts, lanes
    most = min(INVOCATIONS // results, length // LEAST) // widest
    return (most, widest) if most > 1 else (1, 1)


def _filled(value: Value, init: Value, multiple: int, rewriter: Rewriter) -> Value:
    """The axis in the middle made as long as a multiple of a number."""
    before, length, behind = tensor_of(value).shape
    missing = -length % multiple
    if not missing:
        return value
    return rewriter.build(
        Pad,
        operand_=value,
        padding_value=init,
        edge_padding_low=dense_ints(0, 0, 0),
        edge_padding_high=dense_ints(0, missing, 0),
        interior_padding=dense_ints(0, 0, 0),
        out=tensor_of(value).with_shape((before, length + missing, behind)),
    ).out


def _reduced(op: Reduce, rewriter: Rewriter, value: Value, dims: tuple[int, ...]) -> Value:
    """The reduction over some axes."""
    type = tensor_of(value)
    kept = tuple(size for axis, size in enumerate(type.shape) if axis not in dims)
    return rewriter.build(
        Reduce,
        inputs=[value],
        init_values=op.init_values,
        dimensions=dense_ints(*dims),
        body=op.body.clone(),
        out=[type.with_shape(kept)],
    ).results[0]


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {Reduce.name: (_split,)}
