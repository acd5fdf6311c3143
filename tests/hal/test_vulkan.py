"""Features of the Vulkan driver alone: instances, memory blocks, staging, recordings cached by table."""

import dataclasses
import importlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from heap_tables import with_heaps
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrion.hal.backend import BackendBuffer, Binding, Entry, MemoryUse
from orchestrion.hal.cts import catalogue, kernels
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DeviceLost, DriverUnavailable, OutOfMemory, Unsupported
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.hal.vulkan import allocator, api, command_buffer, instance, physical, pipeline_cache
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.driver import VulkanDriver
from orchestrion.hal.vulkan.heaps import Heap, Machine, MemoryChoice, MemoryType
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.hints import install
from orchestrion.schema.profiles import FEATURES
from orchestrion.schema.trust.store import TrustStore


@pytest.fixture(autouse=True)
def _vulkan(needs_vulkan: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))


@pytest.fixture
def device() -> Iterator[VulkanDevice]:
    driver = VulkanDriver()
    opened = driver.open(driver.devices()[0])
    yield opened
    opened.close()


class CardDriver(VulkanDriver):
    """Devices with the heaps of a graphics card whose memory the host cannot write."""

    machine = Machine.SMALL_BAR

    def _scan(self) -> list[physical.PhysicalDevice]:
        return [with_heaps(row, self.machine) for row in super()._scan()]


class LargeBarDriver(CardDriver):
    """Devices with the heaps of a card with resizable BAR: the host writes inputs directly."""

    machine = Machine.LARGE_BAR


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("driver_class", [CardDriver, LargeBarDriver])
@pytest.mark.parametrize("case", catalogue.CASES)
def test_conformance_of_cards(case: str, driver_class: type[VulkanDriver]) -> None:
    driver = driver_class()
    catalogue.run_on(case, driver, driver.devices()[0])


@cache
def old_instance(validation: bool) -> instance.Instance:
    """An instance that treats every device as one of Vulkan 1.1."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(instance, "WANTED_VERSION", (1, 1))
        return instance.Instance(api.load(), validation)


@pytest.mark.parametrize(
    "case", [case for case in catalogue.CASES if case.partition(".")[0] in ("dispatches", "semaphores")]
)
def test_conformance_on_vulkan_1_1(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There timeline semaphores and 8-bit storage are extensions. `conftest` checks the validation layer's messages."""
    monkeypatch.setattr(instance, "_shared", old_instance)
    (row, *_), _ = physical.scan(instance.open_instance())
    assert row.suffix == "KHR" and "VK_KHR_timeline_semaphore" in row.extensions
    assert "int8" in row.info.features or "shaderInt8" not in row.enabled
    catalogue.run_on(case, VulkanDriver(), row.info)


# what is there


def test_device_info() -> None:
    for index, info in enumerate(VulkanDriver().devices()):
        assert info.driver == "vulkan" and info.index == index
        assert info.formats == ("spirv",) and info.features <= set(FEATURES)
        assert info.memory_bytes > 0 and min(info.limits.max_workgroup_count) >= 65535


def test_hardware_stands_before_software() -> None:
    ranks = physical.RANKS
    assert ranks[2] < ranks[1] < ranks[3] < ranks[0] < ranks[physical.TYPE_CPU]


def test_features_are_the_hals() -> None:
    assert set(physical.HAL_FEATURES) <= set(FEATURES)
    known = {row.field for row in physical.FEATURES}
    assert all(known.issuperset(fields) for fields in physical.HAL_FEATURES.values())


def test_structure_types_are_the_packages() -> None:
    """Every row of the table names a struct and the constant that belongs to it."""
    loaded = api.load()
    for name in api.STRUCTURE_TYPES:
        assert loaded.new(name).sType == loaded._types[name]
        words = name.removeprefix("Vk").removesuffix("EXT").replace("2", "").lower()
        kind = api.STRUCTURE_TYPES[name].removesuffix("_EXT").replace("_", "").replace("2", "").lower()
        assert words == kind


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"No module named {name!r}")

    check_load(monkeypatch, missing, re.escape(install("vulkan")))


