"""Features of the OpenCL driver alone: memory that is not shared, recordings, building, cached binaries."""

from __future__ import annotations

import logging
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from orchestrion.hal.backend import Binding, DeviceInfo, Entry, MemoryUse
from orchestrion.hal.cts import catalogue
from orchestrion.hal.cts.rig import Rig
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable, OutOfMemory
from orchestrion.hal.opencl.driver import OpenCLDriver
from orchestrion.hal.opencl.heaps import KINDS, Kind, Machine, machine_of
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.schema.errors import ModuleError

if TYPE_CHECKING:
    from orchestrion.hal.opencl.device import OpenCLDevice

#: seconds that PoCL's threads may take to release what they ran
PATIENCE = 10.0
NOTHING = (Entry("f", (("write", 4),), 0, (1, 1, 1)),)
SOURCE = "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void f(__global uint *out) { out[0] = %d; }"


@pytest.fixture(autouse=True)
def _opencl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))
    try:
        OpenCLDriver().devices()
    except DriverUnavailable as error:
        pytest.skip(str(error))


def opencl() -> Device:
    return open_device("opencl", policy=Policy(allow_native_code=True))


class PlainDriver(OpenCLDriver):
    """The driver without features that devices may lack: shared memory, command buffers, cached builds."""

    def __init__(
        self, machine: Machine | None = None, recorded: bool | None = None, builds_kept: bool | None = None
    ) -> None:
        self._unused = {"machine": machine, "recorded": recorded, "builds_kept": builds_kept}

    def open(self, info: DeviceInfo) -> OpenCLDevice:
        from orchestrion.hal.opencl.device import OpenCLDevice
        from orchestrion.hal.opencl.driver import find

        return OpenCLDevice(info, find()[0][info.index], **self._unused)

    def device(self) -> OpenCLDevice:
        return self.open(self.devices()[0])


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("machine", [Machine.DISCRETE, Machine.UNIFIED])
@pytest.mark.parametrize("case", catalogue.CASES)
def test_conformance_without_shared_memory(case: str, machine: Machine) -> None:
    driver = PlainDriver(machine)
    catalogue.run_on(case, driver, driver.devices()[0])


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("machine", [None, Machine.DISCRETE])
@pytest.mark.parametrize("case", catalogue.CASES)
def test_conformance_without_command_buffers(case: str, machine: Machine | None) -> None:
    driver = PlainDriver(machine, recorded=False)
    catalogue.run_on(case, driver, driver.devices()[0])


def test_a_build_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    number = id(capfd)  # PoCL caches by the text
    source = SOURCE % number + f" int g{number}(int x) {{ int unused; return x != x; }}"
    for _ in range(2):  # from the source, from the cache
        with opencl() as device:
            device.create_executable("opencl-c", memoryview(source.encode()), NOTHING).release()
    assert capfd.readouterr() == ("", "")


def test_memory_without_sharing_is_not_mapped() -> None:
    with Device.of(PlainDriver(machine=Machine.DISCRETE).device()) as device:
        buffer = device.allocator.allocate(16)
        assert buffer.host is None and buffer.map() is None
        buffer.release()


@pytest.mark.parametrize(
    ("host_unified", "fine_grain", "machine", "kind"),
    [
        (True, True, Machine.SHARED, Kind.SHARED),  # PoCL, Intel's processors and newer GPUs, AMD's APUs
        (True, False, Machine.UNIFIED, Kind.HOST),  # Mali and Adreno of OpenCL 1.2, older Intel GPUs
        (False, False, Machine.DISCRETE, Kind.DEVICE),  # NVIDIA
        (False, True, Machine.DISCRETE, Kind.DEVICE),  # AMD's cards, whose fine-grain memory is the host's
    ],
)
def test_which_kind_of_memory(host_unified: bool, fine_grain: bool, machine: Machine, kind: Kind) -> None:
    assert machine_of(host_unified, fine_grain) is machine
    assert KINDS[machine] == dict.fromkeys(MemoryUse, kind)


