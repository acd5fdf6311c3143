"""The target of the `spirv` profile: a SPIR-V 1.3 module per executable, for Vulkan 1.1, an entry point per entry."""

from dataclasses import replace

from orchestrion.compiler.flow.layout import Encoding, Layout
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import is_dynamic
from orchestrion.compiler.kernel.machine import GPU, LLVMPIPE_ITERATIONS, Machine, Quirks
from orchestrion.compiler.targets.kernel_target import KernelTarget, Lowered
from orchestrion.compiler.targets.target import Payload

from .assembler import Assembler
from .render import FunctionWords, ModuleVariables

#: quirks of llvmpipe, on which kernels for GPUs must be correct, too. It executes each load as a loop over lanes, so
#: wide loads pay; GPUs have wide loads as well
LLVMPIPE = Quirks(max_loop_iterations=LLVMPIPE_ITERATIONS)
MACHINES = {
    "cpu": Machine(wide_loads=True, units=64, quick_builds=True, quirks=replace(LLVMPIPE, typical_row=32)),
    "gpu": replace(GPU, wide_loads=True, quick_builds=True, quirks=LLVMPIPE),
}
#: fewest reads per element of an operand of a dot, and fewest products, with which tiles pay
LEAST_REUSE, LEAST_PRODUCTS = 32, 1 << 20


class SpirvTarget(KernelTarget):
    """Serializes to words of the subset in `schema/spirv.py`, little endian."""

    name = "spirv"
    tiles = (8, 8)
    machines = MACHINES

    def layout(self, encoding: Encoding, shape: tuple[int, ...]) -> Layout | None:
        """Tiles, if the operand is read often enough for wide loads to pay (docs/decisions/dots.md)."""
        return None if self.row_major_because(encoding, shape) else self.tiled(encoding, shape)

    def row_major_because(self, encoding: Encoding, shape: tuple[int, ...]) -> str:
        """Why an operand stays in row-major order: too few reads or products, or a dynamic size; else empty."""
        rows, columns, depth = encoding.sizes
        reuse, products = rows * columns // (rows + columns), rows * columns * depth
        if reuse < LEAST_REUSE:
            return f"an element is read for some {reuse} results, tiles are worth it from {LEAST_REUSE} on"
        if products < LEAST_PRODUCTS:
            return f"the dot has {products} products, tiles are worth it from {LEAST_PRODUCTS} on"
        return "the operand has a dynamic size" if is_dynamic(*shape) else ""

    def serialize(self, executable: Operation) -> Payload:
        lowered, assembler = Lowered.of(executable), Assembler()
        variables = ModuleVariables(assembler, max(signature.parameters for _, signature in lowered.entries))
        for block, signature in lowered.entries:
            FunctionWords(assembler, variables, signature).emit(block)
        return Payload(assembler.words(), assembler.features, lowered.shared_bytes)


TARGET = SpirvTarget()