def test_missing_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError("Cannot find Vulkan SDK version")

    check_load(monkeypatch, missing, "install libvulkan1")


def check_load(monkeypatch: pytest.MonkeyPatch, importer: Any, message: str) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(importlib, "import_module", importer)
        with pytest.raises(DriverUnavailable, match=message):
            api.load.__wrapped__()


def test_no_icd() -> None:
    """In a process of its own, because the Vulkan loader looks for drivers once."""
    program = (
        "from orchestrion.hal.vulkan.driver import VulkanDriver\n"
        "from orchestrion.hal.errors import DriverUnavailable\n"
        "try: VulkanDriver().devices()\n"
        "except DriverUnavailable as error: print(error)"
    )
    missing = {"VK_ICD_FILENAMES": "/nonexistent.json", "VK_DRIVER_FILES": "/nonexistent.json"}
    environment = os.environ | missing | {"ORCHESTRION_VULKAN_VALIDATION": "0"}
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert "finds no driver: install" in said.stdout


def test_validation_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv(instance.VALIDATION_VARIABLE, "yes")
        with pytest.raises(DriverUnavailable, match="is 'yes'; it takes 0 or 1"):
            instance.open_instance()


def test_missing_validation_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(instance, "VALIDATION_LAYER", "VK_LAYER_nobody")
        with pytest.raises(DriverUnavailable, match="VK_LAYER_nobody, which is not installed"):
            instance.Instance(api.load(), True)


def test_validation_collects(device: VulkanDevice) -> None:
    """The validation layer is on, and its messages arrive: the test makes a mistake on purpose."""
    said = instance.open_instance().messages
    if os.environ.get(instance.VALIDATION_VARIABLE) != "1":
        pytest.skip("the validation layer is not installed (Debian package vulkan-validationlayers)")
    assert not said
    info = device.api.new("VkBufferCreateInfo", size=0, usage=device.api.vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)
    handle = device.api.create(device.vk.vkCreateBuffer, device.handle, info, "a buffer of nothing")
    device.vk.vkDestroyBuffer(device.handle, handle, device.api.null)
    assert "VUID-VkBufferCreateInfo-size-00912" in said[0]
    said.clear()


# memory


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=60))
def test_a_block_hands_out_each_byte_once(steps: list[tuple[bool, int]]) -> None:
    block = allocator.Block(None, None, MemoryChoice(MemoryType(0, 0, Heap(0, 0, True)), False, False, False), 32, None)
    taken: list[tuple[int, int]] = []
    for giving, size in steps:
        if giving and taken:
            block.give(*taken.pop(size % len(taken)))
        elif not giving:
            offset = block.take(size)
            if offset is None:
                assert all(length < size for _, length in block.ranges)
            else:
                taken.append((offset, size))
        spans = sorted(taken + block.ranges)
        assert [start for start, _ in spans] == [sum(length for _, length in spans[:n]) for n in range(len(spans))]
        assert sum(length for _, length in spans) == 32
        ends = {offset + length for offset, length in block.ranges}
        assert not ends & {offset for offset, _ in block.ranges}, "neighbours are merged"
    for row in taken:
        block.give(*row)
    assert block.empty


def test_small_buffers_share_a_block(device: VulkanDevice) -> None:
    buffers = [device.allocate(size, MemoryUse.INPUT) for size in (16, 4096, 100_000, 16)]
    assert len({buffer.block.number for buffer in buffers}) == 1
    assert all(buffer.base % allocator.ALIGNMENT == 0 for buffer in buffers)
    assert len({buffer.memory_id for buffer in buffers}) == 4
    for buffer in buffers:
        buffer.release()


def test_a_large_block_is_kept_once_and_not_for_small_buffers(device: VulkanDevice) -> None:
    size = 2 * allocator.BLOCK
    other = device.allocate(16, MemoryUse.INPUT)  # a block for small buffers, or the large one would make room for it
    first = device.allocate(size, MemoryUse.INPUT)
    number, memory_id = first.block.number, first.memory_id
    first.release()
    small = device.allocate(16, MemoryUse.INPUT)
    assert small.block.number != number
    again = device.allocate(size, MemoryUse.INPUT)
    assert again.memory_id == memory_id
    larger = device.allocate(2 * size, MemoryUse.INPUT)
    for buffer in (again, larger, small, other):
        buffer.release()
    kept = [block for blocks in device.allocator._blocks.values() for block in blocks]
    assert sum(block.empty for block in kept) <= 1


