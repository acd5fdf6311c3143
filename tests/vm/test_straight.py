"""Translated functions mean what the interpreter means: results, errors with their pc, nulls, what is left alone."""

from collections.abc import Callable
from typing import Any

import pytest

from orchestrion.vm.errors import Trap, VmError

SOURCE = """
import @test.add (i32, i64, f32, f64, any) -> (any, f64, f32, i64, i32)
import @test.sum (i32*) -> i32
import @test.count (any, (i32, any)*) -> i32
import @test.thing () -> test.thing
program @p profile "reference" {
  global @number : i32 = 40
  global @real : f32 = 0.1
  global @ref : any mutable
  func @constants () -> (i32, i64, f32, f64, f32, f64) {
    %i0 = i32.const -2147483648
    %l0 = i64.const 9223372036854775807
    %f0 = f32.const 1e-45
    %d0 = f64.const -inf
    %f1 = f32.zero
    return (%i0, %l0, %f0, %d0, %f1, %d1)
  }
  func @reused () -> i32 {
    %i0 = i32.const 1
    %i1 = i32.copy %i0
    %i0 = i32.const 2
    %i2 = global.load.i32 @number
    %i0 = call_import @test.sum(%i0, %i1, %i2, %i3)
    %i0 = call_import @test.sum(%i0)
    return (%i0)
  }
  func @swap (i32, i32) -> (i32, i32) {
    %i2 = i32.copy %i0
    %i0 = i32.copy %i1
    %i1 = i32.copy %i2
    return (%i0, %i1)
  }
  func @one (any) -> any { return (%r0) }
  func @groups (any, any) -> i32 {
    %i0 = call_import @test.count(%r0, %i0, move %r1, %i0, %r1)
    return (%i0)
  }
  func @fails (i32) -> i32 {
    %i0 = i32.copy %i0
    %i0 = i32.zero  loc "a:1"
    %i0 = call_import @test.count(%r0)  loc "b:2"
    return (%i0)
  }
  func @branches (i32) -> i32 { br ^end ^end: return (%i0) }
  func @two_results (i32) -> i32 {
    %r0, %d0, %f0, %l0, %i0 = call_import @test.add(%i0, %l0, %f0, %d0, %r0)
    return (%i0)
  }
  func @long () -> () { LONG return () }
}
"""


@pytest.fixture
def program(assembled: Callable[[str], Any]) -> Any:
    return assembled(SOURCE.replace("LONG", "%i0 = i32.zero " * 2000))


def test_what_is_translated(program: Any) -> None:
    assert program.translate() == {"constants", "reused", "swap", "one", "groups", "fails"}


CALLS = {
    "constants": ((), (-(2**31), 2**63 - 1, 2.0**-149, float("-inf"), 0.0, 0.0)),
    "reused": ((), 43),
    "swap": ((1, 2), (2, 1)),
    "one": (("a ref",), "a ref"),
    "groups": (("a ref", "another"), 2),
    "branches": ((7,), 7),
    "two_results": ((7,), 8),
}


@pytest.mark.parametrize("name", CALLS)
def test_same_as_the_interpreter(program: Any, name: str) -> None:
    arguments, wanted = CALLS[name]
    assert program.call(name, *arguments) == wanted
    program.translate()
    assert program.call(name, *arguments) == wanted


@pytest.mark.parametrize("name", CALLS)
def test_called_often(program: Any, name: str) -> None:
    arguments, wanted = CALLS[name]
    for _ in range(50):
        assert program.call(name, *arguments) == wanted
    assert (program.codes[name].straight is not None) == (name not in ("branches", "two_results"))


@pytest.mark.parametrize("translated", [False, True])
def test_errors(program: Any, translated: bool) -> None:
    if translated:
        program.translate()
    with pytest.raises(Trap) as caught:
        program.call("fails", 1)
    message = "argument 0 of test.count: expected any, got null\n  at fails pc 0xa (b:2)"
    assert str(caught.value) == message
    with pytest.raises(VmError, match="expected any, got null"):
        program.call("groups", None, "another")
    assert program.call("groups", "a ref", None) == 2
