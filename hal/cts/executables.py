"""Executables: built once per content, checked against the module's entries, alive as long as a recording uses them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from orchestrion.hal.backend import Entry
from orchestrion.hal.errors import BuildFailed, InvalidArgument, Unsupported
from orchestrion.hal.executable import Executable
from orchestrion.hal.semaphore import Fence
from orchestrion.schema.errors import ModuleError

from .case import Group
from .expect import raises
from .kernels import ADD, INCREMENT, IOTA, Kernel
from .rig import Rig, whole
from .threads import together

case = Group("executables", __doc__)

#: errors of a driver for code that it cannot run
REFUSED = (ModuleError, Unsupported, BuildFailed)


def build(rig: Rig, kernel: Kernel) -> Executable:
    return rig.device.create_executable(kernel.format, memoryview(kernel.payload), kernel.entries)


def still_works(rig: Rig) -> None:
    """The device builds and runs valid code."""
    buffer = rig.zeros(64)
    commands = rig.recording()
    rig.dispatch(commands, IOTA, [whole(buffer)], 16, 7)
    commands.finish()
    rig.run(commands)
    rig.computed(buffer, np.arange(7, 23, dtype=np.uint32))


def refused(rig: Rig, *payloads: bytes) -> None:
    """Each payload raises one of REFUSED, nothing of it is left, and the device still works."""
    kernel = rig.kernel(16)
    for payload in payloads:
        with raises(*REFUSED):
            build(rig, replace(kernel, payload=payload))
    assert rig.device.live["executable"] == 0
    assert rig.device.statistics.executables_created == 0
    still_works(rig)


def entries_refused(rig: Rig, *wrong: tuple[Entry, ...]) -> None:
    """As `refused`, for entries that do not match the payload."""
    kernel = rig.kernel(16)
    for entries in wrong:
        with raises(*REFUSED):
            build(rig, replace(kernel, entries=entries))
    assert rig.device.live["executable"] == 0
    still_works(rig)


def changed(kernel: Kernel, entry: int, **fields: object) -> tuple[Entry, ...]:
    """The kernel's entries, with changed fields in one of them."""
    return tuple(
        row._replace(**fields) if place == entry else row  # type: ignore[arg-type]
        for place, row in enumerate(kernel.entries)
    )


@case.needing("dispatch")
def payload_of_no_bytes(rig: Rig) -> None:
    """A payload of no bytes is refused with `ModuleError`, `Unsupported` or `BuildFailed`."""
    refused(rig, b"")


