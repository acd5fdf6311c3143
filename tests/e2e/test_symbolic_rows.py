"""Rows of a length that a call brings: each length has the kernel that is for it, and all give NumPy's numbers."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from orchestrion import compiler
from orchestrion.schema.rows import UP_TO

jax = pytest.importorskip("jax")
from jax import export, lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

LoadOn = Callable[[bytes, str], Any]
#: rows at each call; where their number is known, and nothing limits their length, they are several dispatches
ROWS = 3


class Program(NamedTuple):
    """A function of rows in JAX, the same in NumPy, the element type, and how to make arguments of it."""

    function: Callable[..., Any]
    oracle: Callable[..., Any]
    dtype: str = "f4"


def _softmax(x: Any) -> Any:
    return jax.nn.softmax(x)


def _np_softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _norm(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3), x.max(-1)


def _np_norm(x: np.ndarray) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3), x.max(-1)


def _log_softmax_gradient(x: Any) -> Any:
    return jax.grad(lambda x: (jax.nn.log_softmax(x) * jnp.cos(x)).sum())(x)


def _np_log_softmax_gradient(x: np.ndarray) -> np.ndarray:
    powers = _np_softmax(x)
    logs = x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))
    return np.cos(x) - powers * np.cos(x).sum(-1, keepdims=True) - logs * np.sin(x)


def _causal(x: Any) -> Any:
    seen = jnp.arange(x.shape[1]) * x.shape[0] <= jnp.arange(x.shape[0])[:, None] * x.shape[1]
    return jax.nn.softmax(jnp.where(seen, x, -jnp.inf))


def _np_causal(x: np.ndarray) -> np.ndarray:
    seen = np.arange(x.shape[1]) * ROWS <= np.arange(x.shape[0])[:, None] * x.shape[1]
    return _np_softmax(np.where(seen, x, -np.inf))


def _ordered(x: Any) -> Any:
    """A reducer of two values without a neutral one, of which the order matters where values are equal."""
    return jnp.argmax(jnp.round(x), -1, keepdims=True) * 2 + x, x[:, ::-1] - x.min(-1, keepdims=True)


def _np_ordered(x: np.ndarray) -> Any:
    places = np.argmax(np.round(x), -1, keepdims=True).astype(x.dtype)
    return places * 2 + x, x[:, ::-1] - x.min(-1, keepdims=True)


def _composed(x: Any) -> Any:
    """x -> a x + 3 a, for each a of a row, one after the other; and the whole of it beside each."""

    def after(f: Any, g: Any) -> Any:
        return f[0] * g[0], f[1] * g[0] + g[1]

    one = jnp.int32(1), jnp.int32(0)
    factor, rest = lax.reduce((x, 3 * x), one, after, (1,))
    return x + factor[:, None], x - rest[:, None]


def _np_composed(x: np.ndarray) -> Any:
    factor, rest = np.ones(len(x), np.int32), np.zeros(len(x), np.int32)
    for a in x.T:
        factor, rest = factor * a, rest * a + 3 * a
    return x + factor[:, None], x - rest[:, None]


PROGRAMS = {
    "softmax": Program(_softmax, _np_softmax),
    "norm, f64": Program(_norm, _np_norm, "f8"),
    "log softmax, gradient": Program(_log_softmax_gradient, _np_log_softmax_gradient),
    "causal": Program(_causal, _np_causal),
    "ordered": Program(_ordered, _np_ordered),
    "composed": Program(_composed, _np_composed, "i4"),
}
#: device -> programs on it, lengths of rows; PoCL builds a kernel in half a second when it is first launched
ON: dict[str, tuple[Iterable[str], Iterable[int]]] = {
    "reference": (PROGRAMS, (1, 2, 16, 17, 1000)),
    "opencl": (("softmax", "composed"), (1, 5, 16, 17, 41, 64, 1025)),
    "vulkan": (PROGRAMS, (*range(1, 71), 2000)),
}


@cache
def _text(names: tuple[str, ...]) -> Any:
    """The programs as one function, of an argument each."""
    with jax.enable_x64(True):
        rows = export.symbolic_shape("r, s")
        given = [jax.ShapeDtypeStruct(rows, PROGRAMS[name].dtype) for name in names]
        functions = [PROGRAMS[name].function for name in names]
        every = jax.jit(lambda *xs: [function(x) for function, x in zip(functions, xs, strict=True)])
        return export.export(every)(*given).mlir_module_serialized


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("device", ON)
def test_rows_of_every_length(device: str, load_on: LoadOn) -> None:
    names, lengths = ON[device]
    module = compiler.compile(_text(tuple(names)), targets=["spirv" if device == "vulkan" else device])
    held = sorted({int(length) for length in re.findall(rf"{UP_TO}(\d+)".encode(), module)})
    assert bool(held) == (device != "reference")
    if device == "vulkan":  # the longest row of each kernel, and the first that is another's
        lengths = [*lengths, *(length + more for length in held for more in (-1, 0, 1))]
    program = load_on(module, device)
    random = np.random.default_rng(7)
    for length in lengths:
        arrays = [_array(random, PROGRAMS[name].dtype, length) for name in names]
        got = iter(program.main(*arrays))
        for name, array in zip(names, arrays, strict=True):
            for want in jax.tree.leaves(PROGRAMS[name].oracle(array)):
                found = np.asarray(next(got))
                assert found.dtype == want.dtype, name
                near = 0 if want.dtype.kind == "i" else 1e-11 if want.itemsize == 8 else 3e-5
                np.testing.assert_allclose(found, want, rtol=near, atol=near, err_msg=f"{name}, {length}")


def _array(random: np.random.Generator, dtype: str, length: int) -> np.ndarray:
    if dtype == "i4":
        return random.integers(-9, 9, (ROWS, length)).astype(dtype)
    return random.normal(size=(ROWS, length)).astype(dtype)
