"""set-encodings: dispatches read the operands of large dots through a symbolic encoding, which a target resolves later.

For an operand that a dispatch region reads from memory, a `flow.hoistable_dispatch` with a `flow.set_encoding` is
inserted in front of the region, and a `flow.unset_encoding` inside. The encoding states which axes of the tensor are
batch, free and contracted axes of the dot. Elementwise ops and ops that transpose or collapse axes may stand between
memory and the dot; the axes are followed through them. The result of a dot stays in row-major order.

If all sizes of a dot are static, either both operands are encoded or none, because kernels need tiles on both sides. A
constant right operand is then encoded alone, as `weights`, for targets whose kernels read a left operand anywhere. If
a size is dynamic, the left operand is not encoded, because tiles have a static size. The right operand is encoded if it
is constant, or if the number of rows is static or at least the number of columns, as in attention. Otherwise encoding
it at run time could take longer than a dot of few rows. A dot is large if each of its sizes is at least `LEAST_SIZE`
and their product at least `LEAST_PRODUCTS`, with typical values for dynamic sizes. For smaller dots, further dispatches
cost more than they save, on any target. Some values of the option `encodings` encode all dots. A target decides later
which encodings pay; the others are removed without trace.
"""

from __future__ import annotations

from math import prod
from typing import Final

from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.cse import merge_equal
from orchestrion.compiler.ir.dims import Size, is_dynamic, is_less, typical
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.ir.util import GlobalLoad
from orchestrion.compiler.options import Options
from orchestrion.compiler.stablehlo.ops.base import dtype_of, tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral
from orchestrion.schema.dtypes import FLOAT

from .captures import captures
from .dialect import DispatchRegion, HoistableDispatch, SetEncoding, UnsetEncoding, Windows, Yield
from .groups import MAX_BINDINGS
from .layout import ROLES, Encoding, encoded
from .structure import Axes, axes_in_memory, joined

#: the ops of a region that compute a value from one tensor, last first, and that tensor
Way = tuple[list[Operation], Value]
#: values of the option `encodings` that encode dots of any size
ANY_SIZE: Final = ("always", "test")
#: least number of rows, of columns, and least depth of a dot whose operands are encoded
LEAST_SIZE: Final = 8
#: the operands of a dot, in order
SIDES: Final = ("left", "right")
#: least number of products of a dot whose operands are encoded
LEAST_PRODUCTS: Final = 1 << 18


def run(module: Module, options: Options) -> None:
    """Encodes the operands of large dots of all dispatch regions."""
    for region in list(module.walk(DispatchRegion)):
        for dot in region.body.block.of(DotGeneral):
            reason = _set_encodings(region, dot, options)
            if reason and options.recorder is not None:
                options.recorder.not_taken("", "other layouts for the operands of a dot", dot.loc, reason)
    merge_equal(module, (HoistableDispatch,))


def _set_encodings(region: DispatchRegion, dot: DotGeneral, options: Options) -> str:
    """Encodes the operands that may be encoded. Returns the reason why none is, or an empty text."""
    sizes = _sizes(dot)
    if sizes is None:
        return "it has no rows, no columns, or a dynamic depth"
    if options.encodings not in ANY_SIZE and not _is_large(sizes):
        rows, columns, depth = sizes
        size = f"{rows} x {columns} x {depth}"
        return f"{size}; dots are worth it from {LEAST_SIZE} along each axis and {LEAST_PRODUCTS} products on"
    ways = [_way_to_memory(operand, region) for operand in dot.operands]
    may_be = [_may_be_encoded(dot, sizes, index, way) for index, way in enumerate(ways)]
    axes = [
        axes_in_memory(operand, way[1]) if may else None
        for operand, way, may in zip(dot.operands, ways, may_be, strict=True)
    ]
    one_by_one = options.encodings == "test" or not _is_static(dot)
    weights = axes[0] is None and options.encodings not in ANY_SIZE and _are_weights(dot, ways)
    roles = [ROLES[0], "weights" if weights else ROLES[1]]
    done = [
        _encode(region, dot, role, way, found, sizes)
        for role, way, found in zip(roles, ways, axes, strict=True)
        if found is not None and (None not in axes or one_by_one or role == "weights")
    ]
    if any(done):
        return ""
    if done:
        return f"the dispatch has {MAX_BINDINGS} buffers already"
    operands = zip(SIDES, ways, may_be, axes, strict=True)
    return "; ".join(_problem(side, way, may) for side, way, may, found in operands if found is None)


def _problem(side: str, way: Way, may_be: bool) -> str:
    """Why an operand of a dot has no encoding."""
    if not _is_in_memory(way[1]):
        return f"the {side} operand is computed in the same dispatch"
    return (
        f"the axes of the {side} operand are not those in memory" if may_be else f"the {side} operand has dynamic sizes"
    )


