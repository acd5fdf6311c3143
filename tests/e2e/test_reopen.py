"""`Program.reopen`: a program whose device was lost says so, and is loaded again with all that it was loaded with."""

import functools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failing import Device, failing

from orchestrion import compiler, vm
from orchestrion.hal.errors import DeviceLost as HalDeviceLost
from orchestrion.hal.registry import open_device
from orchestrion.schema.assembler import assemble
from orchestrion.schema.writer import write
from orchestrion.vm.errors import CallerError, DeviceLost, VmError

DEVICES = ("reference", "opencl", "vulkan")
PATIENCE = 20.0
X = np.array([1, 2, 3, 4], np.float32)
W = np.array([5, 6, 7, 8], np.float32)
TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = stablehlo.constant dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %w : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
COUNTER = """
export @count
program @reference profile "reference" {
  global @calls : i32 mutable
  func @count () -> i32 {
    %i0 = global.load.i32 @calls
    %i1 = i32.const 1
    %i0 = i32.add %i0, %i1
    global.store.i32 %i0, @calls
    return (%i0)
  }
  entry @count
}
"""
IMPORTING = """
func.func private @encoder.main(tensor<4xf32>) -> tensor<4xf32>
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @encoder.main(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


@functools.cache
def module() -> bytes:
    return compiler.compile(TEXT)


def lose(device: Device, program: vm.Program) -> None:
    """The next call of the driver loses the device."""
    device.faults.arm(1, "lost")
    with pytest.raises(DeviceLost, match="on purpose"):
        program.main(X)
    assert device.faults.disarm()


def is_right(program: Any) -> None:
    np.testing.assert_array_equal(program.main(X), X * W)
    np.testing.assert_array_equal(program.main.submit(X + 1).result(PATIENCE), (X + 1) * W)


@pytest.mark.parametrize("name", DEVICES)
def test_reopen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing(name, module, monkeypatch) as device:
        _reopened(device)
        device.is_clean()


def _reopened(device: Device) -> None:
    program = device.load()
    is_right(program)
    function, array, context = program.main, program.put(X), program.create_context()
    lose(device, program)
    assert program.reopen() is program
    device.keep(program)
    is_right(program)
    is_right(program.create_context())
    for use in (
        lambda: function(X),
        lambda: function.submit(X),
        lambda: program.main(array),
        lambda: context.main(X),
        array.to_numpy,
    ):
        with pytest.raises(DeviceLost, match="on purpose|when that was lost; put it again"):
            use()
    np.testing.assert_array_equal(program.main(program.put(X)), X * W)
    assert program.reopen() is program, "a program that is not lost stays as it is"
    is_right(program)
    context.close()
    program.close()
    with pytest.raises(CallerError, match="the program is closed"):
        program.reopen()


@pytest.mark.parametrize("name", DEVICES)
def test_every_use_says_that_the_device_is_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing(name, module, monkeypatch) as device:
        _lost(device)
        device.is_clean()


def _lost(device: Device) -> None:
    program = device.load()
    array = program.put(X)
    lose(device, program)
    for use in (
        lambda: program.main(X),
        lambda: program.main.submit(X).result(PATIENCE),
        lambda: program.main(X, out=np.empty(4, np.float32)),
        lambda: program.put(X),
        lambda: program.empty((4,), np.float32),
        lambda: program.create_context(),
        lambda: np.asarray(array),
    ):
        with pytest.raises(DeviceLost, match=r"was lost before: .* on purpose.*; program\.reopen\(\)"):
            use()
    assert program.statistics()["load"]["initializers"] > 0
    program.close()


@pytest.mark.parametrize("name", DEVICES)
def test_futures_fail_with_the_loss(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those under way fail when the device is lost, those that wait for a fence when the program is reopened."""
    with failing(name, module, monkeypatch) as device:
        program = device.load()
        is_right(program)
        gate, context = vm.Fence(), program.create_context()
        waiting = program.main.submit(X, wait=[gate])
        device.faults.arm(1, "lost behind it", only="BackendQueue.submit")
        running = context.main.submit(X)
        assert isinstance(running.exception(PATIENCE), DeviceLost)
        assert device.faults.disarm()
        assert not waiting.done()
        program.reopen()
        device.keep(program)
        assert isinstance(waiting.exception(PATIENCE), DeviceLost)
        gate.signal()
        is_right(program)
        context.close()
        program.close()
        device.is_clean()


