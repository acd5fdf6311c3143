"""What is remembered of modules: their rows and code, never anything of a file, a device or a context."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.hal.device import Device
from orchestrion.schema import container
from orchestrion.schema.assembler import assemble
from orchestrion.schema.container import Container, open_bytes
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.writer import write
from orchestrion.vm import loader
from orchestrion.vm.call import Call
from orchestrion.vm.linker import LinkedProgram
from orchestrion.vm.loader import Loader
from orchestrion.vm.native import NativeModule, native

X = np.array([1, 2, 3, 4], np.float32)
Y = np.array([5, -1, 0.5, 2], np.float32)
Z = X * Y + np.array([1, 2, 3, 4], np.float32)


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each program that is verified."""
    seen: list[int] = []
    real = loader.verify

    def counting(module: Any, ordinal: int) -> Any:
        seen.append(ordinal)
        return real(module, ordinal)

    monkeypatch.setattr(loader, "verify", counting)
    return seen


def named(name: str, size: int = 0) -> Container:
    """A module of its own per name; `size` bytes make its root larger."""
    program = f'program @{name} profile "reference" {{ func @f () -> () {{ return () }} }}'
    return open_bytes(write(assemble(f'attribute "size" = "{"x" * size}" {program}')))


def link_twice(loader: Loader, file: Container, device: Device) -> LinkedProgram:
    """A module is kept from its second load on."""
    loader.link(file, device.info, ())
    return loader.link(file, device.info, ())


def test_a_program_is_kept_from_its_second_load_on(device: Device, verified: list[int]) -> None:
    one = Loader()
    one.link(named("p"), device.info, ())
    assert verified == [0] and len(one) == 0
    first, second = named("p"), named("p")
    linked, again = one.link(first, device.info, ()), one.link(second, device.info, ())
    assert verified == [0, 0] and len(one) == 1
    assert again.codes is linked.codes
    assert again.module.container is second and linked.module.container is first


def test_loads_share_code_and_nothing_else(tensors: bytes) -> None:
    vm.load(tensors).close()
    first, second = vm.load(tensors), vm.load(bytes(bytearray(tensors)))
    assert first.module is not second.module
    np.testing.assert_array_equal(first.main(X, Y), Z)
    assert [first.count(), first.count(), second.count()] == [1, 2, 1]
    first.close()
    np.testing.assert_array_equal(second.main(X, Y), Z)
    second.close()


def test_what_is_wrong_with_a_file_is_found_in_each(tensors: bytes) -> None:
    """The root is the same; a segment, or where it lies, is not."""
    vm.load(tensors).close()
    vm.load(tensors).close()
    file = open_bytes(tensors)
    rows = vm.load(tensors)
    payloads = [row.payload for row in rows.module.variants]
    rows.close()
    damaged = bytearray(tensors)
    damaged[file.spans[payloads[-1]][0] + 8] ^= 1
    with pytest.raises(ModuleError, match="is damaged: its digest differs"):
        vm.load(bytes(damaged))
    root = bytes(file.root)
    middle, offsets = container.directory(root, [4])
    other = root + middle + bytes(offsets[0] - len(root + middle)) + b"code"
    with pytest.raises(ModuleError, match="segments, the directory 1"):
        vm.load(other)
    vm.load(tensors).close()


def test_no_file_is_kept_open(tensors: bytes, device: Device) -> None:
    class Memory(bytearray):
        """Can be referred to weakly, as a map of a file can."""

    one = Loader()
    data = Memory(tensors)
    gone = weakref.ref(data)
    linked = link_twice(one, open_bytes(data), device)
    assert bytes(linked.module.bytecode)
    del data, linked
    gc.collect()
    assert gone() is None and len(one) == 1


def test_the_least_recently_used_modules_are_evicted(device: Device, verified: list[int]) -> None:
    one = Loader(max_modules=2)
    for name in ("a", "b", "a", "c"):
        link_twice(one, named(name), device)
    assert len(one) == 2 and len(verified) == 6
    one.link(named("a"), device.info, ())
    assert len(verified) == 6
    one.link(named("b"), device.info, ())
    assert len(verified) == 7


def test_digests_are_bounded(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_MAX_SEEN", 2)
    one = Loader()
    for name in ("a", "b", "c", "a"):
        one.link(named(name), device.info, ())
    assert len(one) == 0
    one.link(named("a"), device.info, ())
    assert len(one) == 1


def test_bytes_are_bounded(device: Device, verified: list[int]) -> None:
    one = Loader(max_bytes=10_000)
    link_twice(one, named("large", 20_000), device)
    assert len(one) == 0
    for name in "abcde":
        link_twice(one, named(name, 4_000), device)
    assert len(one) == 2


def test_code_that_calls_other_natives_is_not_cached(device: Device) -> None:
    class Counter(NativeModule):
        name = "counter"

        def __init__(self) -> None:
            self.calls = 0

        @native("count", "() -> i32")
        def count(self, call: Call) -> int:
            self.calls += 1
            return self.calls

    text = """import @counter.count () -> i32
        export @f
        program @p profile "reference" {
          func @f () -> i32 { %i0 = call_import @counter.count() return (%i0) }
          entry @f
        }"""
    data = write(assemble(text))
    one, two = Counter(), Counter()
    first, second = vm.load(data, natives=[one]), vm.load(data, natives=[two])
    assert [first.f(), first.f(), second.f()] == [1, 2, 1]
    assert (one.calls, two.calls) == (2, 1)


def test_a_refused_module_is_refused_again(device: Device, verified: list[int]) -> None:
    text = """program @p profile "reference" {
      global @g : i32
      func @f () -> () { %i0 = i32.const 1 global.store.i32 %i0, @g return () }
    }"""
    one, file = Loader(), open_bytes(write(assemble(text)))
    for _ in range(3):
        with pytest.raises(ModuleError, match="global 0 is not mutable"):
            one.link(file, device.info, ())
    assert verified == [0, 0, 0] and len(one) == 0


def test_a_load_for_another_device_at_the_same_time(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which program a device got last is remembered; another thread may remember its own in between."""

    class Raced(loader._CachedModule):
        __slots__ = ("_other",)

        @property
        def last_choice(self) -> Any:
            return self._other

        @last_choice.setter
        def last_choice(self, value: Any) -> None:
            self._other = None if value is None else (None, 99)

    one = Loader()
    cached = Raced(link_twice(one, named("p"), device).module, 0)
    assert loader._choose(cached.module, cached, device.info) == 0
