"""Oracles and helpers that tests of several folders share. Nothing here imports what is under test."""

import os
from collections.abc import Callable

import numpy as np
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

Oracle = Callable[..., list[np.ndarray]]


@pytest.fixture(scope="session")
def xla() -> Oracle:
    """`xla(text, *arrays)`: compile StableHLO text with XLA for CPU, run its `@main` once, give the results.

    XLA on CPU flushes subnormals. It is what `jax.jit` computes, for the ops too that JAX's Python layer refuses.
    """
    jax = pytest.importorskip("jax")
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir

    device = jax.devices("cpu")[0]

    def run(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
        with mlir.make_ir_context():
            module = ir.Module.parse(text)
            program = device.client.compile_and_load(module, _jax.DeviceList((device,)), _jax.CompileOptions())
        return [np.asarray(result) for result in program.execute([jax.device_put(array, device) for array in arrays])]

    return run
