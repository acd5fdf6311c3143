"""Executables built side by side at load: each once, errors where they were, limits as they were."""

import functools
import threading
import time
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.device import Device
from orchestrion.hal.errors import InternalError
from orchestrion.hal.policy import Policy
from orchestrion.hal.reference.device import ReferenceDevice
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.vm import parallel_builds

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
TEXT = """
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.dot %1, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = stablehlo.exponential %2 : tensor<4x4xf32>
  %4 = stablehlo.dot %3, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}
"""


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT, targets=["reference"])


class Builds:
    """A reference device that says that it compiles, and what it built, in which threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[int] = []
        self.before: Any = lambda: None
        real = ReferenceDevice.create_executable

        def create(this: Any, *arguments: Any) -> Any:
            self.threads.append(threading.get_ident())
            self.before()
            return real(this, *arguments)

        monkeypatch.setattr(ReferenceDevice, "compiles", True)
        monkeypatch.setattr(ReferenceDevice, "create_executable", create)
        monkeypatch.setattr(parallel_builds.os, "cpu_count", lambda: 2)

    def load(self, **options: Any) -> vm.Program:
        driver = ReferenceDriver()
        device = Device.of(driver.open(driver.devices()[0]), policy=Policy(allow_native_code=True))
        try:
            return vm.load(module(), device, **options)
        finally:
            device.close()


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    return Builds(monkeypatch)


def test_two_at_a_time(builds: Builds) -> None:
    """The first two builds wait for each other, so neither ends before both have begun."""
    meeting = threading.Barrier(2, timeout=20)
    builds.before = lambda: meeting.wait() if len(builds.threads) <= 2 else None
    program = builds.load()
    count = len(program.module.executables)
    assert count >= 2 and len(builds.threads) == count == program.statistics()["load"]["executables_created"]
    assert len(set(builds.threads)) == 2
    assert [build.shared for build in program._base.facts.builds.values()] == [False] * count
    assert np.isfinite(program.main(X)).all()
    program.close()


def test_a_build_that_fails(builds: Builds) -> None:
    """Its error is the load's, and nothing is left; the next load builds all."""

    def fail() -> None:
        raise InternalError("broken on purpose")

    builds.before = fail
    with pytest.raises(vm.errors.VmError, match="broken on purpose"):
        builds.load()
    assert len(builds.threads) <= 2
    builds.before = lambda: None
    builds.load().close()


def test_an_initializer_that_fails_while_a_helper_builds(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is closed behind the build, not under it."""
    building, closing = threading.Event(), threading.Event()
    order: list[str] = []
    main = threading.get_ident()
    real = ReferenceDevice.close

    def before() -> None:
        if threading.get_ident() == main:
            assert building.wait(20)
            closing.set()
            raise InternalError("broken on purpose")
        building.set()
        assert closing.wait(20)
        time.sleep(0.05)
        order.append("built")

    def close(this: Any) -> None:
        order.append("closed")
        real(this)

    builds.before = before
    monkeypatch.setattr(ReferenceDevice, "close", close)
    with pytest.raises(vm.errors.VmError, match="broken on purpose"):
        vm.load(module(), "reference", allow_native_code=True)
    assert order == ["built", "closed"]


@pytest.mark.parametrize("options", [{"fuel": 1e9}, {"load_limits": vm.Limits(fuel=1e9)}])
def test_with_a_limit_one_after_the_other(builds: Builds, options: dict[str, Any]) -> None:
    builds.load(**options).close()
    assert {*builds.threads} == {threading.get_ident()}


def test_the_same_code_is_built_once(builds: Builds) -> None:
    """Threads that ask for one executable at the same time; after a failure the next one builds it."""
    program = builds.load()
    device, row = program.device, program.module.executables[0]
    chosen = parallel_builds.choose(program._linked, device, 0)
    device.executables.clear()
    builds.threads.clear()
    failures = [InternalError("broken on purpose")]
    errors: list[Exception] = []

    def before() -> None:
        if failures:
            raise failures.pop()

    def get() -> None:
        try:
            parallel_builds.build(program._linked, device, 0, chosen)
        except InternalError as error:
            errors.append(error)

    builds.before = before
    threads = [threading.Thread(target=get) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert row is not None and len(errors) == 1 and len(builds.threads) == 2
    program.close()
