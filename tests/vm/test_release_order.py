"""The order in which initializers run, and the order in which a closed context releases the objects that they made."""

import gc
from typing import Any

import pytest

from orchestrion import vm
from orchestrion.hal.device import Device
from orchestrion.hal.registry import open_device
from orchestrion.schema.assembler import assemble
from orchestrion.schema.writer import write
from orchestrion.vm.call import Call
from orchestrion.vm.errors import Trap
from orchestrion.vm.memory import Memory
from orchestrion.vm.native import NativeModule, native

LOG: list[str] = []


class Step:
    """Says when it goes."""

    def __init__(self, number: int) -> None:
        self.number = number
        LOG.append(f"+{number}")

    def __del__(self) -> None:
        LOG.append(f"-{self.number}")


class Steps(NativeModule):
    name = "steps"
    types = {"steps.step": Step}

    @native("make", "(i32) -> steps.step")
    def make(self, call: Call, number: int) -> Step:
        return Step(number)


def store(number: int, place: str) -> str:
    return (
        f"%i0 = i32.const {number} %r0 = call_import @steps.make(%i0) global.store.ref %r0, @{place} %r0 = ref.null\n"
    )


SOURCE = f"""
import @steps.make (i32) -> steps.step
export @later
program @reference profile "reference" {{
  global @e : steps.step mutable
  global @b : steps.step
  global @a : steps.step
  global @d : steps.step mutable
  global @c : steps.step mutable
  global @g : steps.step mutable
  global @f : any mutable
  func @context_two () -> () {{ call @inner() {store(6, "g")} return () }}
  func @inner () -> () {{ {store(5, "e")} return () }}
  func @program_one () -> () {{ {store(1, "a")} return () }}
  func @context_one () -> () {{ {store(3, "c")} {store(4, "d")} return () }}
  func @program_two () -> () {{ {store(2, "b")} return () }}
  func @later () -> () {{ {store(7, "f")} return () }}
  initializer context @context_one
  initializer program @program_one
  initializer context @context_two
  initializer program @program_two
  entry @later
}}
"""


def load(source: str, **options: Any) -> vm.Program:
    LOG.clear()
    return vm.load(write(assemble(source)), natives=[Steps()], **options)


def test_in_reverse() -> None:
    """Program before context, each kind in its order; let go of from the last store to the first."""
    program = load(SOURCE)
    assert LOG == ["+1", "+2", "+3", "+4", "+5", "+6"]
    program["later"]()
    LOG.clear()
    program.close()
    assert LOG == ["-7", "-6", "-5", "-4", "-3", "-2", "-1"]


def test_a_context_lets_go_of_its_own() -> None:
    program = load(SOURCE)
    LOG.clear()
    context = program.create_context()
    assert LOG == ["+3", "+4", "+5", "+6"]
    LOG.clear()
    context.close()
    assert LOG == ["-6", "-5", "-4", "-3"]
    LOG.clear()
    program.close()
    assert LOG == ["-6", "-5", "-4", "-3", "-2", "-1"]


def test_the_last_store_counts() -> None:
    twice = SOURCE.replace(store(3, "c"), store(3, "c") + store(30, "d") + store(31, "c"))
    program = load(twice)
    assert LOG == ["+1", "+2", "+3", "+30", "+31", "-3", "+4", "-30", "+5", "+6"]
    LOG.clear()
    program.close()
    assert LOG == ["-6", "-5", "-4", "-31", "-2", "-1"]


def test_a_context_initializer_that_fails() -> None:
    """What was made by then goes in the same order."""
    fails = SOURCE.replace(store(6, "g") + " return ()", 'fail "no"')
    with pytest.raises(Trap, match="no\n  at context_two"):
        load(fails)
    gc.collect()
    assert LOG == ["+1", "+2", "+3", "+4", "+5", "-5", "-4", "-3", "-2", "-1"]


EMPTY = """
import @hal.allocate (i64) -> hal.buffer
export @f
program @reference profile "reference" {
  global @buffer : hal.buffer mutable
  func @begin () -> () {
    %l0 = i64.const 16
    %r0 = call_import @hal.allocate(%l0)
    global.store.ref %r0, @buffer
    return ()
  }
  func @f () -> () { return () }
  initializer context @begin
  entry @f
}
"""


def test_ten_thousand_contexts_leave_nothing() -> None:
    with open_device("reference") as device:
        program = vm.load(write(assemble(EMPTY)), device)
        program.create_context().close()
        counts = [_counts(device)]
        for _ in range(2):
            for _ in range(5000):
                program.create_context().close()
            counts.append(_counts(device))
        assert counts[0] == counts[1] == counts[2]
        program.close()


def _counts(device: Device) -> dict[str, int]:
    """Memories are those of the process, other programs that tests keep loaded among them."""
    gc.collect()
    state = device.device_state
    return {
        "memories": sum(isinstance(thing, Memory) for thing in gc.get_objects()),
        "objects of the driver": len(state.owned),
        "shares": len(state.shares),
        "device bytes": device.allocator.live_bytes,
    }


def test_peaks_of_all_contexts_together() -> None:
    """What closed contexts held counts while they held it."""
    source = EMPTY.replace("func @f () -> () {", "func @f () -> () { %l0 = i64.const 1000000 %r0 = buffer.alloc %l0")
    program = vm.load(write(assemble(source)))
    assert program.statistics()["memory"]["peak_host_bytes"] == 0
    for _ in range(5):
        context = program.create_context()
        context["f"]()
        context.close()
    assert 1_000_000 <= program.statistics()["memory"]["peak_host_bytes"] < 1_100_000
    assert program.statistics()["memory"]["peak_device_bytes"] >= 32
    program.close()
