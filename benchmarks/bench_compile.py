"""Time of whole processes that compile simple_mul to SPIR-V, compared with iree-compile to vulkan-spirv.

Expected before measuring: about 200 ms from the generic form (interpreter 20, NumPy 90, our modules 60, work 20), and
150 ms more from the pretty form, which needs jaxlib's parser. iree-compile was seen at 250 to 360 ms.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness import EXAMPLES, arguments, measure, need, save, table, versions

BIN = Path(sys.executable).parent


#: without PYTHONDONTWRITEBYTECODE, so that the warm-up writes the bytecode files that an installed package has
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def process(*command: str | Path) -> Callable[[], object]:
    words = [str(part) for part in command]
    return lambda: subprocess.run(words, check=True, capture_output=True, env=ENVIRONMENT)


def main() -> None:
    options = arguments("whole-process compile of simple_mul to SPIR-V")
    need("iree-base-compiler")
    generic, pretty = EXAMPLES / "simple_mul.generic.mlir", EXAMPLES / "simple_mul.mlir"
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        iree = [BIN / "iree-compile", "--iree-input-type=stablehlo", "--iree-hal-target-backends=vulkan-spirv"]
        candidates = {
            "vm-compile, generic form": process(BIN / "vm-compile", generic, "--target=spirv", "-o", out / "a.fb"),
            "vm-compile, pretty form": process(BIN / "vm-compile", pretty, "--target=spirv", "-o", out / "b.fb"),
            "iree-compile, generic form": process(*iree, generic, "-o", out / "c.vmfb"),
            "iree-compile, pretty form": process(*iree, pretty, "-o", out / "d.vmfb"),
        }
        timings = measure(candidates, calls=1, rounds=max(options.rounds // 2, 5), warm_up=2)
    table("simple_mul to SPIR-V", timings, "vm-compile, generic form", [versions("iree-base-compiler")])
    save(options.json, timings)


if __name__ == "__main__":
    main()
