"""Trains a small convolutional network on scikit-learn's digits, quantizes it, and writes what the example needs:

    digits.mlir    the network on i8: StableHLO with quantized types, and its weights
    test_digits.h  the images of the test set and their classes

Needs NumPy and scikit-learn. Equal versions give equal files. The network: 8 x 8 x 1 image, convolution 3 x 3 with
stride 2 to 4 x 4 x 16, ReLU, convolution 3 x 3 to 4 x 4 x 24, ReLU, dense layer to 10 classes.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

HERE = Path(__file__).parent
FIRST, SECOND, CLASSES = 16, 24, 10
EPOCHS, BATCH, RATE = 60, 32, 2e-3
#: images of the test set: the last ones, written by other people than most of the first
TESTED = 360


def windows(x, stride):
    """The 3 x 3 windows of images with a border of zeros, as rows."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
    return np.moveaxis(seen, 3, 5).reshape(*seen.shape[:3], -1)


def images_of(rows, size, stride, features):
    """The gradient of `windows`."""
    count, out = rows.shape[0], rows.shape[1]
    parts = rows.reshape(count, out, out, 3, 3, features)
    padded = np.zeros((count, size + 2, size + 2, features), np.float32)
    for i in range(3):
        for j in range(3):
            padded[:, i : i + stride * out : stride, j : j + stride * out : stride] += parts[:, :, :, i, j]
    return padded[:, 1:-1, 1:-1]


def forward(p, x):
    """The windows and results of each layer."""
    a = windows(x, 2)
    b = np.maximum(a @ p["w1"] + p["b1"], 0)
    c = windows(b, 1)
    d = np.maximum(c @ p["w2"] + p["b2"], 0)
    e = d.reshape(len(x), -1)
    return a, b, c, d, e, e @ p["w3"] + p["b3"]


def gradients(p, x, y):
    a, b, c, d, e, logits = forward(p, x)
    soft = np.exp(logits - logits.max(1, keepdims=True))
    soft /= soft.sum(1, keepdims=True)
    soft[np.arange(len(y)), y] -= 1
    g = soft / len(y)
    made = {"w3": e.T @ g, "b3": g.sum(0)}
    g = (g @ p["w3"].T).reshape(d.shape) * (d > 0)
    made |= {"w2": np.tensordot(c, g, ([0, 1, 2], [0, 1, 2])), "b2": g.sum((0, 1, 2))}
    g = images_of(g @ p["w2"].T, 4, 1, FIRST) * (b > 0)
    return made | {"w1": np.tensordot(a, g, ([0, 1, 2], [0, 1, 2])), "b1": g.sum((0, 1, 2))}


