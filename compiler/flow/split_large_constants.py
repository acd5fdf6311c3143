"""split-large-constants: a constant that is longer than a binding of a target's devices becomes several constants.

It is cut along one axis, and the ops that read it are computed on the parts:

| op | its result |
| --- | --- |
| elementwise ops, `broadcast_in_dim`, `transpose`, `reshape` that keep the axis | has parts, too |
| `dynamic_slice` and `gather` of whole lines along the axis | has parts, too |
| `dot_general` with the axis free or a batch axis | the results of the parts, joined |
| `dynamic_slice` and `gather` of single places along the axis | selected from the results of all parts |
| `slice` | the slices of the parts, joined |

Parts are joined in front of any other op, if the tensor fits a binding. Arithmetic is the same as before. A constant
stays whole if no axis serves all of its readers; devices with short bindings then refuse the program by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Final, NamedTuple

from orchestrion.compiler.ir.attributes import ELEMENT_BYTES, DenseElements, dense_ints
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Size, is_dynamic
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.options import Options
from orchestrion.compiler.profiles import known_profile
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, Gather
from orchestrion.compiler.stablehlo.ops.structural import (
    BroadcastInDim,
    Constant,
    Reshape,
    Slice,
    Transpose,
)

#: sizes of parts are multiples of it where they can be, so that tiles need no padding
_MULTIPLE: Final = 128


class Cut(NamedTuple):
    """Where a tensor is cut: part i goes from `places[i]` up to `places[i + 1]` of `axis`."""

    axis: int
    places: tuple[int, ...]

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Start and end of each part."""
        return list(pairwise(self.places))


#: makes the parts of an op's result of those of its operand, before the op
Make = Callable[[Rewriter, Sequence[Tensor]], list[Tensor]]


@dataclass(frozen=True, slots=True)
class Rule:
    """How an op reads parts. `axis`: the axis along which its result has parts; None if `make` gives the result."""

    axis: int | None
    make: Make


def run(module: Module, options: Options) -> None:
    """Splits all long constants."""
    limit = binding_limit(options)
    if limit is None:
        return
    for op in list(module.walk(Constant)):
        if not op.value.is_splat and op.value.nbytes > limit and op.out.uses:
            _split(op, limit)


def binding_limit(options: Options) -> int | None:
    """The most bytes of a constant, if the devices of a target bind few buffers; None for any number."""
    rows = [known_profile(name) for name in options.targets]
    limits = [row.max_binding_bytes for row in rows if row.max_bindings is not None]
    return min(*limits, options.max_allocation) if limits else None


def _split(op: Constant, limit: int) -> None:
    shape = op.value.type.static_shape
    for axis in range(len(shape)):
        widest = _widest(op.out, Cut(axis, (0, shape[axis])))
        size = limit * shape[axis] // widest
        size -= size % _MULTIPLE if size > _MULTIPLE else 0
        if not size:
            continue
        cut = Cut(axis, (*range(0, shape[axis], size), shape[axis]))
        if _serves(op.out, cut, limit):
            rewriter, array = Rewriter.before(op), op.value.array()
            element = str(op.value.type.element)
            parts = []
            for start, end in cut.ranges:
                elements = DenseElements.of(array[(slice(None),) * axis + (slice(start, end),)], element)
                parts.append(Tensor(rewriter, rewriter.build(Constant, value=elements, out=elements.type).out))
            _replace(op.out, cut, parts, limit)
            return


def _widest(value: Value, cut: Cut) -> int:
    """The bytes of the largest tensor that has parts: the value, or a result that a dispatch may write to memory."""
    found = int(_nbytes(value))
    for user in value.users():
        rule = _rule(user, value, cut)
        if rule is not None and rule.axis is not None and not is_dynamic(_nbytes(user.results[0])):
            found = max(found, _widest(user.results[0], Cut(rule.axis, cut.places)))
    return found


def _serves(value: Value, cut: Cut, limit: int) -> bool:
    """Whether every reader of a value can read parts of it, or the value fits a binding."""
    return _fits(value, limit) or _is_read_in_parts(value, cut, limit)


def _is_read_in_parts(value: Value, cut: Cut, limit: int) -> bool:
    """Whether no reader of a value needs the whole."""
    rules = [(user, _rule(user, value, cut)) for user in value.users()]
    return all(
        rule is not None and (rule.axis is None or _serves(user.results[0], Cut(rule.axis, cut.places), limit))
        for user, rule in rules
    )


def _fits(value: Value, limit: int) -> bool:
    size = _nbytes(value)
    return is_dynamic(size) or size <= limit


def _nbytes(value: Value) -> Size:
    type = tensor_of(value)
    return type.num_elements * ELEMENT_BYTES[str(type.element)]


