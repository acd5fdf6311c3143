"""Calls, suspension, errors with their place, contexts apart from each other and from threads."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from orchestrion.vm.call import Call
from orchestrion.vm.errors import CallerError, ProgramFailed, Trap

SOURCE = """
import @test.fence (i32) -> hal.fence
import @test.sum (i32*) -> i32
program @p profile "reference" {
  global @count : i32 mutable = 10
  func @suspend (i32) -> i32 {
    %r0 = call_import @test.fence(%i0)
    %i1 = i32.const 100
    %i1 = call @_inner(%r0, %i1)
    %i0 = i32.add %i0, %i1
    return (%i0)
  }
  func @_inner (hal.fence, i32) -> i32 {
    await move %r0
    %i1 = i32.const 1
    %i0 = i32.add %i0, %i1
    return (%i0)
  }
  func @divide (i32, i32) -> i32 {
    %i0 = call @_divide(%i0, %i1)  loc "model.py:7"
    return (%i0)
  }
  func @_divide (i32, i32) -> i32 {
    %i2 = i32.const 1  loc "model.py:1"
    %i0 = i32.div_s %i0, %i1  loc "model.py:2"
    return (%i0)
  }
  func @fallthrough (i32) -> i32 {
    %i1 = i32.const 3
    br_if %i0, ^b, ^a
  ^a:
    %i1 = i32.const 4
  ^b:
    %i1 = i32.add %i1, %i0
    return (%i1)
  }
  func @reused_constant () -> i32 {
    %i0 = i32.const 1
    %i1 = i32.copy %i0
    %i0 = i32.const 2
    %i2 = call_import @test.sum(%i0, %i1, %i0)
    %i0 = i32.add %i0, %i2
    %i1 = call_import @test.sum(%i0, %i1)
    return (%i1)
  }
  func @constant_in_a_loop (i32) -> i32 {
    %i1 = i32.const 5
  ^again:
    %i3 = i32.add %i3, %i1
    %i1 = i32.const 7
    %i2 = i32.const 1
    %i0 = i32.sub %i0, %i2
    br_if %i0, ^again, ^end
  ^end:
    return (%i3)
  }
  func @parameter_overwritten (i32) -> i32 {
    %i1 = i32.copy %i0
    %i0 = i32.const 5
    %i1 = i32.sub %i1, %i0
    return (%i1)
  }
  func @read_before (i32) -> i32 {
    %i2 = i32.copy %i1
    %i1 = i32.const 5
    br ^next
  ^next:
    %i2 = i32.sub %i2, %i1
    return (%i2)
  }
  func @"" () -> () {
    fail "without a name"
  }
  func @bump () -> i32 {
    %i0 = global.load.i32 @count
    %i1 = i32.const 1
    %i0 = i32.add %i0, %i1
    global.store.i32 %i0, @count
    return (%i0)
  }
  func @bump_often (i32) -> i32 {
    %i2 = i32.const 1
  ^again:
    %i1 = call @bump()
    %i0 = i32.sub %i0, %i2
    br_if %i0, ^again, ^end
  ^end:
    return (%i1)
  }
}
"""


@pytest.fixture(scope="module")
def program(assembled: Callable[[str], Any]) -> Any:
    return assembled(SOURCE)


def test_suspension_in_a_nested_call(program: Any) -> None:
    context = program.context
    call = Call(context)
    context.start(call, program.codes["suspend"], (2,))
    assert call.waiting is not None
    assert call.results == ()
    with pytest.raises(CallerError, match="waits for a fence that is not signalled"):
        context.resume(call)
    program.native.fences.pop().signal(1)
    context.resume(call)
    assert call.waiting is None
    assert call.results == (103,)


def test_several_suspended_calls_of_one_context(program: Any) -> None:
    context = program.context
    calls = [Call(context) for _ in range(3)]
    for number, call in enumerate(calls):
        context.start(call, program.codes["suspend"], (2 + 10 * number,))
    assert program.call("reused_constant") == 8
    for number in (2, 0, 1):
        program.native.fences[number].signal(1)
        context.resume(calls[number])
    program.native.fences.clear()
    assert [call.results for call in calls] == [(103,), (113,), (123,)]


def test_blocking_call_waits(program: Any) -> None:
    assert program.call("suspend", 1) == 102
    assert program.call("suspend", 0) == 101


def test_error_has_place_and_callers(program: Any) -> None:
    with pytest.raises(Trap) as caught:
        program.call("divide", 1, 0)
    assert str(caught.value) == (
        "integer divide by zero\n  at _divide pc 0x8 (model.py:2)\n  called from divide pc 0x0 (model.py:7)"
    )
    assert program.call("divide", 7, -2) == -3


def test_function_without_a_name(program: Any) -> None:
    with pytest.raises(ProgramFailed, match="without a name\n  at function 9 pc 0x0"):
        program.call("")


CONSTANTS = {
    "fallthrough": [((0,), 4), ((5,), 8)],
    "reused_constant": [((), 8)],
    "constant_in_a_loop": [((1,), 5), ((3,), 19)],
    "parameter_overwritten": [((7,), 2)],
    "read_before": [((7,), -5)],
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_mean_the_same_wherever_they_are_kept(program: Any, name: str) -> None:
    for arguments, result in CONSTANTS[name]:
        assert program.call(name, *arguments) == result
        assert program.call(name, *arguments) == result


def test_contexts_have_globals_of_their_own(program: Any) -> None:
    first, second = program.new_context(), program.new_context()
    bump = program.codes["bump"]
    assert first.invoke(bump) == (11,)
    assert first.invoke(bump) == (12,)
    assert second.invoke(bump) == (11,)


def test_calls_of_one_context_take_turns(program: Any) -> None:
    context = program.new_context()
    threads = [threading.Thread(target=context.invoke, args=(program.codes["bump_often"], (2000,))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert context.invoke(program.codes["bump"]) == (8011,)


def test_code_is_built_once_for_all_threads(assembled: Callable[[str], Any]) -> None:
    fresh = assembled(SOURCE)
    results: list[Any] = []
    barrier = threading.Barrier(8)

    def work() -> None:
        context = fresh.new_context()
        barrier.wait()
        results.append(context.invoke(fresh.codes["reused_constant"]))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(8,)] * 8