def test_transfers_go_through_pinned_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also transfers larger than all chunks together. The chunks are allocated once, and no other host memory is."""
    from orchestrion.hal.opencl import staging

    made: list[int] = []
    monkeypatch.setattr(staging, "CHUNK_BYTES", 1 << 20)
    real = staging.Staging._make
    monkeypatch.setattr(staging.Staging, "_make", lambda self: (made.append(1), real(self))[1])
    with Device.of(PlainDriver(machine=Machine.DISCRETE).device()) as device:
        data = np.random.default_rng(0).integers(0, 256, (9 << 20) + 5, np.uint8)
        buffer, out = device.allocator.allocate(data.size, MemoryUse.CONSTANT), np.empty_like(data)
        tracemalloc.start()
        for _ in range(3):
            data[::4096] += 1
            buffer.write(data)
            buffer.read(out)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        np.testing.assert_array_equal(out, data)
        assert made == [1] and peak < 1 << 20
        buffer.write(data[:100], 7)
        buffer.read(out[:200])
        np.testing.assert_array_equal(out[7:107], data[:100])
        buffer.release()


def test_shared_memory_is_mapped() -> None:
    with opencl() as device:
        if Machine.SHARED.value not in device.info.notes:
            pytest.skip(f"{device.info.name} shares no memory with the host")
        buffer = device.allocator.allocate(16)
        assert buffer.map() is not None
        buffer.release()


# recordings


@pytest.fixture(params=[None, Machine.DISCRETE], ids=["shared", "copied"])
def recording_device(request: pytest.FixtureRequest) -> Iterator[OpenCLDevice]:
    """A device that records command buffers."""
    from orchestrion.hal.opencl import api, driver

    why_not = api.why_no_command_buffers(driver.find()[0][0])
    if why_not:
        pytest.skip(why_not)
    opened = PlainDriver(machine=request.param).device()
    yield opened
    opened.close()


ADD = """__kernel __attribute__((reqd_work_group_size(4, 1, 1))) 
void add(__global const uint *x, __global uint *y, uint n) { y[get_global_id(0)] = x[get_global_id(0)] + n; }"""
ADD_ENTRY = (Entry("add", (("read", 16), ("write", 16)), 1, (4, 1, 1)),)


def buffers(device: OpenCLDevice, count: int, size: int = 16) -> list[Any]:
    made = [device.allocate(size, MemoryUse.ARENA) for _ in range(count)]
    for index, buffer in enumerate(made):
        put(device, buffer, np.full(size, index, np.uint8))
    return made


def put(device: OpenCLDevice, buffer: Any, data: np.ndarray) -> None:
    if buffer.host is None:
        device.queue.write(buffer, 0, data)
        device.queue.wait_idle()
    else:
        buffer.host[:] = data


def words(device: OpenCLDevice, buffer: Any) -> list[int]:
    out = np.empty(buffer.size, np.uint8)
    if buffer.host is None:
        device.queue.read(buffer, 0, out)
    else:
        out[:] = buffer.host
    return [int(word) for word in out.view("<u4")]


def twice_added(device: OpenCLDevice, middle: Any) -> tuple[Any, Any]:
    """An executable and a recording with two slots. It writes the first plus 3 to the second, through `middle`."""
    executable = device.create_executable("opencl-c", memoryview(ADD.encode()), ADD_ENTRY)
    commands = device.create_command_buffer(2)
    for source, target, n in ((0, middle, 1), (middle, 1, 2)):
        bindings = [Binding(source, 0, 16), Binding(target, 0, 16)]
        commands.dispatch(executable, 0, (1, 1, 1), bindings, n.to_bytes(4, "little"))
    commands.finish()
    return executable, commands


def release(*things: Any) -> None:
    for thing in things:
        thing.release()


def test_command_buffers_are_kept_by_table(recording_device: OpenCLDevice) -> None:
    """Each has its own kernels, so recording for another table does not change the earlier ones."""
    from orchestrion.hal.opencl import command_buffer
    from orchestrion.hal.opencl.buffer import SharedBuffer

    device, most = recording_device, command_buffer.RECORDINGS
    middle, source, *targets = buffers(device, most + 3)
    executable, commands = twice_added(device, middle)
    for target in targets:
        device.queue.execute(commands, [source, target])
        assert words(device, target) == [0x01010104] * 4
    if device._api.mutable_dispatch and isinstance(middle, SharedBuffer):
        most = command_buffer.MUTABLE_RECORDINGS
    assert len(commands._recordings) == most, "the one used longest ago went"
    kept = dict(commands._recordings)
    for target in targets[-most:]:
        put(device, target, np.zeros(16, np.uint8))
        device.queue.execute(commands, [source, target])
        assert words(device, target) == [0x01010104] * 4
    assert dict(commands._recordings) == kept, "none was recorded anew"
    release(commands, executable, middle, source, *targets)
    assert all(recording.released for recording in kept.values())


def test_a_batch_may_have_more_tables_than_are_kept(recording_device: OpenCLDevice) -> None:
    """Recordings that are dropped while they run, or that occur twice in the batch, also give the right results."""
    from orchestrion.hal.opencl import command_buffer

    device = recording_device
    middle, source, *targets = buffers(device, 2 * command_buffer.RECORDINGS + 2)
    executable, commands = twice_added(device, middle)
    batch = [(commands, [source, target]) for target in targets]
    batch += [(commands, [target, source]) for target in targets[:2] * 2]
    for _ in range(5):
        put(device, source, np.ones(16, np.uint8))
        device.queue.execute_batch(batch)
        for target in targets:
            assert words(device, target) == [0x01010104] * 4
        assert words(device, source) == [0x01010107] * 4
    assert len(commands._recordings) <= command_buffer.RECORDINGS
    release(commands, executable, middle, source, *targets)


@pytest.fixture
def mutable_device() -> Iterator[OpenCLDevice]:
    """A device that can update the bindings of a command buffer."""
    opened = PlainDriver().device()
    if not opened._api.mutable_dispatch:
        opened.close()
        pytest.skip("the device has no cl_khr_command_buffer_mutable_dispatch of a known version")
    yield opened
    opened.close()


def test_a_recording_is_bound_to_other_tables(mutable_device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the third table on nothing is recorded, and each table gets its own results."""
    device, made = mutable_device, []
    create = device._api.create_command_buffer
    monkeypatch.setattr(
        device._api, "create_command_buffer", lambda *given, **more: made.append(given) or create(*given, **more)
    )
    middle, source, *targets = buffers(device, 40)
    executable, commands = twice_added(device, middle)
    for _ in range(2):
        for target in targets:
            device.queue.execute(commands, [source, target])
    assert len(made) == 2
    assert all(words(device, target) == [0x01010104] * 4 for target in targets)
    assert words(device, source) == [0x01010101] * 4
    release(commands, executable, middle, source, *targets)


