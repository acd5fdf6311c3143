"""Layers and networks in plain JAX, sized by their arguments: what people export, without a library of layers.

Parameters are dictionaries of arrays made from a NumPy generator, so that a program's numbers do not change with JAX's.
Images are NHWC, weights of convolutions HWIO, sequences batch x time x width.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Params = dict[str, Any]
_IMAGE = ("NHWC", "HWIO", "NHWC")


def weights(random: np.random.Generator, *shape: int) -> Any:
    """Normal with a variance that keeps the size of what flows through: one by the number of inputs."""
    inputs = int(np.prod(shape[:-1])) or 1
    return random.normal(0, inputs**-0.5, shape).astype(np.float32)


def dense(random: np.random.Generator, inputs: int, outputs: int) -> Params:
    return {"w": weights(random, inputs, outputs), "b": weights(random, 1, outputs)[0] * np.float32(0.1)}


def norm(width: int) -> Params:
    return {"scale": np.linspace(0.5, 1.5, width, dtype=np.float32), "shift": np.zeros(width, np.float32)}


def apply_dense(p: Params, x: Any) -> Any:
    return x @ p["w"] + p["b"]


def convolution(x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=_IMAGE, feature_group_count=groups
    )


def batch_norm(p: Params, x: Any) -> Any:
    """With the statistics of the batch, as in training."""
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["scale"] + p["shift"]


def layer_norm(p: Params, x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p["scale"] + p["shift"]


def group_norm(p: Params, x: Any, groups: int) -> Any:
    b, h, w, c = x.shape
    y = x.reshape(b, h, w, groups, c // groups)
    y = (y - y.mean((1, 2, 4), keepdims=True)) * lax.rsqrt(y.var((1, 2, 4), keepdims=True) + 1e-5)
    return y.reshape(x.shape) * p["scale"] + p["shift"]


def max_pool(x: Any, size: int, stride: int) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), "SAME")


# A convolutional network with batch norm and both kinds of pooling.


def small_convnet(random: np.random.Generator, classes: int = 10) -> Params:
    return {
        "c1": weights(random, 3, 3, 3, 8), "n1": norm(8), "c2": weights(random, 3, 3, 8, 16), "n2": norm(16),
        "head": dense(random, 16, classes),
    }  # fmt: skip


def apply_convnet(p: Params, x: Any) -> Any:
    x = max_pool(jax.nn.relu(batch_norm(p["n1"], convolution(x, p["c1"]))), 2, 2)
    x = jax.nn.relu(batch_norm(p["n2"], convolution(x, p["c2"])))
    x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    return apply_dense(p["head"], x.mean((1, 2)))


# ResNet-18: a stem, four stages of two basic blocks, a head.


def resnet18(random: np.random.Generator, width: int = 64, classes: int = 1000) -> Params:
    p: Params = {"stem": weights(random, 7, 7, 3, width), "stem_norm": norm(width)}
    inputs = width
    for stage in range(4):
        outputs = width << stage
        for block in range(2):
            name = f"s{stage}b{block}"
            p[name] = {
                "c1": weights(random, 3, 3, inputs, outputs), "n1": norm(outputs),
                "c2": weights(random, 3, 3, outputs, outputs), "n2": norm(outputs),
            }  # fmt: skip
            if inputs != outputs:
                p[name] |= {"c3": weights(random, 1, 1, inputs, outputs), "n3": norm(outputs)}
            inputs = outputs
    return p | {"head": dense(random, inputs, classes)}


def _scaled(p: Params, x: Any) -> Any:
    """Batch norm in inference: the statistics are part of scale and shift."""
    return x * p["scale"] + p["shift"]


def _basic_block(p: Params, x: Any, stride: int) -> Any:
    y = jax.nn.relu(_scaled(p["n1"], convolution(x, p["c1"], stride)))
    y = _scaled(p["n2"], convolution(y, p["c2"]))
    if "c3" in p:
        x = _scaled(p["n3"], convolution(x, p["c3"], stride))
    return jax.nn.relu(x + y)


def apply_resnet18(p: Params, x: Any) -> Any:
    x = jax.nn.relu(_scaled(p["stem_norm"], convolution(x, p["stem"], 2)))
    x = max_pool(x, 3, 2)
    for stage in range(4):
        for block in range(2):
            x = _basic_block(p[f"s{stage}b{block}"], x, 2 if stage and not block else 1)
    return apply_dense(p["head"], x.mean((1, 2)))


# Transformers.


def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    """Of batch x time x heads x width each."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32(q.shape[-1] ** 0.5)
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1), v)


def transformer_layer(random: np.random.Generator, width: int) -> Params:
    return {
        "n1": norm(width), "qkv": dense(random, width, 3 * width), "out": dense(random, width, width),
        "n2": norm(width), "up": dense(random, width, 4 * width), "down": dense(random, 4 * width, width),
    }  # fmt: skip


def _heads(x: Any, heads: int) -> Any:
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads)


def apply_transformer_layer(p: Params, x: Any, heads: int, mask: Any = None) -> Any:
    parts = jnp.split(apply_dense(p["qkv"], layer_norm(p["n1"], x)), 3, axis=-1)
    mixed = attention(*(_heads(part, heads) for part in parts), mask)
    x = x + apply_dense(p["out"], mixed.reshape(x.shape))
    return x + apply_dense(p["down"], jax.nn.gelu(apply_dense(p["up"], layer_norm(p["n2"], x))))


