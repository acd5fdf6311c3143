"""Programs on devices that fail as planned (`faults.py`), and that nothing is left of them."""

import gc
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from faults import Faults, FaultyDriver
from watchdog import watched

from orchestrion import vm
from orchestrion.hal import registry
from orchestrion.hal.errors import DriverUnavailable


class Device:
    """A device that fails as planned, to load programs for."""

    def __init__(self, name: str, faults: Faults, module: Callable[[], bytes]) -> None:
        self.name = name
        self.module = module
        self.faults = faults
        self.states: list[Any] = []

    def load(self, module: bytes | None = None, **options: Any) -> vm.Program:
        """Loads a module, by default the one of all tests."""
        program = vm.load(module or self.module(), self.name, allow_native_code=True, **options)
        self.keep(program)
        return program

    def keep(self, program: vm.Program) -> None:
        self.states.append(program.device.device_state)

    def settle(self) -> None:
        """Release what earlier failures left, so that it is not counted among the calls that come."""
        for state in self.states:
            end = time.monotonic() + 5
            while (state.garbage or state.deferred_garbage) and not state.abandoned and time.monotonic() < end:
                state.collect()
        self.states = [state for state in self.states if not state.abandoned]

    def is_clean(self) -> None:
        """Nothing is left of what was opened here."""
        end = time.monotonic() + 10
        while len(self.faults.closed) < self.faults.opened and time.monotonic() < end:
            gc.collect()
            for state in self.states:
                state.collect()
            time.sleep(0.005)
        assert not self.faults.wrong
        assert len(self.faults.closed) == self.faults.opened
        assert not self.faults.live
        assert not any(state.owned for state in self.states)
        self.states.clear()


@contextmanager
def failing(name: str, module: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """The device of that name, `opencl without shared memory` among them, for programs of a module. Skips the test
    where it is not there.
    """
    driver_name, _, without = name.partition(" ")
    faults, load_driver = Faults(), registry.load_driver
    try:
        driver = load_driver(driver_name)
        driver.devices()
    except DriverUnavailable as error:
        pytest.skip(f"{driver_name}: {error}")
    opening = None
    if without:
        from orchestrion.hal.opencl.device import OpenCLDevice
        from orchestrion.hal.opencl.driver import find
        from orchestrion.hal.opencl.heaps import Machine

        opening = lambda info: OpenCLDevice(info, find()[0][info.index], machine=Machine.DISCRETE)  # noqa: E731
    faulty = FaultyDriver(driver, faults, opening)
    monkeypatch.setattr(
        registry, "load_driver", lambda wanted: faulty if wanted == driver_name else load_driver(wanted)
    )
    with warnings.catch_warnings(), watched(200):
        warnings.filterwarnings("ignore", ".*on purpose", RuntimeWarning)  # of objects whose release fails
        yield Device(driver_name, faults, module)
