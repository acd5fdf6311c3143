"""Drivers by name: the package's own, those of other packages, and errors for missing ones."""

import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugin_packages import plugin_folder

from orchestrion.hal.cts import catalogue
from orchestrion.hal.errors import DriverUnavailable, InvalidArgument
from orchestrion.hal.registry import BUILT_IN, GROUP, drivers, list_devices, load_driver, open_device
from orchestrion.schema.hints import install


def test_built_in_drivers_are_the_entry_points() -> None:
    points = importlib.metadata.distribution("orchestrion").entry_points
    assert {point.name: point.value for point in points if point.group == GROUP} == BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_drivers_load(name: str) -> None:
    """They load without the libraries they need, which are imported when devices are listed."""
    assert load_driver(name).name == name


def test_importing_the_front_imports_no_library() -> None:
    code = (
        "import sys, orchestrion.hal.registry as r; [r.load_driver(n) for n in r.BUILT_IN]; "
        "print([m for m in ('pyopencl', 'vulkan', 'importlib.metadata', 'jaxlib') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_listing_tells_devices_or_reasons() -> None:
    statuses = list_devices()
    assert [status.name for status in statuses][: len(BUILT_IN)] == list(BUILT_IN)
    for status in statuses:
        assert bool(status.devices) != bool(status.reason)
    assert statuses[0].devices[0].id == "null"


def test_unknown_names() -> None:
    with pytest.raises(InvalidArgument, match="no driver 'cuda': there are null, reference, cpu, opencl, vulkan"):
        open_device("cuda")
    with pytest.raises(InvalidArgument, match="no device 'null:7': driver null has null .null device."):
        open_device("null:7")
    with pytest.raises(InvalidArgument, match="index after ':' is not a number"):
        open_device("null:first")


SECOND = """
from dataclasses import replace
from orchestrion.hal.null.driver import NullDriver

class SecondDriver(NullDriver):
    name = "second"

    def devices(self):
        (info,) = super().devices()
        return [replace(info, driver="second", index=index, name=f"device {index}") for index in range(2)]
"""


@pytest.fixture
def another_package(tmp_path: Path) -> Iterator[None]:
    """A driver with two devices, and two drivers that cannot be used."""
    points = {"second": "second_driver:SecondDriver", "broken": "no_such_module:Driver", "odd": "pathlib:Path"}
    with plugin_folder(tmp_path) as folder:
        folder.install("another-package", {GROUP: points}, second_driver=SECOND)
        yield


@pytest.mark.usefixtures("another_package")
def test_drivers_of_other_packages() -> None:
    assert list(drivers()) == [*BUILT_IN, "broken", "odd", "second"]
    with open_device("second:1") as device:
        assert device.info.id == "second:1"
    with pytest.raises(InvalidArgument, match=r"no device 'second:2': .* second \(device 0\), second:1 \(device 1\)"):
        open_device("second:2")
    with pytest.raises(DriverUnavailable, match="no_such_module"):
        open_device("broken")
    with pytest.raises(DriverUnavailable, match="not a subclass of BackendDriver"):
        open_device("odd")
    reasons = {status.name: status.reason for status in list_devices()}
    assert "no_such_module" in reasons["broken"] and reasons["second"] == ""


@pytest.mark.usefixtures("another_package")
@pytest.mark.parametrize("case", ["buffers.sizes", "semaphores.chain", "errors.copy_range"])
def test_conformance_of_another_driver(case: str) -> None:
    """The suite finds drivers of other packages by name."""
    assert catalogue.why_not(case, "second:1") is None
    catalogue.run(case, "second:1")


def test_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(DriverUnavailable, match=re.escape(install("opencl"))):
        open_device("opencl")


def test_no_platform_says_what_to_install(tmp_path: Path) -> None:
    """The OpenCL loader is installed, but no driver."""
    pytest.importorskip("pyopencl")
    code = (
        "from orchestrion.hal.registry import list_devices; "
        "print([s.reason for s in list_devices() if s.name == 'opencl'][0])"
    )
    environment = {"OCL_ICD_VENDORS": str(tmp_path), "OPENCL_VENDOR_PATH": str(tmp_path), "PATH": ""}
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout
    if not said.strip():
        pytest.skip("the OpenCL loader here finds platforms by other means")
    assert "pip install 'pyopencl[pocl]'" in said
