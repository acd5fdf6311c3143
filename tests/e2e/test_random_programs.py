"""Random graphs of integer ops: whatever is fused, shared, cloned or copied, the numbers are NumPy's.

A graph is made from a seed; the same Python function runs on NumPy and is traced by JAX.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from orchestrion import compiler  # noqa: E402

SHAPES = ((6, 4), (4, 6), (6, 6), (6,), (4,), (24,), (), (0, 4))
SEEDS = range(40)

Op = Callable[[Any, list[Any], random.Random], Any]


def _pick(values: list[Any], choice: random.Random, test: Callable[[Any], bool] = lambda x: True) -> Any:
    found = [value for value in values if test(value)]
    return choice.choice(found[-6:]) if found else None


def _unary(xp: Any, values: list[Any], choice: random.Random) -> Any:
    x = _pick(values, choice)
    rules: list[Callable[[Any], Any]] = [
        lambda a: -a,
        lambda a: a * 3,
        lambda a: a // 7,
        lambda a: abs(a),
        lambda a: a % 5,
    ]
    return choice.choice(rules)(x)


def _binary(xp: Any, values: list[Any], choice: random.Random) -> Any:
    x = _pick(values, choice)
    y = _pick(values, choice, lambda value: value.shape == x.shape)
    return choice.choice([xp.add, xp.multiply, xp.maximum, xp.subtract])(x, y)


def _broadcast(xp: Any, values: list[Any], choice: random.Random) -> Any:
    x = _pick(values, choice, lambda value: value.shape == (6,))
    return (
        None if x is None else choice.choice([lambda: x[:, None] + xp.zeros((6, 4), "int32"), lambda: x[:, None] * x])()
    )


def _move(xp: Any, values: list[Any], choice: random.Random) -> Any:
    x = _pick(values, choice, lambda value: value.ndim == 2)
    moves = [
        lambda: x.T,
        lambda: x.reshape(-1),
        lambda: x[::-1],
        lambda: xp.concatenate([x[1:], x[:1]]),
        lambda: x[:, 1:3],
    ]
    return None if x is None else choice.choice(moves)()


def _reduce(xp: Any, values: list[Any], choice: random.Random) -> Any:
    x = _pick(values, choice, lambda value: value.ndim > 0)
    return None if x is None else x.sum(choice.randrange(x.ndim), dtype="int32")


def _dot(xp: Any, values: list[Any], choice: random.Random) -> Any:
    x = _pick(values, choice, lambda value: value.ndim == 2)
    y = _pick(values, choice, lambda value: value.ndim == 2 and x is not None and value.shape[0] == x.shape[1])
    return None if y is None else xp.matmul(x, y)


OPS: tuple[Op, ...] = (_unary, _unary, _binary, _binary, _broadcast, _move, _move, _reduce, _dot)


def graph(xp: Any, seed: int, arguments: tuple[Any, ...]) -> list[Any]:
    """Some of the values of a graph of twenty-five ops."""
    choice = random.Random(seed)
    values = list(arguments)
    for _ in range(25):
        made = choice.choice(OPS)(xp, values, choice)
        if made is not None:
            values.append(made)
    return choice.sample(values, 5) + values[-1:]


@pytest.mark.parametrize("seed", SEEDS)
def test_graph(seed: int, load_on: Callable[[bytes, str], Any]) -> None:
    random_numbers = np.random.default_rng(seed)
    arguments = tuple(random_numbers.integers(-99, 99, shape, dtype="int32") for shape in SHAPES)
    with np.errstate(all="ignore"):
        wanted = graph(np, seed, arguments)
    lowered = jax.jit(lambda *x: graph(jnp, seed, x), keep_unused=True).lower(*arguments)
    program = load_on(compiler.compile(lowered, targets=["reference"]), "reference")
    for got, want in zip(program.main(*arguments), wanted, strict=True):
        assert got.dtype == np.int32 and got.shape == np.shape(want)
        np.testing.assert_array_equal(got, want)
