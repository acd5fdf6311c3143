"""The device profile `least`: devices without optional features, which refuse by name what exceeds the least limits."""

import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from shader_text import head

from orchestrion.hal.backend import Entry
from orchestrion.hal.cts import catalogue
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DeviceOutOfMemory, DriverUnavailable, HalError, Unsupported
from orchestrion.hal.registry import open_device
from orchestrion.hal.vulkan import executable, instance
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.device_profile import LEAST, PROFILE_VARIABLE, weaker
from orchestrion.hal.vulkan.driver import VulkanDriver

Assembler = Callable[[str], bytes]
GROUPS = ("devices", "dispatches", "errors", "executables", "indirect")


def shader(bindings: int = 1, size: str = "1 1 1", capability: str = "", extension: str = "", more: str = "") -> str:
    """Assembly of an entry that stores 1 to the first word of each binding. `more`: declarations that it does not use,
    or workgroup memory.
    """
    buffers = [f"b{n}" for n in range(bindings)]
    enabled = [f"OpCapability {capability}"] * bool(capability) + [f'OpExtension "{extension}"'] * bool(extension)
    stores = [f"%p{n} = OpAccessChain %p_word %b{n} %0 %0\nOpStore %p{n} %1\n" for n in range(bindings)]
    text = head(buffers=buffers, size=size, lane=False, enabled="\n".join(enabled), types=more)
    return text + "".join(stores) + "OpReturn\nOpFunctionEnd\n"


def entry(bindings: int = 1, size: tuple[int, int, int] = (1, 1, 1), length: int = 4, parameters: int = 0) -> Entry:
    return Entry("main", (("write", length),) * bindings, parameters, size)


@pytest.fixture
def device(least_vulkan: str) -> Iterator[Device]:
    with open_device(least_vulkan) as opened:
        yield opened


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("case", [case for case in catalogue.CASES if case.partition(".")[0] in GROUPS])
def test_conformance(case: str, least_vulkan: str) -> None:
    reason = catalogue.why_not(case, least_vulkan)
    if reason is not None:
        pytest.skip(reason)
    catalogue.run(case, least_vulkan)


def test_the_device_is_created_without_optional_features(device: Device) -> None:
    backend = device.device_state.backend
    assert isinstance(backend, VulkanDevice)
    physical = backend.physical
    assert physical.enabled == LEAST.features and physical.suffix == "KHR"
    assert set(physical.extensions) <= LEAST.extensions and not physical.special_floats
    assert device.info.features == {"robust"}
    assert device.info.limits == LEAST.limits == weaker(device.info.limits, LEAST.limits)
    assert "restricted to device profile least" in device.info.notes