def train(x, y):
    """The parameters after training with Adam."""
    random = np.random.default_rng(0)
    shapes = {"w1": (9, FIRST), "w2": (9 * FIRST, SECOND), "w3": (16 * SECOND, CLASSES)}
    p = {name: random.normal(0, (2 / shape[0]) ** 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    p |= {f"b{name[1]}": np.zeros(shape[1], np.float32) for name, shape in shapes.items()}
    first, second = ({name: np.zeros_like(value) for name, value in p.items()} for _ in range(2))
    step = 0
    for epoch in range(EPOCHS):
        order = random.permutation(len(x))
        for start in range(0, len(x), BATCH):
            step += 1
            at = order[start : start + BATCH]
            shifted = np.roll(x[at], random.integers(-1, 2), axis=2)
            rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
            for name, g in gradients(p, shifted, y[at]).items():
                first[name] += 0.1 * (g - first[name])
                second[name] += 0.001 * (g * g - second[name])
                corrected = second[name] / (1 - 0.999**step)
                p[name] -= rate * first[name] / (1 - 0.9**step) / (np.sqrt(corrected) + 1e-8)
    return p


class Text:
    """The lines of a function in MLIR's generic form."""

    def __init__(self):
        self.lines = []

    def op(self, name, op, operands, types, result, properties=""):
        given = ", ".join(types)
        props = f" <{{{properties}}}>" if properties else ""
        self.lines.append(f'  %{name} = "stablehlo.{op}"({operands}){props} : ({given}) -> {result}')

    def constant(self, name, values, type):
        storage = {"int8": "i8", "int32": "i32"}[values.dtype.name]
        shape = "x".join(map(str, values.shape))
        data = f'dense<"0x{values.tobytes().hex().upper()}"> : tensor<{shape}x{storage}>'
        self.op(name, "constant", "", [], type, f"value = {data}")


def quantized(storage, scales, zero=0, axis=None):
    """The text of a quantized type."""
    if axis is None:
        return f"!quant.uniform<{storage}:f32, {scales:.9e}:{zero}>"
    return f"!quant.uniform<{storage}:f32:{axis}, {{{', '.join(f'{s:.9e}' for s in scales)}}}>"


def layer(text, number, w, bias, given, out, taken, type, shape, op, properties):
    """A layer: products, bias, one rounding that also is ReLU. `given`, `out`: (scale, zero point). `type`: of the
    value `taken`; `shape`: of the result, whose type is returned.
    """
    columns = w.shape[-1]
    scales = np.abs(w.reshape(-1, columns)).max(0) / 127
    sums = scales * given[0]
    axis, last = w.ndim - 1, len(shape) - 1
    types = {
        "w": f"tensor<{'x'.join(map(str, w.shape))}x{quantized('i8<-127:127>', scales, axis=axis)}>",
        "b": f"tensor<{columns}x{quantized('i32', sums, axis=0)}>",
        "s": f"tensor<{'x'.join(map(str, shape))}x{quantized('i32', sums, axis=last)}>",
        "r": f"tensor<{'x'.join(map(str, shape))}x{quantized('i8', *out)}>",
    }
    text.constant(f"w{number}", np.rint(w / scales).astype(np.int8), types["w"])
    text.constant(f"b{number}", np.rint(bias / sums).astype(np.int32), types["b"])
    text.op(f"d{number}", op, f"%{taken}, %w{number}", [type, types["w"]], types["s"], properties)
    wide = f"broadcast_dimensions = array<i64: {last}>"
    text.op(f"c{number}", "broadcast_in_dim", f"%b{number}", [types["b"]], types["s"], wide)
    text.op(f"s{number}", "add", f"%d{number}, %c{number}", [types["s"]] * 2, types["s"])
    text.op(f"r{number}", "uniform_quantize", f"%s{number}", [types["s"]], types["r"])
    return types["r"]


CONVOLUTION = (
    "window_strides = array<i64: {0}, {0}>, padding = dense<1> : tensor<2x2xi64>, "
    "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
    "feature_group_count = 1 : i64, batch_group_count = 1 : i64"
)
DOT = "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"


def program(p, x):
    """The quantized network. Scales of activations are those of the training images; ReLU is the zero point -128."""
    _, b, _, d, _, logits = forward(p, x)
    relu = [(float(value.max()) / 255, -128) for value in (b, d)]
    final = (float(np.abs(logits).max()) / 127, 0)
    given = (1 / 16, 0)
    text, image = Text(), f"tensor<1x8x8x1x{quantized('i8', *given)}>"
    w1, w2 = p["w1"].reshape(3, 3, 1, FIRST), p["w2"].reshape(3, 3, FIRST, SECOND)
    first, second = (("convolution", CONVOLUTION.format(stride)) for stride in (2, 1))
    r1 = layer(text, 1, w1, p["b1"], given, relu[0], "image", image, (1, 4, 4, FIRST), *first)
    r2 = layer(text, 2, w2, p["b2"], relu[0], relu[1], "r1", r1, (1, 4, 4, SECOND), *second)
    flat = r2.replace(f"1x4x4x{SECOND}x", f"1x{16 * SECOND}x")
    text.op("flat", "reshape", "%r2", [r2], flat)
    r3 = layer(text, 3, p["w3"], p["b3"], relu[1], final, "flat", flat, (1, CLASSES), "dot_general", DOT)
    head = f'"func.func"() <{{sym_name = "main", function_type = ({image}) -> {r3}}}> ({{\n^bb0(%image: {image}):\n'
    tail = f'\n  "func.return"(%r3) : ({r3}) -> ()\n}}) : () -> ()\n'
    return "// made by train.py\n" + head + "\n".join(text.lines) + tail


def header(images, classes):
    """The test set as C."""
    rows = ",\n".join(f"  {{{', '.join(map(str, image.reshape(-1)))}}}" for image in images)
    labels = ", ".join(map(str, classes))
    return (
        "/* Made by train.py: images of scikit-learn's digits, the test set of E. Alpaydin and C. Kaynak, \"Optical\n"
        ' * Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998, licence CC BY 4.0. */\n'
        f"enum {{ TEST_DIGITS = {len(images)} }};\n"
        f"static const signed char test_images[TEST_DIGITS][64] = {{\n{rows}\n}};\n"
        f"static const unsigned char test_classes[TEST_DIGITS] = {{\n  {labels}\n}};\n"
    )


def main():
    digits = load_digits()
    images, classes = digits.images.astype(np.int8)[..., None], digits.target
    x = images.astype(np.float32) / 16
    p = train(x[:-TESTED], classes[:-TESTED])
    found = forward(p, x[-TESTED:])[-1].argmax(1)
    print(f"accuracy in floats: {(found == classes[-TESTED:]).sum()} of {TESTED}")
    (HERE / "digits.mlir").write_text(program(p, x[:-TESTED]))
    (HERE / "test_digits.h").write_text(header(images[-TESTED:], classes[-TESTED:]))


if __name__ == "__main__":
    main()
