"""All cases, and how one runs on a driver: on a device opened for it alone, and closed after it, with nothing left.

A case has one of six outcomes on a device:

- `passed`, `failed`;
- `not applicable`: the device lacks a tag that the case needs (`tags.py`);
- `unsupported`: the driver lists it as one that can never pass, with the reason;
- `expected failure`: the driver lists it as one that fails, and it failed;
- `unexpected pass`: the driver lists it as one that fails, and it passed. That is a failure: remove it from the list.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import PurePath

from orchestrion.hal.backend import BackendDriver, DeviceInfo
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable, InvalidArgument
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import devices_of, load_driver

from . import (
    barriers,
    batches,
    buffers,
    control_flow,
    devices,
    dispatches,
    errors,
    executables,
    imports,
    indirect,
    interrupts,
    lifetimes,
    memory,
    profiles,
    recordings,
    semaphores,
    statistics,
    submissions,
    threads,
    transfers,
)
from .case import Case
from .rig import PATIENCE, Rig
from .tags import tags_of

GROUPS = (
    devices.case,
    memory.case,
    buffers.case,
    imports.case,
    transfers.case,
    executables.case,
    dispatches.case,
    indirect.case,
    barriers.case,
    recordings.case,
    batches.case,
    control_flow.case,
    submissions.case,
    semaphores.case,
    threads.case,
    lifetimes.case,
    statistics.case,
    errors.case,
    interrupts.case,
    profiles.case,
)

CASES: dict[str, Case] = {name: case for group in GROUPS for name, case in group.cases.items()}


class Outcome(StrEnum):
    """The result of a case on a device."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    UNSUPPORTED = "unsupported"
    EXPECTED_FAILURE = "expected failure"
    UNEXPECTED_PASS = "unexpected pass"

    @property
    def bad(self) -> bool:
        """Whether the device does not conform."""
        return self in (Outcome.FAILED, Outcome.UNEXPECTED_PASS)


@dataclass(frozen=True, slots=True)
class Result:
    """A case on a device. `reason` is empty if it passed; `error` is the exception of a failed case."""

    case: Case
    device: str
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    error: Exception | None = None


class UnexpectedPass(AssertionError):
    """A case listed as an expected failure passed: remove it from the list."""


class BadList(AssertionError):
    """A driver's list names a case that the suite does not have, or gives no reason."""


def find(name: str) -> tuple[BackendDriver, DeviceInfo]:
    """Returns the driver and device named `driver` or `driver:index`. Raises DriverUnavailable with the driver's own
    reason, InvalidArgument if the name is invalid.
    """
    driver_name, colon, index = name.partition(":")
    if colon and not index.isdecimal():
        raise InvalidArgument(f"device name {name!r}: the index after ':' is not a number")
    driver = load_driver(driver_name)
    devices = devices_of(driver)
    if int(index or 0) >= len(devices):
        raise DriverUnavailable(f"driver {driver_name} has {len(devices)} devices, no {name}")
    return driver, devices[int(index or 0)]


@cache
def device_tags(device: str) -> frozenset[str]:
    """The tags of a device by name, determined once. Raises DriverUnavailable as `find`."""
    return tags_on(*find(device))


def tags_on(driver: BackendDriver, info: DeviceInfo) -> frozenset[str]:
    """The tags of a device of a given driver. Opens the device."""
    with Device.of(driver.open(info)) as device:
        return tags_of(driver, device.device_state.backend)


def why_not(case: str, device: str) -> str | None:
    """Why a case is not run on a device: the driver cannot be used, lists the case as unsupported, or the device lacks
    a tag. None if it is run.
    """
    try:
        driver, _ = find(device)
        return _why_not(CASES[case], driver, device_tags(device))[1]
    except DriverUnavailable as error:
        return str(error)


def run(case: str, device: str) -> Result:
    """Run one case, if it applies. Raises its error, or UnexpectedPass."""
    return checked(judge(case, device))


def run_on(case: str, driver: BackendDriver, info: DeviceInfo) -> Result:
    """As `run`, for a given driver, whether or not it has an entry point."""
    return checked(judge_on(case, driver, info))


def checked(result: Result) -> Result:
    """Returns the result unless it is bad. Otherwise raises the error of the case, or UnexpectedPass."""
    if result.error is not None and result.outcome.bad:
        raise result.error
    if result.outcome.bad:
        raise UnexpectedPass(
            f"{result.case.name} passed on {result.device}, where it was expected to fail: {result.reason}"
        )
    return result


def judge(case: str, device: str, patience: float = PATIENCE) -> Result:
    """Run one case, if it applies, and return the result. Raises DriverUnavailable as `find`."""
    driver, info = find(device)
    return _judge(CASES[case], driver, info, lambda: device_tags(device), patience)


def judge_on(case: str, driver: BackendDriver, info: DeviceInfo, patience: float = PATIENCE) -> Result:
    """As `judge`, for a given driver. `patience`: seconds after which a wait that must end counts as a hang."""
    return _judge(CASES[case], driver, info, lambda: tags_on(driver, info), patience)


def _judge(
    case: Case, driver: BackendDriver, info: DeviceInfo, find_tags: Callable[[], frozenset[str]], patience: float
) -> Result:
    start = time.perf_counter()
    expected = driver.conformance.expected_failures.get(case.name)
    try:
        _check_lists(driver)
        outcome, reason = _why_not(case, driver, find_tags())
        if reason is not None:
            return Result(case, info.id, outcome, reason)
        _run(case, driver, info, patience)
    except Exception as error:
        outcome = Outcome.FAILED if expected is None else Outcome.EXPECTED_FAILURE
        reason = _why(error) if expected is None else expected
        return Result(case, info.id, outcome, reason, time.perf_counter() - start, error)
    outcome = Outcome.PASSED if expected is None else Outcome.UNEXPECTED_PASS
    return Result(case, info.id, outcome, expected or "", time.perf_counter() - start)


def _why_not(case: Case, driver: BackendDriver, tags: frozenset[str]) -> tuple[Outcome, str | None]:
    """The outcome of a case that is not run, and the reason; the reason is None if it is run."""
    missing = [tag for tag in case.needs if tag not in tags]
    if missing:
        return Outcome.NOT_APPLICABLE, f"the device lacks {', '.join(missing)}"
    return Outcome.UNSUPPORTED, driver.conformance.unsupported.get(case.name)


def _why(error: Exception) -> str:
    """The message of an error; if it is empty, the statement that raised it."""
    text = " ".join(str(error).split())
    if not text:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{frame.line} ({PurePath(frame.filename).name}, line {frame.lineno})"
    return f"{type(error).__name__}: {text}"


def _check_lists(driver: BackendDriver) -> None:
    for kind in ("unsupported", "expected_failures"):
        for name, reason in getattr(driver.conformance, kind).items():
            if name not in CASES:
                raise BadList(f"driver {driver.name}: {kind} names {name!r}, which is no case of the suite")
            if not reason:
                raise BadList(f"driver {driver.name}: {kind} gives no reason for {name}")


def _run(case: Case, driver: BackendDriver, info: DeviceInfo, patience: float) -> None:
    device = Device.of(driver.open(info), policy=Policy(allow_native_code=True))
    device.close_seconds = patience
    state = device.device_state
    with device:
        case.run(Rig(device, driver.conformance.computes, driver, patience))
        leaks = device.close()
    assert leaks == (), f"not released: {leaks}"
    if case.group != "interrupts":  # an exception inside of a release leaves the object to the driver
        assert not state.owned, f"{len(state.owned)} objects of the driver were not released"
