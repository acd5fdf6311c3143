"""JAX programs that sort: each of a name, a function, and the shapes and element types of its arguments.

Lines of one element, of none, of odd lengths, short ones (places are counted) and long ones (merged), ties, floats
with NaN of both signs, several keys, what is only carried along, every axis.
"""

from typing import Any

import jax.numpy as jnp
from jax import lax

_F = "float32"


def _sorts(x: Any) -> Any:
    both = [part for axis in range(x.ndim) for part in (jnp.sort(x, axis=axis), jnp.argsort(x, axis=axis))]
    return [
        *both,
        jnp.sort(x, axis=0, descending=True),
        jnp.argsort(x, axis=-1, descending=True),
        jnp.sort(x, axis=None),
    ]


def _along(x: Any) -> Any:
    return jnp.sort(x, axis=1), jnp.argsort(x, axis=1)


def _keys(x: Any, y: Any, z: Any) -> Any:
    return lax.sort((x, y, z), num_keys=1), lax.sort((x, y, z), num_keys=2), lax.sort((y, z, x), num_keys=3)


def _negative_nan(x: Any) -> Any:
    return jnp.sort(jnp.where(x > 0, -x * jnp.nan, x), stable=False), lax.sort((x, x[::-1]))


def _sorted_loop(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, c: jnp.sort(c * 3 % 7) + i, x)


def _top_k(x: Any) -> Any:
    return lax.top_k(x, 3), lax.top_k(x, x.shape[-1])


def _approximate(x: Any) -> Any:
    """Numbers that differ, so that there is one answer."""
    y = jnp.arange(x.size, dtype=jnp.float32).reshape(x.shape) * 37 % 101
    return lax.approx_max_k(y, 3), lax.approx_min_k(y.T, 2, reduction_dimension=0)


PROGRAMS: tuple[tuple[Any, ...], ...] = (
    *((f"sort_{n}", _sorts, ((n,), _F)) for n in (0, 1, 2, 1025)),
    ("sort_empty", _sorts, ((3, 0), _F)),
    ("sort_axes", _sorts, ((7, 5), _F)),
    ("sort_long_axes", _along, ((3, 400, 5), _F)),
    *((f"sort_{dtype}", _along, ((2, 41, 3), dtype)) for dtype in ("bool", "int8", "uint16", "int64", "float64")),
    ("sort_long_uint64", _along, ((1, 700, 1), "uint64")),
    ("sort_keys", _keys, ((50,), "int32"), ((50,), "uint8"), ((50,), "float64")),
    ("sort_keys_long", _keys, ((800,), "int32"), ((800,), "uint8"), ((800,), "float64")),
    ("sort_negative_nan", _negative_nan, ((777,), _F)),
    ("top_k", _top_k, ((3, 11), _F)),
    ("top_k_integers", lambda x: lax.top_k(x, 2, axis=0), ((30, 4), "int32")),
    ("top_k_long", lambda x: lax.top_k(x, 5), ((3, 700), _F)),
    ("approximate_top_k", _approximate, ((3, 11), _F)),
    ("sort_loop", _sorted_loop, ((2, 530), "int32")),
)
