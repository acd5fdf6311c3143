"""The programs that every device must compute as JAX does, and how close is close enough.

A test that takes `case` runs once per program of `CASES`, or of those that its marker `programs` names; one that takes
`graph_case` only for those that differ in more than element types. Integers, booleans and moved data must be equal;
floats may differ by the tolerances of the issue: f32 |got - want| <= 1e-5 |want| + 1e-6 max|want|, f64 1e-12 and 1e-13.
"""

import functools
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from control_flow import PROGRAMS as CONTROL_FLOW  # noqa: E402
from jax import lax  # noqa: E402
from loop_programs import Programs  # noqa: E402
from named_devices import profiled  # noqa: E402
from object_files import kept  # noqa: E402
from random_streams import PROGRAMS as RANDOM  # noqa: E402
from scatters import PROGRAMS as SCATTERS  # noqa: E402
from sorts import PROGRAMS as SORTS  # noqa: E402
from windows import PROGRAMS as WINDOWS  # noqa: E402

Array = np.ndarray[Any, Any]
#: tests that have a sample of the programs have all of them
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: element type -> relative and absolute tolerance (the latter times the largest magnitude wanted)
TOLERANCES = {np.dtype(np.float32): (1e-5, 1e-6), np.dtype(np.float64): (1e-12, 1e-13)}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1e30, -1e-30)


@dataclass(frozen=True, eq=False)
class Case:
    """A JAX function and what it is called with. `exact`: floats too must be equal, the function only moves them."""

    name: str
    function: Callable[..., Any]
    specs: tuple[tuple[tuple[int, ...], str], ...]
    fill: Callable[[np.random.Generator, tuple[int, ...], str], Array]
    exact: bool = False
    jit: dict[str, Any] = field(default_factory=dict)

    def arguments(self) -> list[Array]:
        random = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [self.fill(random, shape, dtype) for shape, dtype in self.specs]

    def lowered(self) -> Any:
        shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in self.specs]
        return jax.jit(self.function, keep_unused=True, **self.jit).lower(*shapes)

    def wanted(self) -> list[Array]:
        """What JAX computes, on this machine's CPU."""
        return [np.asarray(x) for x in jax.tree.leaves(jax.jit(self.function, keep_unused=True)(*self.arguments()))]