@pytest.mark.parametrize("name", DEVICES)
def test_many_threads_reopen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One loads, the others wait for it; calls of all are right afterwards."""
    with failing(name, module, monkeypatch) as device:
        program = device.load()
        lose(device, program)
        wrong: list[BaseException] = []

        def work() -> None:
            try:
                for _ in range(5):
                    try:
                        is_right(program)
                    except DeviceLost:
                        program.reopen()
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert device.faults.opened == 2, "one loss, one more device"
        device.keep(program)
        program.close()
        device.is_clean()


@pytest.mark.parametrize("name", DEVICES)
def test_every_call_of_the_driver_fails_while_reopening(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program stays lost, and is reopened later."""
    with failing(name, module, monkeypatch) as device:
        program = device.load()
        for number in range(1, 500):
            lose(device, program)
            device.faults.arm(number, "lost")
            try:
                program.reopen()
            except (VmError, HalDeviceLost) as error:
                assert "on purpose" in str(error)
                with pytest.raises(DeviceLost):
                    program.main(X)
            hit = device.faults.disarm()
            program.reopen()
            device.keep(program)
            is_right(program)
            if not hit:
                break
        program.close()
        device.is_clean()


def test_with_the_options_of_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that is gone, limits, and profiling: as they were."""
    path = tmp_path / "module.fb"
    path.write_bytes(module())
    with failing("reference", module, monkeypatch) as device:
        program = vm.load(path, "reference", fuel=1000, memory=1 << 20, deadline=50, depth=7, profiling=True)
        device.keep(program)
        path.unlink()
        limits = program.context.limits
        lose(device, program)
        device.keep(program.reopen())
        assert program.context.limits == limits
        is_right(program)
        assert len(program.profile().rows("main")) == 1
        program.close()
        device.is_clean()


def test_parameters_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Values that were found once are used again, though their file is gone; what adapters change is charged again."""
    file = tmp_path / "w.safetensors"
    outside = compiler.compile(TEXT, parameters=file)
    with failing("reference", lambda: outside, monkeypatch) as device:
        program = device.load(parameters=file)
        is_right(program)
        file.unlink()
        lose(device, program)
        device.keep(program.reopen())
        is_right(program)
        program.close()
        device.is_clean()


def test_state_of_contexts_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutable globals have their initial values again."""
    with failing("reference", lambda: write(assemble(COUNTER)), monkeypatch) as device:
        program = device.load()
        assert [program.count() for _ in range(3)] == [1, 2, 3]
        program.device.device_state.lose(HalDeviceLost("on purpose"))
        device.keep(program.reopen())
        assert program.count() == 1
        program.close()
        device.is_clean()


def test_a_device_that_the_caller_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    with failing("reference", module, monkeypatch) as device:
        opened = open_device("reference")
        program = vm.load(module(), opened)
        device.keep(program)
        lose(device, program)
        with pytest.raises(CallerError, match=r"open reference again and pass it: program.reopen\(device\)"):
            program.reopen()
        with pytest.raises(HalDeviceLost, match="device reference was lost before"):
            program.reopen(opened)
        with open_device("null") as other, pytest.raises(CallerError, match="cannot be reopened on null"):
            program.reopen(other)
        opened.close()
        with open_device("reference") as again:
            program.reopen(again)
            device.keep(program)
        is_right(program)
        program.close()
        device.is_clean()


def test_with_imported_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that the caller loaded is reopened by the caller, first; one that was loaded with it comes with it."""
    importing = compiler.compile(IMPORTING)
    with failing("reference", module, monkeypatch) as device:
        encoder = device.load()
        program = vm.load(importing, modules={"encoder": encoder})
        np.testing.assert_array_equal(program.twice(X), 2 * X * W)
        encoder.device.device_state.lose(HalDeviceLost("on purpose"))
        with pytest.raises(DeviceLost):
            program.twice(X)
        with pytest.raises((DeviceLost, HalDeviceLost), match="reference was lost before: on purpose"):
            program.reopen()
        device.keep(encoder.reopen())
        program.reopen()
        np.testing.assert_array_equal(program.twice(X), 2 * X * W)
        program.close()
        encoder.close()
        device.is_clean()

        program = vm.load(importing, "reference", modules={"encoder": module()})
        device.keep(program)
        program.device.device_state.lose(HalDeviceLost("on purpose"))
        device.keep(program.reopen())
        np.testing.assert_array_equal(program.twice(X), 2 * X * W)
        program.close()
        device.is_clean()