def _sizes(dot: DotGeneral) -> tuple[Size, Size, int] | None:
    """(rows, columns, depth) of a dot; None if it lacks an axis of one of these kinds, or if the depth is dynamic."""
    left, right, dims = tensor_of(dot.lhs).shape, tensor_of(dot.rhs).shape, dot.dimensions
    rows = prod(left[axis] for axis in dims.free(len(left), True))
    columns = prod(right[axis] for axis in dims.free(len(right), False))
    depth = prod(left[axis] for axis in dims.lhs_contract)
    if not (dims.free(len(left), True) and dims.free(len(right), False) and dims.lhs_contract):
        return None
    return None if is_dynamic(depth) else (rows, columns, depth)


def _is_large(sizes: tuple[Size, Size, int]) -> bool:
    sizes = _typical(sizes)
    return min(sizes) >= LEAST_SIZE and prod(sizes) >= LEAST_PRODUCTS


def _typical(sizes: tuple[Size, Size, int]) -> tuple[int, int, int]:
    rows, columns, depth = sizes
    return typical(rows), typical(columns), typical(depth)


def _is_static(dot: DotGeneral) -> bool:
    return tensor_of(dot.lhs).is_static and tensor_of(dot.rhs).is_static


def _may_be_encoded(dot: DotGeneral, sizes: tuple[Size, Size, int], index: int, way: Way) -> bool:
    """Whether an operand is in memory and encoding it pays for all dynamic sizes."""
    chain, source = way
    if not _is_in_memory(source) or _is_static(dot):
        return _is_in_memory(source)
    rows, columns, _ = sizes
    known = all(tensor_of(value).is_static for value in (source, *(op.results[0] for op in chain)))
    is_constant = isinstance(source.defining_op, GlobalLoad) and known
    return index == 1 and (is_constant or not is_dynamic(rows) or is_less(columns - 1, rows))


def _are_weights(dot: DotGeneral, ways: list[Way]) -> bool:
    """Whether the right operand is a constant of floats that is worth tiles of its own. Windows side by side are not:
    targets transform both operands of such a convolution (docs/decisions/winograd.md).
    """
    (chain, _), (_, source) = ways
    constant = _is_static(dot) and isinstance(source.defining_op, GlobalLoad)
    beside = any(isinstance(op, Windows) and set(op.strides.ints) == {1} for op in chain)
    return constant and not beside and dtype_of(source).kind == FLOAT


def _encode(
    region: DispatchRegion, dot: DotGeneral, role: str, way: Way, axes: Axes, sizes: tuple[Size, Size, int]
) -> bool:
    """Inserts an encoding between memory and an operand of the dot, if the dispatch may bind one more buffer."""
    chain, source = way
    if len(captures(region)) + len(region.outputs) >= MAX_BINDINGS:
        return False
    dims, left = dot.dimensions, role == ROLES[0]
    batch = dims.lhs_batch if left else dims.rhs_batch
    contract = dims.lhs_contract if left else dims.rhs_contract
    free = dims.free(len(axes), left)
    encoding = Encoding(role, joined(axes, batch), joined(axes, free), joined(axes, contract), _typical(sizes))
    type = encoded(tensor_of(source), encoding)
    value: Value = _set_encoding(region, source, type)
    builder = Builder(region.body.block, dot, dot.loc)
    value = builder.build(UnsetEncoding, source=value, output=source.type).output
    mapping: dict[Value, Value] = {source: value}
    for op in reversed(chain):
        value = builder.insert(op.clone(mapping)).results[0]
    dot.set_operand(0 if left else 1, value)
    for op in chain:
        if not op.results[0].uses:
            op.erase()
    return True


def _way_to_memory(value: Value, region: DispatchRegion) -> Way:
    chain: list[Operation] = []
    while (op := value.defining_op) is not None and op.parent is region.body.block and len(op.operands) == 1:
        chain.append(op)
        value = op.operands[0]
    return chain, value


def _is_in_memory(value: Value) -> bool:
    """Whether a value is computed in no region and not encoded yet."""
    maker = value.defining_op
    inside = maker is not None and maker.parent is not None and isinstance(maker.parent.parent_op, DispatchRegion)
    return not inside and isinstance(value.type, TensorType) and not value.type.encoding


def _set_encoding(region: DispatchRegion, source: Value, type: TensorType) -> Value:
    """Inserts the op that encodes `source` in front of the region. Returns its result."""
    body = Block()
    builder = Builder(body, loc=region.loc)
    output = builder.build(SetEncoding, source=source, output=type).output
    builder.build(Yield, values=[output])
    made = Builder.before(region).build(HoistableDispatch, body=Region([body]), outputs=[type])
    return made.outputs[0]