def normal(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Floats from a normal distribution, integers from all of their range, booleans."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.asarray(random.normal(size=shape), dtype=kind)
    if kind.kind == "b":
        return np.asarray(random.integers(0, 2, size=shape), dtype=kind)
    info = np.iinfo(kind)
    return np.asarray(random.integers(info.min, info.max, size=shape, dtype=kind, endpoint=True))


def special(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Floats among which zeros, infinities and NaN are frequent; the extremes of integers."""
    values = np.array(normal(random, shape, dtype))
    kind = np.dtype(dtype)
    choices: tuple[Any, ...] = SPECIAL
    if kind.kind in "iu":
        choices = (np.iinfo(kind).min, np.iinfo(kind).max, 0, 1, np.iinfo(kind).max - 1, 2)
    if kind.kind != "b":
        flat = values.reshape(-1)
        with np.errstate(over="ignore"):
            flat[::2] = random.choice(np.array(choices, dtype=kind), size=flat[::2].shape)
    return values


def small(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """Integers from -4 to 4 (or 0 to 8), positive floats."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.asarray(np.abs(random.normal(size=shape)) + 0.1, dtype=kind)
    low = 0 if kind.kind == "u" else -4
    return np.asarray(random.integers(low, low + 9, size=shape), dtype=kind)


def _weights(*shape: int) -> Array:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32) / 8


def _mlp(x: Any) -> Any:
    hidden = jnp.tanh(x @ _weights(32, 64) + _weights(64))
    hidden = jax.nn.relu(hidden @ _weights(64, 64) + _weights(64))
    return jax.nn.softmax(hidden @ _weights(64, 10) + _weights(10))


def _transcendental(x: Any) -> Any:
    y = jnp.abs(x) + 0.25
    plain = [jnp.exp(x), jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.tanh(x), jax.nn.sigmoid(x), jnp.expm1(x), jnp.cbrt(x)]
    return plain + [jnp.log(y), jnp.log1p(y), jnp.sqrt(y), lax.rsqrt(y), jnp.arctan2(x, y), y**x]


def _inverse(x: Any) -> Any:
    wide = [jnp.sinh(x), jnp.cosh(x), jnp.arctan(x), jnp.arcsinh(x), jnp.arccosh(x), jnp.arccosh(jnp.abs(x) + 1)]
    return [*wide, jnp.arcsin(x), jnp.arccos(x), jnp.arctanh(x), jnp.arcsin(x / 4), jnp.arctanh(x / 4), jnp.tan(x)]


def _special(x: Any, y: Any) -> Any:
    orders = [jnp.maximum(x, y), jnp.minimum(x, y), jnp.abs(x), jnp.sign(x)]
    return [x + y, x * y, x / y, -x, *orders, jnp.isfinite(x), jnp.isnan(y)]


def _select(p: Any, x: Any, y: Any) -> Any:
    return jnp.where(p, x, y), jnp.where(x > 0, 1, y)


def _clamp(x: Any) -> Any:
    return jnp.clip(x, -0.5, 0.5), lax.clamp(jnp.float32(0), x, jnp.float32(1))


def _dense(x: Any, y: Any, b: Any) -> Any:
    return jax.nn.relu(x.T @ y.astype(_F) + b)


def _widening_dot(x: Any, y: Any) -> Any:
    return lax.dot(x, y, preferred_element_type=jnp.int32)


def _integers(x: Any, y: Any) -> Any:
    return [
        x + y,
        x - y,
        x * y,
        lax.div(x, y),
        lax.rem(x, y),
        jnp.maximum(x, y),
        jnp.minimum(x, y),
        x & y,
        x | y,
        x ^ y,
        ~x,
    ]


def _bits(x: Any, y: Any) -> Any:
    n = lax.rem(y, jnp.asarray(11, y.dtype))
    shifts = [lax.shift_left(x, n), lax.shift_right_logical(x, n), lax.shift_right_arithmetic(x, n)]
    return [*shifts, lax.population_count(x), lax.clz(x)]


def _compare(x: Any, y: Any) -> Any:
    return [x == y, x != y, x < y, x <= y, x > y, x >= y]


def _convert(x: Any) -> Any:
    return [x.astype(dtype) for dtype in ("bool", *INTEGERS, "float32", "float64")]


def _layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(jnp.float32(q.shape[-1]))
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)


def _special_functions(x: Any) -> Any:
    y = abs(x) + 0.1
    grown = jax.vmap(jax.grad(lax.digamma))(y)
    return lax.lgamma(x), lax.digamma(y), lax.bessel_i1e(x), lax.zeta(y + 1, y), lax.polygamma(x * 0 + 3, y), grown


def _special_values(x: Any) -> Any:
    return lax.lgamma(x), lax.digamma(x), lax.erf_inv(x), lax.bessel_i1e(x)


def _normal(key: Any) -> Any:
    return jax.random.normal(key, (33,), _F), jax.random.normal(key, (33,), "float64")


def _statistics(x: Any) -> Any:
    return [x.sum(0), x.mean(1), x.var((0, 2)), x.max((0, 1, 2)), x.min(2), x.prod(1), jnp.abs(x).sum()]


def _custom_reduce(x: Any, y: Any) -> Any:
    """The largest sum and the smallest product met, several operands at once."""

    def reducer(a: Any, b: Any) -> Any:
        return jnp.maximum(a[0], b[0]), jnp.minimum(a[1], b[1]), a[2] + b[2]

    return lax.reduce((x + y, x * y, x), (jnp.float32(-9e9), jnp.float32(9e9), jnp.float32(0)), reducer, (1,))


def _deep(x: Any) -> Any:
    for i in range(40):
        x = jnp.sin(x) * 0.5 + i / 100 if i % 3 else x + jnp.float32(i)
    return x


def _pads(x: Any) -> Any:
    zero = jnp.asarray(7, x.dtype)
    return [lax.pad(x, zero, ((1, 2, 0), (0, 0, 3))), lax.pad(x, zero, ((-1, 4, 2), (2, -3, 0)))]


def _slices(x: Any) -> Any:
    return [x[1:5:2, ::3], x[2:3], x[:, -1], x[0, 0], x[::-1, ::-2]]


