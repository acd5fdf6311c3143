"""Runs what `vm-codegen --style=hal` wrote for simple_mul.mlir, without the VM: python hal_code.py FOLDER."""

import sys

import numpy as np

from orchestrion.hal.registry import open_device

sys.path.insert(0, sys.argv[1])
from simple_mul import F32, SimpleMul, upload  # type: ignore[import-not-found]

with open_device("reference") as device, SimpleMul.create(device) as program:
    lhs = upload(device, np.array([1, 2, 3, 4]), F32)
    rhs = upload(device, np.array([10, 20, 30, 40]), F32)
    product = program.simple_mul(lhs, rhs)
    print(product.read())
    for view in (lhs, rhs, product):
        view.buffer.release()
print("the VM was loaded:", "orchestrion.vm" in sys.modules)
