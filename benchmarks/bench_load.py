"""Time from a file to a program that can be called, on the reference device, compared with IREE's mapping, HAL module
and context.

Both sides have their device open. Ours maps the file, verifies root, directory and functions, picks the program and
runs its initializers (executables are verified, constants imported, the recording made). We have two rows: files that
this process has not loaded before (each with tensors of another size, so that neither code nor constants nor kernels
are cached), and the same file again. IREE caches nothing; it loads the same file again. Then both kinds of program with
a gigabyte of constants: the time and the page faults show that the constants are not read.

Expected before measuring: 100 us for a new file, 60 us for the same file again, against 90 to 120 us seen for IREE; 20
us more with the gigabyte for mapping the file instead of reading it, and no more page faults than without.
"""

import resource
import tempfile
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from harness import EXAMPLES, arguments, measure, need, ratio, save, table, versions

GIB = 1 << 30
#: how many of our new files a block loads
BLOCK = 10
WARM_UP = 3

#: one product with a weight, which the program's initializer imports
WEIGHTED = """
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x64xf32>) -> tensor<1xCOLUMNSxf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<1x64xf32>):
    %w = "stablehlo.constant"() <{value = dense<0.5> : tensor<64xCOLUMNSxf32>}> : () -> tensor<64xCOLUMNSxf32>
    %y = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<
        lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}>
      : (tensor<1x64xf32>, tensor<64xCOLUMNSxf32>) -> tensor<1xCOLUMNSxf32>
    "func.return"(%y) : (tensor<1xCOLUMNSxf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""


def write_simple_mul(path: Path, elements: int) -> None:
    from orchestrion import compiler

    text = (EXAMPLES / "simple_mul.generic.mlir").read_text()
    compiler.compile_to_file(text.replace("tensor<4x", f"tensor<{elements}x"), path, targets=["reference"])


def write_weighted(path: Path, constant_bytes: int, weight: Path) -> None:
    """Write the module whose weight is the contents of the file `weight`.

    The file is made here, mapped, and never held in memory.
    """
    from orchestrion.compiler.bytecode.serialize import module_rows
    from orchestrion.compiler.driver import Compilation
    from orchestrion.compiler.ir.attributes import DenseElements
    from orchestrion.compiler.options import Options
    from orchestrion.compiler.pipeline import LAST_PHASE, phases_between, run_phases
    from orchestrion.schema.writer import write_file

    data = np.memmap(weight, np.uint8, "w+", shape=(constant_bytes,))
    data[-4:] = 1  # so that the constant is no splat
    targets = ("reference",)
    columns = str(constant_bytes // 64 // 4)
    module = Compilation(targets).module(WEIGHTED.replace("COLUMNS", columns), "stablehlo")
    for op in module.walk():
        if op.name == "stablehlo.constant":
            splat = op.properties["value"]
            assert isinstance(splat, DenseElements)
            op.properties["value"] = DenseElements(splat.type, memoryview(data))
    run_phases(module, phases_between("stablehlo", LAST_PHASE), Options(targets))
    write_file(path, module_rows(module))


def ours(paths: Callable[[], Path]) -> Callable[[], Any]:
    from orchestrion import vm
    from orchestrion.hal.registry import open_device

    device = open_device("reference")
    return lambda: vm.load(paths(), device=device).close()


def iree(path: Path) -> Callable[[], Any]:
    import iree.runtime as rt

    config = rt.Config("local-sync")
    instance, device = config.vm_instance, config.device

    def load() -> Any:
        module = rt.VmModule.mmap(instance, str(path))
        return rt.VmContext(instance, modules=[rt.create_hal_module(instance, device), module])

    return load


def compile_iree(path: Path) -> None:
    import iree.compiler

    blob = iree.compiler.compile_file(
        str(EXAMPLES / "simple_mul.generic.mlir"),
        input_type="stablehlo",
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
    path.write_bytes(blob)


def faults(function: Callable[[], Any]) -> int:
    """The page faults of one call, minor and major."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    function()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt


def main() -> None:
    options = arguments("file to ready-to-call on reference, verified, initializers run")
    need("iree-base-compiler", "iree-base-runtime")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unseen = [folder / f"{number}.fb" for number in range(WARM_UP + BLOCK * options.rounds)]
        print(f"compiling {len(unseen) + 3} modules", flush=True)
        for number, path in enumerate(unseen):
            write_simple_mul(path, 5 + number)
        same, small, large, peer = (folder / f"{name}.fb" for name in ("same", "small", "large", "iree"))
        write_simple_mul(same, 4)
        compile_iree(peer)
        write_weighted(small, 64 * 4 * 16, folder / "weight")
        write_weighted(large, GIB, folder / "weight")
        candidates = {
            "orchestrion, files never seen": ours(iter(unseen).__next__),
            "orchestrion, the same file": ours(repeat(same).__next__),
            "IREE mmap, HAL module, context": iree(peer),
            "orchestrion, 4 KiB of constants": ours(repeat(small).__next__),
            "orchestrion, 1 GiB of constants": ours(repeat(large).__next__),
        }
        timings = measure(candidates, BLOCK, options.rounds, WARM_UP)
        counts = {label: [faults(candidates[label]) for _ in range(20)] for label in list(candidates)[-2:]}
    base, (little, much) = "IREE mmap, HAL module, context", counts
    table("simple_mul and a product with a weight", timings, base, [versions("iree-base-runtime")])
    print(f"\n1 GiB over 4 KiB of constants: {ratio(timings, much, little):.2f} (aim: below 2)")
    for label, found in counts.items():
        print(f"{label}: {sorted(found)[len(found) // 2]} page faults per load, {max(found)} at most")
    save(options.json, timings)


if __name__ == "__main__":
    main()