def _dynamic_slices(x: Any, i: Any, j: Any) -> Any:
    """Starts in range and far outside on both sides, of the type of `i`, known and computed."""
    parts = [lax.dynamic_slice(x, (i[k], i[3 - k]), (2, 3)) for k in range(4)]
    whole = lax.dynamic_slice(x, (i[0], j), (6, 2)), lax.dynamic_slice(x, (j, j), (6, 10))
    return [*parts, *whole, lax.dynamic_slice(x, (j, j - j), (0, 4)), (lax.dynamic_index_in_dim(x * 2, j, 0) + x).T]


def _gathers(x: Any, i: Any) -> Any:
    """Rows, columns, elements along an axis, slices from two indices at once, in every mode that clamps or fills."""
    j = jnp.stack([i, i[::-1]], -1)
    mode = lax.GatherScatterMode.CLIP
    numbers = lax.GatherDimensionNumbers((1, 2), (), (0, 1))
    windows = lax.gather(x, j, numbers, (2, 3), mode=mode)
    apart = lax.gather(x, j, lax.GatherDimensionNumbers((0, 2), (), (1, 0)), (3, 2), mode=mode)
    taken = [jnp.take(x, i, axis=axis, mode="clip") for axis in (0, 1)] + [x[i % 6], x[i % 6, (i + 3) % 10]]
    along = jnp.take_along_axis(x, i[:6, None] % 10, axis=1), jnp.take_along_axis(x.T, i[None] % 6, axis=1)
    return [windows, apart, *taken, *along, x[i[0] % 6], jnp.take(x, i, axis=0, fill_value=7)]


def _embedding(table: Any, tokens: Any, positions: Any) -> Any:
    x = table[tokens] + positions[None]
    x = _layer_norm(x, positions[0], positions[1])
    return x, jnp.einsum("btd,vd->btv", x, table), table[tokens[:, 0]] @ table.T


def _dynamic_updates(x: Any, y: Any, i: Any, j: Any) -> Any:
    parts = [lax.dynamic_update_slice(x, y, (i[k], i[3 - k])) for k in range(4)]
    twice = lax.dynamic_update_slice(lax.dynamic_update_slice(x + 1, y * 2, (i[0], j)), y, (j, i[2]))
    whole = lax.dynamic_update_slice(x, x[::-1], (j, j)), lax.dynamic_update_slice(x, y[:0], (j, j))
    return [*parts, twice, *whole, lax.dynamic_update_slice(x, y, (j, j)).sum(1), twice.T * 3]


