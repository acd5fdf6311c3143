"""set-encodings: the operands of large dots are read through an encoding, which a target will choose.

For an operand that a dispatch region takes from memory, `flow.hoistable_dispatch` with a `flow.set_encoding` goes in
front of the region, and a `flow.unset_encoding` of it into the region. The encoding is symbolic: it says which axes of
the tensor are batch, free and contracted axes of the dot. Between memory and the dot, ops may stand that compute one
element from one, or transpose or collapse axes: the axes are followed through them. The result of a dot is written as
it is read, in row-major order.

A dot is large when each of its sizes is at least `LEAST_SIZE` and their product at least `LEAST_PRODUCTS`: below, a
dispatch more costs more than it saves, on any target. Which operands of which dots gain, a target says (identity where
they do not: what this pass made is then gone without trace).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.cse import merge_equal
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.base import tensor_of
from orchestrion.compiler.stablehlo.contraction import DotGeneral
from orchestrion.compiler.stablehlo.elementwise import Elementwise
from orchestrion.compiler.stablehlo.structural import Reshape, Transpose

from .captures import captures
from .dialect import DispatchRegion, HoistableDispatch, SetEncoding, UnsetEncoding, Yield
from .groups import MAX_BINDINGS
from .layout import Encoding, encoded

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options

#: rows, columns and depth of a dot that is worth an encoding
LEAST_SIZE: Final = 8
#: products of a dot that is worth an encoding
LEAST_PRODUCTS: Final = 1 << 18

#: for each axis of a dot's operand, the axes of a tensor in memory that it stands for, in row-major order
Axes = list[tuple[int, ...]]


def run(module: Module, options: Options) -> None:
    for region in [op for op in module.walk() if isinstance(op, DispatchRegion)]:
        for dot in [op for op in region.body.block if isinstance(op, DotGeneral)]:
            if sizes := _worth(dot):
                for index, role in enumerate(("lhs", "rhs")):
                    _encode(region, dot, index, role, sizes)
    merge_equal(module, (HoistableDispatch,))


def _worth(dot: DotGeneral) -> tuple[int, int, int] | None:
    """Rows, columns and depth of a dot; None for one that is too small."""
    left, right, dims = tensor_of(dot.lhs).shape, tensor_of(dot.rhs).shape, dot.dimensions
    rows = prod(left[axis] for axis in dims.free(len(left), True))
    columns = prod(right[axis] for axis in dims.free(len(right), False))
    depth = prod(left[axis] for axis in dims.lhs_contract)
    large = min(rows, columns, depth) >= LEAST_SIZE and rows * columns * depth >= LEAST_PRODUCTS
    return (rows, columns, depth) if large else None


def _encode(region: DispatchRegion, dot: DotGeneral, index: int, role: str, sizes: tuple[int, int, int]) -> None:
    """Puts an encoding between an operand of the dot and where it lies in memory, if the way there is simple."""
    chain, source = _way_to_memory(dot.operands[index], region)
    axes = _followed(chain, source)
    if axes is None or len(captures(region)) + len(region.outputs) >= MAX_BINDINGS:
        return
    dims, left = dot.dimensions, role == "lhs"
    batch = dims.lhs_batch if left else dims.rhs_batch
    contract = dims.lhs_contract if left else dims.rhs_contract
    free = dims.free(len(axes), left)
    encoding = Encoding(role, _joined(axes, batch), _joined(axes, free), _joined(axes, contract), sizes)
    type = encoded(tensor_of(source), encoding)
    value: Value = _set_encoding(region, source, type)
    builder = Builder(region.body.block, dot, dot.loc)
    value = builder.build(UnsetEncoding, source=value, output=source.type).output
    mapping: dict[Value, Value] = {source: value}
    for op in reversed(chain):
        value = builder.insert(op.clone(mapping)).results[0]
    dot.set_operand(index, value)
    for op in chain:
        if not op.results[0].uses:
            op.erase()


def _way_to_memory(value: Value, region: DispatchRegion) -> tuple[list[Operation], Value]:
    """The ops in the region that make a value of one tensor, last first, and that tensor."""
    chain: list[Operation] = []
    while (op := value.defining_op) is not None and op.parent is region.body.block and len(op.operands) == 1:
        chain.append(op)
        value = op.operands[0]
    return chain, value


def _followed(chain: list[Operation], source: Value) -> Axes | None:
    """The axes at the end of a chain of ops, in terms of those of its source; None where they have none."""
    maker = source.defining_op
    in_memory = maker is None or maker.parent is None or not isinstance(maker.parent.parent_op, DispatchRegion)
    if not in_memory or not isinstance(source.type, TensorType) or source.type.encoding:
        return None
    axes: Axes = [(axis,) for axis in range(source.type.rank)]
    for op in reversed(chain):
        match op:
            case Elementwise():
                continue
            case Transpose():
                axes = [axes[axis] for axis in op.permutation.ints]
            case Reshape():
                collapsed = _collapsed(axes, tensor_of(op.operand_).shape, tensor_of(op.out).shape)
                if collapsed is None:
                    return None
                axes = collapsed
            case _:
                return None
    return axes


def _collapsed(axes: Axes, old: tuple[int, ...], new: tuple[int, ...]) -> Axes | None:
    """The axes after a reshape that only joins neighbours, or adds and drops axes of size 1; else None."""
    rest, found = list(zip(axes, old, strict=True)), []
    for size in new:
        joined: tuple[int, ...] = ()
        count = 1
        while rest and count < size:
            group, extent = rest.pop(0)
            joined += group
            count *= extent
        if count != size:
            return None
        found.append(joined)
    if any(extent != 1 for _, extent in rest):
        return None
    ones = tuple(axis for group, _ in rest for axis in group)
    if ones and not found:
        return None
    if ones:
        found[-1] += ones
    return found


def _joined(axes: Axes, group: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis for member in group for axis in axes[member])


def _set_encoding(region: DispatchRegion, source: Value, type: TensorType) -> Value:
    """The source with that encoding, made in front of the region."""
    body = Block()
    builder = Builder(body, loc=region.loc)
    output = builder.build(SetEncoding, source=source, output=type).output
    builder.build(Yield, values=[output])
    made = Builder.before(region).build(HoistableDispatch, body=Region([body]), outputs=[type])
    return made.outputs[0]
