"""Limits of initializers: modules that are not trusted have defaults; arguments raise, lower and lift them.

Everything runs on each device, since initializers ask things of the device that no call does.
"""

import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrion import vm
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.schema.assembler import assemble
from orchestrion.schema.container import open_bytes
from orchestrion.schema.trust.store import TrustStore
from orchestrion.schema.writer import write
from orchestrion.vm import load_limits
from orchestrion.vm.call import Call
from orchestrion.vm.errors import DeadlineExceeded, FuelExhausted, LimitError, MemoryExceeded, VmError
from orchestrion.vm.hal_module import HalModule
from orchestrion.vm.limits import Limits
from orchestrion.vm.load_limits import FUEL, MEMORY, default_limits, find_limits

DEVICES = ("reference", "opencl", "vulkan", "null")
IMPORTS = """
import @hal.allocate (i64) -> hal.buffer
import @hal.fence.create () -> hal.fence
import @hal.executable.create (i32) -> hal.executable
import @hal.recording.create (i32) -> hal.recording
"""
#: rounds of four units of fuel each
ROUNDS = (
    "%i1 = i32.const 1 %i2 = i32.const {rounds} "
    "^a: %i0 = i32.add %i0, %i1 %i3 = i32.lt_s %i0, %i2 br_if %i3, ^a, ^b ^b: return ()"
)
FOR_EVER = {
    "branch": "^a: br ^a",
    "table": "^a: br_table %i0, ^a, [^a]",
    "count": "%i1 = i32.const 1 ^a: %i0 = i32.add %i0, %i1 br ^a",
    "call": "^a: call @nothing() br ^a",
    "buffers": "%l0 = i64.const 8 ^a: %r0 = buffer.alloc %l0 br ^a",
    "device_buffers": "%l0 = i64.const 8 ^a: %r0 = call_import @hal.allocate(%l0) br ^a",
    "recordings": "%i0 = i32.const 1 ^a: %r0 = call_import @hal.recording.create(%i0) br ^a",
}
#: 20 GB at once, and in pieces that are kept
TOO_MUCH = {
    "device": "%l0 = i64.const 20000000000 %r0 = call_import @hal.allocate(%l0) return ()",
    "host": "%l0 = i64.const 20000000000 %r0 = buffer.alloc %l0 return ()",
    "pieces": "%l0 = i64.const 16 %r0 = list.ref.new %l0 %l1 = i64.const 1 %l2 = i64.const 200000000 %l3 = i64.const 16"
    " ^a: %r1 = call_import @hal.allocate(%l2) list.ref.set %r0, %l4, %r1 %l4 = i64.add %l4, %l1"
    " %i0 = i64.lt_s %l4, %l3 br_if %i0, ^a, ^b ^b: return ()",
}


def module(body: str, kind: str = "program") -> bytes:
    """A module with that initializer, for every device."""
    programs = [
        f'program @{profile} profile "{profile}" {{ func @nothing () -> () {{ return () }} '
        f"func @seven () -> i32 {{ %i0 = i32.const 7 return (%i0) }} "
        f"func @init () -> () {{ {body} }} initializer {kind} @init entry @seven }}"
        for profile in ("reference", "spirv", "opencl")
    ]
    used = "\n".join(line for line in IMPORTS.splitlines() if line.partition("@")[2].partition(" ")[0] in body)
    return write(assemble(f"{used}\nexport @seven\n{' '.join(programs)}"))


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrustStore:
    """An empty one: nothing was compiled here."""
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ORCHESTRION_CACHE", "off")
    return TrustStore()


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """An open device, of which nothing may be left over that a failed load took."""
    try:
        opened = open_device(request.param, policy=Policy())
    except DriverUnavailable as error:
        pytest.skip(str(error))
    with opened:
        yield opened
        assert opened.allocator.live_bytes == 0
        assert opened.close() == ()


def refused(device: Device, data: bytes, error: type[VmError], message: str, **limits: Any) -> None:
    """Loading fails with the error, and the device is as usable as before."""
    with pytest.raises(error, match=message):
        vm.load(data, device, **limits)
    assert device.allocator.live_bytes == 0
    usable(device)


def usable(device: Device) -> None:
    program = vm.load(module("return ()"), device)
    assert program["seven"]() == 7
    program.close()


