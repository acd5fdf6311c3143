"""split-reductions: a long reduction with few results becomes two, so that many workgroups share the first.

The first reduces parts of the elements. `LANES_PER_PART` invocations share a part, and each takes every
`LANES_PER_PART`-th element, so that neighbouring invocations read neighbouring elements. The second reduces the results
of the first. This is done only if the order of elements may change and the initial value is neutral; it then pads the
last part. Rows that a workgroup can take together with the ops that depend on them (`row_groups.py`) stay whole. Some
dots become products and reductions first (`dot_forms.py`), and booleans become words.
"""

from __future__ import annotations

from math import prod
from typing import Final

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter, rewrite
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, reduce_by
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.reducers import is_neutral, single_op_name
from orchestrion.compiler.stablehlo.ops.structural import Constant
from orchestrion.schema.dtypes import BOOL

from .dot_forms import as_products
from .row_groups import FEW_ROWS, MAX_ROW

#: approximate number of invocations of the first reduction
FIRST_INVOCATIONS: Final = 1 << 12
#: least number of elements of each invocation
MIN_ELEMENTS_PER_LANE: Final = 1 << 6
#: invocations that share a part and read neighbouring elements
LANES_PER_PART: Final = 1 << 6


def run(module: Module) -> None:
    """Splits all long reductions with few results."""
    rewrite(module, PATTERNS)


def _split(op: Reduce, rewriter: Rewriter) -> bool:
    dims = sorted(op.dimensions.ints)
    if len(op.inputs) != 1 or not dims or dims != list(range(dims[0], dims[-1] + 1)):
        return False
    if not tensor_of(op.inputs[0]).is_static:
        return False  # it is cut into numbers of parts
    shape = tensor_of(op.inputs[0]).static_shape
    before, length, behind = map(prod, (shape[: dims[0]], shape[dims[0] : dims[-1] + 1], shape[dims[-1] + 1 :]))
    parts, lanes = _parts(before, length, behind)
    if parts < 2 or not is_neutral(op.body.block, op.init_values[0]):
        return False
    init = Tensor(rewriter, op.init_values[0])
    x = Tensor(rewriter, op.inputs[0]).reshape(before, length, behind)
    x = x.pad_axis(1, 0, -length % (parts * lanes), init)
    x = x.reshape(before, parts, x.shape[1] // (parts * lanes), lanes, behind)
    for axes in ((2,), (1, 2)):
        (x,) = reduce_by([x], [init], axes, op.body.clone())
    return rewriter.replace(op, [x.reshape(*tensor_of(op.results[0]).shape).value])


def _parts(before: int, length: int, behind: int) -> tuple[int, int]:
    """Number of parts of each reduction, 1 if it stays whole, and number of neighbouring invocations that share a part.

    Numbers without padding are preferred, and numbers of iterations that are a multiple of four.
    """
    results = before * behind
    if not results or length < FIRST_INVOCATIONS or (behind == 1 and before >= FEW_ROWS and length <= MAX_ROW):
        return 1, 1
    widest = max(LANES_PER_PART // behind, 1)
    for iterations, lanes in [
        (iterations, lanes) for iterations in (4, 1) for lanes in (widest, widest // 2, widest // 4) if lanes
    ]:
        most = min(FIRST_INVOCATIONS // results, length // MIN_ELEMENTS_PER_LANE) // lanes
        for parts in range(most, max(most // 2, 1), -1):
            if length % (parts * lanes * iterations) == 0:
                return parts, lanes
    most = min(FIRST_INVOCATIONS // results, length // MIN_ELEMENTS_PER_LANE) // widest
    return (most, widest) if most > 1 else (1, 1)


def _as_products(op: DotGeneral, rewriter: Rewriter) -> bool:
    found = as_products(op, rewriter, FIRST_INVOCATIONS)
    return found is not None and rewriter.replace(op, [found])


def _of_words(op: Reduce, rewriter: Rewriter) -> bool:
    """Reduces bits of words instead of booleans, whose vectors are packed and unpacked in each step. Those of a row are
    not: its lanes are flags.
    """
    name, start = single_op_name(op.body.block), op.init_values[0].defining_op
    if len(op.inputs) != 1 or name not in ("stablehlo.and", "stablehlo.or") or not isinstance(start, Constant):
        return False
    x, dims = Tensor(rewriter, op.inputs[0]), op.dimensions.ints
    if x.dtype.kind != BOOL or not x.type.is_static:
        return False
    if len(x.shape) - 1 in dims and prod(x.type.static_shape[axis] for axis in dims) < FIRST_INVOCATIONS:
        return False
    words, init = x.select(x.int32(-1, x.shape), 0), x.int32(-int(start.value.scalars()[0]))
    return rewriter.replace(op, [words.reduce(dims, name.partition(".")[2], init).ne(0).value])


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {Reduce.name: (_of_words, _split), DotGeneral.name: (_as_products,)}
