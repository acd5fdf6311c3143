"""The caches of built code on disk: a row that is damaged, truncated, or of another device or driver is a miss.

Its bytes never reach the driver, and the code is built again and works.
"""

import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion.hal.cache import DIGEST, MAGIC, Cache
from orchestrion.hal.cts import kernels
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.opencl.driver import OpenCLDriver
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device

HEAD = len(MAGIC) + 2 * DIGEST
TRUSTING = Policy(allow_native_code=True)
#: kind of damage -> function that damages a row
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing is left": lambda row: b"",
    "a bit of the magic": lambda row: bytes([row[0] ^ 1]) + row[1:],
    "a bit of the key": lambda row: row[:9] + bytes([row[9] ^ 0x80]) + row[10:],
    "a bit of the digest": lambda row: row[: HEAD - 1] + bytes([row[HEAD - 1] ^ 4]) + row[HEAD:],
    "the first bit of the data": lambda row: row[:HEAD] + bytes([row[HEAD] ^ 1]) + row[HEAD + 1 :],
    "the last bit of the data": lambda row: row[:-1] + bytes([row[-1] ^ 0x80]),
    "cut in the head": lambda row: row[: HEAD - 7],
    "cut behind the head": lambda row: row[:HEAD],
    "cut in the data": lambda row: row[:-1],
    "something follows": lambda row: row + b"\0",
    "zeros": lambda row: bytes(len(row)),
    "another's magic": lambda row: b"ORCC\x02\0\0\0" + row[8:],
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))


def only_row(folder: Path) -> Path:
    (row,) = (path for path in folder.iterdir() if not path.name.startswith("."))
    return row


def run(device: Device, value: int) -> None:
    """Build the conformance suite's kernels again, and run one."""
    kernel = kernels.FORMATS[device.info.formats[0]](16, value)
    executable = device.create_executable(device.info.formats[0], memoryview(kernel.payload), kernel.entries)
    buffer = device.allocator.allocate(64)
    commands = device.create_command_buffer()
    commands.dispatch(executable, kernels.IOTA, (16, 1, 1), [(buffer, 0, 64)], kernel.parameters)
    commands.finish()
    device.queue.execute(commands)
    found = np.empty(64, np.uint8)
    buffer.read(found)
    for thing in (commands, buffer, executable):
        thing.release()
    np.testing.assert_array_equal(found.view("<u4"), np.arange(16, dtype=np.uint32) + value)


# Vulkan: lavapipe and SwiftShader give a bare header, which is not kept. The rows are made here, of a header that fits
# the device; what reaches vkCreatePipelineCache is looked at, and does not go further.


