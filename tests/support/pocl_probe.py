"""What PoCL compiles for modules, counted on disk: in a process of its own, with an empty cache of PoCL.

    pocl_probe.py FOLDER    prints, as JSON, for each FOLDER/N.fb with its arguments in FOLDER/N.npz: the compiled
                            kernels before the load, after it, and after the first call

The cache of a user's PoCL is no place to count: other processes of a test run compile kernels, too.
"""

import json
import os
import sys
from pathlib import Path


def compiled() -> int:
    """Kernels in PoCL's cache."""
    return len(list(Path(os.environ["POCL_CACHE_DIR"]).rglob("*.so")))


def probe(path: Path) -> list[int]:
    import numpy as np

    from orchestrion import vm

    found = [compiled()]
    with np.load(path.with_suffix(".npz")) as arguments, vm.load(path, device="opencl") as program:
        found.append(compiled())
        program.main(*arguments.values())
        found.append(compiled())
    return found


if __name__ == "__main__":
    print(json.dumps([probe(path) for path in sorted(Path(sys.argv[1]).glob("*.fb"))]))
