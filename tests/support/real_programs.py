"""Programs as people export them from JAX, forward and gradient, small enough for every test run.

A row of `PROGRAMS` is a name and a function without arguments that gives the program and what it is called with.
Floats are compared with JAX on CPU by a tolerance per program: a gradient through twenty layers loses more digits than
one product. `exact` programs give integers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import networks as n
import numpy as np
from jax import export, lax

Made = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class RealProgram:
    """`tolerance`: of the largest magnitude in each result; 0 for results that must be equal. `reads_predicates`: the
    host waits for numbers that say how long a loop runs. `many_kernels`: tens of them, which take long to build.
    """

    name: str
    make: Callable[[np.random.Generator], Made]
    tolerance: float = 1e-5
    reads_predicates: bool = False
    many_kernels: bool = False
    #: (argument, axis) of each axis that may have any size, the batch; arguments are counted among all arrays
    batch: tuple[tuple[int, int], ...] = ()

    def made(self) -> Made:
        return self.make(np.random.default_rng(sum(self.name.encode())))

    def symbolic(self, leaves: Sequence[Any], tree: Any) -> Any:
        """What the program takes, with a symbol for the batch."""
        (symbol,) = export.symbolic_shape("b")
        shapes = [list(leaf.shape) for leaf in leaves]
        for argument, axis in self.batch:
            shapes[argument][axis] = symbol
        specs = [jax.ShapeDtypeStruct(tuple(shape), leaf.dtype) for shape, leaf in zip(shapes, leaves, strict=True)]
        return jax.tree.unflatten(tree, specs)

    def sized(self, leaves: Sequence[Any], size: int) -> list[Any]:
        """The arguments for a batch of that size: rows taken anyhow, the same ones of each argument."""
        taken = list(leaves)
        for argument, axis in self.batch:
            rows = np.random.default_rng(size).integers(0, leaves[argument].shape[axis], size)
            taken[argument] = np.take(leaves[argument], rows, axis)
        return taken


def _floats(random: np.random.Generator, *shape: int) -> Any:
    return random.normal(size=shape).astype(np.float32)


def _cross_entropy(logits: Any, labels: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()


def _adam(random: np.random.Generator) -> Made:
    sizes = (20, 32, 32, 10)
    p = {f"l{i}": n.dense(random, a, b) for i, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False))}

    def loss(p: Any, x: Any, labels: Any) -> Any:
        for i in range(2):
            x = jax.nn.relu(n.apply_dense(p[f"l{i}"], x))
        return _cross_entropy(n.apply_dense(p["l2"], x), labels)

    def step(p: Any, m: Any, v: Any, count: Any, x: Any, labels: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(p, x, labels)
        count = count + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, gradient)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradient)
        scale = jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        p = jax.tree.map(lambda p, m, v: p - 1e-3 * scale * m / (jnp.sqrt(v) + 1e-8), p, m, v)
        return p, m, v, count, value

    zeros = jax.tree.map(np.zeros_like, p)
    return step, (p, zeros, zeros, np.float32(0), _floats(random, 16, 20), random.integers(0, 10, 16, np.int32))


def _gradient(apply: Callable[..., Any], p: Any, *rest: Any) -> Made:
    """The value and the gradient of a loss that looks at each output differently."""

    def loss(p: Any, *rest: Any) -> Any:
        out = apply(p, *rest)
        return (out * jnp.cos(jnp.arange(out.size, dtype=out.dtype).reshape(out.shape))).sum() / out.size

    return jax.value_and_grad(loss), (p, *rest)


def _convnet(random: np.random.Generator) -> Made:
    return n.apply_convnet, (n.small_convnet(random), _floats(random, 2, 16, 16, 3))


def _convnet_gradient(random: np.random.Generator) -> Made:
    return _gradient(n.apply_convnet, n.small_convnet(random), _floats(random, 2, 16, 16, 3))


def _resnet(random: np.random.Generator) -> Made:
    return n.apply_resnet18, (n.resnet18(random, 4, 10), _floats(random, 1, 224, 224, 3))


def _resnet_gradient(random: np.random.Generator) -> Made:
    return _gradient(n.apply_resnet18, n.resnet18(random, 4, 10), _floats(random, 1, 64, 64, 3))


def _encoder(random: np.random.Generator, causal: bool = False) -> Made:
    tokens = random.integers(0, 50, (2, 12), np.int32)
    return lambda p, t: n.apply_encoder(p, t, 4, causal), (n.encoder(random, 2, 32, 50, 16), tokens)


def _encoder_gradient(random: np.random.Generator) -> Made:
    function, (p, tokens) = _encoder(random, causal=True)
    return _gradient(function, p, tokens)


def _decoder(random: np.random.Generator) -> Made:
    p = n.encoder(random, 2, 32, 50, 16)

    def generate(p: Any, first: Any) -> Any:
        """Twelve tokens, each the likeliest after those before it."""

        def step(carry: Any, place: Any) -> Any:
            token, keys, values = carry
            logits, keys, values = n.decode_step(p, token, place, keys, values, 4)
            return (logits.argmax(-1).astype(jnp.int32), keys, values), logits

        empty = jnp.zeros((2, 2, 16, 4, 8))
        return lax.scan(step, (first, empty, empty), jnp.arange(12))[1]

    return generate, (p, random.integers(0, 50, 2, np.int32))


def _lstm(random: np.random.Generator) -> Made:
    return n.apply_lstm, (n.lstm(random, 6, 8), _floats(random, 7, 3, 6))


def _lstm_gradient(random: np.random.Generator) -> Made:
    return _gradient(n.apply_lstm, n.lstm(random, 6, 8), _floats(random, 7, 3, 6))


def _experts(random: np.random.Generator) -> Made:
    return lambda p, x: n.apply_experts(p, x, 8), (n.experts(random, 4, 8), _floats(random, 14, 8))


def _experts_gradient(random: np.random.Generator) -> Made:
    function, arguments = _experts(random)
    return _gradient(function, *arguments)


def _fft_convolve(signal: Any, kernel: Any) -> Any:
    size = signal.shape[-1] + kernel.shape[-1] - 1
    return jnp.fft.irfft(jnp.fft.rfft(signal, size) * jnp.fft.rfft(kernel, size), size)


def _fft(random: np.random.Generator) -> Made:
    return _fft_convolve, (_floats(random, 3, 90), _floats(random, 3, 31))


def _fft_gradient(random: np.random.Generator) -> Made:
    return _gradient(_fft_convolve, _floats(random, 3, 90), _floats(random, 3, 31))


def _k_means(random: np.random.Generator) -> Made:
    def step(points: Any, centres: Any) -> Any:
        distances = ((points[:, None] - centres[None]) ** 2).sum(-1)
        nearest = distances.argmin(-1)
        counts = jnp.zeros(centres.shape[0]).at[nearest].add(1)
        sums = jax.ops.segment_sum(points, nearest, centres.shape[0])
        return jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], centres), nearest

    return step, (_floats(random, 60, 3), _floats(random, 5, 3))


def _life(random: np.random.Generator) -> Made:
    def turn(_: Any, board: Any) -> Any:
        near = sum(jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        return ((near == 3) | ((board == 1) & (near == 2))).astype(board.dtype)

    return lambda board, turns: lax.fori_loop(0, turns, turn, board), (
        random.integers(0, 2, (12, 17), np.int32), np.int32(9),
    )  # fmt: skip


def _unet(random: np.random.Generator) -> Made:
    return n.apply_unet_block, (n.unet_block(random, 8), _floats(random, 2, 8, 8, 8), _floats(random, 2))


def _unet_gradient(random: np.random.Generator) -> Made:
    return _gradient(n.apply_unet_block, n.unet_block(random, 8), _floats(random, 2, 8, 8, 8), _floats(random, 2))


def _conjugate_gradient(random: np.random.Generator) -> Made:
    def solve(a: Any, b: Any) -> Any:
        def step(state: Any) -> Any:
            x, r, p, squared, count = state
            moved = a @ p
            alpha = squared / (p @ moved)
            x, r = x + alpha * p, r - alpha * moved
            now = r @ r
            return x, r, r + now / squared * p, now, count + 1

        start = (jnp.zeros_like(b), b, b, b @ b, 0)
        return lax.while_loop(lambda s: (s[3] > 1e-8) & (s[4] < 100), step, start)[0]

    half = _floats(random, 20, 20)
    return solve, (half @ half.T / 20 + 3 * np.eye(20, dtype=np.float32), _floats(random, 20))


def _random_bits(random: np.random.Generator) -> Made:
    def draw(seed: Any) -> Any:
        keys = jax.random.split(jax.random.key(seed), 4)
        other = jax.random.key(seed, impl="rbg")
        return (
            jax.random.bits(keys[0], (7, 5)), jax.random.randint(keys[1], (33,), -5, 50),
            jax.random.permutation(keys[2], 40), jax.random.uniform(keys[3], (9,)), jax.random.bits(other, (6, 3)),
            jax.random.bernoulli(keys[0], 0.3, (20,)),
        )  # fmt: skip

    return draw, (np.uint32(7),)


def _random_floats(random: np.random.Generator) -> Made:
    def draw(seed: Any) -> Any:
        keys = jax.random.split(jax.random.key(seed), 5)
        return (
            jax.random.normal(keys[0], (50,)), jax.random.truncated_normal(keys[1], -1, 2, (20,)),
            jax.random.categorical(keys[2], jnp.arange(8.0), shape=(30,)), jax.random.gumbel(keys[3], (11,)),
            jax.random.exponential(keys[4], (11,)),
        )  # fmt: skip

    return draw, (np.uint32(11),)


def _dropout(random: np.random.Generator) -> Made:
    """A step of training that draws its mask."""

    def loss(w: Any, x: Any, seed: Any) -> Any:
        kept = jax.random.bernoulli(jax.random.key(seed), 0.8, x.shape)
        return (jnp.where(kept, x / 0.8, 0) @ w).sum(-1).var()

    return jax.grad(loss), (_floats(random, 12, 7), _floats(random, 9, 12), np.uint32(3))


PROGRAMS: tuple[RealProgram, ...] = (
    RealProgram("adam_step", _adam, batch=((-2, 0), (-1, 0))),
    RealProgram("convnet", _convnet, batch=((-1, 0),)),
    RealProgram("convnet_gradient", _convnet_gradient, 1e-4, many_kernels=True, batch=((-1, 0),)),
    RealProgram("resnet18", _resnet, many_kernels=True, batch=((-1, 0),)),
    RealProgram("resnet18_gradient", _resnet_gradient, 1e-4, many_kernels=True),
    RealProgram("encoder", _encoder, batch=((-1, 0),)),
    RealProgram("encoder_gradient", _encoder_gradient, 1e-4, many_kernels=True, batch=((-1, 0),)),
    RealProgram("decoder", _decoder),
    RealProgram("lstm", _lstm, batch=((-1, 1),)),
    RealProgram("lstm_gradient", _lstm_gradient, 1e-4, batch=((-1, 1),)),
    RealProgram("experts", _experts),
    RealProgram("experts_gradient", _experts_gradient, 1e-4),
    RealProgram("fft_convolution", _fft),
    RealProgram("fft_convolution_gradient", _fft_gradient, many_kernels=True),
    RealProgram("k_means", _k_means, batch=((-2, 0),)),
    RealProgram("life", _life, 0, reads_predicates=True),
    RealProgram("unet_block", _unet, batch=((-2, 0), (-1, 0))),
    RealProgram("unet_block_gradient", _unet_gradient, 1e-4, many_kernels=True, batch=((-2, 0), (-1, 0))),
    RealProgram("conjugate_gradient", _conjugate_gradient, reads_predicates=True),
    RealProgram("random_bits", _random_bits, 0, many_kernels=True),
    RealProgram("random_floats", _random_floats, many_kernels=True),
    RealProgram("dropout_gradient", _dropout, batch=((-2, 0),)),
)
