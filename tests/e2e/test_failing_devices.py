"""Drivers that fail, call by call, on every device: a named error for whoever is concerned, nothing lost, nothing left.

The n-th allocation, submission, wait (and so on) fails, for every n that there is. After that the same context works.
"""

import functools
import gc
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from faults import KINDS, Faults, FaultyDevice
from watchdog import watched

from orchestrion import compiler, vm
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable, HalError
from orchestrion.hal.opencl.heaps import Machine
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import load_driver
from orchestrion.vm.errors import VmError

X = np.array([1, 2, 3, 4], np.float32)
W = np.array([5, 6, 7, 8], np.float32)
TEXT = """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %w = stablehlo.constant dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %w : tensor<4xf32>
  %1 = stablehlo.dot %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %0, %1 : tensor<4xf32>, tensor<f32>
}
"""
PATIENCE = 20.0
T = TypeVar("T")
#: more failures of one kind than any driver can have here
MOST = 60


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


def check(results: Any, x: Any) -> None:
    first, second = results
    np.testing.assert_array_equal(np.asarray(first), x * W)
    np.testing.assert_array_equal(np.asarray(second), (x * W) @ (x * W))


def opened(name: str, shared: bool, faults: Faults) -> Device:
    try:
        driver = load_driver(name)
        info = driver.devices()[0]
    except DriverUnavailable as error:
        pytest.skip(f"{name}: {error}")
    if shared:
        inner = driver.open(info)
    else:
        from orchestrion.hal.opencl.device import OpenCLDevice
        from orchestrion.hal.opencl.driver import find

        inner = OpenCLDevice(info, find()[0][info.index], machine=Machine.DISCRETE)
    return Device.of(FaultyDevice(inner, faults), policy=Policy(allow_native_code=True))


def ways(program: vm.Program) -> list[Callable[[], None]]:
    """To call it, and to check the result."""

    def many() -> None:
        futures = [program.main.submit(X + i) for i in range(3)]
        for future in futures:
            future.exception(PATIENCE)
        for i, future in enumerate(futures):
            check(future.result(), X + i)

    def chained() -> None:
        fence, resident = vm.Fence(), program.put(X)
        first = program.main.submit(X, wait=[fence])
        second = program.main.submit(resident, wait=[first], signal=[None, vm.Fence()])
        fence.signal()
        first.exception(PATIENCE), second.exception(PATIENCE)
        check(first.result(), X)
        check(second.result(), X)

    return [
        lambda: check(program.main(X), X),
        lambda: check(program.main.submit(X + 1).result(PATIENCE), X + 1),
        lambda: check(program.main(program.put(X), out=(program.empty((4,), np.float32), None)), X),
        many,
        chained,
    ]


def survives(action: Callable[[], T]) -> T:
    """What it gives, at the second time if the first one fails as planned."""
    try:
        return action()
    except (VmError, HalError) as error:
        assert "on purpose" in str(error)
    return action()


def use(device: Device) -> None:
    program = survives(lambda: vm.load(module(), device))
    for way in ways(program):
        survives(way)
    context = survives(program.create_context)
    survives(lambda: check(context.main(X), X))
    context.close()
    program.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["reference", "opencl", "opencl without shared memory", "vulkan"])
def test_the_nth_call_fails(name: str, kind: str) -> None:
    driver, _, without = name.partition(" ")
    for number in range(1, MOST):
        faults = Faults(kind, number)
        with watched(60):
            device = opened(driver, not without, faults)
            state = device.device_state
            use(device)
            assert device.close() == ()
            end = time.monotonic() + 5
            while not state.abandoned and time.monotonic() < end:
                gc.collect()
                state.collect()
                time.sleep(0.01)
        assert not faults.wrong
        assert state.abandoned and not state.owned and not faults.live
        if not faults.hit:
            return
    pytest.fail(f"{kind} failed {MOST} times and did not come to an end")
