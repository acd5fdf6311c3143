"""Quirks of drivers on a device: which rows apply, what they change, and how messages name them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion.hal.backend import Entry
from orchestrion.hal.cache import Cache
from orchestrion.hal.errors import DriverUnavailable, Unsupported
from orchestrion.hal.opencl.driver import why_unusable
from orchestrion.hal.quirks import QUIRKS_VARIABLE, quirks_of
from orchestrion.hal.registry import find_device, open_device
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.schema.quirks import QUIRKS, DriverFacts, Quirk
from orchestrion.tools import run

Assembler = Callable[[str], bytes]
LLVMPIPE = DriverFacts(driver=13)


def names(setting: str | None, monkeypatch: pytest.MonkeyPatch, facts: DriverFacts = LLVMPIPE) -> list[str]:
    if setting is None:
        monkeypatch.delenv(QUIRKS_VARIABLE, raising=False)
    else:
        monkeypatch.setenv(QUIRKS_VARIABLE, setting)
    return [row.name for row in quirks_of("vulkan", facts)]


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(None, monkeypatch) == names("", monkeypatch) == names("on", monkeypatch) == ["llvmpipe-loops"]
    assert names("off", monkeypatch) == []
    assert names("nvidia-fill, intel-robustness2", monkeypatch) == ["intel-robustness2", "nvidia-fill"]
    assert names("pocl-generic", monkeypatch) == []
    assert names("on", monkeypatch, DriverFacts()) == []


def test_an_unknown_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DriverUnavailable, match="ORCHESTRION_QUIRKS names 'fills'; it takes on, off or some of intel-"):
        names("nvidia-fill,fills", monkeypatch)


@pytest.mark.parametrize("row", [row for row in QUIRKS if row.api == "vulkan"], ids=lambda row: row.name)
def test_a_device_with_a_row(row: Quirk, needs_vulkan: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Features that the row withholds are absent, and notes name it."""
    monkeypatch.setenv(QUIRKS_VARIABLE, row.name)
    with open_device("vulkan") as device:
        backend = device.device_state.backend
        assert isinstance(backend, VulkanDevice)
        physical = backend.physical
        assert not physical.enabled & row.lacks
        assert physical.fill_alignment == row.fill_alignment and physical.stores_pipelines == row.stores_pipelines
        assert row.note in device.info.notes


def test_features_that_a_quirk_withholds_are_refused_by_name(
    needs_vulkan: None, monkeypatch: pytest.MonkeyPatch, spirv_assembler: Assembler
) -> None:
    if "int64" not in find_device("vulkan")[1].features:
        pytest.skip("the device has no 64-bit integers")
    monkeypatch.setenv(QUIRKS_VARIABLE, "qualcomm-int64")
    code = spirv_assembler(
        "OpCapability Shader\nOpCapability Int64\nOpMemoryModel Logical GLSL450\n"
        'OpEntryPoint GLCompute %main "main"\nOpExecutionMode %main LocalSize 1 1 1\n'
        "%void = OpTypeVoid\n%function = OpTypeFunction %void\n"
        "%main = OpFunction %void 0 %function\n%start = OpLabel\nOpReturn\nOpFunctionEnd\n"
    )
    with open_device("vulkan") as device:
        assert device.info.withheld == (("int64", "qualcomm-int64"),)
        message = r"int64, which .* lacks \(quirk qualcomm-int64 withholds int64; ORCHESTRION_QUIRKS=off uses it\)"
        with pytest.raises(Unsupported, match=message):
            device.create_executable("spirv", memoryview(code), (Entry("main", (), 0, (1, 1, 1)),))


def test_the_list_of_devices_names_quirks(
    needs_vulkan: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(QUIRKS_VARIABLE, "nvidia-fill")
    assert run.list_devices() == 0
    assert "  quirk nvidia-fill: a fill of more than 4096 bytes" in capsys.readouterr().out


@pytest.mark.parametrize("setting", ["off", "nvidia-fill"])
def test_fills(setting: str, needs_vulkan: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long fill at an odd word is recorded as two, the second of them aligned; the bytes are the same."""
    monkeypatch.setenv(QUIRKS_VARIABLE, setting)
    with open_device("vulkan") as device:
        backend = device.device_state.backend
        assert isinstance(backend, VulkanDevice)
        fills: list[tuple[int, int]] = []
        fill = backend.vk.vkCmdFillBuffer
        monkeypatch.setattr(
            backend.vk, "vkCmdFillBuffer", lambda *row: (fills.append((row[2], row[3])), fill(*row))[1], raising=True
        )
        buffer = device.allocator.allocate(16384)
        buffer.write(np.zeros(4096, np.uint32))
        commands = device.create_command_buffer()
        commands.fill(buffer, 4, 8192, b"\x01\x02\x03\x04")
        commands.fill(buffer, 12292, 64, b"\x05" * 4)
        commands.finish()
        device.queue.execute(commands)
        words = np.empty(4096, np.uint32)
        buffer.read(words)
        for thing in (commands, buffer):
            thing.release()
    expected = np.zeros(4096, np.uint32)
    expected[1:2049], expected[3073:3089] = 0x04030201, 0x05050505
    assert np.array_equal(words, expected)
    long = [row for row in fills if row[1] > 4096]
    assert all([offset % 16 == 0 for offset, _ in long]) == (setting != "off") and (12292 % 16, 64) in [
        (offset % 16, length) for offset, length in fills
    ]


@pytest.mark.parametrize("stores", [True, False])
def test_pipelines_are_not_stored(
    stores: bool, needs_vulkan: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spirv_assembler: Assembler
) -> None:
    monkeypatch.setenv(QUIRKS_VARIABLE, "off" if stores else "powervr-pipelines")
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))
    with open_device("vulkan") as device:
        backend = device.device_state.backend
        assert isinstance(backend, VulkanDevice)
        put: list[object] = []
        got: list[object] = []
        backend.cache = _Counted(put, got)
        code = spirv_assembler(
            'OpCapability Shader\nOpMemoryModel Logical GLSL450\nOpEntryPoint GLCompute %main "main"\n'
            "OpExecutionMode %main LocalSize 1 1 1\n%void = OpTypeVoid\n%function = OpTypeFunction %void\n"
            "%main = OpFunction %void 0 %function\n%start = OpLabel\nOpReturn\nOpFunctionEnd\n"
        )
        device.create_executable("spirv", memoryview(code), (Entry("main", (), 0, (1, 1, 1)),)).release()
    assert bool(got) == stores and (stores or not put)


class _Counted(Cache):
    """A cache that stores nothing and lists its calls for pipelines, not those about the time of a build."""

    __slots__ = ("_got", "_put")

    def __init__(self, put: list[object], got: list[object]) -> None:
        self._put, self._got = put, got

    def get(self, *key: str | bytes) -> bytes | None:
        self._got += [key] if key[0] != "built" else []
        return None

    def put(self, data: bytes, *key: str | bytes) -> None:
        self._put += [key] if key[0] != "built" else []


class _Platform:
    name = "Portable Computing Language "


class _Pocl:
    """What `why_unusable` reads of an OpenCL device."""

    available = compiler_available = True
    platform = _Platform
    version = "OpenCL 2.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-generic "


def test_an_old_pocl_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "is built by a PoCL too old .* \\(quirk pocl-generic; ORCHESTRION_QUIRKS=off uses it\\)"
    pocl: Any = _Pocl
    assert re.match(message, why_unusable(pocl))
    monkeypatch.setenv(QUIRKS_VARIABLE, "off")
    assert why_unusable(pocl) == ""