@pytest.mark.parametrize("kind", ["program", "context"])
@pytest.mark.parametrize("name", FOR_EVER)
def test_a_spinning_initializer_ends(device: Device, name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hung `vm.load` for ever, in a file of 432 bytes. The full default is spent once."""
    fuel = FUEL if name == "branch" and kind == "program" else 50_000
    monkeypatch.setattr(load_limits, "FUEL", fuel)
    message = (
        rf"used up its fuel of {fuel}; {fuel} is the default of .*load_limits=vm.Limits\(fuel=...\) or --load-fuel"
    )
    refused(device, module(FOR_EVER[name], kind), FuelExhausted, message)


def test_a_wait_for_nothing_ends(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_limits, "DEADLINE", 0.1)
    body = "%r0 = call_import @hal.fence.create() await %r0 return ()"
    refused(device, module(body), DeadlineExceeded, r"(?s)--load-deadline raises it\n  at init pc")


@pytest.mark.parametrize("name", TOO_MUCH)
def test_no_more_memory_than_the_default(device: Device, name: str) -> None:
    refused(device, module(TOO_MUCH[name]), MemoryExceeded, r"is the default of .*--load-memory raises it")


def test_limits_of_calls_hold_for_initializers(device: Device) -> None:
    """As they always did; nothing is said of a default."""
    data = module(ROUNDS.format(rounds=100))
    with pytest.raises(FuelExhausted, match=r"^the call used up its fuel of 100\n"):
        vm.load(data, device, fuel=100)
    vm.load(data, device, fuel=1000).close()


def test_load_limits_come_first(device: Device) -> None:
    data = module(ROUNDS.format(rounds=100))
    program = vm.load(data, device, fuel=100, load_limits=Limits(fuel=1000))
    assert program.context.limits.fuel == 100
    program.close()
    with pytest.raises(FuelExhausted, match=r"^the call used up its fuel of 100\n"):
        vm.load(data, device, fuel=1000, load_limits=Limits(fuel=100))


@pytest.mark.parametrize(
    "limits", [{"load_limits": Limits(fuel=2 * FUEL)}, {"load_limits": Limits(fuel=math.inf)}, {"fuel": math.inf}]
)
def test_a_default_is_raised_and_lifted(limits: dict[str, Any], device: Device) -> None:
    data = module(ROUNDS.format(rounds=FUEL // 3))
    refused(device, data, FuelExhausted, "the default of initializers")
    program = vm.load(data, device, **limits)
    assert program["seven"]() == 7
    assert program.context.limits == Limits(memory=None)
    program.close()


def test_more_memory_may_be_allowed(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_limits, "MEMORY", 1 << 20)
    for body in ("%r0 = buffer.alloc %l0 return ()", "%r0 = call_import @hal.allocate(%l0) return ()"):
        data = module(f"%l0 = i64.const {1 << 20} %r1 = buffer.alloc %l0 {body}")
        refused(device, data, MemoryExceeded, "the default of initializers")
        for limits in (Limits(memory=(2 << 20) + 4096), Limits(memory=math.inf)):
            vm.load(data, device, load_limits=limits).close()


def test_what_was_compiled_here_has_no_defaults(device: Device, store: TrustStore) -> None:
    data = module(ROUNDS.format(rounds=FUEL // 3))
    store.add(open_bytes(data).digest)
    vm.load(data, device).close()


def test_native_code_that_is_allowed_has_no_defaults() -> None:
    vm.load(module(ROUNDS.format(rounds=FUEL // 3)), "reference", allow_native_code=True).close()


def test_memory_while_loading_is_no_limit_of_calls(device: Device) -> None:
    """What initializers may hold does not bind what calls allocate, nor the other way round."""
    program = vm.load(module("return ()"), device, load_limits=Limits(memory=64))
    device_share = program.device
    device_share.allocator.allocate(4096).release()
    program.close()
    with pytest.raises(MemoryExceeded, match="limit of 64 bytes"):
        vm.load(module("%l0 = i64.const 65 %r0 = buffer.alloc %l0 return ()"), device, load_limits=Limits(memory=64))


def test_contexts_have_the_same_limits(device: Device, store: TrustStore) -> None:
    data = module(ROUNDS.format(rounds=FUEL // 3), "context")
    program = vm.load(data, device, load_limits=Limits(fuel=math.inf))
    with pytest.raises(FuelExhausted, match="the default of initializers"):
        program.create_context()
    with pytest.raises(FuelExhausted, match=r"^the call used up its fuel of 100\n"):
        program.create_context(fuel=100)
    context = program.create_context(fuel=100, load_limits=Limits(fuel=math.inf))
    assert context["seven"]() == 7 == program["seven"]()
    context.close()
    program.close()
    store.add(open_bytes(data).digest)
    trusted = vm.load(data, device)
    trusted.create_context().close()
    trusted.close()


def test_building_counts_apart(tensors: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline is for what initializers do; how long device code may be built is a limit of its own."""
    real = Device.create_executable

    def slow(self: Device, *arguments: Any, **options: Any) -> Any:
        time.sleep(0.5)
        return real(self, *arguments, **options)

    monkeypatch.setattr(Device, "create_executable", slow)
    vm.load(tensors, load_limits=Limits(deadline=0.4)).close()


def test_building_again_and_again_counts(tensors: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is built a second time, because it was not kept, is the program's own doing."""
    real = Device.create_executable

    def forgetful(self: Device, *arguments: Any, **options: Any) -> Any:
        time.sleep(0.05)
        self.executables.clear()
        return real(self, *arguments, **options)

    monkeypatch.setattr(Device, "create_executable", forgetful)
    program = vm.load(tensors)
    call = Call(program.context, Limits(deadline=0.5))
    create = HalModule().executable_create
    with pytest.raises(DeadlineExceeded):
        while True:
            create(call, 0).release()
            call.check()
    program.close()


def test_defaults_grow_with_constants() -> None:
    none, some = default_limits(0, 8 << 30), default_limits(160 << 20, 8 << 30)
    assert (none.fuel, none.deadline, none.memory) == (1_000_000, 10.0, 1 << 30)
    assert (some.fuel, some.deadline, some.memory) == (1_000_000 + (160 << 20) // 64, 20.0, (1 << 30) + (640 << 20))
    assert default_limits(0, 1 << 30).memory == 512 << 20


def test_only_constants_in_the_file_count() -> None:
    """Two programs' constants are each program's own, and a constant that is there twice is counted once."""
    text = """
program @p profile "reference" {
  constant @a : tensor<4096xf32> = zeros
  func @f () -> () { return () }
  initializer program @f
}
"""
    text = text.replace("= zeros", '= hex "' + "00" * 16384 + '"')
    twice = text.replace("  func", '  constant @b : tensor<4096xf32> = hex "' + "00" * 16384 + '"\n  func')
    for source in (text, twice):
        program = vm.load(write(assemble(source)))
        found = load_limits.defaults_of(program.module, 0, program.device)
        assert found is not None and found.memory == min(MEMORY, program.device.info.memory_bytes // 2) + 4 * 16384
        program.close()


def test_which_limit_holds() -> None:
    defaults = Limits(fuel=10, deadline=1.0, memory=100)
    assert find_limits(None, Limits(), defaults) == (defaults, {"fuel", "deadline", "memory"})
    assert find_limits(None, Limits(), None) == (Limits(), set())
    assert find_limits(Limits(fuel=5), Limits(fuel=7, memory=8, depth=9), defaults) == (
        Limits(fuel=5, deadline=1.0, memory=8, depth=1000),
        {"deadline"},
    )
    assert find_limits(None, Limits(deadline=math.inf, depth=9), defaults).limits == Limits(10, None, 100, 9)


def test_the_page_says_these_numbers() -> None:
    page = (Path(__file__).parents[2] / "docs" / "limits.md").read_text().partition("## Loading")[2]
    rows = dict(re.findall(r"^\| (fuel|deadline|memory) \| ([^|]*) \|", page, re.MULTILINE))
    per_unit, per_second = load_limits.CONSTANT_BYTES_PER_UNIT, load_limits.CONSTANT_BYTES_PER_SECOND >> 20
    assert rows == {
        "fuel": f"{load_limits.FUEL:,} units, and 1 for every {per_unit} bytes of constants",
        "deadline": f"{load_limits.DEADLINE:.0f} s, and 1 s for every {per_second} MiB of constants",
        "memory": f"{load_limits.MEMORY >> 30} GiB, or half of the device's memory if that is less, and "
        f"{load_limits.TIMES_CONSTANTS} times the bytes of constants",
    }


def test_every_limit_error_is_explained_once() -> None:
    found = find_limits(None, Limits(memory=5), Limits(fuel=1))
    for error, words in ((FuelExhausted("x"), "x; 1 is the default"), (MemoryExceeded("x"), "x")):
        found.explain(error)
        assert isinstance(error, LimitError) and error.message.startswith(words)
        assert ("--load-" in error.message) == (type(error) is FuelExhausted)
