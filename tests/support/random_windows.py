"""Rules of random programs (see `random_ops.py`) over windows: reduce_window, select_and_scatter, convolution.

Floats that are added or multiplied are whole numbers first, so that sums are the same in any order and type.
"""

from math import prod

from random_body import Body, Value
from random_ops import LARGEST, Rule, initial, monoids, reducer
from random_types import COMPLEX, FLOATS, HALVES, INTEGERS, REAL, sums
from stablehlo_text import ints

#: types of which sums are formed
SUMMED = INTEGERS + FLOATS + HALVES


def _size(size: int, low: int, high: int, base: int, window: int, dilation: int, stride: int) -> int:
    """How many windows there are along an axis; below zero where padding takes more than there is."""
    padded = low + max((size - 1) * base + 1, 0) * (size > 0) + high
    reach = (window - 1) * dilation + 1
    return -1 if padded < 0 else max((padded - reach) // stride + 1, 0) if padded else 0


def _padding(pairs: list[tuple[int, int]]) -> str:
    rows = ", ".join(f"[{low}, {high}]" for low, high in pairs)
    return f"dense<[{rows}]> : tensor<{len(pairs)}x2xi64>" if pairs else "dense<> : tensor<0x2xi64>"


def _reduce_window(b: Body) -> None:
    """One or two operands, each with a monoid of its own; windows that overlap, leave gaps, reach over the edges."""
    rng = b.rng
    x = b.pick(lambda v: 0 < len(v.shape) < 4 and v.size < 200 and not v.near and v.dtype not in COMPLEX)
    if x is None:
        return
    axes = [(n, rng.choice((0, 0, 1, 2, -1)), rng.choice((0, 0, 1, 2, -1)), rng.choice((1, 1, 1, 2)),
             rng.randint(1, 3), rng.choice((1, 1, 1, 2)), rng.randint(1, 3)) for n in x.shape]  # fmt: skip
    shape = [_size(*axis) for axis in axes]
    if any(size < 0 for size in shape):
        return
    others = rng.sample((*INTEGERS, "f32", "bf16"), rng.choice((0, 0, 1)))
    inputs = [x] + [b.of(t, x.shape, near=False) for t in others]
    inits, lines = [], []
    for i, v in enumerate(inputs):
        name = rng.choice(monoids(v.dtype, 27))
        if name in ("add", "multiply") and v.dtype in REAL:
            v = inputs[i] = b.whole(v)
        inits.append(initial(b, v, name))
        t = f"tensor<{v.dtype}>"
        lines.append(f'%z{i} = "stablehlo.{name}"(%x{i}, %y{i}) : ({t}, {t}) -> {t}')
    _, lows, highs, base, window, dilations, strides = (list(part) for part in zip(*axes, strict=True))
    outs = [Value(b.fresh(), tuple(shape), v.dtype) for v in inputs]
    attributes = (
        f"window_dimensions = {ints(window)}, window_strides = {ints(strides)}, base_dilations = {ints(base)}, "
        f"window_dilations = {ints(dilations)}, padding = {_padding(list(zip(lows, highs, strict=True)))}"
    )
    region = reducer([v.dtype for v in inputs], lines, [f"%z{i}" for i in range(len(inputs))])
    b.emit("stablehlo.reduce_window", inputs + inits, outs, attributes, region)


def _select_and_scatter(b: Body) -> None:
    """Where each window has its greatest or least element, a number is added."""
    rng = b.rng
    x = b.pick(lambda v: 0 < len(v.shape) < 4 and 0 < v.size < 200 and not v.near and v.dtype in SUMMED)
    if x is None:
        return
    x = b.whole(x) if x.dtype in REAL else x
    axes = []
    for n in x.shape:
        window = rng.randint(1, min(3, n))
        low, high = (rng.randint(0, window - 1) for _ in range(2))
        axes.append((n, low, high, 1, window, 1, rng.randint(1, 3)))
    source = b.of(x.dtype, tuple(_size(*axis) for axis in axes), near=False)
    source = b.whole(source) if x.dtype in REAL else source
    t = f"tensor<{x.dtype}>"
    word = rng.choice(("GE", "GT", "LE", "LT"))
    select = (
        f"{{\n^bb0(%x: {t}, %y: {t}):\n"
        f'%z = "stablehlo.compare"(%x, %y) <{{comparison_direction = #stablehlo<comparison_direction {word}>}}> : '
        f'({t}, {t}) -> tensor<i1>\n"stablehlo.return"(%z) : (tensor<i1>) -> ()\n}}'
    )
    scatter = reducer([x.dtype], [f'%z = "stablehlo.add"(%x0, %y0) : ({t}, {t}) -> {t}'], ["%z"])
    _, lows, highs, _, window, _, strides = (list(part) for part in zip(*axes, strict=True))
    attributes = (
        f"window_dimensions = {ints(window)}, window_strides = {ints(strides)}, "
        f"padding = {_padding(list(zip(lows, highs, strict=True)))}"
    )
    b.op(
        "stablehlo.select_and_scatter", [x, source, b.number(0, x.dtype)], x.shape, x.dtype, attributes, False,
        f"{select}, {scatter}",
    )  # fmt: skip


def _convolution(b: Body) -> None:
    """Axes in any order, strides, dilations, padding of both signs, reversed windows, groups of both kinds."""
    rng = b.rng
    x = b.pick(lambda v: 2 <= len(v.shape) <= 4 and 0 < v.size < 300 and v.dtype in SUMMED and not v.near)
    if x is None:
        return
    x = b.whole(x) if x.dtype in REAL else x
    order = rng.sample(range(len(x.shape)), len(x.shape))
    batch, feature, *space = order
    feature_groups = rng.choice([g for g in (1, 1, 2, 3) if x.shape[feature] % g == 0])
    batch_groups = rng.choice([g for g in (1, 1, 2) if x.shape[batch] % g == 0]) if feature_groups == 1 else 1
    outputs = rng.randint(1, 4) * feature_groups * batch_groups
    axes = [(x.shape[axis], rng.choice((0, 0, 1, 2, -1)), rng.choice((0, 0, 1, 2, -1)), rng.choice((1, 1, 2)),
             rng.randint(1, 3), rng.choice((1, 1, 2)), rng.randint(1, 3)) for axis in space]  # fmt: skip
    sizes = [_size(*axis) for axis in axes]
    if any(size < 0 for size in sizes):
        return
    kernel = {"o": outputs, "i": x.shape[feature] // feature_groups} | {str(i): a[4] for i, a in enumerate(axes)}
    result = {"b": x.shape[batch] // batch_groups, "f": outputs} | {str(i): size for i, size in enumerate(sizes)}
    words = [dict(zip(order, ("b", "f", *map(str, range(len(space)))), strict=True))[at] for at in range(len(order))]
    kernel_words = rng.sample(list(kernel), len(kernel))
    result_words = ["b", *map(str, range(len(space))), "f"]  # the interpreter aborts on others
    if prod(result.values()) * prod(kernel.values()) > 20 * LARGEST or 4 * prod(kernel.values()) > sums(x.dtype):
        return
    y = b.of(x.dtype, tuple(kernel[word] for word in kernel_words), near=False)
    y = b.whole(y) if x.dtype in REAL else y
    lists = ("low", "high", "base", "window", "dilation", "stride")
    part = {name: [axis[i + 1] for axis in axes] for i, name in enumerate(lists)}
    reversal = ", ".join(rng.choice(("true", "false")) for _ in space)
    numbers = "x".join(f"[{', '.join(w)}]" for w in (words, kernel_words)) + f"->[{', '.join(result_words)}]"
    attributes = (
        f"window_strides = {ints(part['stride'])}, lhs_dilation = {ints(part['base'])}, "
        f"rhs_dilation = {ints(part['dilation'])}, "
        f"padding = {_padding(list(zip(part['low'], part['high'], strict=True)))}, "
        f"window_reversal = array<i1{': ' * bool(space)}{reversal}>, dimension_numbers = #stablehlo.conv<{numbers}>, "
        f"feature_group_count = {feature_groups} : i64, batch_group_count = {batch_groups} : i64"
    )
    out = "i32" if x.dtype in ("i8", "i16") and rng.random() < 0.5 else x.dtype
    shape = [result[word] for word in result_words]
    made = b.op("stablehlo.convolution", [x, y], shape, out, attributes, False)
    if out in REAL:
        b.values.remove(made)
        b.positive_zero(made)


WINDOWS: tuple[Rule, ...] = (_reduce_window, _select_and_scatter, _convolution)
