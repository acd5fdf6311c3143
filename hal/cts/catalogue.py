"""All cases, and how one is run on a driver: opened for it alone, closed after it, nothing left behind."""

from orchestrion.hal.backend import BackendDriver, DeviceInfo
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import load_driver

from . import (
    batches,
    buffers,
    dispatches,
    errors,
    indirect,
    interrupts,
    lifetimes,
    profiles,
    recordings,
    semaphores,
    statistics,
    transfers,
)
from .case import Case
from .rig import Rig

CASES: dict[str, Case] = (
    buffers.case.cases
    | transfers.case.cases
    | dispatches.case.cases
    | indirect.case.cases
    | recordings.case.cases
    | batches.case.cases
    | semaphores.case.cases
    | statistics.case.cases
    | lifetimes.case.cases
    | errors.case.cases
    | interrupts.case.cases
    | profiles.case.cases
)


class UnexpectedPass(AssertionError):
    """A case listed as an expected failure passed: take it off the list."""


def find(name: str) -> tuple[BackendDriver, DeviceInfo]:
    """The driver and device named `driver` or `driver:index`. `DriverUnavailable` gives the driver's own reason."""
    driver_name, _, index = name.partition(":")
    driver = load_driver(driver_name)
    devices = driver.devices()
    if int(index or 0) >= len(devices):
        raise DriverUnavailable(f"driver {driver_name} has {len(devices)} devices, no {name}")
    return driver, devices[int(index or 0)]


def why_not(case: str, device: str) -> str | None:
    """Why a case is not run on a device: the driver cannot be used, or says that the case can never pass."""
    try:
        driver, _ = find(device)
    except DriverUnavailable as error:
        return str(error)
    return driver.conformance.unsupported.get(case)


def run(case: str, device: str) -> None:
    """Run one case. Raises what failed, or `UnexpectedPass`."""
    run_on(case, *find(device))


def run_on(case: str, driver: BackendDriver, info: DeviceInfo) -> None:
    """As `run`, for a driver at hand, whether or not an entry point names it."""
    expected = driver.conformance.expected_failures.get(case)
    try:
        _run(case, driver, info)
    except Exception:
        if expected is None:
            raise
        return
    if expected is not None:
        raise UnexpectedPass(f"{case} passed on {info.id}, where it was expected to fail: {expected}")


def _run(case: str, driver: BackendDriver, info: DeviceInfo) -> None:
    device = Device.of(driver.open(info), policy=Policy(allow_native_code=True))
    state = device.device_state
    with device:
        CASES[case](Rig(device, driver.conformance.computes, driver))
        leaks = device.close()
    assert leaks == (), f"not released: {leaks}"
    if not case.startswith("interrupts."):  # an exception in the middle of a release leaves the object to the driver
        assert not state.owned, f"{len(state.owned)} objects of the driver were not released"
