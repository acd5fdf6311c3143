"""Which axes of a tensor in memory the axes of an op's operand are, through what stands between."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import is_less
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.structural import Reshape, Transpose

#: for each axis of a tensor, the axes of another that it stands for, in row-major order
Axes = list[tuple[int, ...]]


def followed(chain: Sequence[Operation], source: Value) -> Axes | None:
    """The axes at the end of a chain of ops, last op first, in terms of those of its source; None where there are none.

    Ops of a chain have one operand. Elementwise ones keep axes, transposes move them, reshapes may join them.
    """
    axes: Axes = [(axis,) for axis in range(tensor_of(source).rank)]
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
        while rest and count != size and not is_less(size, count):
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


def joined(axes: Axes, group: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that a group of axes stands for."""
    return tuple(axis for member in group for axis in axes[member])
