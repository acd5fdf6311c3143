"""Legacy ops of StableHLO, and ops of CHLO that broadcast their operands, by `dot_general`, `gather` and elementwise
ops.

A `map` becomes its computation on whole tensors. An `einsum` becomes a `dot_general`, after sums over axes that only
one operand has, and before a transpose; no letter may occur twice in one operand. Malformed ops are left for the
legality check.
"""

from __future__ import annotations

import re
from typing import Final

from orchestrion.compiler.ir.attributes import DenseArray, DialectAttr, IntegerAttr, StringAttr, dense_ints
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.builders.shape_builders import broadcast, dot, reduce_axes, transpose
from orchestrion.compiler.stablehlo.ops.base import is_known, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotDimensions, Return
from orchestrion.compiler.stablehlo.ops.elementwise import OPS, Elementwise
from orchestrion.compiler.stablehlo.ops.indexing import Gather
from orchestrion.compiler.stablehlo.ops.scalar_regions import apply_to_tensors
from orchestrion.compiler.stablehlo.ops.structural import Constant


def _known(op: Operation, operands: int) -> bool:
    values = (*op.operands, *op.results)
    return (len(op.operands), len(op.results)) == (operands, 1) and all(is_known(value.type) for value in values)


def _result(op: Operation, rewriter: Rewriter, made: Value) -> bool:
    if made.type != op.results[0].type:
        return False
    rewriter.replace(op, [made])
    return True


def _broadcast(op: Operation, rewriter: Rewriter) -> bool:
    """Adds leading axes."""
    sizes = op.get_as("broadcast_sizes", DenseArray)
    if sizes is None or not _known(op, 1):
        return False
    own = tensor_of(op.operands[0])
    shape = (*sizes.ints, *own.shape)
    if op.results[0].type != own.with_shape(shape):
        return False
    return _result(op, rewriter, broadcast(rewriter, op.operands[0], shape, range(len(sizes), len(shape))))


def _map(op: Operation, rewriter: Rewriter) -> bool:
    values = (*op.operands, *op.results)
    if not op.operands or len(op.regions) != 1 or len(op.regions[0].blocks) != 1 or len(op.results) != 1:
        return False
    if not all(is_known(value.type) for value in values) or len({tensor_of(value).shape for value in values}) != 1:
        return False
    block, shape = op.regions[0].block, tensor_of(op.results[0]).shape
    scalars = [tensor_of(value).with_shape(()) for value in op.operands]
    *inner, last = block.ops or [op]
    plain = all(isinstance(one, Elementwise | Constant) and not any(one.check()) for one in inner)
    if not plain or not isinstance(last, Return) or [argument.type for argument in block.arguments] != scalars:
        return False
    if [value.type for value in last.operands] != [tensor_of(op.results[0]).with_shape(())]:
        return False
    rewriter.replace(op, apply_to_tensors(rewriter, block, op.operands, shape))
    return True


_EINSUM: Final = re.compile(r"([a-zA-Z]*)(?:,([a-zA-Z]*))?->([a-zA-Z]*)")


def _einsum(op: Operation, rewriter: Rewriter) -> bool:
    config = op.get_as("einsum_config", StringAttr)
    match = _EINSUM.fullmatch(config.value.replace(" ", "")) if config is not None else None
    count = 1 if op.name.endswith("unary_einsum") else 2
    if match is None or (match[2] is None) != (count == 1) or not _known(op, count):
        return False
    terms, out = [match[1], match[2]][:count], match[3]
    if any(len(set(term)) != len(term) for term in (*terms, out)) or not set(out) <= set("".join(terms)):
        return False
    if any(tensor_of(value).rank != len(term) for value, term in zip(op.operands, terms, strict=True)):
        return False
    if not _sizes_agree(op, terms, out):
        return False
    values = list(op.operands)
    for at, term in enumerate(terms):
        others = set("".join([*terms[:at], *terms[at + 1 :], out]))
        gone = [axis for axis, letter in enumerate(term) if letter not in others]
        values[at] = reduce_axes(rewriter, values[at], gone)
        terms[at] = "".join(letter for letter in term if letter in others)
    made, letters = (values[0], terms[0]) if count == 1 else _product(rewriter, values, terms, out)
    return _result(op, rewriter, transpose(rewriter, made, [letters.index(letter) for letter in out]))


def _sizes_agree(op: Operation, terms: list[str], out: str) -> bool:
    sizes: dict[str, int] = {}
    for value, term in zip((*op.operands, op.results[0]), (*terms, out), strict=True):
        type = tensor_of(value)
        if type.element != tensor_of(op.operands[0]).element or type.rank != len(term):
            return False
        if any(sizes.setdefault(letter, size) != size for letter, size in zip(term, type.shape, strict=True)):
            return False
    return True


