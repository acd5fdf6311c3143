"""An application that runs only modules that its publisher signed. docs/embedding.md describes how to build it.

    app [MODULE] [--device=NAME]

Without MODULE it runs the one that is part of the application. If a module is refused, it prints one line and exits
with status 1.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from orchestrion import vm
from orchestrion.hal.errors import HalError

#: the folder of the application's files, whether it is frozen or not
HERE = Path(__file__).parent


def main() -> int:
    vm.freeze_support()
    options = parser().parse_args()
    try:
        program = vm.load(options.module, options.device, policy=HERE / "keys.toml")
    except (OSError, HalError, vm.KeysError, vm.ModuleError, vm.VmError) as error:
        print(f"{options.module.name} is refused: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1
    x, y = np.array([1, 2, 3, 4], np.float32), np.array([10, 20, 30, 40], np.float32)
    print(program.simple_mul(x, y))
    program.close()
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description="Runs a signed module.")
    made.add_argument("module", nargs="?", type=Path, default=HERE / "model.fb")
    made.add_argument("--device", default="reference")
    return made


if __name__ == "__main__":
    sys.exit(main())
