"""Products of 8 and 16 bits: bf16 and f16 with results in f32, i8 with results in i32, and quantized convolutions.

ONNX has no product of bf16 that a CPU runs. Its product of f16 has a result in f16, which is converted. A quantized
convolution is one of i8 whose i32 results are scaled, rounded to even and clamped to i8, as by QLinearConv.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ops import OnnxOps

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Narrow:
    """`function(weights, *inputs)` of JAX, and a graph of ONNX from weights and inputs, if there is one."""

    function: Callable[..., Any]
    inputs: Sequence[Array]
    weights: Any = ()
    graph: Callable[[Any, Sequence[Array]], Any] | None = None


def _made(dtype: str, *shape: int) -> Array:
    """Numbers of that type, the same in every run; of i8 all that there are."""
    generator = np.random.default_rng(len(shape))
    if dtype == "int8":
        return generator.integers(-128, 128, shape).astype(np.int8)
    import ml_dtypes

    wide = generator.standard_normal(shape, np.float32) / 8
    return wide.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _product(x: Any, y: Any) -> Any:
    import jax.numpy as jnp

    return jnp.matmul(x, y, preferred_element_type=jnp.int32 if x.dtype == jnp.int8 else jnp.float32)


def matmul(dtype: str, rows: int, depth: int, columns: int) -> Narrow:
    """The product of two arguments."""
    graph = {"int8": _matmul_integer, "float16": _matmul_half}.get(dtype)
    inputs = [_made(dtype, rows, depth), _made(dtype, depth, columns)[::-1].copy()]
    return Narrow(lambda _, x, y: _product(x, y), inputs, graph=graph)


def dense(rows: int, depth: int, columns: int) -> Narrow:
    """The product of an argument with a constant, in i8."""
    weights = {"w": _made("int8", depth, columns)[::-1].copy()}
    return Narrow(lambda p, x: _product(x, p["w"]), [_made("int8", rows, depth)], weights, _dense_integer)


def conv(size: int, kernel: int, inputs: int, outputs: int) -> Narrow:
    """A quantized convolution with constant weights, side by side windows and zero points 0."""
    weights = {"w": _made("int8", kernel, kernel, inputs, outputs)}
    scale = np.float32(2.0 ** -round(np.log2(kernel * np.sqrt(inputs) * 64)))

    def apply(p: Any, x: Any) -> Any:
        import jax.numpy as jnp
        from jax import lax

        order = ("NHWC", "HWIO", "NHWC")
        sums = lax.conv_general_dilated(
            x, p["w"], (1, 1), "SAME", dimension_numbers=order, preferred_element_type=jnp.int32
        )
        return jnp.clip(jnp.round(sums.astype(jnp.float32) * scale), -128, 127).astype(jnp.int8)

    def graph(p: Any, given: Sequence[Array]) -> Any:
        one, zero = np.array(1, np.float32), np.array(0, np.int8)
        kernels = np.ascontiguousarray(np.transpose(p["w"], (3, 2, 0, 1)))
        quantized = ("x0", one, zero, kernels, one, zero, np.array(1 / scale, np.float32), zero)
        image = [np.ascontiguousarray(np.moveaxis(given[0], -1, 1))]
        return _graph(OnnxOps(), image, "INT8", lambda ops: ops.node("QLinearConv", *quantized, auto_pad="SAME_UPPER"))

    return Narrow(apply, [_made("int8", 1, size, size, inputs)], weights, graph)


def _graph(ops: OnnxOps, given: Sequence[Array], result: str, build: Callable[[OnnxOps], str]) -> Any:
    """A graph with inputs `x0`, `x1`, ... and a result of that type."""
    from onnx import TensorProto

    named = [(f"x{number}", x) for number, x in enumerate(given)]
    return ops.graph("row", named, [build(ops)], getattr(TensorProto, result))


def _matmul_integer(_: Any, given: Sequence[Array]) -> Any:
    return _graph(OnnxOps(), given, "INT32", lambda ops: ops.node("MatMulInteger", "x0", "x1"))


def _dense_integer(p: Any, given: Sequence[Array]) -> Any:
    return _graph(OnnxOps(), given, "INT32", lambda ops: ops.node("MatMulInteger", "x0", p["w"]))


def _matmul_half(_: Any, given: Sequence[Array]) -> Any:
    return _graph(OnnxOps(), given, "FLOAT", lambda ops: ops.node("Cast", ops.node("MatMul", "x0", "x1"), to=1))
