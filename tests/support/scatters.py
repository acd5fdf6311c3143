"""JAX programs that scatter: each of a name, a function, and the shapes and element types of its arguments.

Indices beyond the operand and below zero, many for one element, windows that lie partly outside, several rows per
window, axes in every order, batching axes, a combiner of several ops, what is updated read again, or made of nothing.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def _places(x: Any, size: int) -> Any:
    """Integers of any range as places, of which about a tenth are outside."""
    return (x.astype(jnp.int32) % (size + size // 10 + 2)) - 1


def _rows(x: Any, u: Any, i: Any) -> Any:
    at = _places(i, 9)
    kept = x.at[at].add(u)
    return [
        kept,
        x.at[at].set(u, mode="drop"),
        x.at[:, at[:4]].min(u[:4, :7].T.repeat(2, axis=0)[:9, :4]),
        x.at[at, at[::-1]].mul(u[:, 0]),
        jnp.zeros((40, 7), x.dtype).at[at].max(u),
        kept + x,
    ]


def _library(i: Any, v: Any) -> Any:
    at = _places(i, 12)
    return [
        jnp.bincount(at % 12, length=12),
        jax.ops.segment_sum(v, at, 13),
        jax.ops.segment_max(v, at, 13),
        jnp.zeros(50, jnp.int32).at[jnp.arange(40) ^ 5].set(v, unique_indices=True),
    ]


def _numbers(window: Any, inserted: Any, chosen: Any, batching: Any = (), indices_batching: Any = ()) -> Any:
    return lax.ScatterDimensionNumbers(window, inserted, chosen, batching, indices_batching)


def _windows(x: Any, u: Any, i: Any) -> Any:
    """Windows of 2 x 3 elements of the first and last axis, which overlap, and lie outside in part."""
    at = jnp.stack([_places(i, 6), _places(i * 7, 5)], -1)
    return lax.scatter_add(x, at, u, _numbers((0, 1, 2), (), (2, 0)))


def _batches(x: Any, u: Any, i: Any) -> Any:
    """Batching axes that stand last in the indices; a part of the chosen axes is inserted."""
    at = _places(i, 6)[..., None]
    return lax.scatter_mul(x, at, u, _numbers((2,), (2,), (2,), (0,), (1,)))


def _combiner(x: Any, i: Any, u: Any) -> Any:
    return x.at[_places(i, 5)].apply(lambda v: v * v - 3), x.at[_places(i, 5)].set(lax.sort(u)), jnp.vdot(x, x)


def _turns(x: Any, i: Any) -> Any:
    """A scatter in a loop, in the memory of what the loop carries."""
    return lax.fori_loop(0, 4, lambda turn, c: c.at[_places(i + turn, 9)].add(turn + 1), x)


PROGRAMS: tuple[tuple[Any, ...], ...] = (
    ("scatter_rows", _rows, ((9, 7), "int32"), ((15, 7), "int32"), ((15,), "uint8")),
    ("scatter_library", _library, ((40,), "int16"), ((40,), "int32")),
    ("scatter_windows", _windows, ((5, 4, 6), "int32"), ((3, 4, 2, 11), "int32"), ((11,), "int32")),
    ("scatter_batches", _batches, ((3, 4, 6), "int32"), ((10, 3, 4), "int32"), ((10, 3), "uint8")),
    ("scatter_combiner", _combiner, ((5,), "uint16"), ((12,), "int8"), ((12,), "uint16")),
    ("scatter_turns", _turns, ((9,), "int64"), ((6,), "int32")),
)
