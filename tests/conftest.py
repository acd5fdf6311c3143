"""Oracles and helpers that tests of several folders share. Nothing here imports what is under test."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache

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


#: what the validation layer 1.3.239 gets wrong by itself: waiting for work that waits for the host times out in the
#: layer (KhronosGroup/Vulkan-ValidationLayers issue 4968)
LAYER_FAULTS = ("submission_waits_for_the_host",)


@cache
def _has_validation_layer() -> bool:
    try:
        import vulkan
    except (ImportError, OSError):
        return False
    return any(row.layerName == "VK_LAYER_KHRONOS_validation" for row in vulkan.vkEnumerateInstanceLayerProperties())


@pytest.fixture(autouse=True)
def _vulkan_validation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test does on Vulkan it does under the validation layer, where there is one, and without a message."""
    if not _has_validation_layer() or any(name in request.node.name for name in LAYER_FAULTS):
        yield
        return
    monkeypatch.setenv("ORCHESTRION_VULKAN_VALIDATION", "1")
    yield
    module = sys.modules.get("orchestrion.hal.vulkan.instance")
    if module is not None:
        messages = module.open_instance().messages
        said = list(messages)
        messages.clear()
        assert not said, "\n".join(said)
