"""JAX programs that draw random numbers: each of a name, a function, and the shape and element type of its key.

Both algorithms of `rng_bit_generator`, every width, odd shapes, none, no elements; counters that carry when the key is
large. `jax.random` over each of its generators.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax

_WIDTHS = ("uint8", "uint16", "uint32", "uint64")
_SHAPES = ((), (5,), (3, 5), (2, 0), (3, 4, 1))
_ALGORITHMS = {"philox": lax.RandomAlgorithm.RNG_PHILOX, "threefry": lax.RandomAlgorithm.RNG_THREE_FRY}


def _bits(algorithm: Any, dtype: str) -> Callable[[Any], Any]:
    def draw(key: Any) -> Any:
        return [lax.rng_bit_generator(key, shape, dtype=dtype, algorithm=algorithm) for shape in _SHAPES]

    return draw


def _stream(impl: str) -> Callable[[Any], Any]:
    def draw(data: Any) -> Any:
        first, second = jax.random.split(jax.random.wrap_key_data(data, impl=impl))
        numbers = jax.random.uniform(first, (3, 5)), jax.random.randint(second, (7,), 0, 100)
        return [*numbers, jax.random.bits(first, (3,)), jax.random.permutation(second, 13)]

    return draw


PROGRAMS: tuple[tuple[Any, ...], ...] = (
    *(
        (f"bits_{name}_{dtype}", _bits(algorithm, dtype), ((4,), "uint32"))
        for name, algorithm in _ALGORITHMS.items()
        for dtype in _WIDTHS
    ),
    *((f"random_{impl}", _stream(impl), ((size,), "uint32")) for impl, size in (("rbg", 4), ("threefry2x32", 2))),
)
