"""Opens the CPU device for tests, names its level for the compiler, and finds the code that a device runs."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.targets.cpu import levels
from orchestrion.compiler.targets.target import Payload, target
from orchestrion.hal.device import Device
from orchestrion.hal.device_info import DeviceInfo
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import devices_of, load_driver


def open_cpu(threads: int | None = None) -> Device:
    """The CPU device with this number of threads, which trusts all code. Skips the test where there is none."""
    try:
        (info,) = devices_of(load_driver("cpu"))
    except DriverUnavailable as error:
        pytest.skip(str(error))
    from orchestrion.hal.cpu.device import CpuDevice

    return Device.of(CpuDevice(info, threads), policy=Policy(allow_native_code=True))


def best_level() -> tuple[str, ...]:
    """The best instruction set of this processor, for `target_cpu`; empty where the driver has no device.

    A module for it has one native image per executable, where a module for all levels has three.
    """
    try:
        (info,) = devices_of(load_driver("cpu"))
    except DriverUnavailable:
        return ()
    return (info.version,)


@contextmanager
def own_level_only() -> Iterator[None]:
    """Modules that name no level have native images for this processor alone, within the context."""
    own, all_levels = best_level(), levels.host_levels
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "host_levels", lambda: own or all_levels())
        yield


def code_for(info: DeviceInfo, name: str, executable: Operation) -> Payload:
    """The code of an executable of a target for a device: for processors, that of their level."""
    return (
        target(name).payloads(executable, (info.version,))[0] if name == "cpu" else target(name).serialize(executable)
    )
