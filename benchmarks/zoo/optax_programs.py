"""optax: one step of a rule over a tree of parameters, its state in and out; losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .programs import Made, Program, floats


def _loss(params: dict[str, Any], x: Any, y: Any) -> Any:
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return ((hidden @ params["w2"] - y) ** 2).mean()


def _step(rule: optax.GradientTransformationExtraArgs) -> Callable[[], Made]:
    def make() -> Made:
        def step(params, state, x, y):
            value, grads = jax.value_and_grad(_loss)(params, x, y)
            updates, state = rule.update(grads, state, params)
            return optax.apply_updates(params, updates), state, value

        params = {"w1": floats(8, 16) / 4, "b1": np.zeros(16, np.float32), "w2": floats(16, 1, seed=1) / 4}
        return jax.jit(step, donate_argnums=(0, 1)), (params, rule.init(params), floats(32, 8), floats(32, 1, seed=2))

    return make


def lbfgs() -> Made:
    def value(x):
        return ((x - jnp.arange(6.0)) ** 2 * jnp.arange(1.0, 7)).sum()

    rule = optax.lbfgs()

    def step(x, state):
        found, grad = optax.value_and_grad_from_state(value)(x, state=state)
        updates, state = rule.update(grad, state, x, value=found, grad=grad, value_fn=value)
        return optax.apply_updates(x, updates), state

    start = np.zeros(6, np.float32)
    return step, (start, rule.init(start))


def ctc_loss() -> Made:
    def loss(logits, padding, labels, label_padding):
        return optax.ctc_loss(logits, padding, labels, label_padding)

    labels = np.random.default_rng(3).integers(1, 6, (2, 5)).astype(np.int32)
    zeros = np.zeros((2, 12), np.float32), np.zeros((2, 5), np.float32)
    return loss, (floats(2, 12, 6), zeros[0], labels, zeros[1])


_SCHEDULED = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 10, 100))
PROGRAMS = (
    Program("Adam, donated", _step(optax.adam(1e-2))),
    Program("AdamW, clipped, with a schedule", _step(optax.chain(optax.clip_by_global_norm(1.0), _SCHEDULED))),
    Program("momentum", _step(optax.sgd(1e-2, momentum=0.9, nesterov=True))),
    Program("LAMB", _step(optax.lamb(1e-2))),
    Program("Lion", _step(optax.lion(1e-3))),
    Program("Adafactor", _step(optax.adafactor(1e-2))),
    Program("gradients gathered over steps", _step(optax.MultiSteps(optax.adam(1e-2), 4).gradient_transformation())),
    Program("L-BFGS with line search", lbfgs, 1e-3),
    Program("CTC loss", ctc_loss),
)
