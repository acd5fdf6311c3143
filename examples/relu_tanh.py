"""Calls relu_tanh.mlir a thousand times with arrays on the device, and prints what the last call did.

python -m pip install -e '.[stablehlo,vulkan]'
python examples/relu_tanh.py --device=vulkan
"""

from argparse import ArgumentParser
from pathlib import Path

import numpy as np

from orchestrion import compiler, vm


def main(device: str) -> None:
    module = compiler.compile(Path(__file__).with_name("relu_tanh.mlir"))
    program = vm.load(module, device=device, allow_native_code=True)  # compiled here, so we know where it is from
    x = program.put(np.array([-1, 2], np.float32))
    relu, tanh = program.empty((2,), np.float32), program.empty((2,), np.float32)
    for _ in range(1000):
        program.relu_tanh(x, out=(relu, tanh))
    print(np.asarray(relu), np.asarray(tanh))
    last = program.statistics()["calls"][-1]
    print(*(f"{name} {count}" for name, count in last.items() if type(count) is int), sep="\n")
    program.close()


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--device", default="reference")
    main(**vars(parser.parse_args()))
