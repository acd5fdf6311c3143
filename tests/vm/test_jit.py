"""Translated functions mean what the interpreter means: results, errors with their pc, nulls, what is left alone."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from orchestrion.hal.buffer import Buffer, BufferView
from orchestrion.hal.device import Device
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.vm.context import Context
from orchestrion.vm.errors import Trap, VmError
from orchestrion.vm.hal_module import HalModule
from orchestrion.vm.limits import Limits

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
    assert (program.codes[name].translation is not None) == (name not in ("branches", "two_results"))


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


VIEWS = """
import @hal.view.check (hal.view, i32, i64*) -> hal.buffer
import @hal.view.destination (hal.view, i32, i64*) -> hal.view
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.view.dim (hal.view, i32) -> i64
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.finish (hal.recording) -> ()
import @hal.execute (hal.recording, hal.buffer*) -> ()
program @p profile "reference" {
  func @check (hal.view) -> hal.buffer {
    %i0 = i32.const 1056
    %l0 = i64.const 4
    %r1 = call_import @hal.view.check(%r0, %i0, %l0)
    return (%r1)
  }
  func @scalar (hal.view) -> hal.buffer {
    %i0 = i32.const 1056
    %r1 = call_import @hal.view.check(%r0, %i0)
    return (%r1)
  }
  func @destination (hal.view) -> hal.view {
    %i0 = i32.const 1056
    %l0 = i64.const 4
    %r1 = call_import @hal.view.destination(%r0, %i0, %l0)
    return (%r1)
  }
  func @anew () -> hal.view {
    %i0 = i32.const 1056
    %l0 = i64.const 4
    %r1 = call_import @hal.view.destination(%r0, %i0, %l0)
    return (%r1)
  }
  func @any (hal.view) -> hal.buffer {
    %i0 = i32.const 1056
    %l0 = i64.const -1
    %r1 = call_import @hal.view.check(%r0, %i0, %l0)
    return (%r1)
  }
  func @partly (hal.view) -> hal.buffer {
    %i0 = i32.const 1056
    %l0 = i64.const -1
    %l1 = i64.const 2
    %r1 = call_import @hal.view.check(%r0, %i0, %l0, %l1)
    return (%r1)
  }
  func @dim (hal.view) -> i64 {
    %i0 = i32.const 1
    %l0 = call_import @hal.view.dim(%r0, %i0)
    return (%l0)
  }
  func @buffer (hal.view) -> hal.buffer {
    %r1 = call_import @hal.view.buffer(%r0)
    return (%r1)
  }
  func @execute (hal.view) -> () {
    %i0 = i32.const 1
    %r1 = call_import @hal.recording.create(%i0)
    call_import @hal.recording.finish(%r1)
    %r2 = call_import @hal.view.buffer(%r0)
    call_import @hal.execute(%r1, %r2)
    return ()
  }
  func @wrong_count (hal.view) -> () {
    %i0 = i32.const 2
    %r1 = call_import @hal.recording.create(%i0)
    call_import @hal.recording.finish(%r1)
    %r2 = call_import @hal.view.buffer(%r0)
    call_import @hal.execute(%r1, %r2)
    return ()
  }
}
"""
VIEW_FUNCTIONS = (
    "check", "any", "partly", "dim", "scalar", "destination", "anew", "buffer", "execute", "wrong_count",
)  # fmt: skip
F32, I32 = BY_NAME["f32"], BY_NAME["i32"]
GIVEN: dict[str, Callable[[Buffer], BufferView | None]] = {
    "fits": lambda buffer: BufferView(buffer, F32, (4,)),
    "null": lambda buffer: None,
    "another type": lambda buffer: BufferView(buffer, I32, (4,)),
    "another shape": lambda buffer: BufferView(buffer, F32, (2, 2)),
    "a scalar": lambda buffer: BufferView(buffer, F32, ()),
    "behind the start": lambda buffer: BufferView(buffer, F32, (4,), 16),
    "empty": lambda buffer: BufferView(buffer, F32, (0,)),
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", VIEW_FUNCTIONS)
def test_inlined_functions_are_the_functions(
    assembled: Callable[[str], Any], device: Device, name: str, given: str
) -> None:
    """Same result, or same error with the same place, and the same work for the device."""
    views = assembled(VIEWS)
    assert views.translate() == set(views.codes)
    code = views.codes[name]
    translation = code.translation
    buffer = device.allocator.allocate(64)
    arguments = [GIVEN[given](buffer)] if code.arguments else []
    results = []
    for limits in ({}, {"deadline": 10.0}):
        for translated in (False, True):
            share = device.share()
            context = Context(views.linked, Limits(**limits), device=share)
            code.translation = translation if translated else None
            try:
                found = context.invoke(code, arguments)
                outcome: Any = [one if one in (buffer, *arguments) or one == 2 else type(one) for one in found]
            except VmError as error:
                outcome = type(error), str(error)
            results.append((outcome, share.statistics.submissions, share.statistics.dispatches))
            found = ()
            context.close()
    assert results.count(results[0]) == 4


def test_functions_that_are_inlined() -> None:
    """Each stands in `VIEWS`."""
    hal = HalModule()
    inlined = {row.name for name in HAL_IMPORTS if (row := hal.find(name)) and row.inline}
    assert inlined == {"hal.view.check", "hal.view.destination", "hal.view.buffer", "hal.view.dim", "hal.execute"}
    assert all(f"import @{name} " in VIEWS for name in inlined)


def test_threads(program: Any) -> None:
    """One translation serves contexts that run at once."""
    program.translate()
    code, wrong = program.codes["swap"], []

    def work(seed: int) -> None:
        context = program.new_context()
        for i in range(300):
            if context.invoke(code, (seed, i)) != (i, seed):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
