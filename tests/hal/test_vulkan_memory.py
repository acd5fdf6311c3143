"""Vulkan memory is private to its program: empty bindings, padding, memory that only the device can clear."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from heap_tables import with_heaps

from orchestrion.hal.backend import Binding, Entry, MemoryUse
from orchestrion.hal.cts import kernels
from orchestrion.hal.errors import OutOfMemory
from orchestrion.hal.vulkan import allocator, instance
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.driver import VulkanDriver
from orchestrion.hal.vulkan.heaps import Machine

N = 8


@pytest.fixture(autouse=True)
def _vulkan(needs_vulkan: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))


@pytest.fixture(params=["vulkan", "swiftshader"])
def device(request: pytest.FixtureRequest) -> Iterator[VulkanDevice]:
    if request.param == "swiftshader":
        request.getfixturevalue("swiftshader")
    rows = [row for row in VulkanDriver()._scan() if ("SwiftShader" in row.info.name) == (request.param != "vulkan")]
    opened = VulkanDevice(instance.open_instance().api, rows[0])
    yield opened
    opened.close()


@pytest.fixture
def unmapped() -> Iterator[VulkanDevice]:
    """A device whose own memory the host cannot write, as on a graphics card."""
    (row, *_) = VulkanDriver()._scan()
    opened = VulkanDevice(instance.open_instance().api, with_heaps(row, Machine.SMALL_BAR))
    yield opened
    opened.close()


def local_buffer(device: VulkanDevice, size: int) -> Any:
    return device.allocate(size, MemoryUse.ARENA)


def read(device: VulkanDevice, buffer: Any) -> Any:
    out = np.full(buffer.size, 0xEE, np.uint8)
    device.queue.read(buffer, 0, out)
    return out


def executable(device: VulkanDevice) -> Any:
    """The kernels of the conformance suite, with bindings that may be empty."""
    kernel = kernels.FORMATS["spirv"](N, 0)
    entries = tuple(
        Entry(row.name, tuple((access, 0) for access, _ in row.bindings), row.parameter_words, row.workgroup_size)
        for row in kernel.entries
    )
    return device.create_executable("spirv", memoryview(kernel.payload), entries)


def run(device: VulkanDevice, code: Any, entry: int, value: int, bindings: list[Binding]) -> Any:
    """Dispatches an entry over N words; returns its command buffer."""
    commands = device.create_command_buffer(0)
    commands.dispatch(code, entry, (N, 1, 1), bindings, kernels.FORMATS["spirv"](N, value).parameters)
    commands.finish()
    device.queue.execute(commands, ())
    return commands


def test_what_is_behind_an_empty_binding_is_no_channel(device: VulkanDevice) -> None:
    """An earlier version shared sixteen bytes between all programs of a device: one could write them and another read
    them.
    """
    code, target = executable(device), device.allocate(4 * N, MemoryUse.INPUT)
    nothing = Binding(target, 0, 0)
    writer = run(device, code, kernels.IOTA, 0x5A5A5A5A, [nothing])
    reader = run(device, code, kernels.ADD, 7, [nothing, nothing, Binding(target, 0, 4 * N)])
    np.testing.assert_array_equal(read(device, target).view(np.uint32), np.full(N, 7))
    assert writer._program.empty.memory_id != reader._program.empty.memory_id
    assert not hasattr(device, "empty")
    for thing in (writer, reader, target, code):
        thing.release()


def test_a_command_buffer_without_empty_bindings_has_no_memory_of_its_own(device: VulkanDevice) -> None:
    code, target = executable(device), device.allocate(4 * N, MemoryUse.INPUT)
    commands = run(device, code, kernels.IOTA, 0, [Binding(target, 0, 4 * N)])
    assert commands._program.empty is None
    for thing in (commands, target, code):
        thing.release()


def test_padding_is_zeroed(device: VulkanDevice) -> None:
    """The next range begins at a multiple of the allocator's alignment; all bytes before it are cleared."""
    first = device.allocate(allocator.ALIGNMENT, MemoryUse.INPUT)
    first.host[:] = 0xA5
    memory_id = first.memory_id
    first.release()
    second = device.allocate(16, MemoryUse.INPUT)
    assert second.memory_id == memory_id
    block = second.block.host
    assert block is not None and not block[second.base : second.base + allocator.ALIGNMENT].any()
    second.release()