def _replace(value: Value, cut: Cut, parts: Sequence[Tensor], limit: int) -> None:
    """Have all readers of a value read its parts, and erase them where they become dead."""
    for user in value.users():
        rule = _rule(user, value, cut)
        rewriter = Rewriter.before(user)
        given = [Tensor(rewriter, part.value) for part in parts]
        if rule is None:
            whole = _joined(given, cut.axis).value
            for index, operand in enumerate(user.operands):
                if operand is value:
                    user.set_operand(index, whole)
            continue
        made = rule.make(rewriter, given)
        if rule.axis is None:
            user.replace_by([one.value for one in made])
            continue
        _replace_result(user, Cut(rule.axis, cut.places), made, limit)
    maker = value.defining_op
    assert maker is not None and not value.uses, "every reader reads the parts"
    maker.erase()


def _replace_result(op: Operation, cut: Cut, parts: Sequence[Tensor], limit: int) -> None:
    """Hand the parts of a result on where its readers need them, else join them."""
    result = op.results[0]
    if _fits(result, limit) and (isinstance(op, Gather) or not _is_read_in_parts(result, cut, limit)):
        op.replace_by([_joined(parts, cut.axis).value])
    else:
        _replace(result, cut, parts, limit)


def _joined(parts: Sequence[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else concatenate(parts, axis)


def _rule(op: Operation, value: Value, cut: Cut) -> Rule | None:
    """How an op reads the parts of one of its operands; None if it needs the whole."""
    find = next((find for kind, find in _RULES.items() if isinstance(op, kind)), None)
    at_once = isinstance(op, Elementwise) or list(op.operands).count(value) == 1
    return find(op, value, cut) if find is not None and at_once else None


def _copies(
    op: Operation, value: Value, cut: Cut, axis: int, alongside: Mapping[Value, int] | None = None, resize: bool = False
) -> Rule:
    """The op on each part; its results are parts along `axis`. `alongside`: operands that are cut with the value ->
    their axis. `resize`: the op reads slices, which are as long along the axis of the cut as a part.
    """

    def make(rewriter: Rewriter, parts: Sequence[Tensor]) -> list[Tensor]:
        made = []
        for part, (start, end) in zip(parts, cut.ranges, strict=True):
            mapping = {
                other: Tensor(rewriter, other).cut(at, start, end).value for other, at in (alongside or {}).items()
            }
            copy = op.clone({value: part.value, **mapping})
            type = tensor_of(op.results[0])
            copy.results[0].type = type.with_shape((*type.shape[:axis], end - start, *type.shape[axis + 1 :]))
            if resize:
                _resize(copy, cut.axis, end - start)
            made.append(Tensor(rewriter, rewriter.insert(copy).results[0]))
        return made

    return Rule(axis, make)


def _elementwise(op: Operation, value: Value, cut: Cut) -> Rule | None:
    shape = tensor_of(value).shape
    if tensor_of(op.results[0]).shape != shape:
        return None  # a scalar operand
    others = [other for other in op.operands if other is not value and tensor_of(other).shape == shape]
    return _copies(op, value, cut, cut.axis, dict.fromkeys(others, cut.axis))


def _broadcast(op: BroadcastInDim, value: Value, cut: Cut) -> Rule | None:
    return _copies(op, value, cut, op.broadcast_dimensions.ints[cut.axis])


def _transpose(op: Transpose, value: Value, cut: Cut) -> Rule | None:
    return _copies(op, value, cut, op.permutation.ints.index(cut.axis))


def _reshape(op: Operation, value: Value, cut: Cut) -> Rule | None:
    shape, given = tensor_of(value).shape, tensor_of(op.results[0]).shape
    before = prod(shape[: cut.axis])
    places = [axis for axis, size in enumerate(given) if size == shape[cut.axis] and prod(given[:axis]) == before]
    return _copies(op, value, cut, places[0]) if places else None


def _dot(op: DotGeneral, value: Value, cut: Cut) -> Rule | None:
    dims, left = op.dimensions, op.lhs is value
    batch, contract = (dims.lhs_batch, dims.lhs_contract) if left else (dims.rhs_batch, dims.rhs_contract)
    if cut.axis in contract:
        return None
    other = op.rhs if left else op.lhs
    alongside: dict[Value, int] = {}
    if cut.axis in batch:
        place = batch.index(cut.axis)
        alongside[other] = (dims.rhs_batch if left else dims.lhs_batch)[place]
        if not tensor_of(other).is_static:
            return None
    else:
        place = len(batch) + dims.free(tensor_of(value).rank, left).index(cut.axis)
        place += 0 if left else len(dims.free(tensor_of(other).rank, True))
    copies = _copies(op, value, cut, place, alongside)
    return Rule(None, lambda rewriter, parts: [_joined(copies.make(rewriter, parts), place)])


def _slice(op: Slice, value: Value, cut: Cut) -> Rule | None:
    starts, limits, steps = op.start_indices.sizes, op.limit_indices.sizes, op.strides.sizes
    first, last, axis = starts[cut.axis], limits[cut.axis], cut.axis
    if steps[axis] != 1 or first == last:
        return None

    def make(rewriter: Rewriter, parts: Sequence[Tensor]) -> list[Tensor]:
        made = []
        for part, (start, end) in zip(parts, cut.ranges, strict=True):
            if start < last and first < end:
                low, high = list(starts), list(limits)
                low[axis], high[axis] = max(first, start) - start, min(last, end) - start
                made.append(part.slice(low, high, steps))
        return [_joined(made, axis)]

    return Rule(None, make)


def _dynamic_slice(op: DynamicSlice, value: Value, cut: Cut) -> Rule | None:
    sizes = op.slice_sizes.sizes
    if sizes[cut.axis] == tensor_of(value).shape[cut.axis]:
        return _copies(op, value, cut, cut.axis, resize=True)
    if sizes[cut.axis] != 1:
        return None
    index = op.first_start + cut.axis

    def make(rewriter: Rewriter, parts: Sequence[Tensor]) -> list[Tensor]:
        at = _word(Tensor(rewriter, op.operands[index]))
        starts: list[Tensor | int] = [Tensor(rewriter, one) for one in op.operands[op.first_start :]]
        starts = [_word(one) for one in starts if isinstance(one, Tensor)]

        def read(part: Tensor, start: int) -> Tensor:
            place = at - start if start else at
            return part.dynamic_slice([*starts[: cut.axis], place, *starts[cut.axis + 1 :]], sizes)

        return [_selected(parts, cut, at, read, lambda mask, like: mask.broadcast(like.shape))]

    return Rule(None, make)


def _gather(op: Gather, value: Value, cut: Cut) -> Rule | None:
    axes, sizes, shape = op.axes, op.slice_sizes.sizes, tensor_of(value).shape
    gone = (*axes.collapsed_slice_dims, *axes.operand_batching_dims)
    if cut.axis not in gone and sizes[cut.axis] == shape[cut.axis]:
        kept = [axis for axis in range(len(shape)) if axis not in gone]
        place = axes.offset_dims[kept.index(cut.axis)]
        return _copies(op, value, cut, place, resize=True)
    if list(axes.start_index_map) != [cut.axis] or sizes[cut.axis] != 1:
        return None
    out = tensor_of(op.results[0])
    batch = [axis for axis in range(out.rank) if axis not in axes.offset_dims]

    def make(rewriter: Rewriter, parts: Sequence[Tensor]) -> list[Tensor]:
        at = _word(Tensor(rewriter, op.start_indices))

        def read(part: Tensor, start: int) -> Tensor:
            copy = op.clone({value: part.value, op.start_indices: (at - start if start else at).value})
            return Tensor(rewriter, rewriter.insert(copy).results[0])

        def spread(mask: Tensor, like: Tensor) -> Tensor:
            return mask.reshape(*[like.shape[axis] for axis in batch]).broadcast(like.shape, batch)

        return [_selected(parts, cut, at, read, spread)]

    return Rule(None, make)


def _selected(
    parts: Sequence[Tensor],
    cut: Cut,
    at: Tensor,
    read: Callable[[Tensor, int], Tensor],
    spread: Callable[[Tensor, Tensor], Tensor],
) -> Tensor:
    """The elements at places of the axis: those of the last part that does not start behind the place. Places outside
    of the axis are clamped by the first and the last part.
    """
    found = read(parts[0], 0)
    for part, start in zip(parts[1:], cut.places[1:], strict=False):
        there = read(part, start)
        found = spread(at >= start, there).select(there, found)
    return found


def _word(index: Tensor) -> Tensor:
    """An index that holds any place of an axis."""
    return index.convert("i32") if index.dtype.itemsize < ELEMENT_BYTES["i32"] else index


def _resize(copy: Operation, axis: int, size: int) -> None:
    assert isinstance(copy, DynamicSlice | Gather)
    sizes = copy.slice_sizes.sizes
    copy.slice_sizes = dense_ints(*sizes[:axis], size, *sizes[axis + 1 :])


_RULES: Final[dict[type[Operation], Callable[[Any, Value, Cut], Rule | None]]] = {
    Elementwise: _elementwise,
    BroadcastInDim: _broadcast,
    Transpose: _transpose,
    Reshape: _reshape,
    DotGeneral: _dot,
    Slice: _slice,
    DynamicSlice: _dynamic_slice,
    Gather: _gather,
}