def test_out_of_memory_names_the_size(device: VulkanDevice) -> None:
    with pytest.raises(OutOfMemory, match=f"{1 << 50} bytes of device memory asked for, the device's limit is"):
        device.allocate(1 << 50, MemoryUse.INPUT)


def test_import_refuses_what_it_cannot(device: VulkanDevice) -> None:
    if "VK_EXT_external_memory_host" not in device.physical.extensions:
        pytest.skip(f"{device.info.name} cannot import host memory")
    memory = np.arange(3 * 4096, dtype=np.uint32).view(np.uint8)
    start = -memory.ctypes.data % 4096
    assert device.import_host(memory[start + 1 : start + 4096]) is None
    imported = device.import_host(memory[start + 64 : start + 5000])
    assert imported is not None and imported.base == 64 and imported.size == 4936
    target = device.allocate(4936, MemoryUse.INPUT)
    commands = device.create_command_buffer(0)
    commands.copy(Binding(imported, 0, 4936), Binding(target, 0, 4936))
    commands.finish()
    device.queue.execute(commands, ())
    assert target.host is not None
    np.testing.assert_array_equal(target.host, memory[start + 64 : start + 5000])
    for thing in (commands, target, imported):
        thing.release()


# recordings


def filled(device: VulkanDevice, count: int) -> tuple[Any, list[Any]]:
    """A recording that fills its one slot, and buffers for the slot."""
    commands = device.create_command_buffer(1)
    commands.fill(Binding(0, 0, 16), b"\x01\x02\x03\x04")
    commands.finish()
    return commands, [device.allocate(16, MemoryUse.INPUT) for _ in range(count)]


def release(*things: Any) -> None:
    for thing in things:
        thing.release()


