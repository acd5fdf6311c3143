"""Results that stay on the device: they go into further calls, and donated arguments give their memory away."""

import gc
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from orchestrion import compiler, vm
from orchestrion.vm.errors import CallerError

DEVICES = ("reference", "opencl", "vulkan")
X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
#: what no step of a loop may do once it runs
NOTHING = {"allocations": 0, "host_to_device_bytes": 0, "device_to_host_bytes": 0, "executables_created": 0}


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def loaded(device: str, function: Any, *examples: Any) -> Any:
    return vm.load(compiler.compile(function, *examples, targets=[device]), device=device, allow_native_code=True)


@pytest.fixture
def added(device: str) -> Iterator[Any]:
    """`main(x, y)` gives `x + y`, in the memory of `x` if that is donated, and `x * y`."""
    with loaded(device, jax.jit(lambda x, y: (x + y, x * y), donate_argnums=0), X, Y) as program:
        yield program


def place(array: Any) -> Any:
    """What two arrays over the same memory have in common."""
    return array.view.buffer.backend


def test_results_go_into_calls(added: Any) -> None:
    total, product = added.main.on_device(X, Y)
    assert isinstance(total, vm.DeviceArray) and isinstance(product, vm.DeviceArray)
    again, _ = added.main.on_device(total, product)
    np.testing.assert_array_equal(np.asarray(again), X + Y + X * Y)
    np.testing.assert_array_equal(added.main(total, Y)[0], X + Y + Y)
    np.testing.assert_array_equal(np.from_dlpack(total), X + Y)
    np.testing.assert_array_equal(total.to_numpy(), X + Y)


def test_a_donated_array_is_computed_in_place_and_consumed(added: Any) -> None:
    x = added.put(X)
    where = place(x)
    total, product = added.main.on_device(x, Y, donate="x")
    assert place(total) is where and place(product) is not where
    assert x.is_donated and "donated to 'main'" in repr(x)
    for use in (x.to_numpy, lambda: np.asarray(x), lambda: x.shape, lambda: added.main(x, Y)):
        with pytest.raises(CallerError, match="donated to a call of 'main'"):
            use()
    np.testing.assert_array_equal(total.to_numpy(), X + Y)


def test_what_is_not_aliased_is_consumed_as_well(added: Any) -> None:
    y = added.put(Y)
    where = place(y)
    total, product = added.main.on_device(X, y, donate=(np.int64(-1),))
    assert y.is_donated and where not in (place(total), place(product))


def test_nothing_is_consumed_by_wrong_arguments(added: Any) -> None:
    x = added.put(X)
    wrong: tuple[tuple[tuple[Any, ...], Any, str], ...] = (
        ((x, X[:1]), 0, "expected"),
        ((x,), 0, "takes 2 arguments"),
        ((x, x), 0, "donated, and given as argument 1 of .main. too"),
        ((x, Y), 2, "donate has argument 2; there are 2"),
        ((x, Y), "z", "donate names 'z'; the arguments are x, y"),
        ((x, Y), 0.5, "donate holds numbers and names of arguments, not float"),
    )
    for arguments, donate, message in wrong:
        with pytest.raises(CallerError, match=message):
            added.main.on_device(*arguments, donate=donate)
        assert not x.is_donated
    np.testing.assert_array_equal(x.to_numpy(), X)


def test_memory_that_others_see_is_not_written_over(added: Any) -> None:
    x = added.put(X)
    seen = np.from_dlpack(x)
    total, _ = added.main.on_device(x, Y, donate=0)
    np.testing.assert_array_equal(seen, X)
    seen = np.from_dlpack(total)
    del total, x
    gc.collect()
    for _ in range(4):
        added.main.on_device(Y, Y)
    np.testing.assert_array_equal(seen, X + Y)


def test_two_arguments_over_one_buffer(added: Any) -> None:
    x = added.put(X)
    twin = vm.DeviceArray(x.view, x._owner)
    total, product = added.main.on_device(x, twin, donate=0)
    np.testing.assert_array_equal(twin.to_numpy(), X)
    np.testing.assert_array_equal(total.to_numpy(), X + X)
    np.testing.assert_array_equal(product.to_numpy(), X * X)


