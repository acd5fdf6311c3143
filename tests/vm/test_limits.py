"""Limits: each ends the call with its own error, says where, and leaves the context usable."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from orchestrion.vm.errors import (
    CallerError,
    Cancelled,
    DeadlineExceeded,
    DepthExceeded,
    DeviceOutOfMemory,
    FuelExhausted,
    LimitError,
    MemoryExceeded,
)
from orchestrion.vm.limits import Limits

SOURCE = """
import @test.fence (i32) -> hal.fence
program @p profile "reference" {
  global @kept : any mutable
  func @loop (i32) -> i32 {
    %i1 = i32.const 1
  ^again:
    %i2 = i32.add %i2, %i1
    %i3 = i32.lt_s %i2, %i0
    br_if %i3, ^again, ^end
  ^end:
    return (%i2)
  }
  func @for_ever () -> () {
  ^again:
    br ^again
  }
  func @table () -> () {
  ^again:
    br_table %i0, ^again, [^again]
  }
  func @deep (i32) -> i32 {
    br_if %i0, ^more, ^end
  ^more:
    %i1 = i32.const 1
    %i0 = i32.sub %i0, %i1
    %i0 = call @deep(%i0)
    %i0 = i32.add %i0, %i1
  ^end:
    return (%i0)
  }
  func @hold (i64) -> () {
    %r0 = buffer.alloc %l0
    return ()
  }
  func @hoard (i64) -> () {
    %i0 = i32.const 1
  ^again:
    %r0 = list.ref.new %l0
    %r1 = global.load.ref @kept
    list.ref.set %r0, %l1, %r1
    global.store.ref move %r0, @kept
    br ^again
  }
  func @slices () -> () {
    %l0 = i64.const 16
    %r0 = buffer.alloc %l0
    %l0 = i64.const 65536
    %r1 = list.ref.new %l0
  ^again:
    %r2 = buffer.slice %r0, %l1, %l1
    list.ref.set %r1, %l1, %r2
    %l2 = i64.const 1
    %l1 = i64.add %l1, %l2
    %l1 = i64.const 0
    br ^again
  }
  func @grow () -> () {
    %r0 = list.i64.new %l0
    %l1 = i64.const 1000
  ^again:
    %l0 = i64.add %l0, %l1
    list.i64.resize %r0, %l0
    br ^again
  }
  func @bulk (i64) -> () {
    %r0 = buffer.alloc %l0
    %i0 = i32.const 1
  ^again:
    buffer.fill8 %r0, %l1, %l0, %i0
    br ^again
  }
  func @forget () -> () {
    %r0 = ref.null
    global.store.ref %r0, @kept
    return ()
  }
  func @wait (i32) -> () {
    %r0 = call_import @test.fence(%i0)
    await %r0
    return ()
  }
}
"""


@pytest.fixture(scope="module")
def program(assembled: Callable[[str], Any]) -> Any:
    return assembled(SOURCE)


def usable(program: Any, context: Any) -> None:
    assert context.invoke(program.codes["loop"], (10,)) == (10,)


@pytest.mark.parametrize(
    ("name", "arguments"), [("loop", (100_000,)), ("for_ever", ()), ("table", ()), ("deep", (900,))]
)
def test_fuel(program: Any, name: str, arguments: tuple[int, ...]) -> None:
    context = program.new_context(fuel=500)
    with pytest.raises(FuelExhausted, match=rf"^the call used up its fuel of 500\n  at {name} pc 0x"):
        context.invoke(program.codes[name], arguments)
    usable(program, context)


def test_fuel_counts_instructions(program: Any) -> None:
    """A back-edge costs the instructions of its loop, so 100 rounds of 3 need about 300."""
    program.new_context(fuel=300).invoke(program.codes["loop"], (100,))
    with pytest.raises(FuelExhausted):
        program.new_context(fuel=280).invoke(program.codes["loop"], (100,))


def test_fuel_is_per_call(program: Any) -> None:
    context = program.new_context(fuel=400)
    for _ in range(10):
        context.invoke(program.codes["loop"], (100,))


def test_fuel_of_bulk_operations(program: Any) -> None:
    """1 MiB filled is 4096 units."""
    started = time.perf_counter()
    with pytest.raises(FuelExhausted, match=r"at bulk pc 0x[0-9a-f]+"):
        program.new_context(fuel=100_000).invoke(program.codes["bulk"], (1 << 20,))
    assert time.perf_counter() - started < 20


@pytest.mark.parametrize("name", ["for_ever", "table"])
def test_deadline(program: Any, name: str) -> None:
    context = program.new_context(deadline=0.05)
    started = time.perf_counter()
    with pytest.raises(DeadlineExceeded, match="ran longer than 0.05 s"):
        context.invoke(program.codes[name])
    assert 0.04 < time.perf_counter() - started < 20
    usable(program, context)


def test_deadline_while_waiting(program: Any) -> None:
    context = program.new_context(deadline=0.05)
    with pytest.raises(DeadlineExceeded, match=r"\n  at wait pc 0x"):
        context.invoke(program.codes["wait"], (2,))
    usable(program, context)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("hold", (100_001,)), ("hold", (2**62,)), ("hoard", (50,)), ("grow", ()), ("hoard", (2**40,))],
)
def test_memory(program: Any, name: str, arguments: tuple[int, ...]) -> None:
    context = program.new_context(memory=100_000)
    with pytest.raises(MemoryExceeded, match=rf"exceed the limit of 100000 bytes \([0-9]+ in use\)\n  at {name} pc"):
        context.invoke(program.codes[name], arguments)
    usable(program, context)
    context.invoke(program.codes["forget"])
    assert context.memory.budget.live == 0


def test_memory_is_given_back(program: Any) -> None:
    context = program.new_context(memory=1000)
    for _ in range(100):
        context.invoke(program.codes["hold"], (800,))
    assert context.memory.budget.live == 0
    assert 800 <= context.memory.peak_host_bytes <= 1000


def test_memory_beyond_the_machine(program: Any) -> None:
    with pytest.raises(DeviceOutOfMemory, match="no host memory left"):
        program.new_context().invoke(program.codes["hold"], (2**62,))


def test_small_objects_are_charged(program: Any) -> None:
    """Slices of nothing: what the machine needs for them counts, and goes with them."""
    context = program.new_context(memory=80_000_000, fuel=50_000)
    with pytest.raises(FuelExhausted):
        context.invoke(program.codes["slices"])
    assert context.memory.budget.live == 0


def test_depth(program: Any) -> None:
    context = program.new_context(depth=50)
    assert context.invoke(program.codes["deep"], (49,)) == (49,)
    with pytest.raises(DepthExceeded, match="calls are nested 51 deep, 50 is the limit") as caught:
        context.invoke(program.codes["deep"], (50,))
    assert len(caught.value.chain) == 50
    assert str(caught.value).endswith("and 29 calls more")
    usable(program, context)


def test_depth_needs_no_python_stack(program: Any) -> None:
    assert program.new_context(depth=10_000).invoke(program.codes["deep"], (9_999,)) == (9_999,)


def test_depth_by_registers(assembled: Callable[[str], Any]) -> None:
    """Large frames are nested less deeply, so that frames cannot take the machine's memory either."""
    registers = ", ".join(f"%i{at}" for at in range(2000))
    types = ", ".join(["i32"] * 2000)
    program = assembled(
        f'program @p profile "reference" {{ func @wide ({types}) -> () {{ call @wide({registers}) return () }} }}'
    )
    with pytest.raises(DepthExceeded, match=r"the frames of 131 nested calls exceed 262144 registers"):
        program.new_context(depth=10**9).invoke(program.codes["wide"], (0,) * 2000)