def _scan(x: Any, w: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        state = jnp.tanh(row @ w + state)
        return state, state * 2

    return lax.scan(step, jnp.zeros(w.shape[1], jnp.float32), x)


def _cache(cache: Any, k: Any, v: Any) -> Any:
    """A state that is updated, then read."""

    def body(i: Any, state: Any) -> Any:
        cache = lax.dynamic_update_slice(state[0], k[None] * (i + 1).astype(jnp.float32), (i, 0))
        return cache, state[1] + jnp.tanh(cache @ v).sum()

    return lax.fori_loop(np.int32(0), np.int32(6), body, (cache, jnp.float32(0)))


def _shifting(x: Any, n: Any) -> Any:
    """A state of which the update is made: it is read before it is written."""

    def body(state: Any) -> Any:
        i, x = state
        row = lax.dynamic_slice(x, (i, np.int32(0)), (1, 4))
        return i + 1, lax.dynamic_update_slice(x, row * 2 + x[:1], (i + 1, np.int32(0)))

    return lax.while_loop(lambda state: state[0] < n, body, (jnp.int32(0), x))


@jax.jit
def _inner(x: Any, y: Any) -> Any:
    return jnp.clip(x * y, -1, 1) + 1


def _calls(x: Any, y: Any) -> Any:
    return _inner(_inner(x, y), y), _inner(y, x)


def _residual(x: Any) -> Any:
    """One producer, many consumers of different shapes."""
    e = jnp.exp(x)
    total = e.sum(1)
    return e / total[:, None], total, e.T, e.max(0) + jnp.log(total).sum()


def _scatters(x: Any, row: Any, at: Any) -> Any:
    """Updates of one window, which may lie outside."""
    changed = [x.at[at[0]].set(row), x.at[:, at[1]].add(x[:, 0]), x.at[at[2], at[3]].max(3)]
    return [*changed, x.at[at[0]].apply(lambda v: v * 2 + 1), x.at[-1].multiply(row, mode="promise_in_bounds")]


_F = "float32"


def _case(name: str, function: Callable[..., Any], *specs: tuple[tuple[int, ...], str], **options: Any) -> Case:
    return Case(name, function, specs, options.pop("fill", normal), options.pop("exact", False), options)


CASES: tuple[Case, ...] = (
    _case("simple_mul", lambda x, y: x * y, ((4,), _F), ((4,), _F)),
    _case("mlp", _mlp, ((8, 32), _F)),
    _case("rank_0", lambda x, y: (x + y, x * y - 1), ((), _F), ((), _F)),
    _case("zero_elements", lambda x: (x * 2, x.sum(0), x.sum(1), x.reshape(-1)), ((0, 4), _F)),
    _case("zero_concatenate", lambda x, y: jnp.concatenate([x, y, x]), ((3, 2), _F), ((0, 2), _F), exact=True),
    _case("odd_shapes", lambda x, y: x * y + x, ((7, 13, 3), _F), ((13, 1), _F)),
    _case("f64", lambda x, y: (x * y + x, x / y, x - y), ((5, 9), "float64"), ((5, 9), "float64")),
    _case("transcendental_f32", _transcendental, ((257,), _F)),
    _case("transcendental_f64", _transcendental, ((65,), "float64")),
    _case("special_f32", _special, ((61,), _F), ((61,), _F), fill=special),
    _case("special_f64", _special, ((61,), "float64"), ((61,), "float64"), fill=special),
    *(_case(f"arithmetic_{t}", _integers, ((37,), t), ((37,), t), fill=special) for t in INTEGERS),
    *(_case(f"bits_{t}", _bits, ((37,), t), ((37,), t), fill=special) for t in INTEGERS),
    _case("integer_power", lambda x: (x**3, x**7), ((33,), "int32"), fill=small),
    _case("booleans", lambda x, y: (x & y, x | y, x ^ y, ~x, jnp.where(x, y, ~y)), ((31,), "bool"), ((31,), "bool")),
    _case("compare_f32", _compare, ((41,), _F), ((41,), _F), fill=special),
    _case("compare_u32", _compare, ((41,), "uint32"), ((41,), "uint32"), fill=special),
    _case("compare_bool", _compare, ((41,), "bool"), ((41,), "bool")),
    _case("select", _select, ((5, 7), "bool"), ((5, 7), _F), ((5, 7), _F)),
    _case("clamp", _clamp, ((99,), _F), fill=special),
    _case("convert_f32", _convert, ((43,), _F), fill=special),
    _case("convert_f64", _convert, ((43,), "float64"), fill=special),
    _case("convert_i64", _convert, ((43,), "int64"), fill=special),
    _case("convert_u8", _convert, ((43,), "uint8"), fill=special),
    _case("convert_bool", _convert, ((43,), "bool")),
    _case("rounding", lambda x: (jnp.round(x * 4), jnp.floor(x), jnp.ceil(x), jnp.trunc(x)), ((77,), _F), fill=special),
    _case("iota", lambda x: (jnp.arange(12).reshape(3, 4) + x, jnp.arange(5, dtype=_F)), ((3, 4), "int64")),
    _case("broadcast", lambda x, y: x[:, None] * y[None, :], ((17,), _F), ((23,), _F)),
    _case("transpose", lambda x: (x.T, x.transpose(1, 2, 0), x.reshape(6, -1)), ((3, 4, 5), _F), exact=True),
    _case("slices", _slices, ((6, 10), "int16"), exact=True),
    _case("pads", _pads, ((5, 4), "int32"), exact=True),
    _case("concatenate", lambda x, y: jnp.concatenate([x, y * 2, x], 1), ((3, 2), _F), ((3, 5), _F)),
    _case("wide_concatenate", lambda *x: jnp.concatenate(x), *[((i % 3 + 1,), _F) for i in range(37)], exact=True),
    _case("reverse", lambda x: (jnp.flip(x), jnp.flip(x, 1), x[::-1].T), ((4, 6), "uint16"), exact=True),
    *(
        _case(f"dynamic_{name}_{t}", function, *specs, ((4,), t), ((), t), fill=special, exact=True)
        for t in ("int8", "uint8", "int32", "int64", "uint64")
        for name, function, specs in (
            ("slice", _dynamic_slices, (((6, 10), "int16"),)),
            ("update", _dynamic_updates, (((6, 10), "int16"), ((2, 3), "int16"))),
        )
    ),
    *(
        _case(f"scatter_{t}", _scatters, ((6, 10), "int16"), ((10,), "int16"), ((4,), t), fill=fill, exact=True)
        for t, fill in (("int32", small), ("int64", special), ("uint8", small))
    ),
    *(
        _case(f"gather_{t}", _gathers, ((6, 10), "int16"), ((8,), t), fill=special, exact=True)
        for t in ("int32", "uint32", "int64")
    ),
    _case("scan", _scan, ((9, 5), _F), ((5, 4), _F)),
    _case("cache", _cache, ((8, 4), _F), ((4,), _F), ((4,), _F)),
    _case("shifting", _shifting, ((8, 4), _F), ((), "int32"), fill=small),
    _case("embedding", _embedding, ((40, 16), _F), ((2, 5), "int32"), ((5, 16), _F), fill=small),
    _case("reduce", _statistics, ((5, 7, 11), _F)),
    _case("reduce_f64", lambda x: (x.sum(), x.sum(0), jnp.linalg.norm(x)), ((31, 9), "float64")),
    _case("reduce_special", lambda x: (x.max(0), x.min(1), x.max(), x.min()), ((9, 8), _F), fill=special),
    _case("reduce_integers", lambda x: (x.sum(0, dtype="int8"), x.max(1), x.prod(dtype="int8")), ((6, 7), "int8")),
    _case("reduce_booleans", lambda x: (x.any(0), x.all(1), x.any()), ((6, 7), "bool")),
    _case("argmax", lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 1), jnp.argmax(x)), ((9, 5), _F)),
    _case("custom_reduce", _custom_reduce, ((6, 19), _F), ((6, 19), _F)),
    _case("long_reduce", lambda x: x.sum(), ((100_003,), _F)),
    _case("softmax", jax.nn.softmax, ((12, 33), _F)),
    _case("layer_norm", _layer_norm, ((6, 24), _F), ((24,), _F), ((24,), _F)),
    _case("inverse_f32", _inverse, ((99,), _F)),
    _case("inverse_f64", _inverse, ((99,), "float64")),
    _case("inverse_special", _inverse, ((61,), _F), fill=special),
    _case("next_after", jnp.nextafter, ((61,), _F), ((61,), _F), fill=special, exact=True),
    _case("gelu_exact", lambda x: jax.nn.gelu(x, approximate=False), ((70,), _F), fill=special),
    _case("error_function", lambda x: (lax.erf(x), lax.erfc(x)), ((99,), "float64"), fill=special),
    _case("special_functions", _special_functions, ((64,), _F)),
    _case("special_values", _special_values, ((61,), _F), fill=special),
    _case("mulhi", lambda x, y, u, v: (lax.mulhi(x, y), lax.mulhi(u, v)), *[((40,), t) for t in
          ("int64", "int64", "uint64", "uint64")], fill=special, exact=True),
    _case("narrow_neighbours", lambda x, y: (jnp.nextafter(x, y), jnp.isinf(x), lax.square(x)), ((61,), "float16"),
          ((61,), "float16"), fill=special, exact=True),
    _case("normal", _normal, ((2,), "uint32")),
    _case("gelu", lambda x: (jax.nn.gelu(x), jax.nn.silu(x), jax.nn.softplus(x)), ((70,), _F)),
    _case("matmul", lambda x, y: x @ y, ((13, 29), _F), ((29, 17), _F)),
    _case("matmul_fused", _dense, ((29, 13), _F), ((29, 17), "int8"), ((17,), _F)),
    _case("matmul_f64", lambda x, y: x @ y, ((7, 19), "float64"), ((19, 5), "float64")),
    _case("matmul_i32", lambda x, y: x @ y, ((7, 19), "int32"), ((19, 5), "int32")),
    _case("matmul_i8", _widening_dot, ((7, 19), "int8"), ((19, 5), "int8")),
    _case("batched_matmul", lambda x, y: jnp.einsum("bij,bjk->bik", x, y), ((3, 4, 5), _F), ((3, 5, 6), _F)),
    _case("contractions", lambda x, y: jnp.einsum("abc,cbd->ad", x, y), ((4, 5, 6), _F), ((6, 5, 3), _F)),
    _case("inner_products", lambda x, y: (x @ y, jnp.outer(x, y), jnp.vdot(x, x)), ((19,), _F), ((19,), _F)),
    _case("empty_contraction", lambda x, y: x @ y, ((3, 0), _F), ((0, 4), _F)),
    _case("attention", _attention, ((2, 3, 9, 8), _F), ((2, 3, 9, 8), _F), ((2, 3, 9, 8), _F)),
    _case("residual", _residual, ((6, 9), _F)),
    _case("deep", _deep, ((50,), _F)),
    _case("calls", _calls, ((3, 3), _F), ((3, 3), _F)),
    _case("pass_through", lambda x, y, z: (y, y, x, jnp.float32(3), jnp.zeros((2, 3)), _weights(4, 5)), ((3,), _F),
          ((2, 2), "int64"), ((5,), _F), exact=True),
    _case("twice", lambda x: (x + 1, x + 1, (x + 1).reshape(4)), ((2, 2), _F)),
    _case("donated", lambda x, y: (x + y, y * 2), ((16,), _F), ((16,), _F), donate_argnums=(0,)),
    _case("many_results", lambda x: [x * i for i in range(40)], ((3, 5), _F)),
    _case("euclidean", lambda x, y: jnp.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)), ((11, 3), _F), ((7, 3), _F)),
    _case("one_hot", lambda x: jax.nn.one_hot(x, 9), ((14,), "int32"), fill=small, exact=True),
    *(_case(name, function, *specs, fill=small) for name, function, specs in CONTROL_FLOW),
    *(_case(name, function, *specs, fill=special, exact=True) for name, function, *specs in (*SORTS, *RANDOM)),
    *(_case(name, function, *specs, fill=special, exact=True) for name, function, *specs in SCATTERS),
    *(_case(name, function, *specs) for name, function, specs in WINDOWS),
    _case("many_workgroups", lambda x: x * 2 + 1, ((65_536 * 64 + 67,), "int8")),
)  # fmt: skip


