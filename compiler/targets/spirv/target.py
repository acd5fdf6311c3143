"""The target of the `spirv` profile: a SPIR-V 1.3 module per executable, for Vulkan 1.1, an entry point per entry."""

from collections.abc import Sequence
from dataclasses import replace

from orchestrion.compiler.flow.layout import Encoding, Layout
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Shape, is_dynamic
from orchestrion.compiler.kernel.emulation.rewrite import emulate
from orchestrion.compiler.kernel.machine import GPU, Machine, Quirks
from orchestrion.compiler.targets.kernel_target import KernelTarget, Lowered
from orchestrion.compiler.targets.target import Payload
from orchestrion.schema.quirks import LLVMPIPE_ITERATIONS

from .assembler import Assembler
from .render import FunctionWords, ModuleVariables

#: quirks of llvmpipe, on which kernels for GPUs must be correct, too. It executes each load as a loop over lanes, so
#: wide loads pay; GPUs have wide loads as well
LLVMPIPE = Quirks(max_loop_iterations=LLVMPIPE_ITERATIONS)
MACHINES = {
    "cpu": Machine(
        wide_loads=True,
        units=64,
        quick_builds=True,
        loop_ops=1 << 16,
        merged_ops=1 << 13,
        quirks=replace(LLVMPIPE, typical_row=32),
    ),
    "gpu": replace(GPU, wide_loads=True, quick_builds=True, quirks=LLVMPIPE),
}
#: the features that a device may lack, for which executables have variants; it gets the first that it runs
LACKING = (frozenset({"int64"}), frozenset({"int8", "int16"}), frozenset({"int8", "int16", "int64"}))
#: fewest reads per element of an operand of a dot, and fewest products, with which tiles pay
LEAST_REUSE, LEAST_PRODUCTS = 32, 1 << 20


class SpirvTarget(KernelTarget):
    """Serializes to words of the subset in `schema/spirv.py`, little endian."""

    api_version = (1, 1)
    name = "spirv"
    tiles = (8, 8)
    machines = MACHINES

    def layout(self, encoding: Encoding, shape: Shape) -> Layout | None:
        """Tiles, if the operand is read often enough for wide loads to pay (docs/decisions/dots.md)."""
        return None if self.row_major_because(encoding, shape) else self.tiled(encoding, shape)

    def row_major_because(self, encoding: Encoding, shape: Shape) -> str:
        """Why an operand stays in row-major order: too few reads or products, or a dynamic size; else empty."""
        rows, columns, depth = encoding.sizes
        reuse, products = rows * columns // (rows + columns), rows * columns * depth
        if reuse < LEAST_REUSE:
            return f"an element is read for some {reuse} results, tiles are worth it from {LEAST_REUSE} on"
        if products < LEAST_PRODUCTS:
            return f"the dot has {products} products, tiles are worth it from {LEAST_PRODUCTS} on"
        return "the operand has a dynamic size" if is_dynamic(*shape) else ""

    def serialize(self, executable: Operation) -> Payload:
        """The code for devices that have all types of the executable."""
        lowered, assembler = Lowered.of(executable), Assembler()
        variables = ModuleVariables(assembler, max(signature.parameters for _, signature in lowered.entries))
        for block, signature in lowered.entries:
            FunctionWords(assembler, variables, signature).emit(block)
        return Payload(assembler.words(), assembler.features, lowered.shared_bytes)

    def payloads(self, executable: Operation, processors: Sequence[str] = ()) -> list[Payload]:
        """The code of `serialize`, then the same with emulated integers, for devices that lack some of them."""
        made = {(native := self.serialize(executable)).features: native}
        for lacking in LACKING:
            emulated = native.features & lacking
            if "float64" in native.features:
                emulated -= {"int64"}
            if native.features - emulated not in made:
                made[native.features - emulated] = self.serialize(emulate(executable, emulated))
        return list(made.values())


class LeastSpirvTarget(SpirvTarget):
    """For Vulkan devices with the least limits of the specification."""

    name = "spirv_least"


TARGET = SpirvTarget()
LEAST = LeastSpirvTarget()
