"""flax: modules of `linen` and `nnx`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax import nnx

from .programs import Made, Program, floats, key_data


class _Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (256, 128):
            x = nn.relu(nn.Dense(width)(x))
        return nn.log_softmax(nn.Dense(10)(x))


class _Cnn(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (16, 32):
            x = nn.relu(nn.BatchNorm(use_running_average=True)(nn.Conv(width, (3, 3))(x)))
            x = nn.avg_pool(x, (2, 2), (2, 2))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


class _Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        x = x + nn.MultiHeadDotProductAttention(num_heads=4)(nn.LayerNorm()(x), mask=mask)
        return x + nn.Dense(64)(nn.gelu(nn.Dense(128)(nn.LayerNorm()(x))))


class _Tagger(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(100, 32)(tokens)
        return nn.Dense(5)(nn.RNN(nn.LSTMCell(32))(x))


class _Vae(nn.Module):
    @nn.compact
    def __call__(self, x, key):
        hidden = nn.relu(nn.Dense(64)(x))
        mean, log_variance = nn.Dense(8)(hidden), nn.Dense(8)(hidden)
        z = mean + jnp.exp(log_variance / 2) * jax.random.normal(key, mean.shape)
        return {"image": nn.sigmoid(nn.Dense(x.shape[-1])(nn.relu(nn.Dense(64)(z)))), "mean": mean}


def _applied(module: nn.Module, *inputs: object) -> Made:
    variables = module.init(jax.random.key(0), *inputs)
    return module.apply, (variables, *inputs)


def mlp() -> Made:
    return _applied(_Mlp(), floats(32, 784))


def cnn() -> Made:
    return _applied(_Cnn(), floats(4, 28, 28, 1))


def transformer_block() -> Made:
    return _applied(_Block(), floats(2, 16, 64))


def lstm_tagger() -> Made:
    return _applied(_Tagger(), np.arange(24, dtype=np.int32).reshape(2, 12))


def vae() -> Made:
    return _applied(_Vae(), floats(8, 100), key_data(1))


def linen_training_step() -> Made:
    module, rule = _Mlp(), optax.adam(1e-3)
    x, labels = floats(32, 784), np.arange(32, dtype=np.int32) % 10
    params = module.init(jax.random.key(0), x)

    @jax.jit
    def step(params, state, x, labels):
        def loss(params):
            return optax.softmax_cross_entropy_with_integer_labels(module.apply(params, x), labels).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = rule.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    return step, (params, rule.init(params), x, labels)


class _Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(1, 8, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(8, use_running_average=True, rngs=rngs)
        self.out = nnx.Linear(8 * 14 * 14, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.max_pool(nnx.relu(self.norm(self.conv(x))), (2, 2), (2, 2))
        return self.out(x.reshape(x.shape[0], -1))


def nnx_module() -> Made:
    return _Net(nnx.Rngs(0)), (floats(4, 28, 28, 1),)


def nnx_split() -> Made:
    graph, state = nnx.split(_Net(nnx.Rngs(0)))

    def apply(state, x):
        return nnx.merge(graph, state)(x)

    return apply, (state, floats(4, 28, 28, 1))


def nnx_attention() -> Made:
    module = nnx.MultiHeadAttention(num_heads=4, in_features=32, decode=False, rngs=nnx.Rngs(0))
    return nnx.jit(module), (floats(2, 10, 32),)


PROGRAMS = (
    Program("linen MLP 784-256-128-10", mlp),
    Program("linen CNN with batch norm", cnn),
    Program("linen transformer block", transformer_block),
    Program("linen LSTM tagger", lstm_tagger),
    Program("linen VAE with a key", vae),
    Program("linen training step with Adam", linen_training_step, 1e-3),
    Program("nnx module", nnx_module),
    Program("nnx split state", nnx_split),
    Program("nnx attention under nnx.jit", nnx_attention),
)
