"""Rules of random programs (see `random_ops.py`) over windows: reduce_window, select_and_scatter.

Floats that are added or multiplied are whole numbers first, so that sums are the same in any order and type.
"""

from random_body import FLOATS, INTEGERS, Body, Value
from random_ops import MONOIDS, Rule, initial, reducer
from stablehlo_text import ints


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
    x = b.pick(lambda v: 0 < len(v.shape) < 4 and v.size < 200 and not v.near)
    if x is None:
        return
    axes = [(n, rng.choice((0, 0, 1, 2, -1)), rng.choice((0, 0, 1, 2, -1)), rng.choice((1, 1, 1, 2)),
             rng.randint(1, 3), rng.choice((1, 1, 1, 2)), rng.randint(1, 3)) for n in x.shape]  # fmt: skip
    shape = [_size(*axis) for axis in axes]
    if any(size < 0 for size in shape):
        return
    inputs = [x] + [b.of(rng.choice((*INTEGERS, "f32")), x.shape, near=False) for _ in range(rng.choice((0, 0, 1)))]
    inits, lines = [], []
    for i, v in enumerate(inputs):
        names = [name for name, (types, _) in MONOIDS.items() if v.dtype in types]
        name = rng.choice(names)
        if name in ("add", "multiply") and v.dtype in FLOATS:
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
    x = b.pick(lambda v: 0 < len(v.shape) < 4 and 0 < v.size < 200 and not v.near and v.dtype in INTEGERS + FLOATS)
    if x is None:
        return
    x = b.whole(x) if x.dtype in FLOATS else x
    axes = []
    for n in x.shape:
        window = rng.randint(1, min(3, n))
        low, high = (rng.randint(0, window - 1) for _ in range(2))
        axes.append((n, low, high, 1, window, 1, rng.randint(1, 3)))
    source = b.of(x.dtype, tuple(_size(*axis) for axis in axes), near=False)
    source = b.whole(source) if x.dtype in FLOATS else source
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


WINDOWS: tuple[Rule, ...] = (_reduce_window, _select_and_scatter)