class Spied:
    """Records the `keys` that were looked up, and in `given` the initial data of each vkCreatePipelineCache.

    The data is not passed on to the driver.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from orchestrion.hal.vulkan.api import Api

        self.keys: list[tuple[Any, ...]] = []
        self.given: list[bytes] = []
        create, get = Api.create, Cache.get

        def spied_create(api: Any, function: Any, device: Any, info: Any, what: str) -> Any:
            if what == "a pipeline cache":
                self.given.append(bytes(api.ffi.buffer(info.pInitialData, info.initialDataSize)))
                info.initialDataSize = 0
            return create(api, function, device, info, what)

        def spied_get(cache: Cache, *key: Any) -> bytes | None:
            self.keys.append(key)
            return get(cache, *key)

        monkeypatch.setattr(Api, "create", spied_create)
        monkeypatch.setattr(Cache, "get", spied_get)


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> Spied:
    return Spied(monkeypatch)


@pytest.fixture(params=["vulkan", "swiftshader"])
def vulkan(request: pytest.FixtureRequest) -> str:
    """The id of a Vulkan device."""
    if request.param == "swiftshader":
        return str(request.getfixturevalue("swiftshader"))
    try:
        with open_device("vulkan") as device:
            return device.info.id
    except DriverUnavailable as error:
        pytest.skip(str(error))


def pipelines(name: str, spied: Spied, tmp_path: Path) -> tuple[Path, bytes]:
    """The row of the conformance kernels on this device, and its bytes: a pipeline cache that the driver could have
    returned.
    """
    with open_device(name, policy=TRUSTING) as device:
        run(device, 3)
    (key,) = spied.keys
    Cache("vulkan").put(struct.pack("<IIII", 32, 1, 0x10005, 0) + bytes(16) + b"pipelines" * 50, *key)
    with open_device(name, policy=TRUSTING) as device:
        run(device, 4)
    assert [bool(data) for data in spied.given] == [False, True], "a sound row reaches the driver"
    spied.given.clear()
    path = only_row(tmp_path / "vulkan")
    return path, path.read_bytes()


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_pipelines_never_reach_the_driver(vulkan: str, spied: Spied, tmp_path: Path, damage: str) -> None:
    path, row = pipelines(vulkan, spied, tmp_path)
    path.write_bytes(DAMAGE[damage](row))
    with open_device(vulkan, policy=TRUSTING) as device:
        run(device, 5)
    assert spied.given == [b""]


def test_pipelines_of_another_device_or_driver_are_not_found(swiftshader: str, spied: Spied, tmp_path: Path) -> None:
    """Nor are they used if one's row replaces the other's."""
    _, row = pipelines("vulkan", spied, tmp_path)
    with open_device(swiftshader, policy=TRUSTING) as device:
        run(device, 5)
    assert spied.given == [b""]
    ours, theirs = spied.keys[0], spied.keys[-1]
    assert ours[0] != theirs[0] and ours[-1] == theirs[-1]
    Cache("vulkan").put(b"x", *theirs)
    (place,) = (path for path in (tmp_path / "vulkan").iterdir() if path.read_bytes() != row)
    place.write_bytes(row)
    with open_device(swiftshader, policy=TRUSTING) as device:
        run(device, 6)
    assert spied.given == [b"", b""]


def test_a_folder_in_the_place_of_pipelines(vulkan: str, spied: Spied, tmp_path: Path) -> None:
    path, _ = pipelines(vulkan, spied, tmp_path)
    path.unlink()
    path.mkdir()
    with open_device(vulkan, policy=TRUSTING) as device:
        run(device, 5)
    assert spied.given == [b""]


# OpenCL: PoCL is told to forget what it builds, and so gives binaries.


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Makes PoCL cache no builds; gives the list of binaries that are passed to the driver."""
    from orchestrion.hal.opencl import executable

    given: list[bytes] = []
    load = executable._load

    def spied(context: Any, device: Any, binary: bytes) -> Any:
        given.append(binary)
        return load(context, device, binary)

    monkeypatch.setattr(executable, "_load", spied)
    try:
        OpenCLDriver().devices()
    except DriverUnavailable as error:
        pytest.skip(str(error))
    yield given


def opencl() -> Device:
    from orchestrion.hal.opencl.device import OpenCLDevice
    from orchestrion.hal.opencl.driver import find

    info = OpenCLDriver().devices()[0]
    return Device.of(OpenCLDevice(info, find()[0][info.index], builds_kept=False), policy=TRUSTING)


def test_damaged_binaries_never_reach_the_driver(forgetful: list[bytes], tmp_path: Path) -> None:
    with opencl() as device:
        run(device, 3)
    assert not forgetful
    path = only_row(tmp_path / "opencl")
    row = path.read_bytes()
    for damage in DAMAGE.values():
        path.write_bytes(damage(row))
        with opencl() as device:
            run(device, 4)
        assert not forgetful
        assert path.read_bytes()[:HEAD] == row[:HEAD] or path.read_bytes()[: HEAD - DIGEST] == row[: HEAD - DIGEST]
    with opencl() as device:
        run(device, 5)
    assert len(forgetful) == 1


def test_a_folder_in_the_place_of_a_binary(forgetful: list[bytes], tmp_path: Path) -> None:
    with opencl() as device:
        run(device, 3)
    path = only_row(tmp_path / "opencl")
    path.unlink()
    path.mkdir()
    with opencl() as device:
        run(device, 4)
    assert not forgetful and path.is_dir()


# rows while they are read


def test_rows_that_are_rewritten_in_place_are_whole_or_none(tmp_path: Path) -> None:
    """Only this user can write there, but a failing disk or a copying tool may rewrite a file in place."""
    cache = Cache("k")
    contents = [bytes([number]) * 50_000 for number in range(4)]
    rows = []
    for content in contents:
        cache.put(content, "key")
        rows.append(only_row(tmp_path / "k").read_bytes())
    path, end = only_row(tmp_path / "k"), threading.Event()

    def rewrite() -> None:
        with path.open("r+b", buffering=0) as file:
            while not end.is_set():
                for row in rows:
                    for start in range(0, len(row), 9000):
                        os.pwrite(file.fileno(), row[start : start + 9000], start)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        found = [cache.get("key") for _ in range(300)]
        until = time.monotonic() + 60
        while None not in found and time.monotonic() < until:  # until a row is read while it is written
            found.append(cache.get("key"))
    finally:
        end.set()
        writer.join()
    assert all(one is None or one in contents for one in found)
    assert None in found, "no row was read while it was being written"
