"""Oracles and helpers that tests of several folders share. Nothing here imports what is under test."""

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from stablehlo_text import literal

# how long an example takes is no condition of a test: machines are slow, and busy
settings.register_profile("no-deadline", settings(), deadline=None)
settings.load_profile("no-deadline")

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
# what the tests compile is not for the user's trust store, and what drivers build for them not for the user's cache
_BUILD = Path(__file__).parent.parent / "build" / "tests"
os.environ.setdefault("ORCHESTRION_HOME", str(_BUILD / "home"))
os.environ.setdefault("ORCHESTRION_CACHE", str(_BUILD / "cache"))

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


@pytest.fixture(scope="session")
def interpreter() -> Oracle:
    """`interpreter(text, *arrays)`: the results of `@main` by StableHLO's own interpreter, which keeps subnormals."""
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir.dialects import stablehlo

    def run(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
        with mlir.make_ir_context():
            module = ir.Module.parse(text)
            passmanager.PassManager.parse("builtin.module(inline,symbol-dce)").run(module.operation)
            arguments = [ir.Attribute.parse(literal(array)) for array in arrays]
            return [np.array(found) for found in stablehlo.eval_module(module, arguments)]

    return run


#: The validation layer 1.3.239 has a race of its own (KhronosGroup/Vulkan-ValidationLayers issue 4968): while a thread
#: waits for work that another thread's signal starts, it may block for ten seconds and then say this. The cases that
#: do so run without the layer.
LAYER_FAULT = "UNASSIGNED-VkSemaphore-state-timeout"
LAYER_FAULTS = ("submission_waits_for_the_host", "execute_after_submit", "read_and_write_after_submit")


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
        said = [message for message in messages if LAYER_FAULT not in message]
        messages.clear()
        assert not said, "\n".join(said)
