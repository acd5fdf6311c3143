"""Library kernels: kernels that are no loop nests, which schedules do not describe, behind one small interface.

A kind of body that has a row in `KERNELS` is lowered by it. Its schedule is `library(KIND, WORKGROUP_SIZE)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from orchestrion.compiler.ir.dims import Size
from orchestrion.compiler.stablehlo.ops.flow_ops import BLOCK

from . import fft, merge, row_solve, scatter


class LibraryKernel(NamedTuple):
    """`workgroup_size(op)` and `invocations(op)` describe a dispatch of the op that decides the kind of the body.
    `emit(elemental, op, bindings)` appends the code; `bindings`: result -> the binding that it is written to.
    """

    workgroup_size: Callable[[Any], int]
    invocations: Callable[[Any], Size]
    emit: Callable[[Any, Any, Any], None]


#: kind of body -> its kernel
KERNELS: Final[dict[str, LibraryKernel]] = {
    "fft": LibraryKernel(lambda op: fft.shares(op).lanes, fft.invocations, fft.emit),
    "merge": LibraryKernel(lambda op: merge.WORKGROUP_SIZE, merge.invocations, merge.emit),
    "row_solve": LibraryKernel(lambda op: BLOCK, row_solve.invocations, row_solve.emit),
    "scatter": LibraryKernel(lambda op: scatter.WORKGROUP_SIZE, scatter.invocations, scatter.emit),
}