#: the element type that ends the name of a case; cases that differ in it only are one graph
_TYPE = re.compile(r"_(bool|u?int\d+|f32|f64|float64)$")


def chosen(names: Collection[str] | None = None, every: int = 1) -> list[Case]:
    """Those with one of the names, and of these, or of all, each n-th."""
    assert {case.name for case in CASES} >= set(names or ())
    return [case for case in CASES if names is None or case.name in names][::every]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("programs")
        cases = CASES if mark is None or ALL else chosen(*mark.args, **mark.kwargs)
        metafunc.parametrize("case", cases, ids=[case.name for case in cases])
    if "graph_case" in metafunc.fixturenames:
        graphs = [case for case in CASES if not case.name.startswith(("arithmetic", "bits", "compare", "convert"))]
        different = {_TYPE.sub("", case.name): case for case in reversed(graphs)}
        metafunc.parametrize("graph_case", different.values(), ids=[case.name for case in different.values()])


def mismatch(got: Array, want: Array, exact: bool) -> str:
    """Empty when `got` is what is wanted, else the first element that is not."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} where {want.dtype}{list(want.shape)} is wanted"
    if exact or want.dtype not in TOLERANCES:
        wrong = ~((got == want) | ((got != got) & (want != want)))
    else:
        relative, absolute = TOLERANCES[want.dtype]
        finite = np.isfinite(want)
        largest = np.abs(want[finite]).max(initial=0)
        with np.errstate(all="ignore"):
            near = np.abs(got - want) <= relative * np.abs(want) + absolute * largest
        wrong = ~np.where(finite, near, (got == want) | ((got != got) & (want != want)))
    if not wrong.any():
        return ""
    where = tuple(int(axis[0]) for axis in np.nonzero(wrong))
    return f"{int(wrong.sum())} of {want.size} differ, first at {where}: {got[where]!r}, wanted {want[where]!r}"


@pytest.fixture
def check(_compiled_cases: Any) -> Callable[[Case, Any], None]:
    """Fails unless the results of a case, flat or in their tree, are JAX's."""

    def compare(case: Case, found_trees: Any) -> None:
        wanted, results = _compiled_cases.wanted(case.name, case.wanted), jax.tree.leaves(found_trees)
        assert len(results) == len(wanted)
        found = {i: mismatch(got, want, case.exact) for i, (got, want) in enumerate(zip(results, wanted, strict=True))}
        assert not any(found.values()), "; ".join(f"result {i}: {text}" for i, text in found.items() if text)

    return compare


