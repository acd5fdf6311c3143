"""An application that runs nothing but modules its publisher signed. docs/embedding.md says how it is built.

    app [MODULE] [--device=NAME]

Without MODULE it runs the one that is part of the application. A module that is refused is one line and status 1.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from orchestrion import vm
from orchestrion.hal.errors import HalError

#: where the application's files are, frozen or not
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
