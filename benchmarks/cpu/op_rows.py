"""The rows of `bench_ops.py`: single operations as people call them from JAX."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jax import lax, nn


@dataclass(frozen=True)
class Op:
    """An operation. `arguments`: specs of arrays (`bench_ops.argument`); `tolerance`: as `bench_ops.difference`."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    tolerance: float = 1e-4

    @property
    def is_wide(self) -> bool:
        """Whether it needs JAX's 64-bit types."""
        return any("64" in spec for spec in self.arguments if not spec.startswith("c64"))


def op(name: str, function: Callable[..., Any], *arguments: str, tolerance: float = 1e-4) -> Op:
    return Op(name, function, arguments, tolerance)


def conv(layout: str, **options: Any) -> Callable[..., Any]:
    """A convolution of images with filters of order `HWIO` or `OIHW`, padded to the size of the image by default."""
    order = ("NHWC", "HWIO", "NHWC") if layout == "NHWC" else ("NCHW", "OIHW", "NCHW")
    given = {"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": order} | options
    return lambda x, w: lax.conv_general_dilated(x, w, **given)


def transposed(image: str, kernel: str) -> Callable[..., Any]:
    """A transposed convolution that doubles the size of images."""
    return lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=(image, kernel, image))


def pool(reducer: Any, init: float, size: tuple[int, ...], stride: tuple[int, ...]) -> Callable[..., Any]:
    return lambda x: lax.reduce_window(x, np.float32(init), reducer, size, stride, "SAME")


def normalized(x: Any, axes: tuple[int, ...]) -> Any:
    """Centred numbers of variance 1 along axes."""
    centred = x - x.mean(axes, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(axes, keepdims=True) + 1e-5)


def group_norm(x: Any) -> Any:
    return normalized(x.reshape(*x.shape[:-1], 32, -1), (1, 2, 4)).reshape(x.shape)


