"""The interpreter's time per instruction in an integer loop of a million iterations, compared with IREE's VM (written
in C).

Expected before measuring: about 100 ns per instruction here and 1 ns there. A sequencer runs some ten instructions per
call, so this number is reported but not optimised.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import arguments, measure, need, save, table, unit, versions

ITERATIONS = 1_000_000
INSTRUCTIONS = 5  #: of one iteration, in both texts

OURS = """
producer "benchmark"
export @loop
program @p profile "reference" {
  func @loop (i32) -> i32 {
    %i1 = i32.zero
    %i2 = i32.zero
    %i3 = i32.const 1
    br ^body
  ^body:
    %i2 = i32.add %i2, %i1
    %i2 = i32.xor %i2, %i0
    %i1 = i32.add %i1, %i3
    %i4 = i32.lt_s %i1, %i0
    br_if %i4, ^body, ^exit
  ^exit:
    return (%i2)
  }
  entry @loop
}
"""

IREE = """
vm.module @m {
  vm.export @loop
  vm.func @loop(%n: i32) -> i32 {
    %zero = vm.const.i32.zero
    %one = vm.const.i32 1
    vm.br ^body(%zero, %zero : i32, i32)
  ^body(%i: i32, %sum: i32):
    %added = vm.add.i32 %sum, %i : i32
    %mixed = vm.xor.i32 %added, %n : i32
    %next = vm.add.i32 %i, %one : i32
    %more = vm.cmp.lt.i32.s %next, %n : i32
    vm.cond_br %more, ^body(%next, %mixed : i32, i32), ^exit(%mixed : i32)
  ^exit(%result: i32):
    vm.return %result : i32
  }
}
"""


def ours() -> Callable[[], Any]:
    from orchestrion import vm
    from orchestrion.schema.assembler import assemble
    from orchestrion.schema.writer import write

    function = vm.load(write(assemble(OURS)))["loop"]
    return lambda: function(ITERATIONS)


def iree(folder: Path) -> Callable[[], Any]:
    import iree.runtime as rt

    source, module = folder / "loop.mlir", folder / "loop.vmfb"
    source.write_text(IREE)
    compiler = Path(sys.executable).parent / "iree-compile"
    subprocess.run([compiler, "--compile-mode=vm", source, "-o", module], check=True)
    instance = rt.VmInstance()
    loaded = rt.VmModule.copy_buffer(instance, module.read_bytes())
    context, function = rt.VmContext(instance, modules=[loaded]), loaded.lookup_function("loop")

    def call() -> Any:
        inputs, outputs = rt.VmVariantList(1), rt.VmVariantList(1)
        inputs.push_int(ITERATIONS)
        context.invoke(function, inputs, outputs)
        return outputs.get_variant(0)

    return call


def main() -> None:
    options = arguments("integer loop of a million iterations in the VM")
    need("iree-base-compiler", "iree-base-runtime")
    with tempfile.TemporaryDirectory() as name:
        candidates = {"orchestrion": ours(), "IREE VM": iree(Path(name))}
        results = {label: call() for label, call in candidates.items()}
        if len(set(results.values())) != 1:
            raise SystemExit(f"the two loops differ: {results}")
        timings = measure(candidates, calls=1, rounds=max(options.rounds // 3, 3), warm_up=1)
    title = f"{ITERATIONS:,} iterations of {INSTRUCTIONS} instructions"
    table(title, timings, "IREE VM", [versions("iree-base-runtime")])
    for label, timing in timings.items():
        print(f"  {label}: {unit(timing.median / ITERATIONS / INSTRUCTIONS)} per instruction")
    save(options.json, timings)


if __name__ == "__main__":
    main()