def test_a_recording_under_way_is_not_bound_to_another_table(
    mutable_device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestrion.hal.opencl import command_buffer

    device, made = mutable_device, []
    create = device._api.create_command_buffer
    monkeypatch.setattr(
        device._api, "create_command_buffer", lambda *given, **more: made.append(given) or create(*given, **more)
    )
    monkeypatch.setattr(device._api, "is_over", lambda event: False)
    middle, source, *targets = buffers(device, 2 * command_buffer.RECORDINGS)
    executable, commands = twice_added(device, middle)
    device.queue.execute_batch([(commands, [source, target]) for target in targets])
    assert len(made) == len(targets) and len(commands._recordings) == command_buffer.RECORDINGS
    assert all(words(device, target) == [0x01010104] * 4 for target in targets)
    release(commands, executable, middle, source, *targets)


def test_what_cannot_be_bound_is_recorded(mutable_device: OpenCLDevice) -> None:
    """Copies of slots and imported host memory need a new recording."""
    from orchestrion.hal.opencl.recording import MutableRecorded

    device = mutable_device
    middle, source, target, *others = buffers(device, 8)
    executable, commands = twice_added(device, middle)
    memory = np.full(64 + 16, 9, np.uint8)
    start = -memory.ctypes.data % 64
    imported = device.import_host(memory[start : start + 16])
    assert imported is not None
    for table in ([source, target], [imported, target], [source, others[0]], [imported, others[1]]):
        device.queue.execute(commands, table)
        assert words(device, table[1]) == [word + 3 for word in words(device, table[0])]
    assert [type(recording) is MutableRecorded for recording in commands._recordings.values()].count(False) == 2
    copies = device.create_command_buffer(2)
    for offset in (0, 8):
        copies.copy(Binding(0, offset, 8), Binding(1, offset, 8))
    copies.finish()
    for target in others:
        device.queue.execute(copies, [source, target])
        assert words(device, target) == words(device, source)
    release(commands, copies, executable, middle, imported, source, *others)


def test_a_failed_update_leaves_nothing(mutable_device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    device = mutable_device
    middle, source, *targets = buffers(device, 6)
    executable, commands = twice_added(device, middle)
    for target in targets[:2]:
        device.queue.execute(commands, [source, target])
    with monkeypatch.context() as patched:
        for recording in commands._recordings.values():
            call, arguments = recording._binder._call
            recording._binder._call = (lambda *given: -5), arguments
        with pytest.raises(OutOfMemory, match="binding a command buffer to other buffers: OUT_OF_RESOURCES"):
            device.queue.execute(commands, [source, targets[2]])
        patched.undo()
    device.queue.execute(commands, [source, targets[3]])
    assert words(device, targets[3]) == [0x01010104] * 4
    release(commands, executable, middle, source, *targets)


def test_a_recording_goes_with_its_memory_objects(recording_device: OpenCLDevice) -> None:
    """A recording would keep their memory. One that holds only addresses stays, for later buffers at the same
    addresses.
    """
    device = recording_device
    middle, source, target = buffers(device, 3)
    executable, commands = twice_added(device, middle)
    device.queue.execute(commands, [source, target])
    (recording,) = commands._recordings.values()
    holds = target.has_memory_object
    assert (recording in target.holders, recording in source.holders) == (holds, holds)
    target.release()
    assert recording.released == holds and not source.holders
    (again,) = buffers(device, 1)
    device.queue.execute(commands, [source, again])
    assert words(device, again) == [0x01010104] * 4
    release(commands, executable, middle, source, again)
    assert not again.holders


def test_a_kernel_gives_up_its_part_of_a_buffer_that_goes() -> None:
    """A sub-buffer would keep all of the memory, which is no longer charged to anybody."""
    device = PlainDriver(machine=Machine.DISCRETE, recorded=False).device()
    align = device.info.limits.min_binding_alignment
    source, target = buffers(device, 1) + buffers(device, 1, align + 16)
    executable = device.create_executable("opencl-c", memoryview(ADD.encode()), ADD_ENTRY)
    commands = device.create_command_buffer(2)
    commands.dispatch(executable, 0, (1, 1, 1), [Binding(0, 0, 16), Binding(1, align, 16)], b"\x05\0\0\0")
    commands.finish()
    for _ in range(3):
        device.queue.execute(commands, [source, target])
        assert words(device, target)[-4:] == [5] * 4
        whole = target.whole
        if "PoCL" in device.info.version:
            assert whole.reference_count > 1, "the sub-buffer holds it"
        cl_memory = retained(whole)
        target.release()
        end = time.monotonic() + PATIENCE
        while cl_memory.reference_count > 1 and time.monotonic() < end:
            time.sleep(0.01)
        assert cl_memory.reference_count == 1
        (target,) = buffers(device, 1, align + 16)
    release(commands, executable, source, target)
    device.close()


def retained(memory: Any) -> Any:
    """The same memory object with its reference count raised by one."""
    import pyopencl as cl

    return cl.Buffer.from_int_ptr(memory.int_ptr, retain=True)


def test_copies_and_fills_are_recorded(recording_device: OpenCLDevice) -> None:
    """One call into the driver for all of them, also after the buffers in the slots were replaced by others."""
    device = recording_device
    (middle,) = buffers(device, 1, 32)
    commands = device.create_command_buffer(2)
    commands.copy(Binding(0, 4, 8), Binding(middle, 0, 8))
    commands.fill(Binding(middle, 8, 8), b"\x07\x00")
    commands.copy(Binding(middle, 0, 16), Binding(1, 16, 16))
    commands.finish()
    for value in range(3):
        source, target = buffers(device, 2, 32)
        put(device, source, np.full(32, value, np.uint8))
        for _ in range(2):
            device.queue.execute(commands, [source, target])
            assert len(commands.steps([source, target])) == 1
            assert words(device, target)[4:] == [value * 0x01010101] * 2 + [0x00070007] * 2
        release(source, target)
    release(commands, middle)


def test_one_command_is_enqueued(recording_device: OpenCLDevice) -> None:
    source, target = buffers(recording_device, 2)
    commands = recording_device.create_command_buffer(2)
    commands.copy(Binding(0, 0, 16), Binding(1, 0, 16))
    commands.finish()
    recording_device.queue.execute(commands, [source, target])
    assert not commands._recordings and words(recording_device, target) == [0] * 4
    release(commands, source, target)


def test_a_failed_recording_leaves_nothing(recording_device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    device = recording_device
    middle, source, target = buffers(device, 3)
    executable, commands = twice_added(device, middle)
    with monkeypatch.context() as patched:
        patched.setattr(device._api.calls, "clFinalizeCommandBufferKHR", lambda handle: -6)
        with pytest.raises(OutOfMemory, match="finishing a command buffer: OUT_OF_HOST_MEMORY"):
            device.queue.execute(commands, [source, target])
    assert not commands._recordings and not target.holders
    device.queue.execute(commands, [source, target])
    assert words(device, target) == [0x01010104] * 4
    release(commands, executable, middle, source, target)


def stated(version: int, capabilities: int = 0x4, queue: int = 0) -> Any:
    """A device that states support for these parts of the extension."""
    return SimpleNamespace(
        extensions="cl_khr_icd cl_khr_command_buffer",
        extensions_with_version=[SimpleNamespace(name="cl_khr_command_buffer", version=version)],
        bits={0x12A9: capabilities, 0x12AA: queue},
    )


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (stated(0x9000), ""),
        (SimpleNamespace(extensions="cl_khr_icd"), "no cl_khr_command_buffer"),
        (stated(0x9005), "cl_khr_command_buffer of version 0.9.5, known are 0.9.0 and 1.0.0"),
        (stated(0x400000, capabilities=0x1), ""),  # 1.0.0, which needs no simultaneous use in an in-order queue
        (stated(0x400000, queue=0x1), "cl_khr_command_buffer needs another kind of queue"),
        (stated(0x9000, capabilities=0x9), "cl_khr_command_buffer without simultaneous use"),
        (stated(0x9000, queue=0x1), "cl_khr_command_buffer needs another kind of queue"),
    ],
)
def test_only_a_known_extension_is_used(device: Any, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrion.hal.opencl import api

    monkeypatch.setattr(api, "_device_bits", lambda device, what: device.bits[what])
    assert api.why_no_command_buffers(device) == reason


def test_a_loader_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrion.hal.opencl import api

    old = {"clSetKernelArgMadeUp": ((api.P,), False)}
    monkeypatch.setattr(api, "FUNCTIONS", old)
    with pytest.raises(DriverUnavailable, match="has no clSetKernelArgMadeUp, new in OpenCL 2.0"):
        opencl()


def test_the_device_says_what_calls_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrion.hal.opencl import api

    (note,) = (note for note in OpenCLDriver().devices()[0].notes if note.startswith("calls replay"))
    assert note == "calls replay command buffers" or note.startswith("calls replay enqueue lists (")
    monkeypatch.setattr(api, "COMMAND_BUFFERS", "cl_khr_nobody")
    assert "calls replay enqueue lists (no cl_khr_nobody)" in OpenCLDriver().devices()[0].notes


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"__kernel void f(__global uint *out) { out[0] = undeclared; }", "undeclared"),
        (b"\xff\xfe", "not UTF-8"),
        (b"", "kernel f: INVALID_KERNEL_NAME"),
        ((SOURCE % 1).replace("void f", "void g").encode(), "kernel f: INVALID_KERNEL_NAME"),
        ((SOURCE % 1).replace("uint *out", "uint *out, uint n").encode(), "takes 2 arguments, its entry says 1"),
        ((SOURCE % 1).replace("1, 1, 1", "8, 1, 1").encode(), r"size \(8, 1, 1\), its entry says \(1, 1, 1\)"),
    ],
)
def test_bad_source(source: bytes, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Source that does not build, or does not match its entries, is an error of the module; it contains
    the build log.
    """
    with opencl() as device, pytest.raises(ModuleError, match=words):
        device.create_executable("opencl-c", memoryview(source), NOTHING)


def built(device: Device, value: int) -> int:
    """The value that the built kernel stores."""
    rig = Rig(device, computes=True)
    executable = device.create_executable("opencl-c", memoryview((SOURCE % value).encode()), NOTHING)
    target = rig.zeros(4)
    commands = rig.recording()
    commands.dispatch(executable, 0, (1, 1, 1), [(target, 0, 4)])
    commands.finish()
    rig.run(commands)
    return int(rig.contents(target).view("<u4")[0])


def forgetful() -> Device:
    """A device whose driver caches no builds."""
    return Device.of(PlainDriver(builds_kept=False).device(), policy=Policy(allow_native_code=True))


def test_binaries_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second open finds the binary and does not call the compiler."""
    from orchestrion.hal.opencl import executable

    with forgetful() as device:
        assert built(device, 5) == 5
        assert built(device, 6) == 6
    assert len(list((tmp_path / "opencl").iterdir())) == 2
    monkeypatch.setattr(executable, "_compile", None)
    with forgetful() as device:
        assert built(device, 6) == 6
        assert built(device, 5) == 5


def test_a_driver_that_keeps_builds_is_not_asked_for_binaries(tmp_path: Path) -> None:
    with Device.of(PlainDriver(builds_kept=True).device(), policy=Policy(allow_native_code=True)) as device:
        assert built(device, 9) == 9
    assert not (tmp_path / "opencl").exists()


def test_damaged_binary_is_built_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestrion.hal.opencl import executable

    with forgetful() as device:
        assert built(device, 7) == 7
    (row,) = (tmp_path / "opencl").iterdir()
    good = row.read_bytes()
    row.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with caplog.at_level(logging.WARNING, "orchestrion.hal.cache"), forgetful() as device:
        assert built(device, 7) == 7
    assert "is damaged and not used" in caplog.text
    monkeypatch.setattr(executable, "_compile", None)
    with forgetful() as device:
        assert built(device, 7) == 7


def test_foreign_binary_is_built_again(tmp_path: Path) -> None:
    """A valid row that the driver refuses is built from source again."""
    from orchestrion.hal.cache import Cache

    keys: list[tuple[str | bytes, ...]] = []

    class Spy(Cache):
        def put(self, data: bytes, *key: str | bytes) -> None:
            keys.append(key)
            super().put(b"not a program", *key)

    with forgetful() as device:
        device.device_state.backend._cache = Spy("opencl")  # type: ignore[attr-defined]
        assert built(device, 8) == 8
    assert Cache("opencl").get(*keys[0]) == b"not a program"
    with forgetful() as device:
        assert built(device, 8) == 8
    assert Cache("opencl").get(*keys[0]) != b"not a program"
