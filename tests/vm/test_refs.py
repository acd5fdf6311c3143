"""References are let go at a known moment: on a move, on overwriting, at the end of a frame, after an error."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrion.vm.errors import VmError
from orchestrion.vm.memory import Memory
from orchestrion.vm.refs import HostBuffer, ListAny, ListI32, type_name

SOURCE = """
import @test.thing () -> test.thing
import @test.see (any) -> ()
import @test.alive () -> i32
program @p profile "reference" {
  global @kept : any mutable
  func @overwrite () -> i32 {
    %r0 = call_import @test.thing()
    %r0 = call_import @test.thing()
    %i0 = call_import @test.alive()
    return (%i0)
  }
  func @null () -> i32 {
    %r0 = call_import @test.thing()
    %r0 = ref.null
    %i0 = call_import @test.alive()
    return (%i0)
  }
  func @moved () -> i32 {
    %r0 = call_import @test.thing()
    call_import @test.see(move %r0)
    %i0 = call_import @test.alive()
    return (%i0)
  }
  func @moved_twice () -> i32 {
    %r0 = call_import @test.thing()
    %r1 = call_import @test.thing()
    %i0 = ref.eq move %r0, move %r1
    %i0 = call_import @test.alive()
    return (%i0)
  }
  func @_take (any) -> () {
    %r0 = ref.null
    return ()
  }
  func @_alive_inside (any) -> i32 {
    %r0 = ref.null
    %i0 = call_import @test.alive()
    return (%i0)
  }
  func @moved_into_call () -> i32 {
    %r0 = call_import @test.thing()
    %i0 = call @_alive_inside(move %r0)
    return (%i0)
  }
  func @copied_into_call () -> i32 {
    %r0 = call_import @test.thing()
    %i0 = call @_alive_inside(%r0)
    return (%i0)
  }
  func @_make () -> () {
    %r0 = call_import @test.thing()
    %r1 = call_import @test.thing()
    return ()
  }
  func @frame_end () -> i32 {
    call @_make()
    %i0 = call_import @test.alive()
    return (%i0)
  }
  func @result () -> any {
    %r0 = call_import @test.thing()
    return (%r0)
  }
  func @result_dropped () -> i32 {
    %r0 = call @result()
    %r0 = call @result()
    %i0 = call_import @test.alive()
    return (%i0)
  }
  func @in_list () -> i32 {
    %l0 = i64.const 3
    %r0 = list.ref.new %l0
    %r1 = call_import @test.thing()
    list.ref.set %r0, %l1, %r1
    list.ref.set %r0, %l2, move %r1
    list.ref.resize %r0, %l3
    %i0 = call_import @test.alive()
    return (%i0)
  }
  func @keep () -> () {
    %r0 = call_import @test.thing()
    global.store.ref %r0, @kept
    return ()
  }
  func @fails () -> () {
    %r0 = call_import @test.thing()
    call @_fails(%r0)
    return ()
  }
  func @_fails (any) -> () {
    %r1 = call_import @test.thing()
    fail "on purpose"
  }
}
"""
ALIVE = {
    "overwrite": 1,
    "null": 0,
    "moved": 0,
    "moved_twice": 0,
    "moved_into_call": 0,
    "copied_into_call": 1,
    "frame_end": 0,
    "result_dropped": 1,
    "in_list": 0,
}


@pytest.fixture(scope="module")
def program(assembled: Callable[[str], Any]) -> Any:
    return assembled(SOURCE)


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Reference counts alone must do it."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", ALIVE)
def test_released(program: Any, thing: Any, name: str) -> None:
    assert program.call(name) == ALIVE[name]
    assert thing.alive == 0


@pytest.mark.parametrize("name", ALIVE)
def test_released_by_translations(assembled: Callable[[str], Any], thing: Any, name: str) -> None:
    program = assembled(SOURCE)
    assert program.translate() >= {"overwrite", "null", "moved", "_make", "result"}
    assert program.call(name) == ALIVE[name]
    assert thing.alive == 0


def test_result_belongs_to_the_caller(program: Any, thing: Any) -> None:
    found = program.call("result")
    assert thing.alive == 1
    del found
    assert thing.alive == 0


def test_global_lives_as_long_as_the_context(program: Any, thing: Any) -> None:
    context = program.new_context()
    context.invoke(program.codes["keep"])
    context.invoke(program.codes["keep"])
    assert thing.alive == 1
    del context
    assert thing.alive == 0


def test_failure_releases_all_frames(program: Any, thing: Any) -> None:
    with pytest.raises(VmError, match="on purpose") as caught:
        program.call("fails")
    assert thing.alive == 0
    assert [place.function for place in caught.value.chain] == ["_fails", "fails"]


def test_deep_structures_are_released() -> None:
    """A million lists inside each other must not end the process."""
    memory = Memory(None)
    outer = ListAny(memory, 1)
    for _ in range(1_000_000):
        inner, outer = outer, ListAny(memory, 1)
        outer.items[0] = inner
    del inner, outer
    assert memory.budget.live == 0


def test_slices_share_and_keep_memory() -> None:
    memory = Memory(None)
    whole = HostBuffer.allocate(memory, 100)
    part = whole.slice(memory, 10, 50).slice(memory, 5, 10)
    whole.data[15] = 7
    assert part.data[0] == 7
    del whole
    assert memory.budget.live >= 100
    del part
    assert memory.budget.live == 0


def test_type_names() -> None:
    memory = Memory(None)
    assert type_name(None) == "null"
    assert type_name(ListI32(memory, 0)) == "list<i32>"
    assert type_name(HostBuffer.allocate(memory, 0)) == "buffer"
    assert type_name(3) == "int"
