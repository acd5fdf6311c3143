"""A program of the zoo, and the largest error that a device may have relative to `jax.jit` on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

Made = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Program:
    """`make` returns a function and the arguments that it is traced and called with.

    `tolerance` is the largest error of an element, relative to the largest magnitude of its array; 0 for exact results.
    `environment` has variables that the program needs while it is traced, with the reason in `note`. `options` are
    arguments of `compiler.compile` that the program needs, with the reason in `note`.
    """

    name: str
    make: Callable[[], Made]
    tolerance: float = 1e-4
    note: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()


#: library -> the module that lists its programs
LIBRARIES: dict[str, str] = {
    "jax.numpy": "zoo.jax_programs",
    "flax": "zoo.flax_programs",
    "equinox": "zoo.equinox_programs",
    "optax": "zoo.optax_programs",
    "keras": "zoo.keras_programs",
    "solvers": "zoo.solver_programs",
}


def programs_of(library: str) -> tuple[Program, ...]:
    """The programs of a library, which this imports."""
    found: tuple[Program, ...] = import_module(LIBRARIES[library]).PROGRAMS
    return found


def program_named(library: str, name: str) -> Program:
    return next(row for row in programs_of(library) if row.name == name)


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    """Normally distributed float32 values of this shape."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def key_data(seed: int) -> np.ndarray:
    """The words of a `jax.random` key, uint32[2], which any call accepts."""
    import jax

    return np.asarray(jax.random.key_data(jax.random.key(seed)))
