"""Memory of real networks: beside arguments and results a context holds hardly more than what lives at one time.

The bound counts, at each position of the final order, the aligned sizes of the groups that live there. What is compared
with it is what the program allocates: the arena and the states of loops, on the device, for a context.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orchestrion import vm
from orchestrion.compiler.driver import Compilation, compile
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.options import Options
from orchestrion.compiler.pipeline import passes_named, run_passes
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.sequencer.arena import Tenant, align, peak_bytes
from orchestrion.compiler.sequencer.buffer_assignment import BufferAssignment
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.schema.writer import write

Network = tuple[Callable[..., Any], tuple[Any, ...]]


def _weights(key: int, *shape: int) -> Any:
    return np.random.default_rng(key).standard_normal(shape, np.float32) * np.float32(0.2)


def mlp() -> Network:
    sizes = (64, 256, 512, 128, 10)
    layers = [(_weights(i, a, b), _weights(i + 9, b)) for i, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False))]

    def run(x: Any) -> Any:
        for w, b in layers:
            x = jax.nn.gelu(x @ w + b)
        return jax.nn.softmax(x)

    return run, (_weights(20, 32, 64),)


def _norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def mixer() -> Network:
    tokens, channels = 16, 32
    one, two = _weights(1, tokens, 64), _weights(2, 64, tokens)
    three, four = _weights(3, channels, 128), _weights(4, 128, channels)

    def run(x: Any) -> Any:
        for _ in range(2):
            y = jnp.swapaxes(_norm(x), 1, 2)
            x = x + jnp.swapaxes(jax.nn.gelu(y @ one) @ two, 1, 2)
            x = x + jax.nn.gelu(_norm(x) @ three) @ four
        return x.mean(1)

    return run, (_weights(5, 4, tokens, channels),)


def encoder() -> Network:
    width, heads = 64, 4
    q, k, v, o = (_weights(i, width, width) for i in range(4))
    up, down = _weights(5, width, 4 * width), _weights(6, 4 * width, width)

    def run(x: Any) -> Any:
        n, t, _ = x.shape
        y = _norm(x)
        a, b, c = ((y @ w).reshape(n, t, heads, -1).transpose(0, 2, 1, 3) for w in (q, k, v))
        scores = jax.nn.softmax(a @ b.swapaxes(-1, -2) / np.sqrt(width // heads))
        x = x + (scores @ c).transpose(0, 2, 1, 3).reshape(n, t, width) @ o
        return x + jax.nn.gelu(_norm(x) @ up) @ down

    return run, (_weights(7, 2, 24, width),)


def rnn() -> Network:
    inputs, width = 16, 48
    wx, wh = _weights(1, inputs, width), _weights(2, width, width)

    def run(x: Any) -> Any:
        def step(h: Any, e: Any) -> Any:
            h = jnp.tanh(e @ wx + h @ wh)
            return h, h

        last, outputs = jax.lax.scan(step, jnp.zeros((8, width), np.float32), x)
        return last, outputs.mean(0)

    return run, (_weights(3, 20, 8, inputs),)


NETWORKS = {f.__name__: f for f in (mlp, mixer, encoder, rnn)}


def _phase(network: Network, stop: str) -> Module:
    function, arguments = network
    return Compilation(targets=("reference",)).module(jax.jit(function).lower(*arguments), stop)


def _bound(network: Network) -> int:
    """The most bytes that live at one position, in the order that the memory is planned for."""
    module = _phase(network, "hl_seq")
    run_passes(module, passes_named(["group-by-barrier", "materialize-copies"]), Options(("reference",)))
    (program,) = [op for op in module.block if isinstance(op, hl_seq.Program)]
    (func,) = [op for op in program.body.block if isinstance(op, Func)]
    groups = BufferAssignment(func).groups()
    own = [g for g in groups if g.placement is None or g.placement.kind in ("now", "next")]
    return peak_bytes([Tenant(group.size, group.live) for group in own])


def _allocated(network: Network) -> int:
    module = _phase(network, "ll_seq")
    made = [
        op for op in module.walk() if isinstance(op, ll_seq.Allocate) and op.lifetime.value in ("transient", "state")
    ]
    return sum(align(op.size) for op in made)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_context_holds_little_more_than_lives_at_one_time(name: str) -> None:
    network = NETWORKS[name]()
    assert _bound(network) <= _allocated(network) <= 1.05 * _bound(network)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_device_holds_that_and_no_more(name: str) -> None:
    """Of a context: what was allocated when it was made, and nothing in calls with destinations."""
    network = NETWORKS[name]()
    function, arguments = network
    lowered = jax.jit(function).lower(*arguments)
    program = vm.load(write(Compilation(targets=("reference",)).rows(lowered)), device="reference")
    wanted = [np.asarray(leaf) for leaf in jax.tree.leaves(function(*arguments))]
    outputs = [np.empty_like(leaf) for leaf in wanted]
    destination = outputs[0] if len(outputs) == 1 else tuple(outputs)
    for _ in range(3):
        program.main(*arguments, out=destination)
    for got, expected in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)
    call = program.statistics()["calls"][-1]
    assert (call["submissions"], call["waits"], call["allocations"]) == (1, 1, 0)


def _append(cache: Any, row: Any, index: Any) -> Any:
    return jax.lax.dynamic_update_slice(cache, row[None], (index, jnp.int32(0))), cache.sum()


@pytest.mark.parametrize("device", ["reference", "opencl", "vulkan"])
def test_a_donated_cache_is_updated_where_it_lies(device: str, load_on: Callable[..., Any]) -> None:
    """One copy is recorded, from argument to result, which is none when the caller gives one buffer for both."""
    rows = np.arange(16 * 256, dtype=np.float32).reshape(16, 256)
    arguments = (rows.copy(), np.ones(256, np.float32), np.int32(3))
    lowered = jax.jit(_append, donate_argnums=0).lower(*arguments)
    module = Compilation(targets=("reference",)).module(lowered, "ll_seq")
    assert sum(isinstance(op, ll_seq.Copy) for op in module.walk()) == 1
    program = load_on(compile(lowered, targets=[device]), device)
    total = np.empty((), np.float32)
    program.main(*arguments, out=(arguments[0], total))
    rows[3] = 1
    assert np.array_equal(arguments[0], rows)
    assert total == np.arange(16 * 256, dtype=np.float32).sum()