@pytest.fixture(scope="session")
def cases() -> dict[str, Case]:
    return {case.name: case for case in CASES}


@pytest.fixture(scope="session", autouse=True)
def _object_files() -> Iterator[None]:
    """LLVM compiles equal texts once."""
    with kept():
        yield


@pytest.fixture(scope="module", autouse=True)
def _one_level(one_level: None) -> None:
    """In all files of this folder."""


@pytest.fixture(scope="session")
def _compiled_cases(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from compiled_cases import CompiledCases, folder_of_run

    return CompiledCases(folder_of_run(pytestconfig, tmp_path_factory))


@pytest.fixture(scope="session")
def module_of(_compiled_cases: Any) -> Callable[[Case], bytes]:
    """The module of a case, for all targets; compiled once in a run of the tests."""
    return functools.cache(lambda case: _compiled_cases.module(case.name, case.lowered))


@pytest.fixture(scope="session")
def texts_of(_compiled_cases: Any) -> Callable[[Case], dict[str, str]]:
    """Phase -> text of a case, written while `module_of` was compiled."""
    return lambda case: dict(_compiled_cases.texts(case.name, case.lowered))


@pytest.fixture(scope="session")
def phases() -> Callable[[Case], dict[str, Any]]:
    """The IR of a case after each phase, for the reference target."""
    from orchestrion.compiler.frontend.stablehlo import load_module
    from orchestrion.compiler.ir.builtin import Module
    from orchestrion.compiler.options import Options
    from orchestrion.compiler.pipeline import PHASES, run_phases

    def run(case: Case) -> dict[str, Module]:
        module = load_module(case.lowered())
        found: dict[str, Module] = {}

        def keep(phase: str, module: Module) -> None:
            copy = module.clone()
            assert isinstance(copy, Module)
            found[phase] = copy

        run_phases(module, list(PHASES)[1:], Options(("reference",)), after_phase=keep)
        return found

    return functools.cache(run)


@pytest.fixture(params=("opencl", "vulkan"))
def loop_device(request: pytest.FixtureRequest) -> str:
    """A device whose loops become one kernel, or batches of iterations."""
    if request.param == "vulkan":
        request.getfixturevalue("needs_vulkan")
    return str(request.param)


@pytest.fixture
def loop_programs(loop_device: str) -> Iterator[Programs]:
    """Compiles and loads programs on `loop_device`, which the end of the test closes."""
    programs = Programs(loop_device)
    yield programs
    programs.close()


@pytest.fixture(scope="session")
def load_on(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`vm.load` on a device by name; skips, with the reason, where the device is not there. `swiftshader` and `least`
    are Vulkan devices like those of phones, without native code that is not checked: SwiftShader, and the first device
    restricted to the least features and limits.
    """
    from orchestrion import vm
    from orchestrion.hal.errors import DriverUnavailable

    def load(module: bytes, device: str, **options: Any) -> Any:
        if device == "cpu":
            pytest.importorskip("llvmlite")
        checked = device in ("swiftshader", "least")
        if device == "swiftshader":
            device = request.getfixturevalue("swiftshader")
        named = "vulkan" if device == "least" else device
        options["allow_native_code"] = not checked
        try:
            with profiled("least" if device == "least" else None):
                return vm.load(module, device=named, **options)
        except DriverUnavailable as error:
            pytest.skip(f"{device}: {error}")

    return load
