"""Pages of a file in the place of memory of the device `cpu`."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cpu_devices import open_cpu

from orchestrion.hal.allocator import padded_size
from orchestrion.hal.backend import MemoryUse
from orchestrion.hal.cpu import buffer as cpu_buffer
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DeviceOutOfMemory, InvalidArgument

PAGE = 4096
SIZE = cpu_buffer.LEAST_PAGED + 100


@pytest.fixture
def device() -> Iterator[Device]:
    with open_cpu() as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    data = np.random.default_rng(0).integers(1, 256, SIZE + 72, np.uint8)
    (tmp_path / "row").write_bytes(data.tobytes())
    opened = os.open(tmp_path / "row", os.O_RDONLY)
    yield opened
    os.close(opened)


def content(file: int) -> bytes:
    return os.pread(file, SIZE, 0)


@pytest.mark.parametrize("size", [SIZE, SIZE - 100, SIZE - 101 + PAGE])
def test_whole_pages_are_mapped_and_the_rest_is_read(device: Device, file: int, size: int) -> None:
    size = min(size, SIZE)
    buffer = device.allocator.allocate(size, MemoryUse.CONSTANT)
    address = buffer.backend.address  # type: ignore[attr-defined]
    buffer.write_file(np.frombuffer(content(file)[:size], np.uint8), file)
    out = np.empty(size, np.uint8)
    buffer.read(out)
    assert out.tobytes() == content(file)[:size]
    assert buffer.backend.address == address  # type: ignore[attr-defined]
    whole = buffer.backend.host
    assert whole is not None and not whole[size : padded_size(size)].any()
    statistics = device.statistics
    assert (statistics.imports, statistics.host_to_device_bytes) == (1, 0)
    buffer.release()


def test_what_is_written_stays_in_memory(device: Device, file: int) -> None:
    before = content(file)
    buffer = device.allocator.allocate(SIZE, MemoryUse.CONSTANT)
    view = buffer.map()
    buffer.write_file(np.frombuffer(before, np.uint8), file)
    assert view is not None and view.tobytes() == before
    buffer.write(np.zeros(SIZE, np.uint8))
    assert not view.any()
    assert content(file) == before
    buffer.release()


def test_other_memory_is_written(device: Device, file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small = device.allocator.allocate(100, MemoryUse.CONSTANT)
    small.write_file(np.frombuffer(content(file)[:100], np.uint8), file)
    arena = device.allocator.allocate(SIZE, MemoryUse.ARENA)
    arena.write_file(np.frombuffer(content(file), np.uint8), file)
    monkeypatch.setattr(cpu_buffer, "LOCAL_FILE_SYSTEMS", frozenset())
    remote = device.allocator.allocate(SIZE, MemoryUse.CONSTANT)
    remote.write_file(np.frombuffer(content(file), np.uint8), file)
    for buffer in (small, arena, remote):
        out = np.empty(buffer.size, np.uint8)
        buffer.read(out)
        assert out.tobytes() == content(file)[: buffer.size]
        buffer.release()
    assert device.statistics.imports == 0
    assert device.statistics.host_to_device_bytes == 100 + 2 * SIZE


def test_a_mapping_that_fails_leaves_memory_behind(device: Device, file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The descriptor is one that cannot be mapped: first with memory in its place, then without."""
    data = np.frombuffer(content(file), np.uint8)
    monkeypatch.setattr(cpu_buffer, "_is_local", lambda file: True)
    buffer = device.allocator.allocate(SIZE, MemoryUse.CONSTANT)
    reading, writing = os.pipe()
    buffer.write_file(data, reading)
    out = np.empty(SIZE, np.uint8)
    buffer.read(out)
    assert out.tobytes() == data.tobytes()
    monkeypatch.setattr(cpu_buffer, "ANONYMOUS", 0)
    with pytest.raises(DeviceOutOfMemory, match="cannot be mapped"):
        buffer.write_file(data, reading)
    os.close(reading)
    os.close(writing)


def test_constants_of_the_caller_are_not_written(device: Device, file: int) -> None:
    memory = np.zeros(SIZE + 64, np.uint8)
    memory = memory[-memory.ctypes.data % 64 :][:SIZE]
    imported = device.allocator.import_host(memory)
    assert imported is not None
    with pytest.raises(InvalidArgument, match="lacks write access"):
        imported.write_file(np.frombuffer(content(file), np.uint8), file)
    imported.release()
    assert not memory.any()
