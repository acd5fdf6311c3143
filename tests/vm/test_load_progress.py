"""What a load tells of itself: stages in order, parts as they are built, errors of who listens."""

import functools
import pickle
import threading
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest

from orchestrion import compiler, vm
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.policy import Policy
from orchestrion.hal.reference.device import ReferenceDevice
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.hal.registry import find_device
from orchestrion.vm import parallel_builds
from orchestrion.vm.load_progress import BuildProgress, LoadProgress
from orchestrion.vm.load_times import STAGES

TEXT = """
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.exponential %0 : tensor<4x4xf32>
  %2 = stablehlo.dot %1, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
"""
Told = tuple[str, int, int]


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


def test_stages_are_told_in_order_and_parts_are_counted() -> None:
    told: list[Told] = []
    with vm.load(module(), "reference", progress=lambda *one: told.append(one)) as program:
        row = program.module.programs[program.ordinal]
        count = row.executables_end - row.executables_start
    assert {stage for stage, *_ in told} <= set(STAGES)
    stages = [stage for stage, _ in groupby(stage for stage, *_ in told)]
    assert stages == ["read", "device", "verify", "initializers", "build", "initializers", "warm_up"]
    assert [one for one in told if one[0] == "build"] == [("build", done, count) for done in range(count + 1)]


@pytest.mark.parametrize("device", ["opencl", "vulkan"])
def test_kernels_that_a_driver_compiles_are_counted(device: str) -> None:
    try:
        find_device(device)
    except DriverUnavailable as error:
        pytest.skip(str(error))
    told: list[Told] = []
    with vm.load(module(), device, allow_native_code=True, build="lazy", progress=lambda *one: told.append(one)) as it:
        assert not [one for one in told if one[0] in ("build", "warm_up")], "a lazy load builds nothing"
        told.clear()
        it.warm_up(lambda *one: told.append(one))
    builds = [one[1:] for one in told if one[0] == "build"]
    assert builds == [(done, len(builds) - 1) for done in range(len(builds))] and len(builds) > 1
    kernels = [one[1:] for one in told if one[0] == "warm_up"]
    assert kernels == [(done, len(kernels)) for done in range(1, len(kernels) + 1)]


def test_nothing_of_it_is_kept_or_pickled() -> None:
    told: list[Told] = []
    with vm.load(module(), "reference", progress=lambda *one: told.append(one)) as program:
        del told[:]
        pickle.loads(pickle.dumps(program)).close()
        program.create_context().close()
        program.warm_up()
    assert not told


def test_modules_that_are_imported_are_told_of() -> None:
    told: list[Told] = []
    with vm.load(module(), modules={"other": module()}, progress=lambda *one: told.append(one)):
        assert [stage for stage, *_ in told].count("read") == 2


@pytest.mark.parametrize("stage", ["read", "device", "verify", "initializers", "build", "warm_up"])
@pytest.mark.parametrize("error", [ValueError, vm.VmError, KeyboardInterrupt])
def test_what_the_callback_raises_ends_the_load(stage: str, error: type[BaseException]) -> None:
    told = []

    def tell(now: str, done: int, count: int) -> None:
        told.append(now)
        if now == stage:
            raise error("enough")

    with pytest.raises(error, match="enough"):
        vm.load(module(), "reference", progress=tell)
    assert told[-1] == stage and told.count(stage) == 1, "nothing is told after it"


def test_an_error_in_a_thread_that_builds_is_that_of_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReferenceDevice, "compiles", True)
    monkeypatch.setattr(parallel_builds.os, "cpu_count", lambda: 2)
    raised = threading.Event()
    main = threading.get_ident()
    real = ReferenceDevice.create_executable

    def create(this: Any, *arguments: Any) -> Any:
        if threading.get_ident() == main:
            assert raised.wait(20)
        return real(this, *arguments)

    def tell(stage: str, done: int, count: int) -> None:
        if threading.get_ident() != main:
            raised.set()
            raise ValueError("enough")

    monkeypatch.setattr(ReferenceDevice, "create_executable", create)
    driver = ReferenceDriver()
    with (
        Device.of(driver.open(driver.devices()[0]), policy=Policy(allow_native_code=True)) as device,
        pytest.raises(ValueError, match="enough"),
    ):
        vm.load(module(), device, progress=tell)


def test_counts_do_not_fall() -> None:
    """Two threads that have each counted one, in the wrong order."""
    told: list[Told] = []
    progress = LoadProgress(lambda *one: told.append(one))
    tell: Callable[[int, int], None] = progress.parts_of("warm_up")
    for done in (2, 1, 3):
        tell(done, 3)
    assert told == [("warm_up", 2, 3), ("warm_up", 3, 3)]
    told.clear()
    builds = BuildProgress(progress, 2)
    for ordinal in (1, 1, 0):
        builds.built(ordinal)
    assert [done for _, done, _ in told] == [0, 1, 1, 2], "an executable that is asked for again counts once"