def test_memory_of_words_only_is_imported(device: VulkanDevice) -> None:
    """A device may round the end of a binding up to a word, and the bytes after imported memory belong to others."""
    alignment = device.info.limits.host_import_alignment
    memory = np.zeros(3 * alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    whole = device.import_host(memory[start : start + alignment])
    if whole is None:
        pytest.skip(f"{device.info.name} imports no host memory")
    whole.release()
    assert device.import_host(memory[start : start + alignment - 1]) is None


# memory that the host cannot write


def test_the_device_clears_what_the_host_cannot(unmapped: VulkanDevice) -> None:
    for size in (16, 4096, 2 * allocator.BLOCK):
        first = local_buffer(unmapped, size)
        assert first.host is None and unmapped.allocator.uncleared
        unmapped.queue.write(first, 0, np.full(size, 0xA5, np.uint8))
        assert (read(unmapped, first) == 0xA5).all() and not unmapped.allocator.uncleared
        memory_id = first.memory_id
        first.release()
        again = local_buffer(unmapped, size)
        assert again.memory_id == memory_id and not read(unmapped, again).any()
        again.release()


def test_memory_that_is_gone_is_not_cleared(unmapped: VulkanDevice) -> None:
    """A freed range belongs to its next user, for whom it is cleared again."""
    for _ in range(3):
        buffers = [local_buffer(unmapped, size) for size in (16, 2 * allocator.BLOCK)]
        for buffer in buffers:
            buffer.release()
    assert not unmapped.allocator.uncleared
    kept = local_buffer(unmapped, 16)
    assert list(unmapped.allocator.uncleared.values()) == [kept] and not read(unmapped, kept).any()
    kept.release()


def test_a_block_stays_while_it_is_being_cleared(unmapped: VulkanDevice) -> None:
    """A buffer may be freed before the submission that clears it has finished; its block may not."""
    gate = unmapped.create_semaphore(0)
    done = unmapped.create_semaphore(0)
    unmapped.queue.submit((), [(gate, 1)], [])  # nothing that is submitted later starts before
    first = local_buffer(unmapped, 2 * allocator.BLOCK)
    block = first.block
    unmapped.queue.submit((), [], [(done, 1)])
    assert block.fills == 1
    first.release()
    larger = local_buffer(unmapped, 4 * allocator.BLOCK)  # would take the memory_id of an empty block
    blocks = unmapped.allocator._blocks[block.choice]
    assert block in blocks and not block.disposable
    gate.signal(1)
    assert done.wait(1, 30.0)
    unmapped.queue.wait_idle()
    assert block.fills == 0
    assert not read(unmapped, larger).any()
    larger.release()
    for semaphore in (gate, done):
        semaphore.release()


def test_a_fill_that_cannot_be_submitted_is_due_again(unmapped: VulkanDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = local_buffer(unmapped, 4096)
    real = unmapped.queue._submit  # type: ignore[attr-defined]
    out_of_memory = unmapped.api.vk.VK_ERROR_OUT_OF_HOST_MEMORY
    monkeypatch.setattr(unmapped.queue, "_submit", lambda *_: out_of_memory)
    with pytest.raises(OutOfMemory):
        read(unmapped, buffer)
    assert list(unmapped.allocator.uncleared.values()) == [buffer] and buffer.block.fills == 0
    monkeypatch.setattr(unmapped.queue, "_submit", real)
    assert not read(unmapped, buffer).any()
    buffer.release()
