"""Large results on devices that work on the host's memory: callers get the memory in which they were computed."""

import gc
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from orchestrion.vm.result_memory import MAX_FREE, RESULT_BYTES

COUNT = 1 << 20  # elements: 4 MiB, more pages than a call may touch for other reasons
X = np.arange(COUNT, dtype=np.float32)
T = f"tensor<{COUNT}xf32>"
TEXT = f"""
func.func @main(%x: {T}, %y: {T}) -> {T} {{
  %0 = stablehlo.add %x, %y : {T}
  return %0 : {T}
}}
func.func @two(%x: {T}) -> ({T}, tensor<2xf32>, {T}) {{
  %0 = stablehlo.add %x, %x : {T}
  %1 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0, %1, %x : {T}, tensor<2xf32>, {T}
}}
"""


@pytest.fixture
def program(on_host_memory: Callable[[str], AbstractContextManager[Any]]) -> Iterator[Any]:
    with on_host_memory(TEXT) as program:
        yield program


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


def test_it_is_neither_copied_nor_mapped_again(program: Any) -> None:
    """A call touches no new page once earlier results are dropped."""
    for _ in range(4):
        program.main(X, X)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(16):
        program.main(X, X)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert program.statistics()["calls"][-1]["device_to_host_bytes"] == 0
    if program.device.info.driver == "cpu":  # the reference device makes temporary arrays
        assert faults < 16 * (X.nbytes // resource.getpagesize()) // 8


def test_results_that_are_kept_keep_their_elements(program: Any) -> None:
    kept = [program.main(X, np.float32(step) + X) for step in range(4)]
    assert len({address(array) for array in kept}) == 4
    for step, array in enumerate(kept):
        np.testing.assert_array_equal(array, X + (np.float32(step) + X))
        assert array.flags.writeable and array.flags.c_contiguous and address(array) % 64 == 0


def test_memory_returns_with_the_last_array_over_it(program: Any) -> None:
    """A view, a memoryview and an array of another library count, too."""
    for share in (lambda x: x[5:7], memoryview, np.from_dlpack):
        first = program.main(X, X)
        place, part = address(first), share(first)
        del first
        assert address(program.main(X, X + 1)) != place
        want = np.asarray(part).ravel()[0]
        assert want == (10 if len(part) == 2 else 0)
        del part
        gc.collect()
        assert place in {address(one) for one in [program.main(X, X) for _ in range(MAX_FREE)]}


def test_a_slice_of_the_base_keeps_the_memory(program: Any) -> None:
    first = program.main(X, X)
    part = first.base[5:7]
    del first
    program.main(X, X + 1)
    np.testing.assert_array_equal(part, [10, 12])


def test_a_function_keeps_few_blocks(program: Any) -> None:
    kept = [program.main(X, X) for _ in range(MAX_FREE + 3)]
    places = {address(array) for array in kept}
    kept.clear()
    again = [program.main(X, X) for _ in range(MAX_FREE)]
    assert {address(array) for array in again} <= places
    (memory,) = program.main._result_memory
    assert not memory._free
    again.clear()
    assert len(memory._free) == MAX_FREE
    assert memory.release() and not memory._free and not memory.release()


def test_results_outlive_their_program(program: Any) -> None:
    device = program.context.device
    result = program.main(X, X)
    program.close()
    assert device.live["buffer"] == 0
    np.testing.assert_array_equal(result, 2 * X)
    del result


def test_each_result_is_new(program: Any) -> None:
    """Also one that is an argument, and a small one."""
    double, small, same = program.two(X)
    np.testing.assert_array_equal(double, 2 * X)
    np.testing.assert_array_equal(small, [1, 2])
    np.testing.assert_array_equal(same, X)
    assert not np.shares_memory(same, X) and small.nbytes < RESULT_BYTES and small.flags.owndata