@case.needing("dispatch")
def payload_cut_short(rig: Rig) -> None:
    """A payload that ends early is refused."""
    payload = rig.kernel(16).payload
    refused(rig, payload[: len(payload) // 2 // 4 * 4], payload[:20])


@case.needing("dispatch")
def payload_of_noise(rig: Rig) -> None:
    """Bytes that are no code are refused."""
    refused(rig, rig.bytes(4096).tobytes(), bytes(4096), b"\xff" * 4096)


@case.needing("dispatch")
def entry_that_is_not_there(rig: Rig) -> None:
    """Entries that the code does not have are refused."""
    kernel = rig.kernel(16)
    extra = kernel.entries[IOTA]._replace(name="missing")
    entries_refused(rig, (*kernel.entries, extra))


@case.needing("dispatch")
def entry_with_fewer_bindings(rig: Rig) -> None:
    """An entry with fewer bindings than its code uses is refused: the code would reach what nobody bound."""
    kernel = rig.kernel(16)
    bindings = kernel.entries[ADD].bindings
    entries_refused(
        rig,
        changed(kernel, ADD, bindings=bindings[:2]),
        changed(kernel, INCREMENT, bindings=()),
    )


@case.needing("dispatch", "parameters")
def entry_with_fewer_parameters(rig: Rig) -> None:
    """An entry with fewer parameter words than its code takes is refused: it would read stray memory."""
    kernel = rig.kernel(16)
    entries_refused(rig, changed(kernel, IOTA, parameter_words=1), changed(kernel, ADD, parameter_words=0))


@case.needing("dispatch", "parameters")
def entry_with_another_workgroup_size(rig: Rig) -> None:
    """An entry with another workgroup size than its code has is refused: the grid would not fit."""
    kernel = rig.kernel(16)
    entries_refused(rig, changed(kernel, ADD, workgroup_size=(32, 1, 1)))


@case
def built_once(rig: Rig) -> None:
    """The same payload and entries are built once, also for a share, and counted once."""
    first, second = rig.executable(), rig.executable()
    assert not first.build.shared and second.build.shared
    with rig.device.share() as device:
        third = rig.on(device).executable()
        assert third.build.shared
        third.release()
    assert rig.device.statistics.executables_created == 1


@case
def each_handle_is_released(rig: Rig) -> None:
    """Handles of one built executable are counted and released one by one."""
    handles = [rig.executable() for _ in range(3)]
    assert rig.device.live["executable"] == 3
    handles[0].release()
    with raises(InvalidArgument, match="executable was released"):
        rig.recording().dispatch(handles[0], IOTA, (16, 1, 1), [whole(rig.zeros(64))], rig.kernel(16).parameters)
    assert rig.device.live["executable"] == 2
    handles.pop().release()
    handles.pop().release()
    assert rig.device.live["executable"] == 0


@case.needing("dispatch")
def runs_after_its_release(rig: Rig) -> None:
    """A recording runs code whose handle is released, and a cache that forgot it does not matter."""
    executable, buffer = rig.executable(16, 3), rig.zeros(64)
    commands = rig.recording(1)
    commands.dispatch(executable, INCREMENT, (16, 1, 1), [(0, 0, 64)], rig.kernel(16, 3).parameters)
    commands.finish()
    executable.release()
    rig.device.executables.clear()
    for _ in range(3):
        rig.run(commands, buffer)
    rig.computed(buffer, np.full(16, 9, np.uint32))


@case.needing("dispatch")
def released_while_in_flight(rig: Rig) -> None:
    """Code runs to its end though handle, recording and cache let go of it while it is under way."""
    executable, buffer = rig.executable(16, 3), rig.zeros(64)
    commands = rig.recording(1)
    commands.dispatch(executable, INCREMENT, (16, 1, 1), [(0, 0, 64)], rig.kernel(16, 3).parameters)
    commands.finish()
    gate, done = rig.device.create_semaphore(), rig.device.create_semaphore()
    rig.device.queue.submit(commands, (buffer,), Fence([(gate, 1)]), Fence([(done, 1)]))
    executable.release()
    commands.release()
    rig.device.executables.clear()
    gate.signal(1)
    done.wait(1, rig.patience)
    rig.computed(buffer, np.full(16, 3, np.uint32))


@case.needing("dispatch")
def each_entry(rig: Rig) -> None:
    """An entry is found by its number: sum, counting up and increment are told apart."""
    a, b = rig.random(16, 1), rig.random(16, 2)
    total, counted, changed_ = rig.zeros(64), rig.zeros(64), rig.buffer(a)
    commands = rig.recording()
    rig.dispatch(commands, ADD, [whole(rig.buffer(a)), whole(rig.buffer(b)), whole(total)], 16, 1)
    rig.dispatch(commands, IOTA, [whole(counted)], 16, 2)
    rig.dispatch(commands, INCREMENT, [whole(changed_)], 16, 3)
    commands.finish()
    rig.run(commands)
    rig.computed(total, a + b + np.uint32(1))
    rig.computed(counted, np.arange(2, 18, dtype=np.uint32))
    rig.computed(changed_, a + np.uint32(3))


@case.needing("dispatch")
def some_of_its_entries(rig: Rig) -> None:
    """Different executables of one device, with other sizes and values, do not mix."""
    made = [(n, value, rig.zeros(4 * n)) for n, value in ((16, 1), (64, 1), (16, 2), (65, 3))]
    commands = rig.recording()
    for n, value, buffer in made:
        rig.dispatch(commands, IOTA, [whole(buffer)], n, value)
    commands.finish()
    rig.run(commands)
    for n, value, buffer in made:
        rig.computed(buffer, np.arange(value, n + value, dtype=np.uint32))


@case.needing("dispatch", "parameters")
def parameter_words(rig: Rig) -> None:
    """Parameters reach the code word by word, each of the 32 bits of them, in their order."""
    for n, value in ((5, 0), (7, 0xFFFFFFFF), (9, 0x80000000), (11, 0x01020304), (13, 0xFEDCBA98)):
        buffer = rig.zeros(64)
        commands = rig.recording()
        rig.dispatch_grid(commands, IOTA, [whole(buffer)], (16, 1, 1), n, value)
        commands.finish()
        rig.run(commands)
        want = np.zeros(16, np.uint32)
        want[:n] = np.arange(n, dtype=np.uint32) + np.uint32(value)
        rig.computed(buffer, want)


@case.needing("dispatch")
def built_while_work_is_under_way(rig: Rig) -> None:
    """Building does not wait for work, and work does not mind building."""
    gate, done, buffer = rig.device.create_semaphore(), rig.device.create_semaphore(), rig.zeros(64)
    rig.device.queue.submit(rig.filling(0, 64, 1), (buffer,), Fence([(gate, 1)]), Fence([(done, 1)]))
    executable = rig.executable(32, 5)
    assert done.value == 0
    gate.signal(1)
    done.wait(1, rig.patience)
    executable.release()
    still_works(rig)


@case.needing("dispatch")
def built_by_several_threads(rig: Rig) -> None:
    """Threads build the same and different code at one time; each piece is built once, and all of it is right."""

    def work(number: int) -> None:
        for value in (1, 2, number + 10):
            executable = rig.executable(16, value)
            assert len(executable.entries) == len(rig.kernel(16).entries)
            executable.release()

    together(4, work)
    payloads = {rig.kernel(16, value).payload for value in (1, 2, 10, 11, 12, 13)}
    assert rig.device.statistics.executables_created == len(payloads)
    still_works(rig)