def test_order_and_names_of_devices_stay(needs_vulkan: None, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [(info.id, info.name) for info in VulkanDriver().devices()]
    monkeypatch.setenv(PROFILE_VARIABLE, "least")
    assert [(info.id, info.name) for info in VulkanDriver().devices()] == before


def test_an_unknown_profile_is_refused(needs_vulkan: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROFILE_VARIABLE, "most")
    with pytest.raises(DriverUnavailable, match="ORCHESTRION_VULKAN_PROFILE is 'most'; it takes full or least"):
        VulkanDriver().devices()


def test_single_limits_are_lowered(needs_vulkan: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROFILE_VARIABLE, "least,max_binding_length=65536,max_bindings=9,min_binding_alignment=512")
    (info, *_) = VulkanDriver().devices()
    assert (info.limits.max_binding_length, info.limits.max_bindings, info.limits.min_binding_alignment) == (
        65536,
        4,
        512,
    )
    assert info.limits.max_workgroup_size == LEAST.limits.max_workgroup_size
    assert any(note.startswith("restricted to device profile least,max_binding_length=65536") for note in info.notes)


@pytest.mark.parametrize(
    "text", ["full,max_bindings=3", "least,max_bindings", "least,bindings=3", "least,max_bindings=-1"]
)
def test_wrong_limits_are_refused(text: str, needs_vulkan: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROFILE_VARIABLE, text)
    with pytest.raises(DriverUnavailable, match="behind least, it takes limits such as max_bindings=3: max_workgroup"):
        VulkanDriver().devices()


@pytest.mark.parametrize(
    ("capability", "extension", "feature"),
    [
        ("Int8", "", "int8"),
        ("StorageBuffer8BitAccess", "SPV_KHR_8bit_storage", "int8"),
        ("Int16", "", "int16"),
        ("StorageBuffer16BitAccess", "", "int16"),
        ("Int64", "", "int64"),
        ("Float64", "", "float64"),
    ],
)
def test_capabilities_are_refused(
    capability: str, extension: str, feature: str, device: Device, spirv_assembler: Assembler
) -> None:
    code = spirv_assembler(shader(capability=capability, extension=extension))
    with pytest.raises(Unsupported, match=f"the code needs feature {feature}, which .* lacks"):
        device.create_executable("spirv", memoryview(code), (entry(),))


@pytest.mark.parametrize(
    ("capability", "extension"),
    [
        ("Int8", ""),
        ("StorageBuffer8BitAccess", "SPV_KHR_8bit_storage"),
        ("Int16", ""),
        ("StorageBuffer16BitAccess", ""),
        ("Int64", ""),
        ("Float64", ""),
    ],
)
def test_the_validation_layer_sees_that_the_device_lacks_the_feature(
    capability: str, extension: str, device: Device, spirv_assembler: Assembler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device is really created without it: with our check switched off, the layer reports the code."""
    messages = instance.open_instance().messages
    if not os.environ.get(instance.VALIDATION_VARIABLE):
        pytest.skip("the validation layer is not installed")
    monkeypatch.setattr(executable, "_check_needs", lambda *_: None)
    backend = device.device_state.backend
    assert isinstance(backend, VulkanDevice) and not messages
    code = memoryview(spirv_assembler(shader(capability=capability, extension=extension)))
    executable.VulkanExecutable(backend, code, (entry(),)).release()
    assert any(capability in message for message in messages), messages
    messages.clear()


def test_allocations(device: Device) -> None:
    with pytest.raises(DeviceOutOfMemory, match="bytes of device memory asked for, the device's limit is 1073741824"):
        device.allocator.allocate((1 << 30) + 16)


def test_host_memory_is_not_imported(device: Device) -> None:
    """The extension for it is not enabled."""
    backend = device.device_state.backend
    assert isinstance(backend, VulkanDevice) and "VK_EXT_external_memory_host" not in backend.physical.extensions
    assert device.allocator.import_host(np.zeros(1 << 16, np.uint8)) is None


SHARED = (
    "%most = OpConstant %u32 {}\n%array = OpTypeArray %u32 %most\n"
    "%p_array = OpTypePointer Workgroup %array\n%shared = OpVariable %p_array Workgroup"
)


@pytest.mark.parametrize(
    ("text", "row", "message"),
    [
        (shader(5), entry(5), "entry main: 5 bindings, the device's limit is 4"),
        (shader(size="129 1 1"), entry(size=(129, 1, 1)), "129 invocations in a workgroup, the device's limit is 128"),
        (shader(size="1 1 65"), entry(size=(1, 1, 65)), "workgroup size 65 in z, the device's limit is 64"),
        (shader(more=SHARED.format(4097)), entry(), "16388 bytes of shared memory, the device's limit is 16384"),
        (shader(), entry(length=(128 << 20) + 4), "134217732 bytes in one binding, the device's limit is 134217728"),
        (shader(), entry(parameters=33), "132 bytes of parameters, the device's limit is 128"),
    ],
    ids=["bindings", "invocations", "axis", "shared memory", "binding length", "parameters"],
)
def test_limits_of_executables(text: str, row: Entry, message: str, device: Device, spirv_assembler: Assembler) -> None:
    code = spirv_assembler(text)
    with pytest.raises(Unsupported, match=message):
        device.create_executable("spirv", memoryview(code), (row,))


def test_what_reaches_a_limit_runs(device: Device, spirv_assembler: Assembler) -> None:
    """Four buffers, 128 invocations, 16 KiB of workgroup memory."""
    code = spirv_assembler(shader(4, "128 1 1", more=SHARED.format(4096)))
    made = device.create_executable("spirv", memoryview(code), (entry(4, (128, 1, 1)),))
    buffer = device.allocator.allocate(1024)
    commands = device.create_command_buffer()
    commands.dispatch(made, 0, (128, 1, 1), [(buffer, 256 * n, 256) for n in range(4)])
    commands.finish()
    device.queue.execute(commands)
    words = np.empty(256, np.uint32)
    buffer.read(words)
    assert words[::64].tolist() == [1] * 4 and words.sum() == 4
    for thing in (commands, buffer, made):
        thing.release()


def test_limits_of_recordings(device: Device, spirv_assembler: Assembler) -> None:
    """Offsets of bindings, and lengths of bindings of a larger buffer. More workgroups than a dimension has are folded
    into the others, up to their product.
    """
    made = device.create_executable("spirv", memoryview(spirv_assembler(shader())), (entry(),))
    buffer = device.allocator.allocate((128 << 20) + 1024)
    commands = device.create_command_buffer()
    with pytest.raises(HalError, match="binding 0: offset 16 is not a multiple of 256"):
        commands.dispatch(made, 0, (1, 1, 1), [(buffer, 16, 4)])
    with pytest.raises(HalError, match="binding 0: 134217732 bytes, the device's limit is 134217728"):
        commands.dispatch(made, 0, (1, 1, 1), [(buffer, 0, (128 << 20) + 4)])
    with pytest.raises(HalError, match=f"281474976710656 workgroups exceed the device's limit of {65_535**3}"):
        commands.dispatch(made, 0, (65_536**3, 1, 1), [(buffer, 0, 4)])
    for thing in (commands, buffer, made):
        thing.release()
