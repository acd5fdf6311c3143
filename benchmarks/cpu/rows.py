"""The rows of the benchmark.

A row has a function of layers (`ops.py`), its weights and its inputs. `Row.jax` and `Row.onnx` make the function of JAX
and the graph of ONNX from it. Rows of loops have a function of JAX instead, and a graph of their own or none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import loops
import narrow
import networks as n
import numpy as np
from ops import JaxOps, OnnxOps

Array = np.ndarray[Any, Any]
#: kinds of rows: bound by arithmetic, the same in 8 or 16 bits, by memory, by the cost of iterations, by that of a
#: call; and networks
KINDS = ("contraction", "narrow", "bandwidth", "loop", "call", "network")


def normal(*shape: int) -> Array:
    """Normally distributed f32 numbers of that shape, the same in every run."""
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32) / 8


@dataclass(frozen=True)
class Program:
    """What a row runs. `apply(ops, weights, *inputs)`, or `function(weights, *inputs)` of JAX with `graph`, an ONNX
    model of the same, if there is one. `numpy(weights, *inputs)`: the same in NumPy.
    """

    inputs: Sequence[Array]
    apply: Callable[..., Any] | None = None
    function: Callable[..., Any] | None = None
    weights: Any = ()
    graph: Callable[[Any, Sequence[Array]], Any] | None = None
    numpy: Callable[..., Any] | None = None
    #: the input is an image, in the order of each: NHWC, NCHW in ONNX
    image: bool = False

    def jax(self, weights: Any, *inputs: Any) -> Any:
        if self.function is not None:
            return self.function(weights, *inputs)
        assert self.apply is not None
        return self.apply(JaxOps(), weights, *inputs)

    def onnx(self) -> bytes | None:
        """The ONNX model; None if the row has none."""
        from onnx import helper

        if self.apply is not None:
            ops, given = OnnxOps(), [(f"x{number}", x) for number, x in enumerate(self.onnx_inputs())]
            found = self.apply(ops, self.weights, *(name for name, _ in given))
            graph = ops.graph("row", given, found if isinstance(found, list) else [found])
        elif self.graph is not None:
            graph = self.graph(self.weights, self.inputs)
        else:
            return None
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        return bytes(model.SerializeToString())

    def onnx_inputs(self) -> list[Array]:
        return [np.ascontiguousarray(np.moveaxis(x, -1, 1)) if self.image else x for x in self.inputs]

    def of_onnx(self, result: Array) -> Array:
        """A result of ONNX in the order of JAX."""
        return np.moveaxis(result, 1, -1) if self.image and result.ndim == 4 else result


@dataclass(frozen=True)
class Row:
    kind: str
    name: str
    make: Callable[[], Program]
    #: floating-point operations, where XLA does not count them: in loops
    flops: float | None = None
    #: relative to the largest magnitude of a result
    tolerance: float = field(default=1e-3)


def _matmul(a: tuple[int, ...], b: tuple[int, ...]) -> Program:
    return Program(
        [normal(*a), normal(*b)], lambda ops, _, x, y: ops.matmul(x, y), numpy=lambda _, x, y: np.matmul(x, y)
    )


def _conv(size: int, kernel: int, inputs: int, outputs: int, stride: int = 1, groups: int = 1) -> Program:
    weights = n.Weights().conv(kernel, inputs, outputs, groups)
    return Program(
        [normal(1, size, size, inputs)],
        lambda ops, w, x: ops.relu(ops.conv(x, **w, stride=stride, groups=groups)),
        weights=weights,
        image=True,
    )


def _elementwise(count: int, chain: bool) -> Program:
    inputs = [normal(count), normal(count)]
    if not chain:
        return Program(inputs, lambda ops, _, x, y: ops.mul(x, y))
    return Program(
        inputs,
        lambda ops, _, x, y: ops.tanh(ops.add(ops.mul(x, y), x)),
        numpy=lambda _, x, y: np.tanh(x * y + x),
    )


def _sum(*shape: int, axes: tuple[int, ...]) -> Program:
    return Program([normal(*shape)], lambda ops, _, x: ops.sum(x, axes), numpy=lambda _, x: x.sum(axes))


def _transpose(*shape: int, order: tuple[int, ...]) -> Program:
    """With an addition, so that no device returns a view. NumPy keeps the order in memory if it is not told."""
    return Program(
        [normal(*shape)],
        lambda ops, _, x: ops.add(ops.transpose(x, order), np.float32(1)),
        numpy=lambda _, x: np.add(x.transpose(order), 1, order="C"),
    )


def _numpy_softmax(_: Any, x: Array) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _numpy_norm(w: Any, x: Array) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5)) * w["scale"] + w["shift"]


def _softmax(*shape: int) -> Program:
    return Program([normal(*shape)], lambda ops, _, x: ops.softmax(x), numpy=_numpy_softmax)


def _layer_norm(rows: int, width: int) -> Program:
    weights = n.Weights().norm(width)
    return Program([normal(rows, width)], lambda ops, w, x: ops.layer_norm(x, **w), weights=weights, numpy=_numpy_norm)


def _attention(heads: int, time: int, width: int) -> Program:
    q, k, v = normal(1, heads, time, width), normal(1, heads, width, time), normal(1, heads, time, width)
    return Program([q * 8, k * 8, v], lambda ops, _, *x: n.attention(ops, *x, width=width))


def _mlp(rows: int, *widths: int) -> Program:
    return Program([normal(rows, widths[0])], n.apply_mlp, weights=n.mlp(n.Weights(), *widths))


def _classifier(apply: Callable[..., Any], weights: Any) -> Program:
    return Program([normal(1, 224, 224, 3)], apply, weights=weights, image=True)


def _resnet(blocks: tuple[int, ...], bottleneck: bool) -> Program:
    return _classifier(partial(n.apply_resnet, blocks=blocks), n.resnet(n.Weights(), blocks, bottleneck))


def _encoder(count: int, batch: int, time: int, width: int, heads: int) -> Program:
    shape = batch, time, width
    apply = partial(n.apply_encoder, shape=shape, heads=heads)
    return Program([normal(*shape)], apply, weights=n.layers(n.Weights(), count, width))


def _decoder(count: int, past: int, width: int, heads: int) -> Program:
    caches = [normal(1, heads, past, width // heads) for _ in range(2 * count)]
    return Program(
        [normal(1, 1, width), *caches],
        lambda ops, p, x, *caches: n.apply_decoder(ops, p, x, caches, width, heads),
        weights=n.layers(n.Weights(), count, width),
    )


def _narrow(made: narrow.Narrow, image: bool = False) -> Program:
    return Program(made.inputs, function=made.function, weights=made.weights, graph=made.graph, image=image)


def _loop(make: Callable[[], loops.Loop]) -> Program:
    made = make()
    return Program(made.inputs, function=made.function, weights=made.weights, graph=made.graph, numpy=made.numpy)


ROWS: tuple[Row, ...] = (
    Row("contraction", "matmul 128 x 128 x 128", lambda: _matmul((128, 128), (128, 128))),
    Row("contraction", "matmul 512 x 512 x 512", lambda: _matmul((512, 512), (512, 512))),
    Row("contraction", "matmul 1024 x 1024 x 1024", lambda: _matmul((1024, 1024), (1024, 1024))),
    Row("contraction", "matmul 1000 x 37 x 513", lambda: _matmul((1000, 37), (37, 513))),
    Row("contraction", "matmul 16 x 768 x 3072", lambda: _matmul((16, 768), (768, 3072))),
    Row("bandwidth", "matmul 1 x 768 x 3072", lambda: _matmul((1, 768), (768, 3072))),
    Row("bandwidth", "matmul 1 x 4096 x 4096", lambda: _matmul((1, 4096), (4096, 4096))),
    Row("contraction", "matmul 12 x 128 x 64 x 128", lambda: _matmul((12, 128, 64), (12, 64, 128))),
    Row("narrow", "matmul bf16 512 x 512 x 512", lambda: _narrow(narrow.matmul("bfloat16", 512, 512, 512))),
    Row("narrow", "matmul bf16 16 x 768 x 3072", lambda: _narrow(narrow.matmul("bfloat16", 16, 768, 3072))),
    Row("narrow", "matmul bf16 1 x 768 x 3072", lambda: _narrow(narrow.matmul("bfloat16", 1, 768, 3072))),
    Row("narrow", "matmul f16 512 x 512 x 512", lambda: _narrow(narrow.matmul("float16", 512, 512, 512))),
    Row("narrow", "matmul f16 16 x 768 x 3072", lambda: _narrow(narrow.matmul("float16", 16, 768, 3072))),
    Row("narrow", "matmul i8 512 x 512 x 512", lambda: _narrow(narrow.matmul("int8", 512, 512, 512)), tolerance=0),
    Row("narrow", "matmul i8 16 x 768 x 3072", lambda: _narrow(narrow.matmul("int8", 16, 768, 3072)), tolerance=0),
    Row("narrow", "matmul i8 16 x 768 x 3072, constant", lambda: _narrow(narrow.dense(16, 768, 3072)), tolerance=0),
    Row("narrow", "conv i8 3x3, 56, 64 -> 64", lambda: _narrow(narrow.conv(56, 3, 64, 64), True), tolerance=0),
    Row("narrow", "conv i8 1x1, 56, 128 -> 128", lambda: _narrow(narrow.conv(56, 1, 128, 128), True), tolerance=0),
    Row("contraction", "conv 7x7/2, 224, 3 -> 64", lambda: _conv(224, 7, 3, 64, 2)),
    Row("contraction", "conv 3x3, 56, 64 -> 64", lambda: _conv(56, 3, 64, 64)),
    Row("contraction", "conv 3x3/2, 56, 64 -> 128", lambda: _conv(56, 3, 64, 128, 2)),
    Row("contraction", "conv 1x1/2, 56, 64 -> 128", lambda: _conv(56, 1, 64, 128, 2)),
    Row("contraction", "conv 3x3, 14, 256 -> 256", lambda: _conv(14, 3, 256, 256)),
    Row("contraction", "conv 1x1, 56, 128 -> 128", lambda: _conv(56, 1, 128, 128)),
    Row("contraction", "conv depthwise 3x3, 56, 128", lambda: _conv(56, 3, 128, 128, 1, 128)),
    Row("contraction", "conv depthwise 3x3/2, 112, 96", lambda: _conv(112, 3, 96, 96, 2, 96)),
    Row("bandwidth", "x * y, 16M elements", lambda: _elementwise(1 << 24, False)),
    Row("bandwidth", "tanh(x * y + x), 1M elements", lambda: _elementwise(1 << 20, True)),
    Row("bandwidth", "sum of 16M elements", lambda: _sum(1 << 24, axes=(0,))),
    Row("bandwidth", "sum of columns, 4096 x 1024", lambda: _sum(4096, 1024, axes=(0,))),
    Row("bandwidth", "sum of rows, 4096 x 1024", lambda: _sum(4096, 1024, axes=(1,))),
    Row("bandwidth", "transpose 2048 x 2048, + 1", lambda: _transpose(2048, 2048, order=(1, 0))),
    Row("bandwidth", "transpose 128 x 12 x 64 x 16, + 1", lambda: _transpose(128, 12, 64, 16, order=(0, 2, 1, 3))),
    Row("bandwidth", "softmax 1024 x 1024", lambda: _softmax(1024, 1024)),
    Row("bandwidth", "softmax 12 x 128 x 128", lambda: _softmax(12, 128, 128)),
    Row("bandwidth", "layer norm 512 x 768", lambda: _layer_norm(512, 768)),
    Row("bandwidth", "layer norm 4096 x 1024", lambda: _layer_norm(4096, 1024)),
    Row("contraction", "attention 12 x 128 x 64", lambda: _attention(12, 128, 64)),
    Row("contraction", "attention 12 x 512 x 64", lambda: _attention(12, 512, 64)),
    Row("contraction", "MLP 784-256-128-10, 32 rows", lambda: _mlp(32, 784, 256, 128, 10)),
    Row("network", "SqueezeNet 1.1", lambda: _classifier(n.apply_squeezenet, n.squeezenet(n.Weights()))),
    Row("network", "ResNet-18", lambda: _resnet((2, 2, 2, 2), False)),
    Row("network", "ResNet-50", lambda: _resnet((3, 4, 6, 3), True)),
    Row("network", "MobileNetV2", lambda: _classifier(n.apply_mobilenet, n.mobilenet(n.Weights()))),
    Row("network", "EfficientNet-B0", lambda: _classifier(n.apply_efficientnet, n.efficientnet(n.Weights()))),
    Row("network", "DenseNet-121", lambda: _classifier(n.apply_densenet, n.densenet(n.Weights()))),
    Row("network", "encoder, 6 layers of 256, 4 x 16", lambda: _encoder(6, 4, 16, 256, 8)),
    Row("network", "MiniLM, 6 layers of 384, 1 x 128", lambda: _encoder(6, 1, 128, 384, 12)),
    Row("network", "BERT-base, 12 layers of 768, 1 x 128", lambda: _encoder(12, 1, 128, 768, 12)),
    Row("network", "decoder step, 12 layers of 768, cache of 127", lambda: _decoder(12, 127, 768, 12)),
    Row("loop", "LSTM of 200 steps, width 64", lambda: _loop(loops.lstm), flops=200 * 2 * 64 * 256 * 2),
    Row("loop", "while of 1,000 scalar iterations", lambda: _loop(loops.scalar)),
    Row("loop", "conjugate gradient, 256 x 256, 50 iterations", lambda: _loop(loops.conjugate_gradient),
        flops=50 * 2 * 256 * 256),
    Row("loop", "Tsit5, 2 equations, 20 steps", lambda: _loop(loops.tsit5)),
    Row("loop", "L-BFGS, 10 iterations of 64 numbers", lambda: _loop(loops.lbfgs)),
    Row("call", "x * y, 4 elements", lambda: _elementwise(4, False)),
)  # fmt: skip
