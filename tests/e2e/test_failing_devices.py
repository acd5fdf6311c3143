"""Drivers that fail, call by call, on every device: a named error for whoever is concerned, nothing lost, nothing left.

The n-th call of the driver fails, for every n that there is, in each thing that a program does. After an error the
program works; after a loss of the device it says so until it is reopened. No result is wrong, and nothing hangs.
"""

import functools
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failing import Device, failing
from faults import ENDS, INTERFACES, KINDS, NO_CALL, calls, methods

from orchestrion import compiler, vm
from orchestrion.hal import errors
from orchestrion.hal.errors import HalError
from orchestrion.hal.lost import LostDevice, LostQueue
from orchestrion.hal.semaphore import Fence
from orchestrion.vm.errors import DeviceError, DeviceLost, DeviceOutOfMemory, VmError, WaitFailed

DEVICES = ("reference", "opencl", "opencl without shared memory", "vulkan")
X = np.array([1, 2, 3, 4], np.float32)
W = np.array([5, 6, 7, 8], np.float32)
FUNCTIONS = {
    "main": """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %w = stablehlo.constant dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %w : tensor<4xf32>
  %1 = stablehlo.dot %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %0, %1 : tensor<4xf32>, tensor<f32>
}""",
    "rows": """
func.func @rows(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.add %x, %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}""",
    "until": """
func.func @until(%x: tensor<4xf32>, %most: tensor<f32>) -> tensor<4xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.while(%i = %x) : tensor<4xf32>
   cond {
    %sum = stablehlo.reduce(%i init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %less = stablehlo.compare LT, %sum, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  } do {
    %next = stablehlo.multiply %i, %two : tensor<4xf32>
    stablehlo.return %next : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}""",
}
PATIENCE = 20.0
#: what callers of a program get for an error of the HAL; of the runtime itself for those that may come on the way
PUBLIC_ERRORS: dict[type[HalError], Any] = {
    errors.DeviceLost: DeviceLost | WaitFailed,
    errors.DeviceOutOfMemory: DeviceOutOfMemory | WaitFailed,
    errors.InternalError: DeviceError | WaitFailed,
}
#: this kind is swept by the test of totality
SWEPT = "no memory twice"
#: call of a driver -> the test that makes it fail, where that is not the one of totality
ELSEWHERE = {
    "BackendBuffer.map_file": "test_mapping_packed_weights_fails",
    "BackendDevice.trial_build": "test_a_build_in_a_helper_process_fails",
    "BackendQueue.take_timings": "test_profiling_fails",
}
#: more calls of a driver than anything here makes
MAX_CALLS = 2000


@functools.cache
def module(*names: str) -> bytes:
    """A module of these functions, by default of all."""
    return compiler.compile("".join(FUNCTIONS[name] for name in names or FUNCTIONS))


def check(results: Any, x: Any) -> None:
    first, second = results
    np.testing.assert_array_equal(np.asarray(first), x * W)
    np.testing.assert_array_equal(np.asarray(second), (x * W) @ (x * W))


def call(program: vm.Program) -> None:
    check(program.main(X), X)


def submit(program: vm.Program) -> None:
    futures = [program.main.submit(X + i) for i in range(3)]
    for future in futures:
        future.exception(PATIENCE)
    for i, future in enumerate(futures):
        check(future.result(), X + i)


def resident(program: vm.Program) -> None:
    check(program.main(program.put(X), out=(program.empty((4,), np.float32), None)), X)


def chained(program: vm.Program) -> None:
    fence = vm.Fence()
    first = program.main.submit(X, wait=[fence])
    second = program.main.submit(X + 1, wait=[first], signal=[None, vm.Fence()])
    fence.signal()
    first.exception(PATIENCE), second.exception(PATIENCE)
    check(first.result(), X)
    check(second.result(), X + 1)


def sizes(program: vm.Program) -> None:
    for count in (1, 3):
        x = np.ones((count, 4), np.float32)
        np.testing.assert_array_equal(program.rows(x), x + x)


def loop(program: vm.Program) -> None:
    np.testing.assert_array_equal(program.until(X, np.float32(75)), X * 8)


def further(program: vm.Program) -> None:
    context = program.create_context()
    try:
        check(context.main(X), X)
    finally:
        context.close()


