"""Networks of the benchmark, written once for JAX and for ONNX (`ops.py`), and their weights.

They have the layers and sizes of the networks whose names they have. Weights are random, of a variance that keeps the
size of what flows through.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

Tree = dict[str, Any]


class Weights:
    """Makes weights, the same in every run."""

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def of(self, *shape: int) -> Any:
        inputs = int(np.prod(shape[:-1])) or 1
        return (self._random.standard_normal(shape, np.float32) / np.float32(inputs**0.5)).astype(np.float32)

    def dense(self, inputs: int, outputs: int) -> Tree:
        return {"w": self.of(inputs, outputs), "b": self.of(1, outputs)[0] / 10}

    def conv(self, size: int, inputs: int, outputs: int, groups: int = 1) -> Tree:
        return {"w": self.of(size, size, inputs // groups, outputs), "b": self.of(1, outputs)[0] / 10}

    def norm(self, width: int) -> Tree:
        return {"scale": np.linspace(0.5, 1.5, width, dtype=np.float32), "shift": np.zeros(width, np.float32)}


def mlp(random: Weights, *widths: int) -> list[Tree]:
    return [random.dense(a, b) for a, b in zip(widths, widths[1:], strict=False)]


def apply_mlp(ops: Any, layers: list[Tree], x: Any) -> Any:
    for number, layer in enumerate(layers):
        x = ops.dense(x, **layer)
        x = ops.relu(x) if number < len(layers) - 1 else x
    return x


# SqueezeNet 1.1: fire modules.

FIRES = ((64, 16, 64), (128, 16, 64), (128, 32, 128), (256, 32, 128), (256, 48, 192), (384, 48, 192), (384, 64, 256),
         (512, 64, 256))  # fmt: skip


def squeezenet(random: Weights) -> Tree:
    fires = [
        {"squeeze": random.conv(1, a, s), "one": random.conv(1, s, e), "three": random.conv(3, s, e)}
        for a, s, e in FIRES
    ]
    return {"stem": random.conv(3, 3, 64), "fires": fires, "head": random.conv(1, 512, 1000)}


def apply_squeezenet(ops: Any, p: Tree, x: Any) -> Any:
    x = ops.max_pool(ops.relu(ops.conv(x, **p["stem"], stride=2)), 3, 2)
    for number, fire in enumerate(p["fires"]):
        if number in (2, 4):
            x = ops.max_pool(x, 3, 2)
        x = ops.relu(ops.conv(x, **fire["squeeze"]))
        x = ops.concat([ops.relu(ops.conv(x, **fire[name])) for name in ("one", "three")], ops.channels)
    return ops.mean_of_image(ops.relu(ops.conv(x, **p["head"])))


# ResNet-18 and ResNet-50.


def resnet(random: Weights, blocks: tuple[int, ...], bottleneck: bool) -> Tree:
    made, inputs = [], 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        outputs = 4 * width if bottleneck else width
        for _ in range(count):
            if bottleneck:
                convs = [random.conv(1, inputs, width), random.conv(3, width, width), random.conv(1, width, outputs)]
            else:
                convs = [random.conv(3, inputs, width), random.conv(3, width, width)]
            made.append({"convs": convs})
            if inputs != outputs:
                made[-1]["skip"] = random.conv(1, inputs, outputs)
            inputs = outputs
    return {"stem": random.conv(7, 3, 64), "blocks": made, "head": random.dense(inputs, 1000)}


def apply_resnet(ops: Any, p: Tree, x: Any, blocks: tuple[int, ...]) -> Any:
    x = ops.max_pool(ops.relu(ops.conv(x, **p["stem"], stride=2)), 3, 2)
    strides = [2 if stage and not block else 1 for stage, count in enumerate(blocks) for block in range(count)]
    for block, stride in zip(p["blocks"], strides, strict=True):
        y, last = x, len(block["convs"]) - 1
        at = 1 if last == 2 else 0  # the convolution with the stride: of three the second, of two the first
        for number, conv in enumerate(block["convs"]):
            y = ops.conv(y, **conv, stride=stride if number == at else 1)
            y = ops.relu(y) if number < last else y
        x = ops.conv(x, **block["skip"], stride=stride) if "skip" in block else x
        x = ops.relu(ops.add(x, y))
    return ops.dense(ops.mean_of_image(x), **p["head"])


# MobileNetV2: expansion, outputs, repetitions and stride of each stage.

INVERTED = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet(random: Weights) -> Tree:
    return _inverted(random, [(*stage, 3) for stage in INVERTED], squeezes=False)


def _inverted(random: Weights, stages: Sequence[tuple[int, ...]], squeezes: bool) -> Tree:
    """A network of inverted bottlenecks. `stages`: expansion, outputs, repetitions, stride, size of the window.
    `squeezes`: each block weighs its channels by means of the image.
    """
    blocks, inputs = [], 32
    for expansion, outputs, repetitions, _, size in stages:
        for _ in range(repetitions):
            wide, few = inputs * expansion, inputs // 4
            block = {"deep": random.conv(size, wide, wide, wide), "out": random.conv(1, wide, outputs)}
            if squeezes:
                block |= {"squeeze": random.conv(1, wide, few), "excite": random.conv(1, few, wide)}
            if expansion > 1:
                block["in"] = random.conv(1, inputs, wide)
            blocks.append(block)
            inputs = outputs
    return {
        "stem": random.conv(3, 3, 32), "blocks": blocks,
        "last": random.conv(1, 320, 1280), "head": random.dense(1280, 1000),
    }  # fmt: skip


def apply_mobilenet(ops: Any, p: Tree, x: Any) -> Any:
    x = ops.relu6(ops.conv(x, **p["stem"], stride=2))
    strides = [1 if number else stride for _, _, count, stride in INVERTED for number in range(count)]
    for block, stride in zip(p["blocks"], strides, strict=True):
        y = ops.relu6(ops.conv(x, **block["in"])) if "in" in block else x
        wide, outputs = block["out"]["w"].shape[2:]
        y = ops.relu6(ops.conv(y, **block["deep"], stride=stride, groups=wide))
        y = ops.conv(y, **block["out"])
        same = stride == 1 and ("in" in block and block["in"]["w"].shape[2] == outputs)
        x = ops.add(x, y) if same else y
    x = ops.relu6(ops.conv(x, **p["last"]))
    return ops.dense(ops.mean_of_image(x), **p["head"])


# EfficientNet-B0: expansion, outputs, repetitions, stride and size of the window of each stage.

SQUEEZED = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
)  # fmt: skip


def efficientnet(random: Weights) -> Tree:
    return _inverted(random, SQUEEZED, squeezes=True)


def apply_efficientnet(ops: Any, p: Tree, x: Any) -> Any:
    x = ops.swish(ops.conv(x, **p["stem"], stride=2))
    strides = [1 if number else stride for _, _, count, stride, _ in SQUEEZED for number in range(count)]
    for block, stride in zip(p["blocks"], strides, strict=True):
        y = ops.swish(ops.conv(x, **block["in"])) if "in" in block else x
        wide, outputs = block["out"]["w"].shape[2:]
        y = ops.swish(ops.conv(y, **block["deep"], stride=stride, groups=wide))
        weight = ops.swish(ops.conv(ops.mean_of_image(y, keep=True), **block["squeeze"]))
        y = ops.mul(y, ops.sigmoid(ops.conv(weight, **block["excite"])))
        y = ops.conv(y, **block["out"])
        same = stride == 1 and ("in" in block and block["in"]["w"].shape[2] == outputs)
        x = ops.add(x, y) if same else y
    x = ops.swish(ops.conv(x, **p["last"]))
    return ops.dense(ops.mean_of_image(x), **p["head"])


# DenseNet-121: layers of each block, and channels that a layer adds.

DENSE, GROWTH = (6, 12, 24, 16), 32


def densenet(random: Weights) -> Tree:
    blocks, width = [], 64
    for number, count in enumerate(DENSE):
        made = []
        for _ in range(count):
            convs = {"one": random.conv(1, width, 4 * GROWTH), "three": random.conv(3, 4 * GROWTH, GROWTH)}
            made.append({"norm": random.norm(width), **convs})
            width += GROWTH
        blocks.append({"layers": made, "norm": random.norm(width)})
        if number < len(DENSE) - 1:
            blocks[-1]["half"] = random.conv(1, width, width // 2)
            width //= 2
    return {"stem": random.conv(7, 3, 64), "blocks": blocks, "head": random.dense(width, 1000)}


def apply_densenet(ops: Any, p: Tree, x: Any) -> Any:
    x = ops.max_pool(ops.relu(ops.conv(x, **p["stem"], stride=2)), 3, 2)
    for block in p["blocks"]:
        for one in block["layers"]:
            y = ops.relu(ops.conv(ops.relu(ops.channel_norm(x, **one["norm"])), **one["one"]))
            x = ops.concat([x, ops.conv(y, **one["three"])], ops.channels)
        x = ops.relu(ops.channel_norm(x, **block["norm"]))
        x = ops.mean_pool(ops.conv(x, **block["half"]), 2) if "half" in block else x
    return ops.dense(ops.mean_of_image(x), **p["head"])


# Encoders as BERT, norms behind the residual connections; and a decoder with norms in front and a cache.


def layer(random: Weights, width: int) -> Tree:
    parts = {name: random.dense(width, width) for name in ("q", "k", "v", "out")}
    return parts | {
        "n1": random.norm(width), "n2": random.norm(width),
        "up": random.dense(width, 4 * width), "down": random.dense(4 * width, width),
    }  # fmt: skip


def layers(random: Weights, count: int, width: int) -> list[Tree]:
    return [layer(random, width) for _ in range(count)]


def attention(ops: Any, q: Any, k: Any, v: Any, width: int) -> Any:
    """Of batch x heads x time x width; `k` is batch x heads x width x time."""
    scores = ops.softmax(ops.mul(ops.matmul(q, k), np.float32(width**-0.5)))
    return ops.matmul(scores, v)


def _mixed(ops: Any, p: Tree, x: Any, shape: tuple[int, ...], heads: int, cache: Any = None) -> Any:
    """The attention of a layer, in front of its residual connection; with the caches of keys and values before `x`."""
    batch, time, width = shape
    split = (batch, time, heads, width // heads)
    q, k, v = (ops.transpose(ops.reshape(ops.dense(x, **p[n]), split), (0, 2, 1, 3)) for n in ("q", "k", "v"))
    kept = ()
    if cache is not None:
        k, v = (ops.concat([old, new], 2) for old, new in zip(cache, (k, v), strict=True))
        kept = (k, v)
    mixed = attention(ops, q, ops.transpose(k, (0, 1, 3, 2)), v, width // heads)
    return ops.dense(ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), shape), **p["out"]), kept


def apply_encoder(ops: Any, p: list[Tree], x: Any, shape: tuple[int, ...], heads: int) -> Any:
    """Of embeddings, batch x time x width."""
    for one in p:
        x = ops.layer_norm(ops.add(x, _mixed(ops, one, x, shape, heads)[0]), **one["n1"])
        y = ops.dense(ops.gelu(ops.dense(x, **one["up"])), **one["down"])
        x = ops.layer_norm(ops.add(x, y), **one["n2"])
    return x


def apply_decoder(ops: Any, p: list[Tree], x: Any, caches: Any, width: int, heads: int) -> Any:
    """One token more: its state, and the caches, keys and values of each layer in turn, with it at the end."""
    shape, kept = (1, 1, width), []
    for number, one in enumerate(p):
        pair = caches[2 * number], caches[2 * number + 1]
        mixed, new = _mixed(ops, one, ops.layer_norm(x, **one["n1"]), shape, heads, pair)
        kept += new
        x = ops.add(x, mixed)
        x = ops.add(x, ops.dense(ops.gelu(ops.dense(ops.layer_norm(x, **one["n2"]), **one["up"])), **one["down"]))
    return [x, *kept]