def test_cancel(program: Any) -> None:
    context = program.new_context()
    timer = threading.Timer(0.05, context.cancel)
    timer.start()
    with pytest.raises(Cancelled, match="the call was cancelled\n  at for_ever pc 0x0"):
        context.invoke(program.codes["for_ever"])
    usable(program, context)


def test_cancel_while_waiting(program: Any) -> None:
    """A call without a deadline that waited for the device did not hear of it."""
    context = program.new_context()
    timer = threading.Timer(0.05, context.cancel)
    timer.start()
    with pytest.raises(Cancelled, match=r"the call was cancelled\n  at wait pc 0x"):
        context.invoke(program.codes["wait"], (2,))
    usable(program, context)


def test_cancel_without_a_call_does_nothing(program: Any) -> None:
    context = program.new_context(fuel=10_000)
    context.cancel()
    usable(program, context)


@pytest.mark.parametrize("limits", [{"fuel": -1}, {"deadline": -0.5}, {"memory": -1}, {"depth": 0}])
def test_senseless_limits(program: Any, limits: dict[str, Any]) -> None:
    with pytest.raises(CallerError, match="or more expected"):
        program.new_context(**limits)


def test_no_fuel_at_all(program: Any) -> None:
    """Straight-line code costs nothing: its length is bounded by the file's."""
    context = program.new_context(fuel=0, memory=0)
    context.invoke(program.codes["forget"])
    with pytest.raises(LimitError):
        context.invoke(program.codes["loop"], (2,))


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_limit_that_is_no_amount_is_refused(value: float) -> None:
    with pytest.raises(CallerError, match=r"limit deadline is .*, 0 or more expected"):
        Limits(deadline=value)
