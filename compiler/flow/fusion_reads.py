"""How often the operands of an op are read, which decides what is fused.

The *paths* of an op describe how a region that computes `workload` elements reads it: path -> number of reads. On the
path `ROOT`, result element i reads element i, in row-major order. An operand that is read in order has the path of its
op. Any other operand has a path of its own for each index map. Ops on the same path share their work.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from orchestrion.compiler.ir import dims
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import typical
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise
from orchestrion.compiler.stablehlo.ops.flow_ops import LineFft, RowSolve, Size
from orchestrion.compiler.stablehlo.ops.indexing import DynamicSlice, DynamicUpdateSlice, Gather
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim, Concatenate, Constant, Iota, Pad, Reshape

from .merge import Merge
from .scatter import Scatter, Update
from .structure import PLACING, Read, reads_in_order, structure_of

#: how a value is read: the ops in between that do not read in order, outermost first, each with the index map of the
#: operand, or with the number of the operand if data decide what is read
Path = tuple[tuple[int, Read | int], ...]
ROOT: Final[Path] = ()

#: op with a schedule of its own -> the kind of a body with it (`kinds.py`)
KIND_OF_HERO: Final[dict[type[Operation], str]] = {
    Reduce: "reduction",
    DotGeneral: "contraction",
    Scatter: "scatter",
    Merge: "merge",
    LineFft: "fft",
    RowSolve: "row_solve",
}
HEROES: Final = tuple(KIND_OF_HERO)
#: ops without operands
GENERATORS: Final = (Constant, Iota, Size)
#: ops that place elements without computing on them
MOVEMENT: Final = (*PLACING, Pad, Concatenate, DynamicSlice, DynamicUpdateSlice, Gather)
#: ops from bits of floats of 16 bits, in ui16, to f32 -> the type of those
WIDENING: Final = {"flow.decode_bf16": "bf16", "flow.decode_f16": "f16"}
#: an update that leaves fewer elements unchanged is no dispatch of its own and writes them again; see `is_in_place`
LEAST_KEPT: Final = 1024


def elements(value: Value) -> dims.Size:
    """Number of elements of a tensor value; an expression if a size is dynamic."""
    return tensor_of(value).num_elements


def count(value: Value) -> int:
    """Approximate number of elements of a tensor value, for estimates of costs."""
    return typical(tensor_of(value).num_elements)


def is_free(op: Operation) -> bool:
    """Whether an op is a generator, or moves its elements. It reads no memory, so every group computes it itself."""
    if isinstance(op, GENERATORS):
        return True
    if not isinstance(op, BroadcastInDim | Reshape):
        return _is_of_sizes(op)
    source = op.operand_.defining_op
    return source is not None and is_free(source)


def _is_of_sizes(op: Operation, depth: int = 4) -> bool:
    """Whether an op computes a scalar from dynamic sizes, such as 1 / b. That is never worth a dispatch."""
    if not isinstance(op, Elementwise) or tensor_of(op.results[0]).shape or not depth:
        return False
    makers = [value.defining_op for value in op.operands]
    if not any(isinstance(maker, Size) or (maker and _is_of_sizes(maker, depth - 1)) for maker in makers):
        return False
    return all(
        isinstance(maker, GENERATORS) or (maker is not None and _is_of_sizes(maker, depth - 1)) for maker in makers
    )


def narrows(op: Operation) -> bool:
    """Whether an op rounds f32 to a narrow type, or gives its bits, so that its result takes no more memory."""
    return op.name.startswith(("flow.round_to_", "flow.encode_"))


def is_in_place(op: Operation) -> TypeGuard[Update]:
    """Whether an update is a dispatch of its own, which writes only the updated elements into the memory of its
    operand.

    A scatter always is. The update of a slice is not if a dispatch costs more than to write the other elements again,
    or if its operand is free and has no memory.
    """
    if isinstance(op, Scatter):
        return True
    if not isinstance(op, DynamicUpdateSlice) or elements(op.update) == 0:
        return False
    source = op.operand_.defining_op
    is_in_memory = source is None or not is_free(source)
    return is_in_memory and count(op.out) - count(op.update) >= LEAST_KEPT


def operand_paths(op: Operation, index: int, path: Path, reads: int) -> tuple[Path, int]:
    """The path to operand `index` of an op that is itself read `reads` times on `path`, and the number of reads."""
    read = structure_of(op).reads[index]
    if read.once:
        return (*path, (id(op), read)), 1
    if reads_in_order(op, index) or index == 1 and isinstance(op, DynamicUpdateSlice) and is_in_place(op):
        return path, reads
    key = index if read.coordinates is None else read
    return (*path, (id(op), key)), max(int(reads * read.times), 1)
