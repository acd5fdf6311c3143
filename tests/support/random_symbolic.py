"""Random JAX functions of arrays with symbolic sizes, to be exported once and called at several sizes.

`generate(rng)` gives a function and the shapes of its arguments as `jax.export.symbolic_shape` reads them. All numbers
are integers, or floats that are whole and small, so that results are exact in any order.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

Rule = Callable[[random.Random, list[Any]], Any]

TYPES = ("int32", "float32", "int64", "uint8")
#: arguments: `b` and `s` are symbols
SHAPES = ("b", "b, 4", "s, b", "b, s", "3, s", "b, 2, s", "s", "2*b", "b + s, 3")


@dataclass(frozen=True)
class Program:
    function: Callable[..., tuple[Any, ...]]
    shapes: list[str]
    types: list[str]


def _pick(rng: random.Random, values: list[Any], least: int = 0) -> Any:
    found = [v for v in values if v.ndim >= least]
    return rng.choice(found) if found else None


def _binary(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values)
    same = [v for v in values if v.shape == x.shape]
    y = rng.choice(same).astype(x.dtype)
    return rng.choice((jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum))(x, y)


def _small(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values)
    return jnp.clip(x, 0 if x.dtype == jnp.uint8 else -3, 3)


def _convert(rng: random.Random, values: list[Any]) -> Any:
    return _small(rng, values).astype(rng.choice(TYPES))


def _where(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values)
    y = rng.choice([v for v in values if v.shape == x.shape]).astype(x.dtype)
    return jnp.where(x > y, x, -y if x.dtype != jnp.uint8 else y)


def _reduce(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 1)
    if x is None:
        return None
    axis = rng.randrange(x.ndim)
    fold = rng.choice((jnp.sum, jnp.max, jnp.min, jnp.argmax, jnp.any, jnp.mean))
    if fold is jnp.mean:
        x = jnp.floor(jnp.mean(jnp.clip(x, 0, 3).astype("float64"), axis=axis) * 8)
        return x.astype("int32")
    return fold(jnp.clip(x, 0, 3), axis=axis, keepdims=rng.random() < 0.3).astype(x.dtype)


def _transpose(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 2)
    return None if x is None else jnp.transpose(x, rng.sample(range(x.ndim), x.ndim))


def _reshape(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 1)
    if x is None:
        return None
    if x.ndim > 1 and rng.random() < 0.6:
        at = rng.randrange(x.ndim - 1)
        return x.reshape((*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :]))
    return jnp.expand_dims(x, rng.randrange(x.ndim + 1))


def _broadcast(rng: random.Random, values: list[Any]) -> Any:
    x, y = _pick(rng, values), _pick(rng, values, 1)
    if y is None or x.ndim > 2:
        return None
    return jnp.broadcast_to(x, (y.shape[0], *x.shape))


def _concatenate(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 1)
    if x is None:
        return None
    axis = rng.randrange(x.ndim)
    fits = [v for v in values if v.ndim == x.ndim and v.shape[:axis] == x.shape[:axis]
            and v.shape[axis + 1 :] == x.shape[axis + 1 :]]  # fmt: skip
    return jnp.concatenate([x, rng.choice(fits).astype(x.dtype)], axis)


def _slice(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 1)
    if x is None:
        return None
    axis = rng.randrange(x.ndim)
    place = [slice(None)] * x.ndim
    place[axis] = rng.choice((slice(1, None), slice(None, -1), slice(None, None, 2), slice(None, None, -1)))
    return x[tuple(place)]


def _pad(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 1)
    if x is None:
        return None
    return jnp.pad(x, [(rng.randint(0, 2), rng.randint(0, 1)) for _ in x.shape], constant_values=1)


def _dot(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 1)
    if x is None or x.ndim > 2:
        return None
    fits = [v for v in values if 1 <= v.ndim <= 2 and v.shape[0] == x.shape[-1]]
    if not fits:
        return None
    y = rng.choice(fits)
    return jnp.dot(jnp.clip(x, 0, 3).astype("float32"), jnp.clip(y, 0, 3).astype("float32"))


def _scan(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 1)
    return None if x is None else jnp.cumsum(jnp.clip(x, 0, 2), axis=rng.randrange(x.ndim)).astype(x.dtype)


def _sort(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 1)
    return None if x is None else rng.choice((jnp.sort, jnp.argsort))(x, axis=rng.randrange(x.ndim))


def _take(rng: random.Random, values: list[Any]) -> Any:
    x, i = _pick(rng, values, 1), _pick(rng, values)
    if x is None or i.ndim > 2:
        return None
    return jnp.take(x, i.astype("int32"), axis=rng.randrange(x.ndim), mode="clip")


def _scatter(rng: random.Random, values: list[Any]) -> Any:
    x, i = _pick(rng, values, 1), _pick(rng, values)
    if x is None or i.ndim != 1:
        return None
    place = i.astype("int32")
    return x.at[place].add(1, mode="drop") if rng.random() < 0.5 else x.at[place].max(2, mode="drop")


def _iota(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 1)
    return None if x is None else lax.broadcasted_iota("int32", x.shape, rng.randrange(x.ndim))


def _loop(rng: random.Random, values: list[Any]) -> Any:
    x = _pick(rng, values, 1)
    return None if x is None else lax.fori_loop(0, x.shape[0], lambda i, c: c + i.astype(c.dtype), x)


RULES: tuple[Rule, ...] = (
    _binary, _binary, _small, _convert, _where, _reduce, _reduce, _transpose, _reshape, _broadcast, _concatenate,
    _slice, _pad, _dot, _scan, _sort, _take, _scatter, _iota, _loop,
)  # fmt: skip


def generate(rng: random.Random) -> Program:
    seed, count = rng.randrange(2**32), rng.randint(3, 10)
    shapes = [rng.choice(SHAPES) for _ in range(rng.randint(1, 3))]
    types = [rng.choice(TYPES) for _ in shapes]

    def function(*arguments: Any) -> tuple[Any, ...]:
        inner = random.Random(seed)
        values = list(arguments)
        for _ in range(count):
            made = inner.choice(RULES)(inner, values[-6:])
            if made is not None and made.ndim <= 4:
                values.append(made)
        return tuple(values[len(arguments) :][-3:]) or tuple(values)

    return Program(function, shapes, types)
