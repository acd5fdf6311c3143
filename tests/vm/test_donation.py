"""Donated arguments: a device array may be an argument and the destination of the result that aliases it, no other."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.schema.assembler import assemble
from orchestrion.schema.writer import write
from orchestrion.vm.errors import CallerError

X, Y = np.array([1, 2, 3, 4], np.float32), np.array([5, 6, 7, 8], np.float32)
#: a is x and b is y, by copies: in place they copy a range onto itself
PROGRAM = """
program @{profile} profile "{profile}" {{
  global @recording : hal.recording mutable
  func @begin () -> () {{
    %i0 = i32.const 4
    %r0 = call_import @hal.recording.create(%i0)
    %r1 = ref.null
    %i1 = i32.const 1
    %i2 = i32.const 2
    %i3 = i32.const 3
    %i0 = i32.const 0
    %l0 = i64.const 0
    %l1 = i64.const 16
    call_import @hal.recording.copy(%r0, %r1, %i0, %l0, %r1, %i2, %l0, %l1)
    call_import @hal.recording.copy(%r0, %r1, %i1, %l0, %r1, %i3, %l0, %l1)
    call_import @hal.recording.finish(%r0)
    global.store.ref move %r0, @recording
    return ()
  }}
  func @both (hal.view, hal.view, hal.view, hal.view) -> (hal.view, hal.view) {{
    %r4 = call_import @hal.view.buffer(%r0)
    %r5 = call_import @hal.view.buffer(%r1)
    %r6 = call_import @hal.view.buffer(%r2)
    %r7 = call_import @hal.view.buffer(%r3)
    %r8 = global.load.ref @recording
    call_import @hal.execute(%r8, %r4, %r5, %r6, %r7)
    return (%r2, %r3)
  }}
  entry @both
  initializer context @begin
}}
"""
HEAD = """
import @hal.recording.create (i32) -> hal.recording
import @hal.recording.copy (hal.recording, hal.buffer, i32, i64, hal.buffer, i32, i64, i64) -> ()
import @hal.recording.finish (hal.recording) -> ()
import @hal.view.buffer (hal.view) -> hal.buffer
import @hal.execute (hal.recording, hal.buffer*) -> ()
export @both (x: tensor<4xf32>, y: tensor<4xf32>) -> (a: tensor<4xf32> alias 0, b: tensor<4xf32>)
"""
DEVICES = ("reference", "opencl", "vulkan")


@pytest.fixture(params=DEVICES)
def program(request: pytest.FixtureRequest) -> Iterator[Any]:
    programs = [PROGRAM.format(profile=profile) for profile in ("spirv", "opencl", "reference")]
    loaded = vm.load(write(assemble(HEAD + "".join(programs))), device=request.param, allow_native_code=True)
    yield loaded
    loaded.close()


def call(program: Any, submitted: bool, *arguments: Any, out: Any) -> Any:
    return program.both.submit(*arguments, out=out).result(30) if submitted else program.both(*arguments, out=out)


@pytest.mark.parametrize("submitted", [False, True])
def test_in_place(program: Any, submitted: bool) -> None:
    x, y, b = program.put(X), program.put(Y), program.empty((4,), np.float32)
    for _ in range(3):
        a, other = call(program, submitted, x, y, out=(x, b))
        assert a is x and other is b
    np.testing.assert_array_equal(x.to_numpy(), X)
    np.testing.assert_array_equal(b.to_numpy(), Y)
    call(program, submitted, y, X, out=(y, b))
    np.testing.assert_array_equal(y.to_numpy(), Y)
    np.testing.assert_array_equal(b.to_numpy(), X)
    assert program.statistics()["calls"][-1]["allocations"] == 0


@pytest.mark.parametrize("submitted", [False, True])
def test_host_arrays_are_copied_anyway(program: Any, submitted: bool) -> None:
    x, y = X.copy(), Y.copy()
    call(program, submitted, x, y, out=(y, x))
    np.testing.assert_array_equal(x, Y)
    np.testing.assert_array_equal(y, X)


@pytest.mark.parametrize("submitted", [False, True])
def test_only_that_pair(program: Any, submitted: bool) -> None:
    x, y, z = program.put(X), program.put(Y), program.empty((4,), np.float32)
    cases = [
        ((x, y), (y, z), "out 0 of 'both' shares its memory with argument 1, which is not donated to it"),
        ((x, y), (z, y), "out 1 of 'both' shares its memory with argument 1, which is not donated to it"),
        ((x, y), (z, x), "out 1 of 'both' shares its memory with argument 0, which is not donated to it"),
        ((x, x), (x, z), "out 0 of 'both' shares its memory with argument 1, which is not donated to it"),
        ((x, y), (x, x), "out 1 of 'both' shares its memory with argument 0, which is not donated to it"),
        ((X, Y), (z, z), "out 1 of 'both' shares its memory with out 0"),
        ((x.view, Y), (z, x), "out 1 of 'both' shares its memory with argument 0"),
    ]
    for arguments, out, message in cases:
        with pytest.raises(CallerError) as caught:
            call(program, submitted, *arguments, out=out)
        assert message in str(caught.value)
    np.testing.assert_array_equal(x.to_numpy(), X)
