"""Loops of the benchmark, as functions of JAX: recurrences, solvers, minimisers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
#: width and steps of the LSTM
WIDTH, STEPS = 64, 200


@dataclass(frozen=True)
class Loop:
    """`function(weights, *inputs)` of JAX; `graph` makes the same in ONNX, `numpy` in NumPy."""

    inputs: Sequence[Array]
    function: Callable[..., Any]
    weights: Any = ()
    graph: Callable[[Any, Sequence[Array]], Any] | None = None
    numpy: Callable[..., Any] | None = None


def lstm() -> Loop:
    """The states of all steps. The gates are in the order of ONNX: input, output, forget, cell."""
    random = np.random.default_rng(0)
    w, u, b = (random.normal(size=shape).astype(np.float32) / 10
               for shape in ((WIDTH, 4 * WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH,)))  # fmt: skip

    def run(weights: Any, xs: Any) -> Any:
        import jax
        import jax.numpy as jnp

        w, u, b = weights

        def step(state: Any, x: Any) -> Any:
            hidden, cell = state
            i, o, f, g = jnp.split(x @ w + hidden @ u + b, 4)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (hidden, cell), hidden

        return jax.lax.scan(step, (jnp.zeros(WIDTH), jnp.zeros(WIDTH)), xs)[1]

    return Loop([random.normal(size=(STEPS, WIDTH)).astype(np.float32)], run, (w, u, b), _lstm_graph)


def _lstm_graph(weights: Any, inputs: Sequence[Array]) -> Any:
    from ops import OnnxOps

    w, u, b = weights
    ops = OnnxOps()
    xs = ops.node("Unsqueeze", "x0", np.array([1]))
    both = np.concatenate([b, np.zeros_like(b)])[None]
    states = ops.node("LSTM", xs, w.T[None].copy(), u.T[None].copy(), both, hidden_size=WIDTH)
    found = ops.node("Squeeze", states, np.array([1, 2]))
    return ops.graph("lstm", [("x0", inputs[0])], [found])


def scalar() -> Loop:
    """1,000 iterations on two scalars."""

    def run(_: Any, x: Any) -> Any:
        import jax
        import jax.numpy as jnp

        return jax.lax.while_loop(lambda s: s[0] < 1000.0, lambda s: (s[0] + 1.0, s[1] * 0.999), (x, jnp.float32(3)))[1]

    return Loop([np.float32(0)[...]], run, graph=_scalar_graph)


def _scalar_graph(_: Any, inputs: Sequence[Array]) -> Any:
    from onnx import TensorProto
    from ops import OnnxOps

    body = OnnxOps("body")
    i = body.add("i", np.array(1, np.float32))
    y = body.mul("y", np.array(0.999, np.float32))
    more = body.node("Less", i, np.array(1000, np.float32))
    zero = np.zeros((), np.float32)
    given = [("turn", np.zeros((), np.int64)), ("more", np.zeros((), bool)), ("i", zero), ("y", zero)]
    inner = body.graph("body", given, [more, i, y])
    inner.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    ops = OnnxOps()
    first = ops.node("Less", "x0", np.array(1000, np.float32))
    _, y = ops.node("Loop", np.array(1 << 60), first, "x0", np.array(3, np.float32), results=2, body=inner)
    return ops.graph("while", [("x0", inputs[0])], [y])


def conjugate_gradient() -> Loop:
    random = np.random.default_rng(0)
    half = random.normal(size=(256, 256)).astype(np.float32) / 16
    matrix = half @ half.T + np.eye(256, dtype=np.float32) / 100  # far from converged after 50 iterations

    def run(matrix: Any, b: Any) -> Any:
        import jax

        def step(_: Any, state: Any) -> Any:
            x, r, p, squared = state
            moved = matrix @ p
            alpha = squared / (p @ moved)
            x, r = x + alpha * p, r - alpha * moved
            now = r @ r
            return x, r, r + now / squared * p, now

        return jax.lax.fori_loop(0, 50, step, (b * 0, b, b, b @ b))[0]

    def numpy(matrix: Array, b: Array) -> Array:
        x, r, p, squared = b * 0, b, b, b @ b
        for _ in range(50):
            moved = matrix @ p
            alpha = squared / (p @ moved)
            x, r = x + alpha * p, r - alpha * moved
            now = r @ r
            p, squared = r + now / squared * p, now
        return x

    return Loop([random.normal(size=256).astype(np.float32)], run, matrix, numpy=numpy)


def tsit5() -> Loop:
    """Solved by diffrax with steps of a fixed size."""

    def run(_: Any, y0: Any, rate: Any) -> Any:
        import diffrax
        import jax.numpy as jnp

        term = diffrax.ODETerm(lambda t, y, rate: jnp.stack([y[1], rate * (1 - y[0] ** 2) * y[1] - y[0]]))
        found = diffrax.diffeqsolve(
            term, diffrax.Tsit5(), 0.0, 2.0, 0.1, y0, args=rate,
            stepsize_controller=diffrax.ConstantStepSize(), max_steps=32, throw=False,
        )  # fmt: skip
        return found.ys[0]

    return Loop([np.array([1.0, 2.0], np.float32), np.float32(0.7)[...]], run)


def lbfgs() -> Loop:
    """By optax, with its line search."""

    def run(scale: Any, start: Any) -> Any:
        import jax
        import jax.numpy as jnp
        import optax

        def value(x: Any) -> Any:
            return (scale * (x - 1) ** 2).sum() + jnp.cos(x).sum()

        rule = optax.lbfgs()

        def step(_: Any, state: Any) -> Any:
            x, inner = state
            found, grad = optax.value_and_grad_from_state(value)(x, state=inner)
            updates, inner = rule.update(grad, inner, x, value=found, grad=grad, value_fn=value)
            return optax.apply_updates(x, updates), inner

        return jax.lax.fori_loop(0, 10, step, (start, rule.init(start)))[0]

    return Loop([np.zeros(64, np.float32)], run, np.linspace(1, 6, 64, dtype=np.float32))
