"""No program sees memory of another: not of one that was closed, on a device that both use, nor of another context.

The first program fills memory of many sizes with a pattern and goes. The second, written by hand, hands out all that it
can get hold of without having written it. Both are strangers' modules, of copies alone, so they run on every device.
"""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.policy import Policy
from orchestrion.hal.registry import open_device
from orchestrion.schema.assembler import assemble
from orchestrion.schema.writer import write

DEVICES = ("reference", "opencl", "vulkan", "swiftshader")
WORDS = 75_000
PATTERN = 0xA5A5A5A5
#: of a tensor, in words: the results of the second program, and sizes that share blocks with them
SIZES = (WORDS, 1, 3, 5, 64, 1024, WORDS // 2, 3 * WORDS)

SOURCE = f"""
import @hal.allocate (i64) -> hal.buffer
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.copy (hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.view.create (hal.buffer, i64, i32, i64*) -> hal.view
import @hal.view.destination (hal.view, i32, i64*) -> hal.view
import @hal.execute (hal.recording, hal.buffer*) -> ()
export @arena doc "what lies in the context's arena" () -> (z: tensor<{WORDS}xui32>)
export @keep doc "copies x into the arena" (x: tensor<{WORDS}xui32>) -> (z: tensor<{WORDS}xui32>)
export @fresh doc "memory of the call, through a copy" () -> (z: tensor<{WORDS}xui32>)
export @view doc "memory of the call, as a result" () -> (z: tensor<{WORDS}xui32>)
export @tail doc "a result behind the start of a buffer" () -> (z: tensor<3xui32>)
export @slot doc "the result's own slot, not written" () -> (z: tensor<{WORDS}xui32>)
export @small doc "the same, less than a granule" () -> (z: tensor<5xui8>)
"""
PROGRAM = f"""
program @{{profile}} profile "{{profile}}" {{{{
  global @arena : hal.buffer mutable
  func @setup () -> () {{{{
    %l0 = i64.const {4 * WORDS}
    %r0 = call_import @hal.allocate(%l0)
    global.store.ref move %r0, @arena
    return ()
  }}}}
  func @copied (hal.buffer, hal.buffer) -> () {{{{
    %r3 = ref.null
    %i0 = i32.const 2
    %i1 = i32.const 1
    %i2 = i32.const 0
    %l1 = i64.const {4 * WORDS}
    %r2 = call_import @hal.recording.create(%i0)
    call_import @hal.recording.copy(%r2, %r3, %i2, %l0, %r3, %i1, %l0, %l1)
    call_import @hal.recording.finish(%r2)
    call_import @hal.execute(%r2, %r0, %r1)
    return ()
  }}}}
  func @arena (hal.view) -> hal.view {{{{
    %r1 = global.load.ref @arena
    %r2 = call_import @hal.view.buffer(%r0)
    call @copied(%r1, %r2)
    return (%r0)
  }}}}
  func @keep (hal.view, hal.view) -> hal.view {{{{
    %r2 = global.load.ref @arena
    %r3 = call_import @hal.view.buffer(%r0)
    call @copied(%r3, %r2)
    return (%r1)
  }}}}
  func @fresh (hal.view) -> hal.view {{{{
    %l0 = i64.const {4 * WORDS}
    %r1 = call_import @hal.allocate(%l0)
    %r2 = call_import @hal.view.buffer(%r0)
    call @copied(%r1, %r2)
    return (%r0)
  }}}}
  func @view (hal.view) -> hal.view {{{{
    %i0 = i32.const {{dtype}}
    %l0 = i64.const {WORDS}
    %r0 = ref.null
    %r0 = call_import @hal.view.destination(%r0, %i0, %l0)
    return (%r0)
  }}}}
  func @tail (hal.view) -> hal.view {{{{
    %i0 = i32.const {{dtype}}
    %l0 = i64.const 4096
    %l1 = i64.const 4084
    %l2 = i64.const 3
    %r1 = call_import @hal.allocate(%l0)
    %r0 = call_import @hal.view.create(%r1, %l1, %i0, %l2)
    return (%r0)
  }}}}
  func @same (hal.view) -> hal.view {{{{
    return (%r0)
  }}}}
  initializer context @setup
  entry @arena
  entry @keep
  entry @fresh
  entry @view
  entry @tail
  entry @same
  entry @same
}}}}
"""


def stranger() -> bytes:
    from orchestrion.schema.dtypes import BY_NAME

    code = BY_NAME["ui32"].code
    programs = [PROGRAM.format(profile=profile, dtype=code) for profile in ("spirv", "opencl", "reference")]
    return write(assemble(SOURCE + "".join(programs)))


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    name = request.getfixturevalue("swiftshader") if request.param == "swiftshader" else request.param
    try:
        opened = open_device(name, policy=Policy())
    except DriverUnavailable as error:
        pytest.skip(str(error))
    with opened:
        yield opened


def pattern(words: int = WORDS) -> Any:
    return np.full(words, PATTERN, np.uint32)


def leave_pattern(device: Device) -> None:
    """A program that fills slots, an arena and memory of many sizes with the pattern, and is closed."""
    first = vm.load(stranger(), device)
    first.keep(pattern())
    assert (first.arena() == PATTERN).all()
    for _ in range(3):
        kept = [first.put(pattern(words)) for words in SIZES]
        assert (np.asarray(kept[-1]) == PATTERN).all()
        del kept
    first.close()
    gc.collect()


def outputs(program: Any) -> dict[str, Any]:
    """What the second program can get hold of."""
    found = {name: program[name]() for name in ("arena", "fresh", "view", "tail", "slot", "small")}
    if hasattr(program, "empty"):
        found |= {f"empty {words}": np.asarray(program.empty((words,), np.uint32)) for words in SIZES}
    return found


def assert_zeros(found: dict[str, Any]) -> None:
    seen = {name: int(np.count_nonzero(array)) for name, array in found.items()}
    assert not any(seen.values()), f"words of another program: {seen}"


def test_memory_of_a_closed_program(device: Device) -> None:
    for _ in range(3):
        leave_pattern(device)
        second = vm.load(stranger(), device)
        assert_zeros(outputs(second))
        second.close()


def test_memory_of_a_program_that_works_beside_it(device: Device) -> None:
    """What the first lets go of while it lives is as clean for the second as what it leaves behind."""
    first, second = vm.load(stranger(), device), vm.load(stranger(), device)
    for _ in range(3):
        first.keep(pattern())
        for words in SIZES:
            first.put(pattern(words))
        gc.collect()
        assert_zeros(outputs(second))
    first.close()
    second.close()


def test_memory_of_a_closed_context(device: Device) -> None:
    """Mutable globals and what they refer to are each context's own."""
    program = vm.load(stranger(), device)
    for _ in range(3):
        context = program.create_context()
        assert_zeros(outputs(context))
        context.keep(pattern())
        assert (context.arena() == PATTERN).all()
        context.close()
        del context
        gc.collect()
    assert_zeros(outputs(program))
    program.close()


def test_memory_that_is_used_again_in_a_context(device: Device) -> None:
    """A call that lets go of memory leaves nothing in it for the next, in which the caller may be another."""
    program = vm.load(stranger(), device)
    program.keep(pattern())
    for _ in range(3):
        for words in SIZES:
            program.put(pattern(words))
        found = outputs(program)
        del found["arena"]
        assert_zeros(found)
    program.close()
