"""`call.cached`: the callee runs for new arguments only; the results for the last eight arguments stay cached."""

from collections.abc import Callable
from typing import Any

import pytest

from orchestrion.vm.errors import CallerError, DepthExceeded, MemoryExceeded, Trap
from orchestrion.vm.limits import Limits

SOURCE = """
import @test.thing () -> test.thing
import @test.alive () -> i32
program @p profile "reference" {
  global @runs : i32 mutable
  func @make (i64, i32) -> (test.thing, i64) {
    %i1 = global.load.i32 @runs
    %i2 = i32.const 1
    %i1 = i32.add %i1, %i2
    global.store.i32 %i1, @runs
    require %i0 (%l0, %i0), "size {0} is refused, {1} and {2} are not: {0}"
    %r0 = call_import @test.thing()
    %l1 = i64.mul_checked %l0, %l0
    return (move %r0, %l1)
  }
  func @main (i64, i32) -> i64 {
    %r0, %l1 = call.cached @make(%l0, %i0)
    return (%l1)
  }
  func @other (i64, i32) -> i64 {
    %i1 = i32.const 1
    %r0, %l1 = call.cached @make(%l0, %i1)
    return (%l1)
  }
  func @runs () -> i32 { %i0 = global.load.i32 @runs return (%i0) }
  func @alive () -> i32 { %i0 = call_import @test.alive() return (%i0) }
  func @loops (i64) -> () {
    call.cached @loops(%l0)
    return ()
  }
}
"""


@pytest.fixture
def program(assembled: Callable[[str], Any]) -> Any:
    return assembled(SOURCE)


@pytest.mark.parametrize("translated", [False, True])
def test_the_results_for_the_last_eight_arguments_stay(program: Any, translated: bool) -> None:
    if translated:
        assert program.translate() == {"main", "other", "runs", "alive", "loops"}
    for size in (3, 3, 4, 3, 4):
        assert program.call("main", size, 1) == size * size
    assert (program.call("runs"), program.call("alive")) == (2, 2)
    for size in range(5, 11):
        program.call("main", size, 1)
    assert (program.call("runs"), program.call("alive")) == (8, 8)
    program.call("main", 3, 1)  # now used last
    program.call("main", 11, 1)  # evicts 4
    assert (program.call("runs"), program.call("alive")) == (9, 8)
    assert program.call("other", 3, 0) == 9  # the same callee and arguments
    assert program.call("runs") == 9
    program.call("main", 4, 1)
    assert (program.call("runs"), program.call("alive")) == (10, 8)
    program.context.close()
    assert program.new_context().invoke(program.codes["alive"]) == (0,)


def test_cached_results_are_charged(program: Any) -> None:
    memory = program.context.memory.budget
    before = memory.live
    for size in range(1, 30):
        program.call("main", size, 1)
    eight = memory.live - before
    assert eight > 0
    program.call("main", 40, 1)
    assert memory.live - before == eight
    assert program.context.memo_cache.clear()
    assert memory.live == before
    assert not program.context.memo_cache.clear()


def test_failed_calls_are_not_cached(program: Any) -> None:
    for _ in range(2):
        with pytest.raises(CallerError, match=r"size 7 is refused, 0 and \{2\} are not: 7\n  at make pc"):
            program.call("main", 7, 0)
    assert program.call("runs") == 2
    with pytest.raises(Trap, match=r"integer overflow: 4294967296 \* 4294967296"):
        program.call("main", 1 << 32, 1)
    with pytest.raises(DepthExceeded):
        program.call("loops", 1)
    tight = program.new_context(memory=100)
    with pytest.raises(MemoryExceeded, match="exceed the limit of 100 bytes"):
        tight.invoke(program.codes["main"], (2, 1))
    assert program.call("main", 7, 1) == 49


REFUSED = {
    "an argument of call.cached is also a result": "%r0, %l0 = call.cached @make(%l0, %i0) return (%l0)",
    "register 2 is ref, expected i64": 'require %i0 (%r0), "" return (%l0)',
    "register 4 is f32, expected i64|register 2 is f32, expected i64": "call.cached @real(%f0) return (%l0)",
}


@pytest.mark.parametrize("message", REFUSED)
def test_verifier(assembled: Callable[[str], Any], message: str) -> None:
    body = REFUSED[message]
    extra = f"  func @real (f32) -> () {{ return () }}\n  func @wrong (i64, i32) -> i64 {{ {body} }}\n}}\n"
    with pytest.raises(Exception, match=message):
        assembled(SOURCE.rstrip().removesuffix("}") + extra)


def test_a_miss_is_served_within_limits(program: Any) -> None:
    context = program.new_context(fuel=10_000, depth=2)
    program.translate()
    assert context.invoke(program.codes["main"], (5, 1)) == (25,)
    assert context.limits == Limits(10_000, None, None, 2)