def _product(rewriter: Rewriter, values: list[Value], terms: list[str], out: str) -> tuple[Value, str]:
    """The dot product of two operands, and the letters of its axes."""
    left, right = terms
    both = [letter for letter in left if letter in right]
    batch, contract = ([x for x in both if x in out], [x for x in both if x not in out])
    axes = DotDimensions(
        *(tuple(term.index(letter) for letter in letters) for letters in (batch, contract) for term in (left, right))
    )
    rest = [x for x in left if x not in both] + [x for x in right if x not in both]
    return dot(rewriter, values[0], values[1], axes), "".join(batch + rest)


def _torch_index_select(op: Operation, rewriter: Rewriter) -> bool:
    """Gathers whole slices at indices along `dim`; the first `batch_dims` axes are batches."""
    dim, batch = op.get_as("dim", IntegerAttr), op.get_as("batch_dims", IntegerAttr)
    if dim is None or batch is None or not _known(op, 2):
        return False
    (operand, index), batches = (tensor_of(value) for value in op.operands), batch.value
    if not 0 <= batches <= dim.value < operand.rank or operand.shape[:batches] != index.shape[:batches]:
        return False
    before, own = dim.value, index.rank - batches
    shape = (*operand.shape[:before], *index.shape[batches:], *operand.shape[before + 1 :])
    if op.results[0].type != operand.with_shape(shape) or not operand.shape[before]:
        return False
    offsets = [axis for axis in range(len(shape)) if batches <= axis < before or axis >= before + own]
    lists = {
        "offset_dims": offsets,
        "collapsed_slice_dims": [before],
        "operand_batching_dims": list(range(batches)),
        "start_indices_batching_dims": list(range(batches)),
        "start_index_map": [before],
    }
    text = ", ".join(f"{key} = {value}" for key, value in lists.items() if value)
    sizes = [1 if axis < batches or axis == before else size for axis, size in enumerate(operand.shape)]
    made = rewriter.build(
        Gather,
        operand_=op.operands[0],
        start_indices=op.operands[1],
        dimension_numbers=DialectAttr("stablehlo.gather", f"{text}, index_vector_dim = {index.rank}"),
        slice_sizes=dense_ints(*sizes),
        out=op.results[0].type,
    )
    return _result(op, rewriter, made.result)


#: Broadcasting op of CHLO -> the op on operands of one shape.
_BROADCASTING: Final = {
    f"chlo.broadcast_{name}": f"stablehlo.{name}"
    for name in (
        "add", "and", "atan2", "compare", "complex", "divide", "maximum", "minimum", "multiply", "or", "power",
        "remainder", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "xor",
    )
} | {f"chlo.broadcast_{name}": f"chlo.{name}" for name in ("polygamma", "zeta")}  # fmt: skip


def _broadcasting(op: Operation, rewriter: Rewriter) -> bool:
    cls = OPS.get(_BROADCASTING[op.name])
    axes = op.get_as("broadcast_dimensions", DenseArray)
    if cls is None or not _known(op, len(op.operands)) or axes is not None and len(op.operands) != 2:
        return False
    shape, values = tensor_of(op.results[0]).shape, []
    for value in op.operands:
        type = tensor_of(value)
        given = axes is not None and type.rank < len(shape)
        to = axes.ints if given and axes is not None else range(len(shape) - type.rank, len(shape))
        if not _fits(type, to, shape):
            return False
        values.append(broadcast(rewriter, value, shape, to))
    properties = {key: value for key, value in op.properties.items() if key != "broadcast_dimensions"}
    attributes = {key: value for key, value in op.attributes.items() if key != "broadcast_dimensions"}
    declared = {key: properties.pop(key, None) or attributes.pop(key, None) for key in _kept(cls)}
    made = cls(values, [op.results[0].type], {key: value for key, value in declared.items() if value is not None})
    return _result(op, rewriter, rewriter.insert(made).results[0])


def _kept(cls: type[Operation]) -> tuple[str, ...]:
    return tuple(field.name for field in cls.declaration.attribute)


def _fits(type: TensorType, to: range | tuple[int, ...], shape: tuple[int, ...]) -> bool:
    if len(to) != type.rank or any(not 0 <= axis < len(shape) for axis in to) or len(set(to)) != len(to):
        return False
    return all(size in (1, shape[axis]) for size, axis in zip(type.shape, to, strict=True))


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {
    **{name: (_broadcasting,) for name in _BROADCASTING},
    "stablehlo.broadcast": (_broadcast,),
    "stablehlo.einsum": (_einsum,),
    "stablehlo.map": (_map,),
    "stablehlo.torch_index_select": (_torch_index_select,),
    "stablehlo.unary_einsum": (_einsum,),
}