def encoder(random: np.random.Generator, layers: int, width: int, vocabulary: int, longest: int) -> Params:
    return {
        "tokens": weights(random, vocabulary, width), "places": weights(random, longest, width), "norm": norm(width),
        "layers": [transformer_layer(random, width) for _ in range(layers)],
    }  # fmt: skip


def apply_encoder(p: Params, tokens: Any, heads: int, causal: bool = False) -> Any:
    """Logits over the vocabulary for tokens of batch x time."""
    time = tokens.shape[1]
    x = jnp.asarray(p["tokens"])[tokens] + p["places"][:time]
    mask = jnp.arange(time)[:, None] >= jnp.arange(time)[None, :] if causal else None
    for layer in p["layers"]:
        x = apply_transformer_layer(layer, x, heads, mask)
    return layer_norm(p["norm"], x) @ p["tokens"].T


def decode_step(p: Params, token: Any, place: Any, keys: Any, values: Any, heads: int) -> Any:
    """One token more: gives its logits and the caches, of layers x batch x time x heads x width, with it written in."""
    x = (p["tokens"][token] + p["places"][place])[:, None]
    mask = (jnp.arange(keys.shape[2]) <= place)[None, None, None, :]
    for number, layer in enumerate(p["layers"]):
        parts = jnp.split(apply_dense(layer["qkv"], layer_norm(layer["n1"], x)), 3, axis=-1)
        q, k, v = (_heads(part, heads) for part in parts)
        keys = lax.dynamic_update_slice(keys, k[None], (number, 0, place, 0, 0))
        values = lax.dynamic_update_slice(values, v[None], (number, 0, place, 0, 0))
        x = x + apply_dense(layer["out"], attention(q, keys[number], values[number], mask).reshape(x.shape))
        x = x + apply_dense(layer["down"], jax.nn.gelu(apply_dense(layer["up"], layer_norm(layer["n2"], x))))
    return (layer_norm(p["norm"], x) @ p["tokens"].T)[:, 0], keys, values


# Others.


def lstm(random: np.random.Generator, inputs: int, width: int) -> Params:
    return {"x": weights(random, inputs, 4 * width), "h": dense(random, width, 4 * width)}


def apply_lstm(p: Params, xs: Any) -> Any:
    """All states for inputs of time x batch x width."""
    start = jnp.zeros((xs.shape[1], p["h"]["w"].shape[0]))

    def step(carry: Any, x: Any) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(x @ p["x"] + apply_dense(p["h"], h), 4, axis=-1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, (start, start), xs)[1]


def experts(random: np.random.Generator, count: int, width: int) -> Params:
    return {
        "gate": weights(random, width, count), "up": weights(random, count, width, 2 * width),
        "down": weights(random, count, 2 * width, width),
    }  # fmt: skip


def apply_experts(p: Params, x: Any, capacity: int) -> Any:
    """Each of tokens x width goes to its best two experts: sorted by expert, scattered to places, gathered back."""
    tokens, count = x.shape[0], p["gate"].shape[1]
    share, chosen = lax.top_k(jax.nn.softmax(x @ p["gate"]), 2)
    order = jnp.argsort(chosen.reshape(-1), stable=True)
    expert = chosen.reshape(-1)[order]
    place = jnp.arange(2 * tokens) - jnp.searchsorted(expert, expert, side="left")
    source = order // 2
    sent = jnp.zeros((count, capacity, x.shape[1])).at[expert, place].set(x[source], mode="drop")
    given = jnp.einsum("ecf,efd->ecd", jax.nn.relu(jnp.einsum("ecd,edf->ecf", sent, p["up"])), p["down"])
    back = given.at[expert, place].get(mode="fill", fill_value=0) * share.reshape(-1)[order][:, None]
    return jnp.zeros_like(x).at[source].add(back)


def unet_block(random: np.random.Generator, width: int) -> Params:
    return {
        "time": dense(random, 16, width), "n1": norm(width), "c1": weights(random, 3, 3, width, width),
        "n2": norm(width), "c2": weights(random, 3, 3, width, width), "n3": norm(width),
        "qkv": dense(random, width, 3 * width), "down": weights(random, 3, 3, width, 2 * width),
        "up": weights(random, 3, 3, 2 * width, width), "join": weights(random, 1, 1, 2 * width, width),
    }  # fmt: skip


def apply_unet_block(p: Params, x: Any, t: Any) -> Any:
    """A residual block told the time, attention over places, and a way down and up with a skip connection."""
    angles = t[:, None] * jnp.exp(-jnp.arange(8) / 2.0)
    told = apply_dense(p["time"], jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))[:, None, None]
    y = convolution(jax.nn.silu(group_norm(p["n1"], x, 4)), p["c1"]) + told
    x = x + convolution(jax.nn.silu(group_norm(p["n2"], y, 4)), p["c2"])
    b, h, w, c = x.shape
    parts = jnp.split(apply_dense(p["qkv"], group_norm(p["n3"], x, 4).reshape(b, h * w, c)), 3, axis=-1)
    x = x + attention(*(_heads(part, 2) for part in parts)).reshape(x.shape)
    low = jax.nn.silu(convolution(x, p["down"], 2))
    high = convolution(jax.image.resize(low, (b, h, w, 2 * c), "nearest"), p["up"])
    return convolution(jnp.concatenate([x, high], -1), p["join"])
