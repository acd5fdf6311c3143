"""JAX programs over windows: convolutions of every kind, their gradients, pooling, cumulative sums.

A row is a name, a function and the shapes and element types of its arguments.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.lax.windowed_reductions import _select_and_scatter

_F = "float32"
_LAST = ("NHWC", "HWIO", "NHWC")


def _conv(strides: tuple[int, ...], padding: Any = "SAME", axes: Any = _LAST, **options: Any) -> Callable[..., Any]:
    def convolve(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated(x, y, strides, padding, dimension_numbers=axes, **options)

    return convolve


def _gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.grad(lambda x, y: (function(x, y) ** 2).sum(), (0, 1))


def _pool(op: Any, init: float, *window: Any, **options: Any) -> Callable[[Any], Any]:
    def pool(x: Any) -> Any:
        return lax.reduce_window(x, np.array(init, x.dtype), op, *window, **options)

    return pool


def _layer(x: Any, kernel: Any, bias: Any) -> Any:
    """What is elementwise before and behind a convolution goes with it."""
    y = _conv((1, 1))(jnp.maximum(x, 0) * 2, kernel) + bias
    return jax.nn.relu(y), _pool(lax.max, -np.inf, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")(y)


def _normalized(x: Any, kernel: Any, bias: Any) -> Any:
    """Batch norm over what a convolution gave, a residual, the mean of what is left."""
    y = lax.conv(x, kernel, (1, 1), "SAME")
    y = (y - y.mean((0, 2, 3), keepdims=True)) * lax.rsqrt(y.var((0, 2, 3), keepdims=True) + 1e-5)
    return jax.nn.relu(y * bias[:, None, None] + x).mean((2, 3))


def _cumulative(x: Any) -> Any:
    return jnp.cumsum(x, 0), jnp.cumsum(x, 1), lax.cummax(x, 1), lax.cummin(x, 0, reverse=True)


def _two_at_once(x: Any, y: Any) -> Any:
    def both(a: Any, b: Any) -> Any:
        first = a[0] >= b[0]
        return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])

    init = np.float32(-np.inf), np.int32(-1)
    return lax.reduce_window((x, y), init, both, (2, 3), (1, 2), ((1, 0), (2, 2)))


def _pool_gradient(x: Any, y: Any) -> Any:
    pool = _pool(lax.max, -np.inf, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    return jax.vjp(pool, jnp.round(x))[1](y)[0] * 2  # equal elements: the first is selected


def _selecting(x: Any, y: Any) -> Any:
    """The least of each window, where windows overlap, leave gaps and reach beyond the edges."""
    add, least = (lambda a, b: a + b), (lambda a, b: jnp.minimum(a, b))
    first = _select_and_scatter(x, lax.lt, (3, 2), (2, 3), ((1, 1), (0, 0)), y, jnp.int32(7), add)
    return first, _select_and_scatter(x, lax.gt, (3, 2), (2, 3), ((1, 1), (0, 0)), y, jnp.int32(100), least)


def _loss(weights: Any, x: Any, y: Any) -> Any:
    """Two stages with batch norm, pooling of both kinds, and a strided residual."""
    first, scale, second, short, last = weights
    h = _conv((1, 1))(x, first)
    h = jax.nn.relu((h - h.mean((0, 1, 2))) * lax.rsqrt(h.var((0, 1, 2)) + 1e-5) * scale)
    h = _pool(lax.max, -np.inf, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")(h)
    h = _conv((2, 2))(h, second / 4) + _conv((2, 2), "VALID")(h, short)
    h = _pool(lax.add, 0, (1, 2, 2, 1), (1, 1, 1, 1), "SAME")(jax.nn.relu(h)) / 4
    return (jax.nn.log_softmax(h.mean((1, 2)) @ last) * y).mean()


def _training_step(x: Any, y: Any, *weights: Any) -> Any:
    loss, gradients = jax.value_and_grad(_loss)(list(weights), x, y)
    return loss, [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]


_IMAGE, _KERNEL = ((2, 9, 7, 3), _F), ((3, 3, 3, 5), _F)

#: name, function, (shape, element type) of each argument
PROGRAMS: tuple[tuple[str, Any, tuple[tuple[tuple[int, ...], str], ...]], ...] = (
    ("conv", _conv((2, 2)), (_IMAGE, _KERNEL)),
    ("conv_features_first", _conv((1, 2), axes=None), (((2, 3, 9, 7), _F), ((10, 3, 3, 2), _F))),
    ("conv_odd_axes", _conv((1, 1), axes=("HNWC", "OWIH", "CWHN")), (((5, 2, 6, 3), _F), ((4, 3, 3, 2), _F))),
    ("conv_features_between", _conv((1, 1), axes=("NHWC", "HWIO", "NHCW")), (_IMAGE, _KERNEL)),
    ("conv_1x1", _conv((1, 1)), (((2, 9, 7, 16), _F), ((1, 1, 16, 24), _F))),
    ("conv_1x1_strided", _conv((2, 3)), (((2, 9, 7, 16), _F), ((1, 1, 16, 24), _F))),
    ("conv_depthwise", _conv((1, 1), feature_group_count=6), (((2, 9, 7, 6), _F), ((3, 3, 1, 6), _F))),
    ("conv_groups", _conv((1, 1), feature_group_count=3), (((2, 9, 7, 6), _F), ((3, 3, 2, 12), _F))),
    (
        "conv_groups_first",
        _conv((2, 1), axes=None, feature_group_count=3),
        (((2, 6, 9, 7), _F), ((12, 2, 3, 3), _F)),
    ),
    ("conv_batch_groups", _conv((1, 1), batch_group_count=2), (((4, 9, 7, 6), _F), ((3, 3, 6, 8), _F))),
    (
        "conv_transposed",
        _conv((1, 1), ((2, 1), (1, 2)), lhs_dilation=(2, 3), rhs_dilation=(1, 2)),
        (((2, 5, 4, 3), _F), _KERNEL),
    ),
    ("conv_cut", _conv((1, 1), ((-1, 1), (1, -2)), rhs_dilation=(2, 1)), (_IMAGE, _KERNEL)),
    ("conv_0d", _conv((), axes=None), (((4, 3), _F), ((5, 3), _F))),
    ("conv_1d", _conv((2,), axes=None), (((2, 3, 17), _F), ((5, 3, 4), _F))),
    ("conv_3d", _conv((1, 2, 1), axes=None), (((1, 3, 5, 6, 4), _F), ((4, 3, 2, 3, 2), _F))),
    ("conv_no_batch", _conv((1, 1)), (((0, 9, 7, 3), _F), _KERNEL)),
    ("conv_no_features", _conv((1, 1)), (((2, 9, 7, 0), _F), ((3, 3, 0, 5), _F))),
    ("conv_no_window", _conv((1, 1), "VALID"), (((2, 2, 7, 3), _F), _KERNEL)),
    ("conv_f64", _conv((1, 1)), (((1, 5, 6, 2), "float64"), ((3, 2, 2, 3), "float64"))),
    (
        "conv_i8",
        _conv((1, 1), preferred_element_type=jnp.int32),
        (((2, 5, 6, 3), "int8"), ((3, 3, 3, 5), "int8")),
    ),
    ("conv_gradients", _gradients(_conv((2, 2))), (_IMAGE, _KERNEL)),
    (
        "conv_depthwise_gradients",
        _gradients(_conv((2, 1), feature_group_count=3)),
        (_IMAGE, ((3, 3, 1, 6), _F)),
    ),
    ("conv_layer", _layer, (_IMAGE, _KERNEL, ((5,), _F))),
    ("conv_normalized", _normalized, (((2, 4, 8, 6), _F), ((4, 4, 3, 3), _F), ((4,), _F))),
    ("max_pool", _pool(lax.max, -np.inf, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), (_IMAGE,)),
    ("sum_pool", _pool(lax.add, 0, (1, 3, 2, 1), (1, 1, 2, 1), "VALID"), (_IMAGE,)),
    (
        "dilated_pool",
        _pool(lax.min, 9, (2, 3), (1, 2), ((2, -1), (0, 3)), base_dilation=(2, 1), window_dilation=(1, 2)),
        (((9, 7), _F),),
    ),
    ("strided_pool", _pool(lax.add, 0, (1, 1), (3, 2), "VALID"), (((9, 7), "int16"),)),
    ("one_far_window", _pool(lax.add, 0, (3, 2), (1 << 40, 3), "VALID"), (((4, 7), _F),)),
    ("empty_pool", _pool(lax.add, 0, (3, 2), (1, 1), "VALID"), (((2, 7), _F),)),
    ("any_pool", _pool(lax.bitwise_or, 0, (2, 2), (1, 1), "SAME"), (((9, 7), "bool"),)),
    ("pool_of_two", _two_at_once, (((5, 8), _F), ((5, 8), "int32"))),
    ("max_pool_gradient", _pool_gradient, (_IMAGE, ((2, 5, 4, 3), _F))),
    ("select_and_scatter", _selecting, (((9, 8), "int32"), ((5, 3), "int32"))),
    (
        "convolutional_training_step",
        _training_step,
        tuple(
            (shape, _F) for shape in ((4, 8, 8, 3), (4, 10), (3, 3, 3, 8), (8,), (3, 3, 8, 12), (1, 1, 8, 12), (12, 10))
        ),
    ),
    ("cumulative", _cumulative, (((70, 9), "int32"),)),
    ("cumulative_sum", lambda x: jnp.cumsum(x, 1), (((3, 300), _F),)),
)
