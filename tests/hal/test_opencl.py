"""The OpenCL driver where it differs from others: memory that is not shared, building, the cache of binaries."""

import logging
from pathlib import Path

import pytest

from orchestrion.hal.backend import BackendDevice, DeviceInfo, Entry
from orchestrion.hal.cts import catalogue
from orchestrion.hal.cts.rig import Rig
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.opencl.driver import OpenCLDriver
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.schema.errors import ModuleError

NOTHING = (Entry("f", (("write", 4),), 0, (1, 1, 1)),)
SOURCE = "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void f(__global uint *out) { out[0] = %d; }"


@pytest.fixture(autouse=True)
def _opencl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))
    try:
        OpenCLDriver().devices()
    except DriverUnavailable as error:
        pytest.skip(str(error))


def opencl() -> Device:
    return open_device("opencl", policy=Policy(allow_native_code=True))


class CopyingDriver(OpenCLDriver):
    """The driver with shared memory left unused, as on a device that has none."""

    def open(self, info: DeviceInfo) -> BackendDevice:
        from orchestrion.hal.opencl.device import OpenCLDevice
        from orchestrion.hal.opencl.driver import find

        return OpenCLDevice(info, find()[0][info.index], shared=False)


@pytest.mark.parametrize("case", catalogue.CASES)
def test_conformance_without_shared_memory(case: str) -> None:
    driver = CopyingDriver()
    catalogue.run_on(case, driver, driver.devices()[0])


def test_a_build_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    number = id(capfd)  # PoCL caches by the text
    source = SOURCE % number + f" int g{number}(int x) {{ int unused; return x != x; }}"
    for _ in range(2):  # from the source, from the cache
        with opencl() as device:
            device.create_executable("opencl-c", memoryview(source.encode()), NOTHING).release()
    assert capfd.readouterr() == ("", "")


def test_memory_without_sharing_is_not_mapped() -> None:
    driver = CopyingDriver()
    with Device.of(driver.open(driver.devices()[0])) as device:
        buffer = device.allocator.allocate(16)
        assert buffer.host is None and buffer.map() is None
        buffer.release()


def test_shared_memory_is_mapped() -> None:
    with opencl() as device:
        if "memory shared with the host" not in device.info.notes:
            pytest.skip(f"{device.info.name} shares no memory with the host")
        buffer = device.allocator.allocate(16)
        assert buffer.map() is not None
        buffer.release()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"__kernel void f(__global uint *out) { out[0] = undeclared; }", "undeclared"),
        (b"\xff\xfe", "not UTF-8"),
        (b"", "no kernel f"),
        ((SOURCE % 1).replace("void f", "void g").encode(), "no kernel f"),
        ((SOURCE % 1).replace("uint *out", "uint *out, uint n").encode(), "takes 2 arguments, its entry says 1"),
        ((SOURCE % 1).replace("1, 1, 1", "8, 1, 1").encode(), r"size \(8, 1, 1\), its entry says \(1, 1, 1\)"),
    ],
)
def test_bad_source(source: bytes, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    """What does not build, or is not what its entries say, is the module's fault; a build's log is in the message."""
    with opencl() as device, pytest.raises(ModuleError, match=words):
        device.create_executable("opencl-c", memoryview(source), NOTHING)


def built(device: Device, value: int) -> int:
    """What the kernel that stores `value` stores."""
    rig = Rig(device, computes=True)
    executable = device.create_executable("opencl-c", memoryview((SOURCE % value).encode()), NOTHING)
    target = rig.zeros(4)
    commands = rig.recording()
    commands.dispatch(executable, 0, (1, 1, 1), [(target, 0, 4)])
    commands.finish()
    rig.run(commands)
    return int(rig.contents(target).view("<u4")[0])


def test_binaries_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second open finds the binary, and the compiler is not called."""
    from orchestrion.hal.opencl import executable

    with opencl() as device:
        assert built(device, 5) == 5
        assert built(device, 6) == 6
    assert len(list((tmp_path / "opencl").iterdir())) == 2
    monkeypatch.setattr(executable, "_compile", None)
    with opencl() as device:
        assert built(device, 6) == 6
        assert built(device, 5) == 5


def test_damaged_binary_is_built_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestrion.hal.opencl import executable

    with opencl() as device:
        assert built(device, 7) == 7
    (row,) = (tmp_path / "opencl").iterdir()
    good = row.read_bytes()
    row.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with caplog.at_level(logging.WARNING, "orchestrion.hal.cache"), opencl() as device:
        assert built(device, 7) == 7
    assert "is damaged and not used" in caplog.text
    monkeypatch.setattr(executable, "_compile", None)
    with opencl() as device:
        assert built(device, 7) == 7


def test_foreign_binary_is_built_again(tmp_path: Path) -> None:
    """A row that is whole, but that the driver does not take, is built from source again."""
    from orchestrion.hal.cache import Cache

    keys: list[tuple[str | bytes, ...]] = []

    class Spy(Cache):
        def put(self, data: bytes, *key: str | bytes) -> None:
            keys.append(key)
            super().put(b"not a program", *key)

    with opencl() as device:
        device.home.backend._cache = Spy("opencl")  # type: ignore[attr-defined]
        assert built(device, 8) == 8
    assert Cache("opencl").get(*keys[0]) == b"not a program"
    with opencl() as device:
        assert built(device, 8) == 8
    assert Cache("opencl").get(*keys[0]) != b"not a program"