def threefry(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A draw of random numbers from a key of two words."""
    return lambda key: draw(jax.random.wrap_key_data(key, impl="threefry2x32"), (1000, 1000))


MATRIX, WIDE_MATRIX = "f32 1000x1001", "f64 1000x1001"
IMAGE, CHANNELS_FIRST = "f32 1x56x56x64", "f32 1x64x56x56"

ELEMENTWISE: Final = (
    op("add f32", jnp.add, MATRIX, MATRIX),
    op("add f64", jnp.add, WIDE_MATRIX, WIDE_MATRIX),
    op("add bf16", jnp.add, "bf16 1000x1001", "bf16 1000x1001", tolerance=1e-2),
    op("add f16", jnp.add, "f16 1000x1001", "f16 1000x1001", tolerance=1e-3),
    op("multiply, add i32", lambda x, y: x * y + x, "i32 1000x1001", "i32 1000x1001"),
    op("add i8", jnp.add, "i8 1000x1001", "i8 1000x1001"),
    op("divide i32", lambda x, y: x // (y + 1), "i32 1000x1001", "i32 1000x1001"),
    op("divide f32", jnp.divide, MATRIX, "positive " + MATRIX),
    op("and of bools", lambda x, y: x & ~y, "bool 1000x1001", "bool 1000x1001"),
    op("compare f32", jnp.less, MATRIX, MATRIX),
    op("exp f32", jnp.exp, MATRIX),
    op("exp f64", jnp.exp, WIDE_MATRIX),
    op("log f32", jnp.log, "positive " + MATRIX),
    op("sin f32", jnp.sin, MATRIX),
    op("tanh f32", jnp.tanh, MATRIX),
    op("tanh f64", jnp.tanh, WIDE_MATRIX),
    op("sqrt f32", jnp.sqrt, "positive " + MATRIX),
    op("power f32", jnp.power, "positive " + MATRIX, MATRIX),
    op("erf f32", jax.scipy.special.erf, MATRIX),
    op("gelu by erf f32", lambda x: nn.gelu(x, approximate=False), MATRIX),
    op("lgamma f32", jax.scipy.special.gammaln, "positive " + MATRIX),
    op("arctan2 f32", jnp.arctan2, MATRIX, MATRIX),
    op("gelu f32", nn.gelu, MATRIX),
    op("gelu bf16", nn.gelu, "bf16 1000x1001", tolerance=2e-2),
    op("silu f32", nn.silu, MATRIX),
    op("softplus f32", nn.softplus, MATRIX),
    op("where", jnp.where, "bool 1000x1001", MATRIX, MATRIX),
    op("clip", lambda x: jnp.clip(x, -1, 1), MATRIX),
    op("broadcast row + column", lambda x, y: x[None] + y[:, None], "f32 1001", "f32 1000"),
    op("convert f32 to bf16", lambda x: x.astype(jnp.bfloat16), MATRIX, tolerance=1e-2),
    op("convert f32 to i32", lambda x: (x * 100).astype(jnp.int32), MATRIX),
    op("convert i32 to f32", lambda x: x.astype(jnp.float32), "i32 1000x1001"),
    op("multiply c64", jnp.multiply, "c64 1000x500", "c64 1000x500"),
)
REDUCTIONS: Final = (
    op("sum, all", jnp.sum, MATRIX),
    op("sum, axis 0", lambda x: x.sum(0), MATRIX),
    op("sum, axis 1", lambda x: x.sum(1), MATRIX),
    op("sum, middle axis", lambda x: x.sum(1), "f32 64x128x120"),
    op("sum f64, axis 1", lambda x: x.sum(1), WIDE_MATRIX),
    op("sum bf16, axis 1", lambda x: x.sum(1), "bf16 1000x1001", tolerance=3e-2),
    op("sum i32, all", jnp.sum, "i32 1000x1001"),
    op("max, all", jnp.max, MATRIX),
    op("max, axis 0", lambda x: x.max(0), MATRIX),
    op("max, axis 1", lambda x: x.max(1), MATRIX),
    op("argmax, axis 0", lambda x: x.argmax(0), MATRIX),
    op("argmax, axis 1", lambda x: x.argmax(1), MATRIX),
    op("argmax, all", jnp.argmax, MATRIX),
    op("any, axis 1", lambda x: (x > 3).any(1), MATRIX),
    op("all, axis 0", lambda x: (x < 9).all(0), MATRIX),
    op("isnan, any", lambda x: jnp.isnan(x).any(), MATRIX),
    op("count_nonzero", lambda x: jnp.count_nonzero(x), "i32<2 1000x1001"),
    op("product, axis 1", lambda x: x.prod(1), MATRIX),
    op("logsumexp, axis 1", lambda x: nn.logsumexp(x, 1), MATRIX),
    op("logsumexp, axis 0", lambda x: nn.logsumexp(x, 0), MATRIX),
    op("var, axis 0", lambda x: x.var(0), MATRIX),
    op("var, axis 1", lambda x: x.var(1), MATRIX),
    op("norm", jnp.linalg.norm, MATRIX),
    op("softmax, axis 0", lambda x: nn.softmax(x, 0), MATRIX),
    op("softmax, axis 1", lambda x: nn.softmax(x, 1), MATRIX),
    op("layer norm", lambda x: normalized(x, (1,)), MATRIX),
    op("batch norm, training", lambda x: normalized(x, (0, 1, 2)), "f32 8x28x28x64"),
    op("group norm", group_norm, "f32 4x28x28x256"),
)
SCANS: Final = (
    op("cumsum, axis 0", lambda x: x.cumsum(0), "f32 500x1001"),
    op("cumsum, axis 1", lambda x: x.cumsum(1), "f32 500x1001"),
    op("cumsum of 500,000", jnp.cumsum, "f32 500000"),
    op("cumsum i32, axis 1", lambda x: x.cumsum(1), "i32 500x1001"),
    op("cumprod, axis 1", lambda x: x.cumprod(1), "f32 500x1001"),
    op("cummax, axis 0", lambda x: lax.cummax(x, 0), "f32 500x1001"),
    op("cummax, axis 1", lambda x: lax.cummax(x, 1), "f32 500x1001"),
    op("cumlogsumexp, axis 1", lambda x: lax.cumlogsumexp(x, 1), "f32 500x1001"),
    op("associative_scan, axis 0", lambda x: lax.associative_scan(jnp.add, x), "f32 500x1001"),
    op("scan of 100 steps", lambda x: lax.scan(lambda c, row: (c * 0.9 + row, c), x[0], x), "f32 100x1001"),
    op("fori_loop of 100", lambda x: lax.fori_loop(0, 100, lambda _, c: jnp.sin(c), x), "f32 1001"),
    op("running mean of 5", pool(lax.add, 0, (1, 5), (1, 1)), MATRIX),
)
ORDER: Final = (
    op("sort, axis 1", lambda x: jnp.sort(x, 1), "f32 200x1001"),
    op("sort, axis 0", lambda x: jnp.sort(x, 0), "f32 1001x200"),
    op("sort of 200,000", jnp.sort, "f32 200000"),
    op("argsort, axis 1", lambda x: jnp.argsort(x, 1), "f32 200x1001"),
    op("top_k, 10 of 1001", lambda x: lax.top_k(x, 10), "f32 200x1001"),
    op("median, axis 1", lambda x: jnp.median(x, 1), "f32 200x1001"),
    op("unique of 20,000", lambda x: jnp.unique(x, size=1000), "i32<1000 20000"),
    op("searchsorted", jnp.searchsorted, "sorted f32 10000", "f32 100000"),
    op("interp", jnp.interp, "f32 100000", "sorted f32 1000", "f32 1000"),
)
MOVEMENT: Final = (
    op("gather rows", lambda x, i: x[i], "f32 1000x256", "i32<1000 4000"),
    op("take of elements", lambda x, i: x[i], "f32 100000", "i32<100000 500000"),
    op("take_along_axis 1", lambda x, i: jnp.take_along_axis(x, i, 1), MATRIX, "i32<1001 1000x500"),
    op("scatter add of rows", lambda x, i, u: x.at[i].add(u), "f32 1000x256", "i32<1000 4000", "f32 4000x256"),
    op("scatter set of rows", lambda x, i, u: x.at[i].set(u), "f32 4000x256", "i32<4000 1000", "f32 1000x256"),
    op("scatter add of elements", lambda x, i, u: x.at[i].add(u), "f32 10000", "i32<10000 100000", "f32 100000"),
    op("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 1000), "f32 20000x64", "i32<1000 20000"),
    op("bincount", lambda i: jnp.bincount(i, length=1000), "i32<1000 200000"),
    op("one_hot", lambda i: nn.one_hot(i, 1000), "i32<1000 1000"),
    op("dynamic_update_slice", lambda x, u: lax.dynamic_update_slice(x, u, (3, 5)), MATRIX, "f32 100x100"),
    op("concatenate, axis 0", lambda x, y: jnp.concatenate([x, y]), "f32 500x1001", "f32 500x1001"),
    op("concatenate, axis 1", lambda x, y: jnp.concatenate([x, y], 1), "f32 1000x501", "f32 1000x500"),
    op("stack, last axis", lambda x, y: jnp.stack([x, y], -1), "f32 1000x500", "f32 1000x500"),
    op("pad, constant", lambda x: jnp.pad(x, 2), MATRIX),
    op("pad, edge", lambda x: jnp.pad(x, 2, "edge"), MATRIX),
    op("pad, reflect", lambda x: jnp.pad(x, 2, "reflect"), MATRIX),
    op("roll, axis 1", lambda x: jnp.roll(x, 7, 1), MATRIX),
    op("roll, axis 0", lambda x: jnp.roll(x, 7, 0), MATRIX),
    op("flip, axis 1", lambda x: x[:, ::-1], MATRIX),
    op("flip, axis 0", lambda x: x[::-1], MATRIX),
    op("strided slice", lambda x: x[::2, ::2], MATRIX),
    op("transpose 1000x1001", lambda x: x.T + 1, MATRIX),
    op("transpose NHWC to NCHW", lambda x: x.transpose(0, 3, 1, 2), "f32 8x56x56x64"),
    op("transpose of heads", lambda x: x.transpose(0, 2, 1, 3), "f32 8x128x12x64"),
    op("transpose of rank 5", lambda x: x.transpose(4, 2, 0, 3, 1), "f32 16x16x16x16x16"),
    op("tile", lambda x: jnp.tile(x, (3, 5)), "f32 300x201"),
    op("repeat", lambda x: jnp.repeat(x, 3, 1), "f32 1000x301"),
    op("triu", jnp.triu, MATRIX),
    op("diag", jnp.diag, "f32 1000"),
    op("diagonal", jnp.diagonal, "f32 2000x2000"),
    op("outer", jnp.outer, "f32 1000", "f32 1001"),
    op("iota, meshgrid", lambda x, y: sum(jnp.meshgrid(x, y)), "f32 1000", "f32 1001"),
)
PRODUCTS: Final = (
    op("matmul 300", jnp.matmul, "f32 300x300", "f32 300x300"),
    op("matmul f64 300", jnp.matmul, "f64 300x300", "f64 300x300"),
    op("einsum bij,bkj->bik", lambda x, y: jnp.einsum("bij,bkj->bik", x, y), "f32 16x100x64", "f32 16x100x64"),
    op("einsum ijk,jil->kl", lambda x, y: jnp.einsum("ijk,jil->kl", x, y), "f32 40x50x60", "f32 50x40x70"),
    op("einsum bhqd,bkhd->bhqk", lambda x, y: jnp.einsum("bhqd,bkhd->bhqk", x, y), "f32 4x8x64x32", "f32 4x64x8x32"),
    op("einsum ij,ij->i", lambda x, y: jnp.einsum("ij,ij->i", x, y), MATRIX, MATRIX),
    op("einsum bi,bj->bij", lambda x, y: jnp.einsum("bi,bj->bij", x, y), "f32 64x100", "f32 64x101"),
    op("matrix @ vector", jnp.matmul, MATRIX, "f32 1001"),
    op("vector @ matrix", jnp.matmul, "f32 1000", MATRIX),
    op("vdot", jnp.vdot, "f32 1000000", "f32 1000000"),
    op("matmul i32 200", jnp.matmul, "i32 200x200", "i32 200x200"),
)
IMAGES: Final = (
    op("conv NHWC 3x3", conv("NHWC"), IMAGE, "f32 3x3x64x64"),
    op("conv NCHW 3x3", conv("NCHW"), CHANNELS_FIRST, "f32 64x64x3x3"),
    op("conv NCHW 3x3/2", conv("NCHW", window_strides=(2, 2)), CHANNELS_FIRST, "f32 64x64x3x3"),
    op("conv NCHW 1x1", conv("NCHW"), CHANNELS_FIRST, "f32 64x64x1x1"),
    op("conv NHWC dilated", conv("NHWC", rhs_dilation=(2, 2)), IMAGE, "f32 3x3x64x64"),
    op(
        "conv NHWC transposed", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), "f32 1x28x28x64", "f32 3x3x64x64"
    ),
    op("conv NHWC transposed 4x4", transposed("NHWC", "HWIO"), "f32 1x32x32x128", "f32 4x4x128x64"),
    op("conv NCHW transposed", transposed("NCHW", "OIHW"), "f32 1x64x28x28", "f32 64x64x3x3"),
    op("conv NCHW 3x3, 14", conv("NCHW"), "f32 1x256x14x14", "f32 256x256x3x3"),
    op(
        "conv NHWC 3x3/2, gradient of x",
        lambda x, w, y: jax.vjp(lambda x: conv("NHWC", window_strides=(2, 2))(x, w), x)[1](y)[0],
        IMAGE,
        "f32 3x3x64x64",
        "f32 1x28x28x64",
    ),
    op("conv NHWC grouped", conv("NHWC", feature_group_count=8), IMAGE, "f32 3x3x8x64"),
    op("conv NCHW grouped", conv("NCHW", feature_group_count=8), CHANNELS_FIRST, "f32 64x8x3x3"),
    op("depthwise NHWC 3x3", conv("NHWC", feature_group_count=64), IMAGE, "f32 3x3x1x64"),
    op("depthwise NCHW 3x3", conv("NCHW", feature_group_count=64), CHANNELS_FIRST, "f32 64x1x3x3"),
    op("depthwise NHWC 5x5", conv("NHWC", feature_group_count=480), "f32 1x14x14x480", "f32 5x5x1x480"),
    op("depthwise NCHW 5x5", conv("NCHW", feature_group_count=480), "f32 1x480x14x14", "f32 480x1x5x5"),
    op(
        "conv 1-D, NWC",
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")),
        "f32 4x1000x32",
        "f32 5x32x64",
    ),
    op("convolve", lambda x, w: jnp.convolve(x, w), "f32 20000", "f32 51"),
    op("max pool NHWC 3x3/2", pool(lax.max, -np.inf, (1, 3, 3, 1), (1, 2, 2, 1)), "f32 1x112x112x64"),
    op("max pool NCHW 3x3/2", pool(lax.max, -np.inf, (1, 1, 3, 3), (1, 1, 2, 2)), "f32 1x64x112x112"),
    op("max pool NCHW 2x2/2", pool(lax.max, -np.inf, (1, 1, 2, 2), (1, 1, 2, 2)), "f32 1x64x112x112"),
    op("mean pool NHWC 2x2/2", pool(lax.add, 0, (1, 2, 2, 1), (1, 2, 2, 1)), "f32 1x112x112x64"),
    op("mean pool NCHW 3x3", pool(lax.add, 0, (1, 1, 3, 3), (1, 1, 1, 1)), CHANNELS_FIRST),
    op("max pool, gradient", jax.grad(lambda x: pool(lax.max, -np.inf, (1, 2, 2, 1), (1, 2, 2, 1))(x).sum()), IMAGE),
    op("resize, bilinear", lambda x: jax.image.resize(x, (1, 112, 112, 64), "bilinear"), IMAGE),
    op("resize, nearest", lambda x: jax.image.resize(x, (1, 112, 112, 64), "nearest"), IMAGE),
)
TRANSFORMS: Final = (
    op("fft 64x1024", jnp.fft.fft, "c64 64x1024"),
    op("rfft 64x1024", jnp.fft.rfft, "f32 64x1024"),
    op("random uniform", threefry(jax.random.uniform), "u32<9999 2"),
    op("random normal", threefry(jax.random.normal), "u32<9999 2"),
    op("random bits", threefry(jax.random.bits), "u32<9999 2"),
    op("cholesky 32 of 8x8", jnp.linalg.cholesky, "spd f32 32x8x8"),
    op("cholesky 128", jnp.linalg.cholesky, "spd f32 128x128"),
    op("solve 8", jnp.linalg.solve, "spd f32 8x8", "f32 8x1"),
    op("solve 128", jnp.linalg.solve, "spd f32 128x128", "f32 128x4"),
    op(
        "triangular solve 128",
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        "spd f32 128x128",
        "f32 128x16",
    ),
    op("qr 64x32", lambda x: abs(jnp.linalg.qr(x)[1]), "f32 64x32"),
    op("eigvalsh 16", jnp.linalg.eigvalsh, "spd f32 16x16"),
    op("eigvalsh 64", jnp.linalg.eigvalsh, "spd f32 64x64"),
    op("inv 32", jnp.linalg.inv, "spd f32 32x32"),
)
ROWS: Final = (*ELEMENTWISE, *REDUCTIONS, *SCANS, *ORDER, *MOVEMENT, *PRODUCTS, *IMAGES, *TRANSFORMS)