def test_few_recordings_of_a_long_program_are_kept(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    commands, buffers = filled(device, 6)
    monkeypatch.setattr(command_buffer, "COMMANDS", 3 * len(commands._program.commands))
    for buffer in buffers:
        device.queue.execute(commands, [buffer])
    assert len(commands._recordings) == 3
    monkeypatch.setattr(command_buffer, "COMMANDS", 1)
    device.queue.execute(commands, buffers[:1])
    assert len(commands._recordings) == 3, "one for another: each takes memory of the driver for each command"
    release(commands, *buffers)


def test_a_table_seen_before_is_replayed(device: VulkanDevice) -> None:
    commands, buffers = filled(device, command_buffer.RECORDINGS + 1)
    first = commands.recording(buffers[:1])
    for buffer in buffers[:-1]:
        device.queue.execute(commands, [buffer])
    assert commands.recording(buffers[:1]) is first
    device.queue.execute(commands, buffers[-1:])
    assert len(commands._recordings) == command_buffer.RECORDINGS
    assert (buffers[0].memory_id,) in commands._recordings, "the one used last stays"
    assert (buffers[1].memory_id,) not in commands._recordings
    assert not commands._spare, "the one that went was encoded anew"
    for buffer in buffers:
        assert bytes(buffer.host[:8]) == b"\x01\x02\x03\x04" * 2
    release(commands, *buffers)


def test_a_fresh_buffer_in_an_old_place_replays(device: VulkanDevice) -> None:
    commands, (buffer,) = filled(device, 1)
    first = commands.recording([buffer])
    buffer.release()
    again = device.allocate(16, MemoryUse.INPUT)
    assert commands.recording([again]) is first
    release(commands, again)


def test_a_recording_in_flight_is_not_touched(device: VulkanDevice) -> None:
    commands, buffers = filled(device, 1)
    gate = device.create_semaphore(0)
    for _ in range(3):
        device.queue.submit([(commands, buffers)], [(gate, 1)], [])
    assert len(commands._recordings) + len(commands._spare) == 1
    others = [device.allocate(256, MemoryUse.INPUT) for _ in range(20)]
    device.queue.submit([(commands, [buffer]) for buffer in others], [(gate, 1)], [])
    assert len(commands._recordings) + len(commands._spare) == 21
    gate.signal(1)
    device.queue.wait_idle()
    device.queue.execute_batch([(commands, [buffer]) for buffer in others[:3]])
    assert len(commands._recordings) == command_buffer.RECORDINGS and not commands._spare, "the others are freed"
    release(commands, gate, *buffers, *others)


def test_recordings_without_a_table_go(device: VulkanDevice) -> None:
    """Recordings made for a burst of submissions with many tables are dropped afterwards."""
    commands, buffers = filled(device, 3 * command_buffer.RECORDINGS)
    gate = device.create_semaphore(0)
    for buffer in buffers:
        device.queue.submit([(commands, [buffer])], [(gate, 1)], [])
    assert len(commands._recordings) == command_buffer.RECORDINGS
    assert len(commands._spare) == 2 * command_buffer.RECORDINGS
    gate.signal(1)
    device.queue.wait_idle()
    device.queue.execute(commands, buffers[:1])
    assert len(commands._recordings) == command_buffer.RECORDINGS and not commands._spare
    for buffer in buffers:
        assert bytes(buffer.host[:8]) == b"\x01\x02\x03\x04" * 2
    release(commands, gate, *buffers)


def test_a_failed_encoding_loses_nothing(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    commands, buffers = filled(device, 1)
    with monkeypatch.context() as patched:
        patched.setattr(device.vk, "vkEndCommandBuffer", failing(device.api.vk.VK_ERROR_OUT_OF_HOST_MEMORY))
        with pytest.raises(OutOfMemory, match="recording commands"):
            device.queue.execute(commands, buffers)
    device.queue.execute(commands, buffers)
    assert len(commands._recordings) == 1 and not commands._spare
    assert bytes(buffers[0].host[:4]) == b"\x01\x02\x03\x04"
    release(commands, *buffers)


def test_barriers_stand_where_they_are_needed(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """One between commands and one at the end, none at the start, with stages that exist."""
    barriers: list[tuple[int, int, int, int]] = []
    encode = device.vk.vkCmdPipelineBarrier

    def keep(buffer: Any, before: int, after: int, flags: int, count: int, barrier: Any, *rest: Any) -> None:
        barriers.append((before, after, barrier.srcAccessMask, barrier.dstAccessMask))
        encode(buffer, before, after, flags, count, barrier, *rest)

    kernel = kernels.FORMATS["spirv"](4, 0)
    executable = device.create_executable("spirv", memoryview(kernel.payload), kernel.entries)
    buffer = device.allocate(64, MemoryUse.INPUT)

    def record(*steps: str) -> list[tuple[int, int, int, int]]:
        commands = device.create_command_buffer(0)
        for step in steps:
            if step == "fill":
                commands.fill(Binding(buffer, 0, 16), bytes(4))
            elif step == "barrier":
                commands.barrier()
            else:
                bindings = [Binding(buffer, 0, 16)] * len(kernel.entries[0].bindings)
                commands.dispatch(executable, 0, (1, 1, 1), bindings, bytes(4 * kernel.entries[0].parameter_words))
        commands.finish()
        barriers.clear()
        with monkeypatch.context() as patched:
            patched.setattr(device.vk, "vkCmdPipelineBarrier", keep)
            commands.recording([])
        release(commands)
        return [*barriers]

    compute, transfer, both, host = 0x800, 0x1000, 0x1800, 0x4000
    after_all = (both | host, 0x20 | 0x40 | 0x800 | 0x1000 | 0x2000)
    assert record("barrier", "fill", "barrier", "barrier") == [(transfer, after_all[0], 0x1000, after_all[1])]
    assert record("dispatch", "barrier", "barrier", "dispatch") == [
        (compute, compute, 0x40, 0x60),
        (compute, after_all[0], 0x40, after_all[1]),
    ]
    assert record("fill", "barrier", "dispatch", "barrier", "dispatch") == [
        (transfer, compute, 0x1000, 0x60),
        (both, compute, 0x1040, 0x60),
        (both, after_all[0], 0x1040, after_all[1]),
    ]
    assert record() == [(both, after_all[0], 0x1040, after_all[1])]
    release(executable, buffer)


def test_a_large_fill_repeats_its_pattern(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_buffer, "PATTERN_BYTES", 64)
    buffer = device.allocate(1024, MemoryUse.INPUT)
    pattern = bytes(range(8))
    commands = device.create_command_buffer(0)
    commands.fill(Binding(buffer, 8, 1000), pattern)
    commands.finish()
    buffer.host[:] = 0xFF
    device.queue.execute(commands, ())
    np.testing.assert_array_equal(buffer.host[8:1008], np.tile(np.arange(8, dtype=np.uint8), 125))
    assert set(buffer.host[:8]) | set(buffer.host[1008:]) == {0xFF}
    release(commands, buffer)


# failures


def failing(result: int) -> Any:
    return lambda *arguments: result


def test_a_failed_submission_fails_its_signals(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    semaphore = device.create_semaphore(0)
    device.queue.submit([], [], [(semaphore, 1)])
    monkeypatch.setattr(device.queue, "_submit", failing(device.api.vk.VK_ERROR_OUT_OF_DEVICE_MEMORY))
    device.queue.submit([], [], [(semaphore, 3)])
    monkeypatch.undo()
    assert semaphore.wait(1, 1.0)
    with pytest.raises(OutOfMemory, match="submitting work: VK_ERROR_OUT_OF_DEVICE_MEMORY"):
        semaphore.wait(3, 1.0)
    device.queue.submit([], [(semaphore, 3)], [(semaphore, 4)])
    assert semaphore.wait(4, 1.0)
    semaphore.release()


def test_a_lost_device_is_said(device: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = device.api.vk.VK_ERROR_DEVICE_LOST
    commands, buffers = filled(device, 1)
    with monkeypatch.context() as patched:
        patched.setattr(device.queue, "_submit", failing(lost))
        with pytest.raises(DeviceLost, match="submitting work: VK_ERROR_DEVICE_LOST, the device was lost"):
            device.queue.execute(commands, buffers)
        patched.setattr(device.vk, "vkGetSemaphoreCounterValue", failing(lost))
        patched.setattr(device.vk, "vkWaitSemaphores", failing(lost))
        semaphore = device.create_semaphore(0)
        assert semaphore.value() > 1 << 60
        with pytest.raises(DeviceLost, match="waiting for 1"):
            semaphore.wait(1, None)
    release(commands, semaphore, *buffers)


def test_a_wait_ends_in_time(device: VulkanDevice) -> None:
    semaphore = device.create_semaphore(5)
    start = time.monotonic()
    assert not semaphore.wait(6, 0.02)
    assert 0.02 <= time.monotonic() - start < 20
    assert not semaphore.wait(6, 0.0)
    assert semaphore.wait(5, 0.0)
    semaphore.release()


def test_needs_are_named(device: VulkanDevice) -> None:
    kernel = kernels.FORMATS["spirv"](4, 0)
    limited = dataclasses.replace(device.physical, max_workgroup=(32, 1, 1))
    device.physical, whole = limited, device.physical
    with pytest.raises(Unsupported, match="workgroup size 64 in x, the device's limit is 32"):
        device.create_executable("spirv", memoryview(kernel.payload), kernel.entries)
    device.physical = whole
    with pytest.raises(ModuleError, match="no entry point other"):
        other = Entry("other", (), 0, (1, 1, 1))
        device.create_executable("spirv", memoryview(kernel.payload), (*kernel.entries, other))


# pipeline cache


def test_pipelines_are_kept_by_content(device: VulkanDevice) -> None:
    """With a driver that returns cache data: the next build starts with the data of the last one."""
    given: list[bytes] = []
    made = b"H" * pipeline_cache.HEADER_BYTES + b"pipeline"
    ffi = device.api.ffi

    def create(handle: Any, info: Any, allocator: Any, out: Any) -> int:
        given.append(bytes(ffi.buffer(info.pInitialData, info.initialDataSize)))
        return 0

    def read(handle: Any, cache: Any, size: Any, data: Any) -> int:
        size[0] = len(made)
        if data != ffi.NULL:
            ffi.memmove(data, made, len(made))
        return 0

    callback = ffi.callback("PFN_vkCreatePipelineCache", create)
    fake = SimpleNamespace(
        vkCreatePipelineCache=callback, vkGetPipelineCacheData=read, vkDestroyPipelineCache=lambda *arguments: None
    )
    other = SimpleNamespace(api=device.api, vk=fake, handle=device.handle, physical=device.physical, cache=device.cache)
    for payload in (b"one", b"one", b"two"):
        with pipeline_cache.pipeline_cache(other, memoryview(payload)):  # type: ignore[arg-type]
            pass
    assert given == [b"", made, b""]


# robustness


def test_access_outside_of_a_binding_touches_nothing() -> None:
    """Robust buffer access 2: the kernel is told that its buffers are larger than they are."""
    with open_device("vulkan") as opened:
        if "robust" not in opened.info.features:
            pytest.skip(f"{opened.info.name} lacks feature robust")
        kernel = kernels.FORMATS["spirv"](4096, 7)
        executable = opened.create_executable("spirv", memoryview(kernel.payload), kernel.entries)
        buffer = opened.allocator.allocate(4096)
        before = np.random.default_rng(3).integers(0, 256, 4096, np.uint8)
        buffer.write(before)
        commands = opened.create_command_buffer()
        commands.dispatch(executable, kernels.IOTA, (4096, 1, 1), [(buffer, 256, 64)], kernel.parameters)
        commands.finish()
        opened.queue.execute(commands)
        after = np.empty(4096, np.uint8)
        buffer.read(after)
        np.testing.assert_array_equal(after[256:320].view(np.uint32), np.arange(16) + 7)
        np.testing.assert_array_equal(np.delete(after, range(256, 320)), np.delete(before, range(256, 320)))
        for thing in (commands, buffer, executable):
            thing.release()


def test_places_are_never_named_twice(device: VulkanDevice) -> None:
    first = device.allocate(2 * allocator.BLOCK, MemoryUse.INPUT)
    memory_id = first.memory_id
    first.release()
    other = device.allocate(4 * allocator.BLOCK, MemoryUse.INPUT)  # the empty block makes room
    second: BackendBuffer = device.allocate(2 * allocator.BLOCK, MemoryUse.INPUT)
    assert memory_id not in (other.memory_id, second.memory_id)  # type: ignore[attr-defined]
    release(other, second)


def test_spirv_needs_no_trust(tmp_path: Path) -> None:
    """SPIR-V is confined on every Vulkan device, even on one without robust buffer access 2."""
    kernel = kernels.FORMATS["spirv"](4, 0)
    for row in VulkanDriver()._scan():
        policy = Policy(store=TrustStore(tmp_path / "trust"))
        with Device.of(VulkanDevice(instance.open_instance().api, row), policy=policy) as opened:
            opened.create_executable("spirv", memoryview(kernel.payload), kernel.entries, bytes(32)).release()


def test_a_failed_wait_leaves_nothing_under_way(device: VulkanDevice) -> None:
    """After the queue has recovered all work is finished, and the next call gets a fence of its own."""
    buffer = device.allocate(1 << 20, MemoryUse.INPUT)
    commands = device.create_command_buffer(1)
    commands.fill(Binding(0, 0, 1 << 20), b"\x07")
    commands.finish()
    real, device.queue._wait = device.queue._wait, lambda *_: device.api.vk.VK_ERROR_OUT_OF_HOST_MEMORY  # type: ignore[attr-defined]
    with pytest.raises(OutOfMemory, match="waiting for work"):
        device.queue.execute(commands, [buffer])
    device.queue._wait = real  # type: ignore[attr-defined]
    done = device.create_semaphore(0)
    device.queue.recover([(done, 1)])
    assert done.wait(1, 20.0)
    assert buffer.host is not None and (buffer.host == 7).all()
    device.queue.execute(commands, [buffer])
    for thing in (commands, buffer, done):
        thing.release()
