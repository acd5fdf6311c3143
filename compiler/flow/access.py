"""How often an op's operands are read: what fusion decides on.

An op's *paths* say how a region that computes `workload` elements gets at it: path -> number of reads. On the path
`ROOT`, element i in row-major order is read for result element i. Elementwise ops and reshapes hand their paths on to
their operands; an op that moves elements or sums them up starts new ones. Ops of one path share their work.
"""

from __future__ import annotations

from math import prod
from typing import Final, TypeGuard

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import typical
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.elementwise import OPS, Elementwise
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather
from orchestrion.compiler.stablehlo.ops.structural import (
    BroadcastInDim,
    Concatenate,
    Constant,
    Iota,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)

from .dialect import Size, Windows
from .fft import LineFft
from .merge import Merge
from .row_solve import RowSolve
from .scatter import Scatter, Update

#: how a value is reached: the ops in between, outermost first, with the operand number where it matters
Path = tuple[tuple[int, int], ...]
ROOT: Final[Path] = ()

#: ops with a schedule of their own
HEROES: Final = (Reduce, DotGeneral, Scatter, Merge, LineFft, RowSolve)
#: ops without operands
GENERATORS: Final = (Constant, Iota, Size)
#: ops that place elements without computing on them
MOVEMENT: Final = (
    Reshape, Transpose, Slice, BroadcastInDim, Pad, Concatenate, Reverse, DynamicSlice, DynamicUpdateSlice,
    Gather, Windows,
)  # fmt: skip
#: elementwise ops that cost much more than a read
EXPENSIVE: Final = frozenset(
    f"stablehlo.{name}"
    for name in (
        "atan2", "cbrt", "cosine", "divide", "exponential", "exponential_minus_one", "log", "log_plus_one",
        "logistic", "power", "remainder", "rsqrt", "sine", "sqrt", "tan", "tanh",
    )
) | {name for name in OPS if name.startswith("chlo.")}  # fmt: skip

#: elements that an update writes again rather than being a dispatch of its own; see `is_in_place`
LEAST_KEPT: Final = 1024


def elements(value: Value) -> int:
    """Number of elements of a tensor value, an expression where a size is one."""
    return tensor_of(value).num_elements


def count(value: Value) -> int:
    """About as many elements, as a number: what costs are counted with."""
    return typical(tensor_of(value).num_elements)


def is_free(op: Operation) -> bool:
    """A generator, or elements moved of one: read from nowhere, so every group computes it for itself."""
    if isinstance(op, GENERATORS):
        return True
    if not isinstance(op, BroadcastInDim | Reshape):
        return _is_of_sizes(op)
    source = op.operand_.defining_op
    return source is not None and is_free(source)


def _is_of_sizes(op: Operation, depth: int = 4) -> bool:
    """A scalar computed of sizes of the call, such as 1 / b: not worth a dispatch, even where each element has it."""
    if not isinstance(op, Elementwise) or tensor_of(op.results[0]).shape or not depth:
        return False
    makers = [value.defining_op for value in op.operands]
    if not any(isinstance(maker, Size) or (maker and _is_of_sizes(maker, depth - 1)) for maker in makers):
        return False
    return all(
        isinstance(maker, GENERATORS) or (maker is not None and _is_of_sizes(maker, depth - 1)) for maker in makers
    )


def keeps_order(op: Operation) -> bool:
    """Whether result element i in row-major order is operand element i."""
    match op:
        case Reshape():
            return True
        case BroadcastInDim():
            to = op.broadcast_dimensions.ints
            return elements(op.operand_) == elements(op.out) and list(to) == sorted(to)
        case Transpose():
            moved = [axis for axis in op.permutation.ints if tensor_of(op.operand_).shape[axis] != 1]
            return moved == sorted(moved)
        case _:
            return False


def is_expensive(op: Operation) -> bool:
    return op.name in EXPENSIVE


def is_in_place(op: Operation) -> TypeGuard[Update]:
    """Whether an update is a dispatch of its own, which writes only what changes, in the memory of its operand.

    A scatter always is. A slice is not when it leaves so little as it is that a dispatch costs more than to write that,
    too; nor on what is read from nowhere, and has no memory.
    """
    if isinstance(op, Scatter):
        return True
    if not isinstance(op, DynamicUpdateSlice) or elements(op.update) == 0:
        return False
    source = op.operand_.defining_op
    is_in_memory = source is None or not is_free(source)
    return is_in_memory and count(op.out) - count(op.update) >= LEAST_KEPT


def operand_paths(op: Operation, index: int, path: Path, reads: int) -> tuple[Path, int]:
    """The path to operand `index` of an op that is itself read `reads` times on `path`, and how often it is read."""
    if keeps_order(op) or index == 1 and isinstance(op, DynamicUpdateSlice) and is_in_place(op):
        return path, reads
    match op:
        case Merge():
            return (*path, (id(op), index)), reads * max(tensor_of(op.inputs[0]).shape[op.axis].bit_length(), 1)
        case LineFft():
            return (*path, (id(op), index)), max(reads * count(op.operand_) // max(count(op.out), 1), 1)
        case RowSolve():
            return (*path, (id(op), index)), max(reads * count(op.operands[index]) // max(count(op.out), 1), 1)
        case Scatter():
            return _scattered(op, index, path, reads)
        case Elementwise():
            return _same_element(op, index, path, reads)
        case DynamicSlice() | DynamicUpdateSlice() if index >= op.first_start:
            return (*path, (id(op), -1)), 1
        case Pad() | Concatenate() | DynamicUpdateSlice():
            return _one_of_several(op, index, path, reads)
        case Gather() if index == 1:
            return (*path, (id(op), 1)), reads * max(len(op.axes.start_index_map), 1)
        case Reduce():
            return _reduced(op, index, path, reads)
        case DotGeneral():
            return (*path, (id(op), index)), reads * _depth(op)
        case _:
            return _moved(op, path, reads)


def _same_element(op: Operation, index: int, path: Path, reads: int) -> tuple[Path, int]:
    """Elementwise: the same element, except for a scalar that goes with every element (select, clamp)."""
    if elements(op.operands[index]) == elements(op.results[0]):
        return path, reads
    return _moved(op, path, reads)


def _moved(op: Operation, path: Path, reads: int) -> tuple[Path, int]:
    return (*path, (id(op), 0)), reads


def _one_of_several(op: Operation, index: int, path: Path, reads: int) -> tuple[Path, int]:
    """Pad, concatenate and update: an element comes from one operand, so each is read for its share."""
    share = reads * count(op.operands[index]) // max(count(op.results[0]), 1)
    return (*path, (id(op), index)), max(share, 1)


def _reduced(op: Reduce, index: int, path: Path, reads: int) -> tuple[Path, int]:
    """Each input element is read once in all; an init value once per result element."""
    is_init = index >= len(op.inputs)
    ratio = 1 if is_init else count(op.inputs[0]) // max(count(op.results[0]), 1)
    return (*path, (id(op), int(is_init))), reads * max(ratio, 1)


def _scattered(op: Scatter, index: int, path: Path, reads: int) -> tuple[Path, int]:
    """Each element of an update is read where it is written; whoever writes goes through many indices for it."""
    first = len(op.inputs)
    return (path, reads) if index > first else ((*path, (id(op), int(index == first))), reads * count(op.indices))


def _depth(op: DotGeneral) -> int:
    """How many elements of each operand go into one of the result."""
    return max(typical(prod(tensor_of(op.lhs).shape[axis] for axis in op.dimensions.lhs_contract)), 1)
