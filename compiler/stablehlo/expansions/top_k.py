"""`chlo.top_k`: a descending sort of the last axis together with the elements' indices, of which the first k remain.

A few elements of 32 bits are not sorted: each is the greatest of those behind the one before.

If k is computed from sizes, the op is a `custom_call`. Equal elements are ordered by index, floats in total order: a
NaN comes first, or last if it is negative. `ApproxTopK`, which JAX calls for `lax.approx_max_k` and `approx_min_k`, may
be inexact; here it is exact, a sort by the comparator that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import ArrayAttr, DictAttr, IntegerAttr, StringAttr, SymbolRef
from orchestrion.compiler.ir.core import Block, Operation, Region
from orchestrion.compiler.ir.dims import Size, is_dynamic, is_less
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import I1, TensorType
from orchestrion.compiler.stablehlo.builders.tensors import (
    Tensor,
    concatenate,
    expansion,
    replace,
    sort,
    sort_with_places,
)
from orchestrion.compiler.stablehlo.ops.base import is_known, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import Return
from orchestrion.compiler.stablehlo.ops.func import Call, Func

#: Name in a `custom_call` of `top_k` with a computed k.
TOP_K: Final = "stablehlo.dynamic_top_k"
#: most elements that are found one after the other, rather than by a sort
MOST_SELECTED: Final = 16
SMALLEST: Final = -(1 << 31)
LARGEST: Final = (1 << 31) - 1


def expand_top_k(op: Operation, rewriter: Rewriter) -> bool:
    """Expands the op; skips malformed ops."""
    k = op.get_as("k", IntegerAttr)
    return k is not None and k.value >= 0 and _largest(op, rewriter, k.value)


def expand_dynamic_top_k(op: Operation, rewriter: Rewriter) -> bool:
    """Expands a `custom_call` of `TOP_K` after `refine-shapes` has determined k."""
    if op.get("call_target_name") != StringAttr(TOP_K) or not op.results or not is_known(op.results[0].type):
        return False
    shape = tensor_of(op.results[0]).shape
    return bool(shape) and _largest(op, rewriter, shape[-1])


def _largest(op: Operation, rewriter: Rewriter, count: Size) -> bool:
    def largest(op: Operation, x: Tensor) -> list[Tensor] | None:
        if not x.shape or is_less(x.shape[-1], count):
            return None
        if isinstance(count, int) and 0 < count <= MOST_SELECTED and is_less(4 * count, x.shape[-1]) and _is_word(x):
            return _selected(x, count)
        return [kept.leading((*x.shape[:-1], count)) for kept in sort_with_places(x, "GT")]

    return expansion(largest, 1, 2)(op, rewriter)


def _is_word(x: Tensor) -> bool:
    return x.dtype.name in ("f32", "i32", "ui32") and not is_dynamic(x.shape[-1])


def _selected(x: Tensor, count: int) -> list[Tensor]:
    """The largest elements and their places, each found by two reductions of the elements behind the one before."""
    axis, bits = len(x.shape) - 1, x.bitcast("i32")
    flipped = bits ^ ((bits >> 31) & LARGEST) if x.dtype.name == "f32" else bits ^ SMALLEST
    keys = bits if x.dtype.name == "i32" else flipped
    places, rest = x.iota(axis), None
    found: list[tuple[Tensor, Tensor]] = []
    for _ in range(count):
        left = keys if rest is None else rest.select(keys, SMALLEST)
        key = left.reduce([axis], "maximum", x.int32(SMALLEST))
        keyed = key.broadcast(x.shape, range(axis))
        here = keys.eq(keyed) if rest is None else keys.eq(keyed) & rest
        place = here.select(places, x.shape[axis]).reduce([axis], "minimum", x.int32(LARGEST))
        placed = place.broadcast(x.shape, range(axis))
        rest = (keys < keyed) | (keys.eq(keyed) & (places > placed))
        found.append((key, place))
    shape = (*x.shape[:-1], 1)
    key, place = (concatenate([one.reshape(*shape) for one in ones], axis) for ones in zip(*found, strict=True))
    if x.dtype.name == "f32":
        key = key ^ ((key >> 31) & LARGEST)
    elif x.dtype.name == "ui32":
        key = key ^ SMALLEST
    return [key.bitcast(x.dtype.name), place]


def expand_approx_top_k(op: Operation, rewriter: Rewriter) -> bool:
    """Expands `ApproxTopK`. Its operands are tensors, then one padding value for each, which are not needed."""
    if op.get("call_target_name") != StringAttr("ApproxTopK"):
        return False
    count, called = len(op.results), op.get_as("called_computations", ArrayAttr)
    config = op.get_as("mhlo.backend_config", DictAttr) or op.get_as("backend_config", DictAttr)
    axis = config.get("reduction_dim") if config is not None else None
    values = op.operands[:count]
    if len(op.operands) != 2 * count or called is None or len(called) != 1 or not isinstance(axis, IntegerAttr):
        return False
    compared = called.items[0]
    types = [tensor_of(value) for value in values if is_known(value.type)]
    function = rewriter.symbols.lookup(op, compared) if isinstance(compared, SymbolRef) else None
    if isinstance(function, Func):  # JAX leaves it public, but callers do not call it
        function.sym_visibility = StringAttr("private")
    if not isinstance(compared, SymbolRef) or len(types) != count or not _fits(op, types, axis.value):
        return False
    ordered = sort([Tensor(rewriter, value) for value in values], axis.value, _calling(compared, types))
    kept = [x.leading(tensor_of(result).shape) for x, result in zip(ordered, op.results, strict=True)]
    return replace(op, rewriter, kept)


def _fits(op: Operation, types: Sequence[TensorType], axis: int) -> bool:
    """Whether each result has its operand's type, with at most the operand's size along the axis."""
    for type, out in zip(types, (result.type for result in op.results), strict=True):
        if not isinstance(out, TensorType) or not 0 <= axis < type.rank or out.rank != type.rank:
            return False
        wanted = (*type.shape[:axis], out.shape[axis], *type.shape[axis + 1 :])
        if out != type.with_shape(wanted) or not out.shape[axis] <= type.shape[axis]:
            return False
    return True


def _calling(comparator: SymbolRef, types: Sequence[TensorType]) -> Region:
    block = Block([type.with_shape(()) for type in types for _ in range(2)])
    called = Call.build(arguments=block.arguments, callee=comparator, outputs=[TensorType((), I1)])
    block.append(called)
    block.append(Return.build(values=called.results))
    return Region([block])
