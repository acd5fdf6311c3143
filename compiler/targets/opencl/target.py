"""The target of the `opencl` profile: OpenCL C 1.2 source, one program per executable, one kernel per entry.

The driver builds it with correctly rounded division and square root. The text itself forbids contraction.
"""

import re
from dataclasses import replace
from math import prod

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.flow.layout import Encoding, Layout
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Shape, is_dynamic
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.machine import GPU, Machine, Quirks
from orchestrion.compiler.kernel.signature import Signature
from orchestrion.compiler.targets.c_text.functions import Functions
from orchestrion.compiler.targets.kernel_target import KernelTarget, Lowered
from orchestrion.compiler.targets.target import Payload

from .lanes import body_on
from .render import ALIASING, KernelText
from .reserved import is_reserved
from .scalars import LANGUAGE

#: quirks of OpenCL drivers. PoCL seldom vectorizes unrolled scalars, so kernels for `cpu` contain explicit vectors
SOURCE = Quirks(functions=True, packs_lanes=True)
MACHINES = {
    "cpu": Machine(
        simd=16,
        accumulators=128,
        explicit_vectors=True,
        barrier=256,
        units=64,
        loop_ops=1 << 17,
        merged_ops=1 << 12,
        quirks=SOURCE,
    ),
    "gpu": replace(GPU, quirks=SOURCE),
}
#: least number of rows of a dot with which reordering the columns of the right operand pays
ORDERED_ROWS = 64
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class OpenCLTarget(KernelTarget):
    """Serializes to source text, UTF-8."""

    name = "opencl"
    tiles = (4, 16)
    most_entries = 64
    machines = MACHINES

    def layout(self, encoding: Encoding, shape: Shape) -> Layout | None:
        """A layout in which neighbouring columns are neighbours in memory, since other columns are loaded one by one.
        Tiles, if the last tile of the dot need not be moved back; else reordered axes, if the dot has many rows
        (docs/decisions/dots.md).
        """
        if self.row_major_because(encoding, shape):
            return None
        return self.tiled(encoding, shape) if self._fills_tiles(encoding, shape) else encoding.ordered

    def row_major_because(self, encoding: Encoding, shape: Shape) -> str:
        """Why an operand stays in row-major order: a left operand, adjacent columns, or too few rows; else empty."""
        if encoding.role == "lhs":
            return "kernels read the left operand of a dot in row-major order"
        if max(encoding.contract, default=0) < max(encoding.free, default=0):
            return "the columns of the dot are neighbours in memory already"
        if self._fills_tiles(encoding, shape) or encoding.sizes[0] >= ORDERED_ROWS:
            return ""
        return (
            f"the columns of the dot are no multiple of {self.tiles[1]}, and another order is worth it from "
            f"{ORDERED_ROWS} rows on, of which there are {encoding.sizes[0]}"
        )

    def _fills_tiles(self, encoding: Encoding, shape: Shape) -> bool:
        columns = prod(shape[axis] for axis in encoding.free)
        return not is_dynamic(columns) and columns % self.tiles[1] == 0

    def serialize(self, executable: Operation) -> Payload:
        entries, features, shared = Lowered.of(executable)
        for _, signature in entries:
            _check_name(signature)
        functions = Functions((signature.name for _, signature in entries), body_on, is_reserved)
        kernels = [KernelText(block, signature, functions.callee).text() for block, signature in entries]
        head = "#pragma OPENCL FP_CONTRACT OFF\n"
        if "float64" in features:
            head += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
        if any(isinstance(op, k.While) for block, _ in entries for op in block):
            dtypes = {use.dtype.name for _, one in entries for use in one.bindings if use.dtype}
            types = sorted({"uchar", *map(LANGUAGE.memory_type, dtypes)})
            head += "".join(f"typedef {name} __attribute__((may_alias)) {name}{ALIASING};\n" for name in types)
        return Payload("\n".join([head, *functions.texts(), *kernels]).encode(), features, shared)


def _check_name(signature: Signature) -> None:
    if not _IDENTIFIER.fullmatch(signature.name):
        raise CompileError(f"entry {signature.name!r} cannot be the name of an OpenCL kernel")
    if is_reserved(signature.name):
        raise CompileError(f"entry {signature.name!r} cannot be the name of an OpenCL kernel: OpenCL C has it already")


TARGET = OpenCLTarget()
