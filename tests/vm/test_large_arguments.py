"""Large NumPy arguments on devices that work on the host's memory: they are used where they are."""

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from orchestrion.vm.interop import IMPORT_BYTES, REPEATED_BYTES
from orchestrion.vm.slots import MAX_NEW, ArrayFields


def text(count: int) -> str:
    return f"""
func.func @main(%x: tensor<{count}xf32>, %y: tensor<{count}xf32> {{tf.aliasing_output = 0 : i32}})
    -> tensor<{count}xf32> {{
  %0 = stablehlo.add %x, %y : tensor<{count}xf32>
  return %0 : tensor<{count}xf32>
}}
"""


COUNT = IMPORT_BYTES // 4
X = np.arange(COUNT, dtype=np.float32)


@pytest.fixture
def program(on_host_memory: Callable[[str], AbstractContextManager[Any]]) -> Iterator[Any]:
    with on_host_memory(text(COUNT)) as program:
        yield program


@pytest.fixture
def smaller(on_host_memory: Callable[[str], AbstractContextManager[Any]]) -> Iterator[Any]:
    """A program whose arguments are imported only if they are where those of the last call were."""
    with on_host_memory(text(REPEATED_BYTES // 4)) as program:
        yield program


def last(program: Any) -> tuple[int, int]:
    """Bytes copied to the device in the last call, and to the host."""
    call = program.statistics()["calls"][-1]
    return call["host_to_device_bytes"], call["device_to_host_bytes"]


def test_it_is_not_copied(program: Any) -> None:
    """The second argument gives its memory to the result, so its array is copied, and keeps its elements."""
    x, y = X.copy(), X.copy()
    for _ in range(2):
        np.testing.assert_array_equal(program.main(x, y), x + y)
        assert last(program) == (IMPORT_BYTES, IMPORT_BYTES)
        x += 1
    np.testing.assert_array_equal(y, X)


def test_an_array_with_steps_is_copied(program: Any) -> None:
    x = np.arange(2 * COUNT, dtype=np.float32)[::2]
    np.testing.assert_array_equal(program.main(x, X), x + X)
    assert last(program) == (2 * IMPORT_BYTES, IMPORT_BYTES)


def test_a_read_only_array_is_not_copied(program: Any) -> None:
    x = X.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(program.main(x, X), 2 * X)
    assert last(program) == (IMPORT_BYTES, IMPORT_BYTES)


def test_an_argument_may_be_the_array_of_the_result(program: Any) -> None:
    x, y = X.copy(), X.copy()
    assert program.main(x, y, out=x) is x
    np.testing.assert_array_equal(x, 2 * X)
    wide = np.zeros((COUNT, 2), np.float32)
    program.main(X, y, out=wide[:, 1])
    np.testing.assert_array_equal(wide, np.stack([0 * X, 2 * X], 1))


def test_the_same_memory_is_imported_once(program: Any) -> None:
    statistics = program.context.device.statistics
    x, y, z = X.copy(), X.copy(), X + 1
    before = statistics.imports
    for array, imports in ((x, 1), (x, 1), (z, 2), (z, 2), (x, 3), (x[:], 3), (x[::-1], 3), (x, 3)):
        np.testing.assert_array_equal(program.main(array, y), array + y)
        assert statistics.imports == before + imports


def test_an_array_is_not_kept_alive(program: Any) -> None:
    x = X.copy()
    seen = weakref.ref(x)
    program.main(x, X)
    del x
    gc.collect()
    assert seen() is None
    x = X + 1  # perhaps in the memory of the former array
    np.testing.assert_array_equal(program.main(x, X), X + x)


def test_an_array_that_has_changed_its_memory_is_imported_again(program: Any) -> None:
    x = X.copy()
    program.main(x, X)
    x.resize(64 * COUNT, refcheck=False)
    other = np.zeros(COUNT, np.float32)
    x.resize(COUNT, refcheck=False)
    x[:] = X + 2
    np.testing.assert_array_equal(program.main(x, X), X + x)
    x.resize(2 * COUNT, refcheck=False)
    with pytest.raises(ValueError, match=rf"got f32\[{2 * COUNT}\]"):
        program.main(x, X)
    assert not other.any()


def test_the_fields_of_arrays_are_where_they_are_read() -> None:
    """Also of an array that has the place of an array that is gone."""
    fields = ArrayFields()
    x = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    views = lambda: x[1:], lambda: x.T, lambda: x[:, ::2], lambda: x[::-1], lambda: x.T.copy(), lambda: x
    for make in (lambda: x, *views):
        array = make()
        assert fields.address(array) == (array.ctypes.data if array.flags.c_contiguous else 0)
        del array


def test_the_same_memory_with_another_type_is_refused(program: Any) -> None:
    program.main(X, X)
    with pytest.raises(TypeError, match=r"got i32\["):
        program.main(X.view(np.int32), X)


def test_a_smaller_one_is_imported_from_the_second_call_in_turn(smaller: Any) -> None:
    statistics = smaller.context.device.statistics
    y = X[: REPEATED_BYTES // 4].copy()
    x, z = y.copy(), y + 1
    before = statistics.imports
    for array, imports, copied in (
        (x, 0, True),
        (x, 1, False),
        (x, 1, False),
        (z, 1, True),
        (x, 1, True),
        (z, 1, True),
        (z, 2, False),
        (z[::-1], 2, True),
        (z, 2, True),
    ):
        np.testing.assert_array_equal(smaller.main(array, y), array + y)
        assert statistics.imports == before + imports
        assert last(smaller)[0] == REPEATED_BYTES * (2 if copied else 1)
        array += 1


def test_arguments_that_are_new_in_each_call_are_copied_from_then_on(smaller: Any) -> None:
    """Arrays in turn are never imported, and after a while the function does not ask again."""
    statistics = smaller.context.device.statistics
    y = X[: REPEATED_BYTES // 4].copy()
    arrays = [y + number for number in range(3)]
    before = statistics.imports
    for number in range(2 * MAX_NEW):
        x = arrays[number % 3]
        np.testing.assert_array_equal(smaller.main(x, y), x + y)
        assert last(smaller)[0] == 2 * REPEATED_BYTES
    for _ in range(3):
        np.testing.assert_array_equal(smaller.main(y, y), 2 * y)
    assert statistics.imports == before
