"""Programs with dynamic sizes on the device `cpu`, compared with NumPy, for each level of instructions that runs here.

Sizes lie around the borders of tiles, of vectors and of specialised kernels.

JAX refuses arguments without elements, and allows `x[1:]`, so some dimensions of these programs may be 0.
"""

import random
from collections.abc import Callable
from functools import cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest
from cpu_devices import best_level

pytest.importorskip("llvmlite")
pytest.importorskip("jax")

import jax
import jax.numpy as jnp
from jax import export, lax

from orchestrion import compiler, vm

#: sizes of dimensions: 1, around 8 rows, vectors of 4 to 16, blocks of 32 and 64 columns, slices of sums, and primes
SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 37, 61, 63, 64, 65, 127, 128, 129, 131)
#: lengths of reductions and rows, at the borders of kernels with registers, of one vector, and with kept values, too
LENGTHS = (*SIZES, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4099)
#: calls of a program
CALLS = 12
KERNEL = np.random.default_rng(0).standard_normal((3, 3, 5, 16), np.float32)
WEIGHTS = np.random.default_rng(1).standard_normal((48, 40), np.float32)


class Program(NamedTuple):
    """`function(np or jnp, *arguments)`, the shapes of its arguments, and the symbols that take `LENGTHS`."""

    function: Callable[..., Any]
    shapes: tuple[str, ...]
    long: str = ""
    dtype: Any = np.float32


def softmax(m: Any, x: Any) -> Any:
    e = m.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(m: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = m.einsum("bqd,bkd->bqk", q, k) / 4 + mask
    return m.einsum("bqk,bkd->bqd", softmax(m, scores), v)


def norm(m: Any, x: Any) -> Any:
    c = x - x.mean(-1, keepdims=True)
    return c / m.sqrt((c * c).mean(-1, keepdims=True) + 1e-3)


def heads(m: Any, x: Any) -> Any:
    """The output projection of attention: a product along heads and their width, which lie apart."""
    return m.tanh(x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], 48) @ WEIGHTS)


def conv(m: Any, x: Any) -> Any:
    if m is jnp:
        return lax.conv_general_dilated(x, KERNEL, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    padded, (_, h, w, _) = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), x.shape
    parts = (padded[:, i : i + h, j : j + w] @ KERNEL[i, j].astype(x.dtype) for i in range(3) for j in range(3))
    return sum(parts)


#: products, whose kernels differ between levels, and rows
PROGRAMS = {
    "product": Program(lambda m, x, y, b: m.tanh(x @ y / 8 + b), ("m, k", "k, n", "n"), "k"),
    "product of f64": Program(lambda m, x, y: x @ y, ("m, k", "k, n"), "k", np.float64),
    "rows by rows": Program(lambda m, x, y: x @ y.T, ("m, k", "n, k"), "k"),
    "columns by columns": Program(lambda m, x, y: x.T @ y, ("k, m", "k, n"), "k"),
    "constant columns": Program(lambda m, x: m.tanh(x @ WEIGHTS), ("m, 48",)),
    "few rows": Program(lambda m, x, y: m.einsum("bd,bkd->bk", x, y), ("b, 32", "b, n, 32")),
    "two reduced axes": Program(lambda m, x, y: m.einsum("bsd,bse->de", x, y), ("b, s, 24", "b, s, n")),
    "none of k": Program(lambda m, x, y: x[:, 1:] @ y[1:], ("m, k", "k, n"), "k"),
    "none of m and n": Program(lambda m, x, y: x[1:] @ y[:, 1:], ("m, k", "k, n")),
    "batches": Program(lambda m, x, y: m.einsum("bqd,bkd->bqk", x, y), ("b, q, 16", "b, k, 16")),
    "attention": Program(attention, ("3, q, 16", "3, k, 16", "3, k, 24", "q, k"), "k"),
    "heads": Program(heads, ("b, 3, s, 16",)),
    "convolution": Program(conv, ("b, h, w, 5",)),
    "softmax": Program(softmax, ("m, n",), "n"),
    "norm": Program(norm, ("m, n",), "n"),
    "sums of rows": Program(lambda m, x: x.sum(-1), ("m, n",), "n"),
    "greatest of rows": Program(lambda m, x: x.max(-1) - x.min(-1), ("m, n",), "n"),
    "sums of columns": Program(lambda m, x: x.sum(0), ("n, m",), "n"),
    "bias": Program(lambda m, x, y, z: (x + y) * z, ("m, n", "n", "m, 1")),
    "bias of heads": Program(lambda m, x, y: m.maximum(x + y, 0), ("b, 3, m, n", "b, 1, 1, n")),
}


def levels() -> list[str]:
    """The levels of this processor, the best last."""
    x86 = [level for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4") if best_level() >= (level,)]
    return x86 if best_level()[0].startswith("x86") else list(best_level())


@cache
def text_of(name: str) -> str:
    """The program as JAX exports it."""
    program, scope = PROGRAMS[name], export.SymbolicScope()
    symbolic = [export.symbolic_shape(shape, scope=scope) for shape in program.shapes]
    with jax.enable_x64(program.dtype is np.float64):
        arguments = [jax.ShapeDtypeStruct(shape, program.dtype) for shape in symbolic]
        return str(export.export(jax.jit(partial(program.function, jnp)))(*arguments).mlir_module())


def arguments_of(program: Program, seed: int) -> list[np.ndarray[Any, Any]]:
    """Arguments of drawn sizes, of up to a million elements each."""
    rng = random.Random(seed)
    while True:
        symbols = {word.strip() for shape in program.shapes for word in shape.split(",")}
        sizes = {one: rng.choice(LENGTHS if one in program.long else SIZES) for one in sorted(symbols)}
        shapes = [[int(word) if word.strip().isdecimal() else sizes[word.strip()] for word in shape.split(",")]
                  for shape in program.shapes]  # fmt: skip
        if max(map(prod, shapes)) <= 1 << 20 and prod(sizes.values()) < 1 << 40:
            break
    values = np.random.default_rng(seed)
    return [values.standard_normal(shape).astype(program.dtype) for shape in shapes]


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("name", PROGRAMS)
def test_dynamic_sizes_compute_what_numpy_does(name: str, level: str) -> None:
    program = PROGRAMS[name]
    module = compiler.compile(text_of(name), targets=["cpu"], target_cpu=level)
    with vm.load(module, device="cpu", allow_native_code=True) as loaded:
        for seed in range(CALLS):
            given = arguments_of(program, seed)
            want = np.asarray(program.function(np, *(x.astype(np.float64) for x in given)))
            got = np.asarray(loaded.main(*given))
            assert got.shape == want.shape
            scale = max(float(np.abs(want).max(initial=0)), 1.0)
            error = float(np.abs(got - want).max(initial=0)) / scale
            assert error < (1e-12 if program.dtype is np.float64 else 3e-5), [x.shape for x in given]
