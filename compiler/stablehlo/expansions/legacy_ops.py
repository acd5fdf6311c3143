"""Legacy ops of StableHLO, and ops of CHLO that broadcast their operands, by `dot_general`, `gather` and elementwise
ops.

A `map` becomes its computation on whole tensors. An `einsum` becomes a `dot_general`, after sums over axes that only
one operand has, and before a transpose; no letter may occur twice in one operand. Malformed ops are left for the
legality check.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray, IntegerAttr, StringAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.ir.rewriter import Pattern
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, expansion
from orchestrion.compiler.stablehlo.ops.base import is_axes, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, Return
from orchestrion.compiler.stablehlo.ops.elementwise import OPS, Elementwise
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors
from orchestrion.compiler.stablehlo.ops.structural import Constant


def _broadcast(op: Operation, x: Tensor) -> Tensor | None:
    """Adds leading axes."""
    sizes = op.get_as("broadcast_sizes", DenseArray)
    if sizes is None:
        return None
    shape = (*sizes.sizes, *x.shape)
    return x.broadcast(shape, range(len(sizes), len(shape)))


def _map(op: Operation, *operands: Tensor) -> list[Tensor] | None:
    out = tensor_of(op.results[0])
    if not operands or len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return None
    block, scalars = op.regions[0].block, [x.type.with_shape(()) for x in operands]
    *inner, last = block.ops or [op]
    plain = all(isinstance(one, Elementwise | Constant) and not any(one.check()) for one in inner)
    if not plain or not isinstance(last, Return) or [argument.type for argument in block.arguments] != scalars:
        return None
    returned = [value.type for value in last.operands]
    if any(x.shape != out.shape for x in operands) or returned != [out.with_shape(())]:
        return None
    rewriter = operands[0].rewriter
    made = apply_to_tensors(rewriter, block, [x.value for x in operands], out.shape)
    return [Tensor(rewriter, value) for value in made]


_EINSUM: Final = re.compile(r"([a-zA-Z]*)(?:,([a-zA-Z]*))?->([a-zA-Z]*)")


def _einsum(op: Operation, *operands: Tensor) -> Tensor | None:
    config = op.get_as("einsum_config", StringAttr)
    match = _EINSUM.fullmatch(config.value.replace(" ", "")) if config is not None else None
    count = len(operands)
    if match is None or (match[2] is None) != (count == 1):
        return None
    terms, out = [match[1], match[2]][:count], match[3]
    if any(len(set(term)) != len(term) for term in (*terms, out)) or not set(out) <= set("".join(terms)):
        return None
    if not _sizes_agree([*operands, Tensor(operands[0].rewriter, op.results[0])], [*terms, out]):
        return None
    values = list(operands)
    for at, term in enumerate(terms):
        others = set("".join([*terms[:at], *terms[at + 1 :], out]))
        values[at] = values[at].reduce([axis for axis, letter in enumerate(term) if letter not in others])
        terms[at] = "".join(letter for letter in term if letter in others)
    made, letters = (values[0], terms[0]) if count == 1 else _product(values, terms, out)
    return made.transpose(*(letters.index(letter) for letter in out))


def _sizes_agree(values: Sequence[Tensor], terms: Sequence[str]) -> bool:
    sizes: dict[str, Size] = {}
    for x, term in zip(values, terms, strict=True):
        if x.dtype != values[0].dtype or len(x.shape) != len(term):
            return False
        if any(sizes.setdefault(letter, size) != size for letter, size in zip(term, x.shape, strict=True)):
            return False
    return True


def _product(values: list[Tensor], terms: list[str], out: str) -> tuple[Tensor, str]:
    """The dot product of two operands, and the letters of its axes."""
    left, right = terms
    both = [letter for letter in left if letter in right]
    batch, contract = ([x for x in both if x in out], [x for x in both if x not in out])
    axes = DotDimensions(
        *(tuple(term.index(letter) for letter in letters) for letters in (batch, contract) for term in (left, right))
    )
    rest = [x for x in left if x not in both] + [x for x in right if x not in both]
    return values[0].dot(values[1], axes), "".join(batch + rest)


def _torch_index_select(op: Operation, operand: Tensor, index: Tensor) -> Tensor | None:
    """Gathers whole slices at indices along `dim`; the first `batch_dims` axes are batches."""
    dim, batch = op.get_as("dim", IntegerAttr), op.get_as("batch_dims", IntegerAttr)
    if dim is None or batch is None:
        return None
    batches, before, rank = batch.value, dim.value, len(index.shape)
    if not 0 <= batches <= before < len(operand.shape) or operand.shape[:batches] != index.shape[:batches]:
        return None
    shape = (*operand.shape[:before], *index.shape[batches:], *operand.shape[before + 1 :])
    if not operand.shape[before]:
        return None
    offsets = [axis for axis in range(len(shape)) if batches <= axis < before or axis >= before + rank - batches]
    sizes = [1 if axis < batches or axis == before else size for axis, size in enumerate(operand.shape)]
    return operand.gather(
        index,
        sizes,
        shape,
        offset_dims=offsets,
        collapsed_slice_dims=[before],
        operand_batching_dims=range(batches),
        start_indices_batching_dims=range(batches),
        start_index_map=[before],
    )


#: Broadcasting op of CHLO -> the op on operands of one shape.
_BROADCASTING: Final = {
    f"chlo.broadcast_{name}": f"stablehlo.{name}"
    for name in (
        "add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply", "or", "power",
        "remainder", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor",
    )
} | {f"chlo.broadcast_{name}": f"chlo.{name}" for name in ("polygamma", "zeta")}  # fmt: skip


def broadcast_operands(op: Operation, operands: Sequence[Tensor]) -> list[Tensor]:
    """The operands of a broadcasting op in the shape of its result; empty if they do not fit."""
    axes = op.get_as("broadcast_dimensions", DenseArray)
    if axes is not None and len(operands) != 2:
        return []
    out, values = tensor_of(op.results[0]), []
    for x in operands:
        rank = len(x.shape)
        to = axes.ints if axes is not None and rank < out.rank else range(out.rank - rank, out.rank)
        if len(to) != rank or not is_axes(to, out.rank):
            return []
        if any(size not in (1, out.shape[axis]) for size, axis in zip(x.shape, to, strict=True)):
            return []
        values.append(x.broadcast(out.shape, to))
    return values


def _broadcasting(op: Operation, *operands: Tensor) -> Tensor | None:
    cls, values = OPS[_BROADCASTING[op.name]], broadcast_operands(op, operands)
    if not values:
        return None
    given = {field.name: op.get(field.name) for field in cls.declaration.attribute}
    attributes = {key: value for key, value in given.items() if value is not None}
    made = cls([x.value for x in values], [tensor_of(op.results[0])], attributes)
    rewriter = operands[0].rewriter
    return Tensor(rewriter, rewriter.insert(made).results[0])


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    **{name: (expansion(_broadcasting, None),) for name in _BROADCASTING},
    "stablehlo.broadcast": (expansion(_broadcast, 1),),
    "stablehlo.einsum": (expansion(_einsum, 2),),
    "stablehlo.map": (expansion(_map, None),),
    "stablehlo.torch_index_select": (expansion(_torch_index_select, 2),),
    "stablehlo.unary_einsum": (expansion(_einsum, 1),),
}
