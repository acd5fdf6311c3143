"""Programs that share a device with little memory: what contexts keep for later calls goes when another needs room."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.backend import BackendBuffer, MemoryUse
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DeviceOutOfMemory as HalDeviceOutOfMemory
from orchestrion.hal.reference.device import ReferenceDevice
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.vm.errors import DeviceOutOfMemory, MemoryExceeded

TEXT = """
func.func @main(%x: tensor<?x256xf32>) -> tensor<?x256xf32> {
  %0 = stablehlo.add %x, %x : tensor<?x256xf32>
  return %0 : tensor<?x256xf32>
}
"""
ROW = 1024  # bytes


class Small(ReferenceDevice):
    """The reference device with `room` bytes; `gate`, if set, is called by each allocation."""

    def __init__(self, room: int) -> None:
        super().__init__(ReferenceDriver().devices()[0])
        self.room = room
        self.refused = 0
        self.gate: Callable[[], None] | None = None

    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        if self.gate is not None:
            self.gate()
        if size > self.room:
            self.refused += 1
            raise HalDeviceOutOfMemory(f"{size} bytes asked for, {self.room} are free")
        self.room -= size
        made, device = super().allocate(size, use), self
        release = made.release

        class Counted(type(made)):  # type: ignore[misc]
            __slots__ = ()

            def release(self) -> None:
                release()
                device.room += size

        made.__class__ = Counted
        return made


@pytest.fixture(scope="module")
def module() -> bytes:
    return compiler.compile(TEXT, targets=["reference"])


def rows(count: int) -> Any:
    return np.ones((count, 256), np.float32)


def is_right(context: Any, count: int) -> None:
    np.testing.assert_array_equal(context.main(rows(count)), 2 * rows(count))


def test_idle_contexts_of_other_programs_give_back(module: bytes) -> None:
    """A call of 40 rows needs what two programs keep for calls of 1 to 8 rows; these work again afterwards."""
    backend = Small(96 * ROW)
    with Device.of(backend) as device:
        first, second = vm.load(module, device), vm.load(module, device)
        context = first.create_context()
        for user in (first, second, context):
            for count in range(1, 5):
                is_right(user, count)
        free = backend.room
        is_right(second, 40)
        assert backend.refused >= 1, "the device had room for all: the test shows nothing"
        assert free < 80 * ROW
        for user in (first, context, second):
            is_right(user, 2)
        context.close()
        first.close()
        second.close()


def test_no_room_at_all(module: bytes) -> None:
    """The device's fault, by name, with numbers; the context works on."""
    with Device.of(Small(64 * ROW)) as device:
        program = vm.load(module, device)
        is_right(program, 4)
        with pytest.raises(DeviceOutOfMemory, match=r"\d+ bytes asked for, \d+ are free \(\d+ bytes of ref"):
            program.main(rows(100))
        with pytest.raises(DeviceOutOfMemory, match="bytes asked for"):
            program.put(rows(100))
        with pytest.raises(DeviceOutOfMemory, match="bytes asked for"):
            program.main.submit(rows(100)).result(20)
        is_right(program, 4)
        program.close()


def test_a_limit_is_another_error(module: bytes) -> None:
    program = vm.load(module, memory=64 * ROW)
    is_right(program, 4)
    with pytest.raises(MemoryExceeded, match="exceeds? the limit of 65536 bytes"):
        program.main(rows(100))
    is_right(program, 4)
    program.close()


def test_a_context_in_a_call_keeps_what_it_uses(module: bytes) -> None:
    """Two threads: one stands in the middle of a call, the other runs out of memory and fails by name."""
    backend = Small(48 * ROW)
    with Device.of(backend) as device:
        busy, other = vm.load(module, device), vm.load(module, device)
        is_right(busy, 8)
        inside, go, owner = threading.Event(), threading.Event(), threading.get_ident()

        def gate() -> None:
            if threading.get_ident() != owner:
                inside.set()
                assert go.wait(20)

        backend.gate = gate
        wrong: list[BaseException] = []

        def work() -> None:
            try:
                is_right(busy, 4)  # new slots: it stops in their allocation
            except BaseException as error:
                wrong.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        assert inside.wait(20)
        with pytest.raises(DeviceOutOfMemory):
            other.main(rows(24))
        assert busy.main._slot_cache, "the slots of the context in the call were released"  # type: ignore[attr-defined]
        go.set()
        thread.join(20)
        assert not wrong
        is_right(busy, 4)
        is_right(other, 4)
        busy.close()
        other.close()
