"""Layers, as functions of JAX and as nodes of an ONNX graph, so that a network is written once and runs on all peers.

A network is a function of one of these classes, a tree of weights and its inputs. Images are NHWC in JAX and NCHW in
ONNX, the order of each; weights of convolutions are HWIO in the tree. Layers of which ONNX has an operation are that
operation. Norms of inference are part of scale and shift, and these part of the weights, as in what people deploy.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class JaxOps:
    """Layers on JAX's arrays."""

    #: axis of the channels of an image
    channels = -1

    def conv(self, x: Any, w: Any, b: Any = None, stride: int = 1, groups: int = 1) -> Any:
        from jax import lax

        order = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=order, feature_group_count=groups
        )
        return y if b is None else y + b

    def max_pool(self, x: Any, size: int, stride: int) -> Any:
        from jax import lax

        return lax.reduce_window(x, -np.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), "SAME")

    def mean_pool(self, x: Any, size: int) -> Any:
        from jax import lax

        window = (1, size, size, 1)
        return lax.reduce_window(x, np.float32(0), lax.add, window, window, "VALID") * np.float32(1 / size**2)

    def mean_of_image(self, x: Any, keep: bool = False) -> Any:
        return x.mean((1, 2), keepdims=keep)

    def channel_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        return x * scale + shift

    def dense(self, x: Any, w: Any, b: Any) -> Any:
        return x @ w + b

    def matmul(self, x: Any, y: Any) -> Any:
        return x @ y

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def mul(self, x: Any, y: Any) -> Any:
        return x * y

    def relu(self, x: Any) -> Any:
        import jax

        return jax.nn.relu(x)

    def relu6(self, x: Any) -> Any:
        import jax

        return jax.nn.relu6(x)

    def sigmoid(self, x: Any) -> Any:
        import jax

        return jax.nn.sigmoid(x)

    def swish(self, x: Any) -> Any:
        import jax

        return jax.nn.silu(x)

    def gelu(self, x: Any) -> Any:
        import jax

        return jax.nn.gelu(x, approximate=False)

    def tanh(self, x: Any) -> Any:
        import jax.numpy as jnp

        return jnp.tanh(x)

    def softmax(self, x: Any) -> Any:
        import jax

        return jax.nn.softmax(x)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        from jax import lax

        centred = x - x.mean(-1, keepdims=True)
        return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + shift

    def concat(self, parts: Sequence[Any], axis: int) -> Any:
        import jax.numpy as jnp

        return jnp.concatenate(parts, axis)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return x.reshape(shape)

    def transpose(self, x: Any, order: tuple[int, ...]) -> Any:
        return x.transpose(order)

    def sum(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.sum(axes)


class OnnxOps:
    """Layers as nodes of a graph, by the names of their results."""

    channels = 1

    def __init__(self, prefix: str = "v") -> None:
        """`prefix` of names: a graph in a node of another one has names of its own."""
        self._prefix = prefix
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._count = 0

    def node(self, kind: str, *inputs: Any, results: int = 1, **attributes: Any) -> Any:
        """The name of the result of a new node, or the names of several. Arrays in the inputs become initializers."""
        from onnx import helper

        names = [self._name() for _ in range(results)]
        self._nodes.append(helper.make_node(kind, [self._value(x) for x in inputs], names, **attributes))
        return names[0] if results == 1 else names

    def graph(
        self, name: str, inputs: Sequence[tuple[str, Array]], outputs: Sequence[str], result: int | None = None
    ) -> Any:
        """The graph of the nodes until here. `inputs`: names, and arrays of their types and shapes; `result`: the type
        of the outputs, f32 by default.
        """
        from onnx import TensorProto, helper

        given = [
            helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for key, x in inputs
        ]
        taken = [helper.make_tensor_value_info(key, result or TensorProto.FLOAT, None) for key in outputs]
        return helper.make_graph(self._nodes, name, given, taken, self._weights)

    def conv(self, x: Any, w: Array, b: Array | None = None, stride: int = 1, groups: int = 1) -> Any:
        kernel = np.ascontiguousarray(np.transpose(w, (3, 2, 0, 1))) if isinstance(w, np.ndarray) else w
        given = (x, kernel) if b is None else (x, kernel, b)
        return self.node("Conv", *given, strides=[stride, stride], group=groups, auto_pad="SAME_UPPER")

    def max_pool(self, x: Any, size: int, stride: int) -> Any:
        return self.node("MaxPool", x, kernel_shape=[size] * 2, strides=[stride] * 2, auto_pad="SAME_UPPER")

    def mean_pool(self, x: Any, size: int) -> Any:
        return self.node("AveragePool", x, kernel_shape=[size] * 2, strides=[size] * 2)

    def mean_of_image(self, x: Any, keep: bool = False) -> Any:
        mean = self.node("GlobalAveragePool", x)
        return mean if keep else self.node("Flatten", mean)

    def channel_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        """A norm of inference in front of which no convolution stands that could have its scale."""
        ones = np.ones_like(scale)
        return self.node("BatchNormalization", x, scale, shift, 0 * ones, ones, epsilon=0.0)

    def dense(self, x: Any, w: Array, b: Array) -> Any:
        return self.add(self.matmul(x, w), b)

    def matmul(self, x: Any, y: Any) -> Any:
        return self.node("MatMul", x, y)

    def add(self, x: Any, y: Any) -> Any:
        return self.node("Add", x, y)

    def mul(self, x: Any, y: Any) -> Any:
        return self.node("Mul", x, y)

    def relu(self, x: Any) -> Any:
        return self.node("Relu", x)

    def relu6(self, x: Any) -> Any:
        return self.node("Clip", x, np.array(0, np.float32), np.array(6, np.float32))

    def sigmoid(self, x: Any) -> Any:
        return self.node("Sigmoid", x)

    def swish(self, x: Any) -> Any:
        return self.mul(x, self.sigmoid(x))

    def gelu(self, x: Any) -> Any:
        return self.node("Gelu", x)

    def tanh(self, x: Any) -> Any:
        return self.node("Tanh", x)

    def softmax(self, x: Any) -> Any:
        return self.node("Softmax", x, axis=-1)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        return self.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    def concat(self, parts: Sequence[Any], axis: int) -> Any:
        return self.node("Concat", *parts, axis=axis)

    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        return self.node("Reshape", x, np.array(shape, np.int64))

    def transpose(self, x: Any, order: tuple[int, ...]) -> Any:
        return self.node("Transpose", x, perm=list(order))

    def sum(self, x: Any, axes: tuple[int, ...]) -> Any:
        return self.node("ReduceSum", x, np.array(axes, np.int64), keepdims=0)

    def _name(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def _value(self, x: Any) -> str:
        from onnx import numpy_helper

        if isinstance(x, str):
            return x
        name = self._name()
        self._weights.append(numpy_helper.from_array(np.asarray(x), name))
        return name
