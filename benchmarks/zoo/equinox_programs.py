"""equinox: modules, filtered transformations, errors at run time."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from .programs import Made, Program, floats


def mlp() -> Made:
    return eqx.nn.MLP(8, 4, 32, 2, key=jax.random.key(0)), (floats(8),)


def batched_mlp() -> Made:
    model = eqx.nn.MLP(8, 4, 32, 2, key=jax.random.key(0))
    return eqx.filter_jit(jax.vmap(model)), (floats(16, 8),)


class _Cnn(eqx.Module):
    layers: list

    def __init__(self, key):
        a, b, c = jax.random.split(key, 3)
        self.layers = [
            eqx.nn.Conv2d(1, 8, 3, key=a), eqx.nn.MaxPool2d(2, 2), jax.nn.relu, jnp.ravel,
            eqx.nn.Linear(8 * 13 * 13, 32, key=b), jax.nn.relu, eqx.nn.Linear(32, 10, key=c), jax.nn.log_softmax,
        ]  # fmt: skip

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def cnn() -> Made:
    return eqx.filter_jit(lambda model, x: jax.vmap(model)(x)), (_Cnn(jax.random.key(0)), floats(4, 1, 28, 28))


class _Rnn(eqx.Module):
    cell: eqx.nn.GRUCell
    out: eqx.nn.Linear

    def __init__(self, key):
        a, b = jax.random.split(key)
        self.cell, self.out = eqx.nn.GRUCell(3, 16, key=a), eqx.nn.Linear(16, 1, key=b)

    def __call__(self, xs):
        state, _ = jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(16), xs)
        return jax.nn.sigmoid(self.out(state))


def gru() -> Made:
    return _Rnn(jax.random.key(0)), (floats(20, 3),)


def attention() -> Made:
    model = eqx.nn.MultiheadAttention(4, 32, key=jax.random.key(0))
    return (lambda x: model(x, x, x)), (floats(10, 32),)


def training_step() -> Made:
    model, rule = eqx.nn.MLP(2, "scalar", 16, 1, key=jax.random.key(0)), optax.sgd(0.1)

    @eqx.filter_jit
    def step(model, state, x, y):
        def loss(model):
            return ((jax.vmap(model)(x) - y) ** 2).mean()

        value, grads = eqx.filter_value_and_grad(loss)(model)
        updates, state = rule.update(grads, state, model)
        return value, eqx.apply_updates(model, updates), state

    return step, (model, rule.init(eqx.filter(model, eqx.is_array)), floats(32, 2), floats(32, seed=1))


def stateful_batch_norm() -> Made:
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(4, "batch", mode="batch")

    def apply(x, state):
        return jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)[0]

    return (lambda x: apply(x, state)), (floats(16, 4),)


def checked_root() -> Made:
    @eqx.filter_jit
    def root(x):
        x = eqx.error_if(x, x.min() < 0, "x must not be negative")
        return jnp.sqrt(x)

    return root, (np.abs(floats(6)),)


_NAN = (("EQX_ON_ERROR", "nan"),)
PROGRAMS = (
    Program("MLP called as it is", mlp),
    Program("MLP under vmap and filter_jit", batched_mlp),
    Program("CNN", cnn),
    Program("GRU over a sequence", gru),
    Program("multi-head attention", attention),
    Program("filtered training step", training_step),
    Program("batch norm with state", stateful_batch_norm),
    Program("error_if", checked_root, note="refused as it is: the check calls Python"),
    Program("error_if, NaN instead of an error", checked_root, note="EQX_ON_ERROR=nan", environment=_NAN),
)