def front(program: vm.Program) -> None:
    """What programs do not do: recordings, semaphores and transfers by hand."""
    with program.device.share() as device:
        page = np.ones(8192, np.uint8)[: (1 << 12)]
        buffer, other = device.allocator.allocate(256), device.allocator.allocate(256)
        device.allocator.import_host(page)
        native = buffer.native
        if native is not None:
            device.allocator.import_buffer(native.handle, 128, native.offset).release()
        commands = device.create_command_buffer(1)
        commands.fill(0, 0, 256, bytes([7]))
        commands.barrier()
        commands.copy(0, 0, other, 0, 128)
        if device.info.control_flow:  # a loop that does not turn, and a branch in it
            no = device.allocator.allocate(4)
            commands.begin_loop(no, 0)
            commands.begin_branch(no, 0)
            commands.next_arm()
            commands.end()
            commands.end()
        commands.finish()
        buffer.write(np.zeros(256, np.uint8))
        device.queue.execute(commands, (buffer,))
        semaphore = device.create_semaphore()
        semaphore.signal(1)
        device.queue.submit(commands, (buffer,), Fence([(semaphore, 1)]), Fence([(semaphore, 2)]))
        semaphore.wait(2, PATIENCE)
        if device.info.driver == "opencl":
            import pyopencl as cl

            event = cl.UserEvent(device.native.context)
            imported = device.import_semaphore(event)
            imported.signal(1)
            imported.release()
            memory = cl.Buffer(device.native.context, cl.mem_flags.READ_WRITE, 256)
            device.allocator.import_buffer(memory, 256).release()
        device.queue.wait_idle()
        out = np.empty(128, np.uint8)
        other.read(out)
        assert (out == 7).all()
        for handle in (buffer, other, commands, semaphore):
            handle.release()


ACTIONS: dict[str, Callable[[vm.Program], None]] = {
    "call": call,
    "submit": submit,
    "device arrays": resident,
    "chained": chained,
    "sizes": sizes,
    "loop": loop,
    "context": further,
    "front": front,
}
#: action -> the function that it calls beside or instead of `main`
CALLED = {"sizes": "rows", "loop": "until"}


def attempt(action: Callable[[], object], device: Device, number: int, kind: str, only: str = "") -> tuple[str, bool]:
    """The call that failed, empty if none did, and whether the failure was raised. Only that one may be."""
    device.settle()
    faults = device.faults
    faults.arm(number, kind, only)
    raised = False
    try:
        action()
    except (VmError, HalError) as error:
        assert "on purpose" in str(error), error
        assert isinstance(error, HalError | PUBLIC_ERRORS[KINDS[kind].error]), repr(error)
        raised = True
    return faults.disarm(), raised


def is_usable(device: Device, program: vm.Program, lost: bool) -> None:
    """It works, or says that it is lost and works once it is reopened. `lost`: it has said so."""
    if program.device.device_state.lost is None:
        assert not lost
        call(program)
        return
    for use in (call, submit, resident, further):
        with pytest.raises(DeviceLost, match="on purpose"):
            use(program)
    assert program.reopen() is program
    device.keep(program)
    call(program)


def sweep_calls(device: Device, kind: str) -> None:
    """Everything that a loaded program does, with each call of the driver failing once.

    A program has the functions that it needs: losses of the device build all executables again.
    """
    for what, action in ACTIONS.items():
        program = device.load(module(*dict.fromkeys(["main", CALLED.get(what, "main")])))
        for number in range(1, MAX_CALLS):
            hit, raised = attempt(functools.partial(action, program), device, number, kind)
            is_usable(device, program, raised and KINDS[kind].error is errors.DeviceLost)
            if not hit:
                break
        else:
            pytest.fail(f"{what}: {kind} came {MAX_CALLS} times and did not come to an end")
        program.close()
    device.is_clean()


def sweep_loads(device: Device, kind: str, **options: Any) -> None:
    """Loading, a first call, its profile, and closing, with each call of the driver failing once."""

    def use() -> None:
        program = device.load(**options)
        try:
            call(program)
            if options.get("profiling"):
                program.profile()
        finally:
            program.close()

    for number in range(1, MAX_CALLS):
        hit, _ = attempt(use, device, number, kind)
        device.is_clean()
        if not hit:
            return
    pytest.fail(f"{kind} came {MAX_CALLS} times and did not come to an end")


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != SWEPT])
@pytest.mark.parametrize("name", DEVICES)
def test_the_nth_call_of_the_driver_fails(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing(name, module, monkeypatch) as device:
        sweep_calls(device, kind)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != SWEPT])
