"""Oracles and helpers that tests of several folders share. No oracle imports what is under test."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cpu_devices import own_level_only
from everyday import is_everyday, mark_long
from hypothesis import settings

# how long an example takes is no condition of a test: machines are slow, and busy
settings.register_profile("no-deadline", settings(), deadline=None)
settings.load_profile("no-deadline")

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")
# Workers hold millions of objects of pytest and JAX, so Python's collections take a twentieth of a run at its default.
gc.set_threshold(50_000, 20, 50)
# what the tests compile is not for the user's trust store, and what drivers build for them not for the user's cache
_BUILD = Path(__file__).parent.parent / "build" / "tests"
os.environ.setdefault("ORCHESTRION_HOME", str(_BUILD / "home"))
os.environ.setdefault("ORCHESTRION_CACHE", str(_BUILD / "cache"))

#: SwiftShader, which `.ci/drivers` unpacks, is a second Vulkan device: one without robust buffer access 2
_SWIFTSHADER = Path(sys.prefix) / "swiftshader" / "vk_swiftshader_icd.json"
if _SWIFTSHADER.exists():
    os.environ.setdefault("VK_ADD_DRIVER_FILES", str(_SWIFTSHADER))

Oracle = Callable[..., list[np.ndarray]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m 'not long'` leaves out what waits for the long run (`everyday.py`)."""
    mark_long(items)


@pytest.fixture(scope="module", autouse=True)
def _earlier_objects_are_frozen() -> None:
    """Freezes the objects that earlier files left alive, so `gc.collect` looks at objects of the running file only.

    Collected, items of pytest and caches of JAX alone are millions of objects: a second or two for each collection of
    the many tests that force one. Garbage is freed first, so that nothing is kept that would not be kept otherwise.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def command_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of `vm-compile`, `vm-run` and the others, which start in milliseconds (`command_server.py`)."""
    if not hasattr(os, "pidfd_open"):
        yield Path(sys.executable).parent
        return
    from command_server import commands

    with commands(tmp_path_factory.mktemp("commands")) as folder:
        yield folder


@pytest.fixture(scope="module")
def one_level() -> Iterator[None]:
    """Modules have native images for this processor alone, unless a test names levels: others do not run here.

    By default they have one for each level of the architecture, which takes three times as long.
    """
    with own_level_only():
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_level_every_day(pytestconfig: pytest.Config) -> Iterator[None]:
    """`one_level` for all tests, outside of `make test-all`."""
    with own_level_only() if is_everyday(pytestconfig) else nullcontext():
        yield


@pytest.fixture(scope="session")
def xla() -> Oracle:
    """`xla(text, *arrays)`: the results of `@main` by XLA on CPU (`oracles.py`)."""
    pytest.importorskip("jax")
    from oracles import xla

    return xla


@pytest.fixture(scope="session")
def interpreter() -> Oracle:
    """`interpreter(text, *arrays)`: the results of `@main` by StableHLO's own interpreter (`oracles.py`)."""
    pytest.importorskip("jax")
    from oracles import interpreter

    return interpreter


#: The validation layer 1.3.239 has a race of its own (KhronosGroup/Vulkan-ValidationLayers issue 4968): while a thread
#: waits for work that another thread's signal starts, it may block for ten seconds and then say this. The cases that
#: do so run without the layer.
LAYER_FAULT = "UNASSIGNED-VkSemaphore-state-timeout"
LAYER_FAULTS = (
    "blocking_call_behind_a_gate",
    "execute_after_submit",
    "failure_wakes_waiters",
    "host_read_waits_for_a_writer",
    "host_write_is_not_seen_by_earlier_work",
    "many_waiters_of_one_value",
    "passed_from_thread_to_thread",
    "read_and_write_after_submit",
    "share_closed_with_work_under_way",
    "submission_waits_for_the_host",
    "test_side_by_side.py",
    "test_submissions_are_in_order",
    "test_streaming.py::test_submitted_calls",
    "values_may_be_skipped",
    "wait_before_signal",
    "waiting_while_others_work",
)


def vulkan_devices() -> list[Any]:
    """The devices of the Vulkan driver; skips, with the reason, where there are none."""
    from orchestrion.hal.errors import DriverUnavailable
    from orchestrion.hal.vulkan.driver import VulkanDriver

    try:
        return list(VulkanDriver().devices())
    except DriverUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def needs_vulkan() -> None:
    """Skips the test where no Vulkan device is."""
    vulkan_devices()


@pytest.fixture(scope="session")
def swiftshader() -> str:
    """The id of the Vulkan device without robust buffer access 2 (`vulkan:1`); skips where there is none."""
    found = [info.id for info in vulkan_devices() if "SwiftShader" in info.name]
    if not found:
        pytest.skip("no SwiftShader: `make drivers` unpacks it where apt-get can download chromium-common")
    return found[0]


@pytest.fixture
def least_vulkan(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The id of the first Vulkan device, which has the least features and limits in the test; skips without one."""
    from orchestrion.hal.cts import catalogue
    from orchestrion.hal.vulkan.device_profile import PROFILE_VARIABLE

    monkeypatch.setenv(PROFILE_VARIABLE, "least")
    catalogue.device_tags.cache_clear()
    yield str(vulkan_devices()[0].id)
    catalogue.device_tags.cache_clear()


#: When a device is destroyed: an object that was being made when an interrupt came, before anybody had its handle, is
#: left to the driver. Only cases that raise interrupts may say so.
LEFT_BY_INTERRUPT = "VUID-vkDestroyDevice-device-00378"


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
    if not _has_validation_layer() or any(name in request.node.nodeid for name in LAYER_FAULTS):
        yield
        return
    monkeypatch.setenv("ORCHESTRION_VULKAN_VALIDATION", "1")
    yield
    module = sys.modules.get("orchestrion.hal.vulkan.instance")
    if module is not None:
        messages = module.open_instance().messages
        known = (LAYER_FAULT, LEFT_BY_INTERRUPT) if "interrupts." in request.node.name else (LAYER_FAULT,)
        said = [message for message in messages if not any(fault in message for fault in known)]
        messages.clear()
        assert not said, "\n".join(said)