def test_a_loop_allocates_and_copies_nothing(device: str) -> None:
    """Fifty steps over a tree, donated and not: all memory is there after the second step."""

    def step(state: Any, x: Any) -> Any:
        state = {"sum": state["sum"] + x, "count": state["count"] + 1}
        return state, state["sum"].mean()

    state = {"sum": np.zeros((2, 3), np.float32), "count": np.int32(0)}
    with loaded(device, jax.jit(step, donate_argnums=0), state, X) as program:
        x = program.put(X)
        for donate in (0, ()):
            current, mean = program.main.on_device(state, x)
            for _ in range(50):
                current, mean = program.main.on_device(current, x, donate=donate)
            for row in program.statistics()["calls"][-48:]:
                assert {name: row[name] for name in NOTHING} == NOTHING and row["submissions"] == 1
            assert int(current["count"]) == 51 and float(mean) == pytest.approx(51 * X.mean())


@pytest.mark.parametrize("function", [lambda x, y: (x, y), lambda x, y: (y, y), lambda x, y: (jnp.zeros(3), x)])
def test_results_that_are_arguments_or_constants_have_memory_of_their_own(device: str, function: Any) -> None:
    with loaded(device, jax.jit(function, keep_unused=True), X, Y) as program:
        x, y = program.put(X), program.put(Y)
        for donate in ((), 0, (0, 1)):
            given = program.main.on_device(x, y, donate=donate)
            for found, wanted in zip(given, function(X, Y), strict=True):
                np.testing.assert_array_equal(found.to_numpy(), wanted)
            assert place(given[0]) is not place(given[1])
            x, y = program.put(X), program.put(Y)


def test_sizes_that_come_with_the_call(device: str) -> None:
    (n,) = export.symbolic_shape("n")
    spec = jax.ShapeDtypeStruct((n,), np.float32)
    with loaded(device, lambda x: jnp.concatenate([x, x * 2]), spec) as program:
        for size in (3, 5, 3, 1, 5):
            x = np.arange(size, dtype=np.float32)
            once = program.main.on_device(x)
            twice = program.main.on_device(once, donate=0)
            np.testing.assert_array_equal(np.asarray(once := program.main.on_device(x)), np.concatenate([x, x * 2]))
            wanted = np.concatenate([x, x * 2, x * 2, x * 4])
            np.testing.assert_array_equal(twice.to_numpy(), wanted)
            np.testing.assert_array_equal(program.main(once), wanted)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16", "float32", "int4"])
def test_element_types(device: str, dtype: str) -> None:
    x = jnp.array([0, 1, 1, 0], dtype)
    with loaded(device, lambda x: x[::-1], x) as program:
        found = program.main.on_device(program.main.on_device(np.asarray(x)), donate=0)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(x))


def test_scalars(device: str) -> None:
    with loaded(device, lambda x: (x.sum(), x.any()), X) as program:
        total, is_any = program.main.on_device(X)
        assert float(total) == 15 and int(total) == 15 and total.item() == 15 and bool(is_any) is True
        assert (total.ndim, total.size, total.nbytes) == (0, 1, 4)
        with pytest.raises(TypeError, match="without dimensions"):
            len(total)
        array = program.put(X)
        assert len(array) == 2
        with pytest.raises(ValueError, match="one element, this one has 6"):
            array.item()


def test_closed_programs(added: Any) -> None:
    total, _ = added.main.on_device(X, Y)
    added.close()
    with pytest.raises(CallerError, match="closed"):
        added.main.on_device(X, Y)
    np.testing.assert_array_equal(total.to_numpy(), X + Y)


def test_spare_memory_goes_under_pressure(added: Any) -> None:
    added.main.on_device(X, Y)
    before = added.device.allocator.live_bytes
    assert added.context.release_caches()
    assert added.device.allocator.live_bytes < before
    np.testing.assert_array_equal(added.main.on_device(X, Y)[0].to_numpy(), X + Y)


def test_a_program_of_another_device(added: Any) -> None:
    other = "reference" if added.device.info.id != "reference" else "opencl"
    with loaded(other, lambda x: x, X) as program:
        array = program.main.on_device(X)
        with pytest.raises(CallerError, match="the array is on"):
            added.main.on_device(array, Y, donate=0)
        assert not array.is_donated


def test_programs_share_a_device_that_is_given_to_them(added: Any) -> None:
    blob = compiler.compile(lambda x: 2 * x, X)
    with vm.load(blob, device=added.device) as program:
        np.testing.assert_array_equal(program.main(added.main.on_device(X, Y)[0]), 2 * (X + Y))
    apart = r"the array is of another load; vm.load\(..., device=program.device\) puts programs on one"
    with loaded(added.device.info.id, lambda x: 2 * x, X) as program, pytest.raises(ValueError, match=apart):
        program.main(added.put(X))