@pytest.mark.parametrize("name", DEVICES)
def test_loading_and_closing_fail(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing(name, module, monkeypatch) as device:
        sweep_loads(device, kind)


def fails_alone(device: Device, name: str) -> bool:
    """Whether some action makes this call, which fails: in a sweep the reaper's calls may be counted in its place."""
    program = device.load()
    hits = []
    for action in ACTIONS.values():
        hit, _ = attempt(lambda action=action: action(program), device, 1, "refused", name)  # type: ignore[misc]
        is_usable(device, program, lost=False)
        hits.append(hit)
    program.close()
    device.is_clean()
    return any(hits)


@pytest.mark.long
def test_every_call_of_a_driver_fails_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: set[str] = set()
    for name in DEVICES:
        with failing(name, module, monkeypatch) as device:
            sweep_calls(device, SWEPT)
            sweep_loads(device, SWEPT)
            failed |= set(device.faults.failed)
            failed |= {name for name in calls() - failed - set(ELSEWHERE) if fails_alone(device, name)}
        monkeypatch.undo()
    assert calls() - failed == set(ELSEWHERE)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["refused", "lost"])
@pytest.mark.parametrize("name", ["reference", "opencl", "vulkan"])
def test_profiling_fails(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing(name, module, monkeypatch) as device:
        sweep_loads(device, kind, profiling=True)
        assert device.faults.failed["BackendQueue.take_timings"]


@pytest.mark.parametrize("kind", ["refused", "lost"])
def test_a_build_in_a_helper_process_fails(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing("vulkan", module, monkeypatch) as device:
        device.faults.arm(1, kind, only="BackendDevice.trial_build")
        with pytest.raises((VmError, HalError), match="BackendDevice.trial_build fails on purpose"):
            device.load(build_deadline=60)
        assert device.faults.disarm()
        device.is_clean()


@functools.cache
def packed() -> bytes:
    """A product whose constant the program of `cpu` packs at load, because that of `reference` reads it as it is."""
    weights = np.arange(320 * 72, dtype=np.float32).tobytes().hex().upper()
    return compiler.compile(
        f"""func.func @main(%x: tensor<64x320xf32>) -> tensor<64x72xf32> {{
  %w = stablehlo.constant dense<"0x{weights}"> : tensor<320x72xf32>
  %0 = stablehlo.dot %x, %w : (tensor<64x320xf32>, tensor<320x72xf32>) -> tensor<64x72xf32>
  return %0 : tensor<64x72xf32>
}}""",
        targets=["cpu", "reference"],
    )


@pytest.mark.parametrize("kind", ["refused", "lost"])
def test_mapping_packed_weights_fails(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))
    with failing("cpu", packed, monkeypatch) as device:
        device.load().close()  # stores the packed weights
        device.faults.arm(1, kind, only="BackendBuffer.map_file")
        with pytest.raises((VmError, HalError), match="BackendBuffer.map_file fails on purpose"):
            device.load()
        assert device.faults.disarm()
        device.is_clean()


@pytest.mark.parametrize("interface", INTERFACES[:2])
def test_a_lost_device_refuses_every_method(interface: type, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing("reference", module, monkeypatch) as device:
        program = device.load()
        state = program.device.device_state
        state.lose(errors.DeviceLost("on purpose"))
        lost: Any = {"BackendDevice": state.backend, "BackendQueue": state.backend.queue}[interface.__name__]
        assert isinstance(lost, LostDevice | LostQueue)
        for name in methods(interface):
            count = len(signature(getattr(lost, name)).parameters)
            with pytest.raises(errors.DeviceLost, match="device reference was lost before: on purpose"):
                getattr(lost, name)(*[None] * count)
        program.close()
        device.is_clean()


def test_what_stands_in_the_tables_exists() -> None:
    assert calls() >= ENDS | set(ELSEWHERE)
    assert all(reason for reason in NO_CALL.values())
    assert all(name in globals() for name in ELSEWHERE.values())
