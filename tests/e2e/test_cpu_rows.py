"""Rows and products on the device `cpu`: the lanes of vectors share a row, whether vectors divide it or not, on every
level that this processor runs.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cpu_devices import best_level

from orchestrion import compiler
from orchestrion.compiler.targets.cpu.levels import LEVELS

LoadOn = Callable[[bytes, str], Any]
_NAMES = [name for name, row in LEVELS.items() if row.architecture == LEVELS[(*best_level(), *LEVELS)[0]].architecture]
USABLE = _NAMES[_NAMES.index(best_level()[0]) :] if best_level() else []
#: lengths of rows: of fewer than a vector and up to longer than a block for each lane, divided by vectors or not
LENGTHS = (17, 33, 64, 100, 128, 130, 256, 257, 777, 1024, 4097, 5000)

pytestmark = pytest.mark.skipif(not USABLE, reason="no device cpu")


def _softmax(x: Any) -> Any:
    return jax.nn.softmax(x)


def _norm(x: Any) -> Any:
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)


def _extrema(x: Any) -> Any:
    greatest, least = jnp.max(x, -1, keepdims=True), jnp.min(x, -1, keepdims=True)
    return greatest[:, 0], least[:, 0], jnp.where(x == greatest, least, x)


def _results(load_on: LoadOn, function: Any, x: Any, level: str) -> Any:
    return load_on(compiler.compile(function, x, targets="cpu", target_cpu=level), "cpu")["main"](x)


@pytest.mark.sampled
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("level", USABLE)
def test_rows_of_any_length(level: str, length: int, load_on: LoadOn) -> None:
    x = (np.random.default_rng(length).standard_normal((17, length)) * 4).astype(np.float32)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(-1, keepdims=True))
    found = _results(load_on, _softmax, x, level)
    np.testing.assert_allclose(found, powers / powers.sum(-1, keepdims=True), rtol=3e-6, atol=1e-37)
    centred = wide - wide.mean(-1, keepdims=True)
    want = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(_results(load_on, _norm, x, level), want, rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 7, 37, 39, 67])
@pytest.mark.parametrize("level", USABLE)
def test_products_of_any_depth(level: str, depth: int, load_on: LoadOn) -> None:
    """Numbers of products that joined iterations do not divide, and of columns that blocks do not."""
    rng = np.random.default_rng(depth)
    for rows, columns in ((100, 513), (33, 81)):
        x, y = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
        program = load_on(compiler.compile(jnp.matmul, x, y, targets="cpu", target_cpu=level), "cpu")["main"]
        np.testing.assert_array_equal(program(x, y), x @ y)


@pytest.mark.sampled
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(("depth", "columns"), [(256, 300), (1024, 520), (4096, 256), (4160, 260)])
@pytest.mark.parametrize("level", USABLE)
def test_parts_of_long_products(level: str, rows: int, depth: int, columns: int, load_on: LoadOn) -> None:
    """A dot of few rows and its sums are two dispatches. They compute the bits that more rows in one dispatch get, up
    to 64 parts of 64 products.
    """

    def layer(x: Any, w: Any, b: Any) -> Any:
        return jnp.maximum(x @ w + b, 0) + x[:, :1]

    rng = np.random.default_rng(depth)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((20, depth), (depth, columns), (columns,)))
    few, many = (
        load_on(compiler.compile(layer, x[:count], w, b, targets="cpu", target_cpu=level), "cpu")["main"]
        for count in (rows, 20)
    )
    found, want = few(x[:rows], w, b), many(x, w, b)[:rows]
    if depth <= 64 * 64:
        np.testing.assert_array_equal(found, want)
    exact = np.maximum(x[:rows].astype(np.float64) @ w + b, 0) + x[:rows, :1]
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=2e-6 * np.sqrt(depth))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("level", USABLE)
def test_powers_beside_those_at_the_ends_of_the_range(level: str, dtype: Any, load_on: LoadOn) -> None:
    """Vectors in which all powers are far from the ends of the range take a shorter way to the same bits."""
    with jax.enable_x64(True):
        rng, end = np.random.default_rng(0), np.log(np.finfo(dtype).max)
        far = (rng.uniform(-0.9, 0.9, (16, 1000)) * end).astype(dtype)
        ends = np.array([-np.inf, -1.02 * end, -end, end, 1.1 * end, np.inf, np.nan], dtype)
        chosen = rng.random(far.shape) < 0.05
        mixed = np.where(chosen, rng.choice(ends, far.shape), far)
        program = load_on(compiler.compile(jnp.exp, far, targets="cpu", target_cpu=level), "cpu")["main"]
        np.testing.assert_array_equal(program(mixed)[~chosen], program(far)[~chosen])
        with np.errstate(over="ignore"):
            want = np.exp(mixed.astype(np.longdouble)).astype(dtype)
        np.testing.assert_allclose(program(mixed), want, rtol=4 * float(np.finfo(dtype).eps), atol=0, equal_nan=True)


def _special(length: int) -> Any:
    """Rows whose extrema are NaN, infinities and zeros."""
    x = np.random.default_rng(length).standard_normal((9, length)).astype(np.float32)
    nan = np.float32(np.nan)
    x[0, length - 1], x[1, length // 2], x[2, 3], x[3, 5] = nan, np.copysign(nan, np.float32(-1)), np.inf, -np.inf
    x[4], x[5], x[6] = -np.abs(x[4]), -0.0, 0.0
    x[5, length - 1], x[6, 0] = 0.0, -0.0
    x[7, :] = -0.0
    return x


@pytest.mark.parametrize("length", [40, 128, 1000])
@pytest.mark.parametrize("level", USABLE)
def test_nan_wins_and_zeros_have_an_order(level: str, length: int, load_on: LoadOn) -> None:
    x = _special(length)
    _check_extrema(x, *_results(load_on, _extrema, x, level)[:2])


@pytest.mark.parametrize("length", [257, 1000, 1024])
@pytest.mark.parametrize("level", USABLE)
def test_lone_extrema(level: str, length: int, load_on: LoadOn) -> None:
    """Of rows, and of 2,304 columns, which workgroups of 128 invocations take."""
    x = _special(length)
    _check_extrema(x, *[_results(load_on, lambda x, f=f: f(x, axis=1), x, level) for f in (jnp.max, jnp.min)])
    columns = np.ascontiguousarray(np.repeat(x, 256, 0).T)
    found = [_results(load_on, lambda x, f=f: f(x, axis=0), columns, level) for f in (jnp.max, jnp.min)]
    assert not any((one.reshape(9, 256) != one.reshape(9, 256)[:, :1])[2:].any() for one in found)
    _check_extrema(x, *[one.reshape(9, 256)[:, 255] for one in found])


@pytest.mark.parametrize(
    "shape", [(2048, 257), (2048, 300), (3, 5000), (1030, 32, 16), (300, 2048), (300, 2100)], ids=str
)
@pytest.mark.parametrize("level", USABLE)
def test_lone_sums(level: str, shape: tuple[int, ...], load_on: LoadOn) -> None:
    x = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    for axes in (tuple(range(1, len(shape))), (0,)):
        found = _results(load_on, lambda x, axes=axes: jnp.sum(x, axis=axes), x, level)
        np.testing.assert_allclose(found, x.sum(axes, dtype=np.float64), atol=2e-4)


@pytest.mark.parametrize("level", USABLE)
def test_nan_wins_and_zeros_have_an_order_in_a_pool(level: str, load_on: LoadOn) -> None:
    """The only window of 3 x 3 of 18 channels; `x` has a row for each."""
    x = np.random.default_rng(5).standard_normal((9, 9)).astype(np.float32)
    x[0, 8], x[1, 4], x[2, 3], x[3, 5] = np.nan, np.copysign(np.float32(np.nan), np.float32(-1)), np.inf, -np.inf
    x[4], x[5], x[6], x[7] = -np.abs(x[4]), -0.0, 0.0, -0.0
    x[5, 8], x[6, 0] = 0.0, -0.0
    x = np.concatenate([x, x])
    image = np.ascontiguousarray(x.T).reshape(1, 3, 3, 18)

    def pools(image: Any) -> Any:
        window = (1, 3, 3, 1), (1, 1, 1, 1), "VALID"
        ends = (jax.lax.max, -np.inf), (jax.lax.min, np.inf)
        return [jax.lax.reduce_window(image, np.float32(start), reducer, *window).ravel() for reducer, start in ends]

    _check_extrema(x, *_results(load_on, pools, image, level))


def _check_extrema(x: Any, greatest: Any, least: Any) -> None:
    """Checks the extrema of rows, of which the sixth to the eighth are zeros with signs."""
    np.testing.assert_array_equal(greatest, x.max(-1))
    np.testing.assert_array_equal(least, x.min(-1))
    assert not np.signbit(greatest[5:7]).any() and np.signbit(least[5:7]).all()
    assert np.signbit([greatest[7], least[7]]).all()


@pytest.mark.parametrize("spec", ["mk,nk->mn", "km,nk->mn", "bmk,nk->bmn", "mk,kn->mn"])
@pytest.mark.parametrize("level", USABLE)
def test_constant_matrices_are_read_as_they_are_stored(level: str, spec: str, load_on: LoadOn) -> None:
    """By rows or by columns, and in tiles when the program is loaded."""
    sizes = {"b": 3, "m": 64, "k": 100, "n": 48}
    random = np.random.default_rng(5)
    x, weights = (
        random.standard_normal([sizes[axis] for axis in axes]).astype(np.float32)
        for axes in spec.partition("->")[0].split(",")
    )
    found = _results(load_on, lambda x: jax.nn.relu(jnp.einsum(spec, x, weights)), x, level)
    want = np.maximum(np.einsum(spec, x.astype(np.float64), weights.astype(np.float64)), 0)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)
