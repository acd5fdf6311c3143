"""What a random StableHLO program is made of: a rule per kind of op, which adds one to a `Body`, or none.

Divisors are not zero and floats are converted to integers in range, since every implementation may answer otherwise.
Near floats (see `random_body.py`) are only moved and scaled, so that a tolerance fits them.
"""

import random
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from random_body import Body, Value
from random_types import (
    ALL,
    COMPLEX,
    FLOATS,
    HALVES,
    INTEGERS,
    REAL,
    SIGNED,
    SMALL,
    TINY,
    UNSIGNED,
    is_signed,
    limits,
    sums,
)
from stablehlo_text import ints

#: elements of a tensor
LARGEST = 5000

#: both oracles round f8E3M4, which has no number of its own precision, to NaN
ROUNDED = FLOATS + HALVES + TINY[:-1]
BITS = ("i1", *INTEGERS, *SMALL)
NUMBERS = INTEGERS + SMALL + REAL

#: op -> element types
UNARY = {
    "abs": (*SIGNED, "i4", "i2", *REAL), "negate": NUMBERS + COMPLEX, "sign": SIGNED + REAL, "not": BITS,
    "popcnt": INTEGERS, "count_leading_zeros": INTEGERS, "ceil": ROUNDED, "floor": ROUNDED,
    "round_nearest_afz": ROUNDED, "round_nearest_even": ROUNDED, "sqrt": REAL,
}  # fmt: skip
NEAR_UNARY = (
    "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "cbrt", "sine", "cosine",
    "tan", "tanh",
)  # fmt: skip
BINARY = {
    "add": ALL, "subtract": NUMBERS + COMPLEX, "multiply": ("i1", *NUMBERS), "divide": INTEGERS + REAL,
    "maximum": ("i1", *NUMBERS), "minimum": ("i1", *NUMBERS), "remainder": INTEGERS + FLOATS, "and": BITS, "or": BITS,
    "xor": BITS, "shift_left": INTEGERS, "shift_right_logical": INTEGERS, "shift_right_arithmetic": INTEGERS,
    "power": INTEGERS,
}  # fmt: skip
#: op -> element types and the value that changes nothing
MONOIDS: dict[str, tuple[tuple[str, ...], Callable[[str], Any]]] = {
    "add": (ALL, lambda t: 0),
    "multiply": (("i1", *INTEGERS, *SMALL, *FLOATS), lambda t: 1),
    "maximum": (("i1", *NUMBERS), lambda t: limits(t)[0]),
    "minimum": (("i1", *NUMBERS), lambda t: limits(t)[1]),
    "and": (BITS, lambda t: -1 if is_signed(t) else limits(t)[1]),
    "or": (BITS, lambda t: 0),
    "xor": (BITS, lambda t: 0),
}


def monoids(t: str, count: int) -> list[str]:
    """By which so many elements are folded to one right result, floats among them made whole before."""
    found = [name for name, (types, _) in MONOIDS.items() if t in types]
    if count > sums(t) or t in COMPLEX:
        found = [name for name in found if name != "add"]
    return found


Rule = Callable[[Body], Any]


def _unary(b: Body) -> None:
    x = b.pick()
    assert x is not None
    names = [name for name, types in UNARY.items() if x.dtype in types]
    if x.near:
        names = ["negate"] if x.dtype in COMPLEX else ["abs", "negate"]
    if names:
        b.op(f"stablehlo.{b.rng.choice(names)}", [x], x.shape, x.dtype)


def _near_unary(b: Body) -> None:
    x = b.pick(lambda v: v.dtype in FLOATS + HALVES and not v.near)
    if x is not None:
        b.op(f"stablehlo.{b.rng.choice(NEAR_UNARY)}", [x], x.shape, x.dtype, near=True)


def _binary(b: Body) -> None:
    x = b.pick()
    assert x is not None
    if x.near and x.dtype in COMPLEX:
        return
    if x.near:
        y = b.of(x.dtype, x.shape, near=False)
        operands = [x, y] if b.rng.random() < 0.5 else [y, x]
        b.op("stablehlo.multiply", operands, x.shape, x.dtype)
        return
    name = b.rng.choice([name for name, types in BINARY.items() if x.dtype in types])
    y = b.of(x.dtype, x.shape, near=False)
    if name in ("divide", "remainder") and x.dtype in INTEGERS:
        if b.rng.random() < 0.5:
            y = b.like(x, b.rng.choice((2, 3, 5, 7, 64) + ((-2, -7) if x.dtype in SIGNED else ())))
        else:
            y = b.op("stablehlo.maximum", [y, b.like(x, 1)], x.shape, x.dtype)
    elif name == "power":
        y = b.op("stablehlo.and", [y, b.like(x, 7)], x.shape, x.dtype)
    elif b.rng.random() < 0.5 and name not in ("divide", "remainder") and not name.startswith("shift"):
        x, y = y, x
    b.op(f"stablehlo.{name}", [x, y], x.shape, x.dtype)


def _atan2(b: Body) -> None:
    x = b.pick(lambda v: v.dtype in FLOATS and not v.near)
    if x is not None:
        y = b.of(x.dtype, x.shape, near=False)
        b.op(f"stablehlo.{b.rng.choice(('atan2', 'power'))}", [x, y], x.shape, x.dtype, near=True)


def _compare(b: Body) -> None:
    x = b.pick(lambda v: not v.near)
    if x is None:
        return
    y = b.of(x.dtype, x.shape, near=False)
    kind = "FLOAT" if x.dtype in REAL + COMPLEX else "SIGNED" if is_signed(x.dtype) else "UNSIGNED"
    directions = ("EQ", "NE") if x.dtype in COMPLEX else ("EQ", "NE", "LT", "LE", "GT", "GE")
    b.compare(x, y, b.rng.choice(directions), b.rng.choice(("", kind)))


def _select(b: Body) -> None:
    x = b.pick()
    assert x is not None
    p = b.of("i1", b.rng.choice(((), x.shape)))
    y = b.of(x.dtype, x.shape)
    b.op("stablehlo.select", [p, x, y], x.shape, x.dtype)


def _clamp(b: Body) -> None:
    x = b.pick(lambda v: not v.near and v.dtype not in COMPLEX)
    if x is None:
        return
    low, high = (b.of(x.dtype, b.rng.choice(((), x.shape)), near=False) for _ in range(2))
    b.op("stablehlo.clamp", [low, x, high], x.shape, x.dtype)


def _convert(b: Body) -> None:
    x = b.pick(lambda v: not v.near)
    if x is not None:
        b.converted(x, b.rng.choice(b.types))


def _bitcast(b: Body) -> None:
    """Between integers: the sign and payload of a NaN are nobody's promise."""
    x = b.pick(lambda v: v.dtype in INTEGERS)
    if x is not None:
        to = next(t for t in (UNSIGNED if x.dtype in SIGNED else SIGNED) if t.strip("ui") == x.dtype.strip("ui"))
        b.op("stablehlo.bitcast_convert", [x], x.shape, to)


def _reshape(b: Body) -> None:
    x = b.pick()
    assert x is not None
    b.op("stablehlo.reshape", [x], refold(b.rng, x.shape), x.dtype)


def refold(rng: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Another shape of as many elements."""
    size = prod(shape)
    if size == 0:
        return tuple(rng.sample((0, *(rng.choice((1, 2, 3)) for _ in range(rng.randrange(3)))), k=1)) + (0,)
    dims, rest = [], size
    for factor in (2, 3, 4, 5, 6, 7):
        if rest % factor == 0 and rng.random() < 0.6:
            dims.append(factor)
            rest //= factor
    if rest > 1 or rng.random() < 0.3:
        dims.append(rest)
    dims += [1] * (rng.random() < 0.3)
    if prod(dims) != size:
        dims.append(size // prod(dims))
    rng.shuffle(dims)
    return tuple(dims)


def _transpose(b: Body) -> None:
    x = b.pick(lambda v: len(v.shape) > 1)
    if x is not None:
        order = b.rng.sample(range(len(x.shape)), len(x.shape))
        shape = [x.shape[axis] for axis in order]
        b.op("stablehlo.transpose", [x], shape, x.dtype, f"permutation = {ints(order)}")


def _broadcast(b: Body) -> None:
    x = b.pick(lambda v: v.size <= 64 and len(v.shape) < 4)
    if x is None:
        return
    rank = len(x.shape) + b.rng.randrange(3)
    to = b.rng.sample(range(rank), len(x.shape))
    if b.rng.random() < 0.8:
        to.sort()
    shape = [b.rng.choice((1, 2, 3, 5)) for _ in range(rank)]
    for axis, size in zip(to, x.shape, strict=True):
        if size != 1 or b.rng.random() < 0.5:
            shape[axis] = size
    if prod(shape) <= LARGEST:
        b.op("stablehlo.broadcast_in_dim", [x], shape, x.dtype, f"broadcast_dimensions = {ints(to)}")


def _slice(b: Body) -> None:
    x = b.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return
    starts, limits, strides, shape = [], [], [], []
    for size in x.shape:
        start = b.rng.randint(0, size) if b.rng.random() < 0.5 else 0
        limit = b.rng.randint(start, size) if b.rng.random() < 0.3 else size
        stride = b.rng.choice((1, 1, 2, 3))
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
        shape.append(-(-(limit - start) // stride))
    attributes = f"start_indices = {ints(starts)}, limit_indices = {ints(limits)}, strides = {ints(strides)}"
    b.op("stablehlo.slice", [x], shape, x.dtype, attributes)


def _pad(b: Body) -> None:
    x = b.pick(lambda v: v.size < 200)
    if x is None:
        return
    value = b.of(x.dtype, ())
    lows, highs, inner, shape = [], [], [], []
    for size in x.shape:
        gap = b.rng.choice((0, 0, 1, 2))
        low, high = b.rng.randint(-2, 2), b.rng.randint(-2, 2)
        if low + size + max(size - 1, 0) * gap + high < 0:
            low = high = 0
        lows.append(low)
        highs.append(high)
        inner.append(gap)
        shape.append(low + size + max(size - 1, 0) * gap + high)
    if prod(shape) > LARGEST:
        return
    attributes = f"edge_padding_low = {ints(lows)}, edge_padding_high = {ints(highs)}, interior_padding = {ints(inner)}"
    b.op("stablehlo.pad", [x, value], shape, x.dtype, attributes)


def _concatenate(b: Body) -> None:
    x = b.pick(lambda v: len(v.shape) > 0 and v.size < 200)
    if x is None:
        return
    axis = b.rng.randrange(len(x.shape))
    rest = x.shape[:axis], x.shape[axis + 1 :]
    parts = [x]

    def fits(v: Value) -> bool:
        return (v.dtype, len(v.shape), v.shape[:axis], v.shape[axis + 1 :]) == (x.dtype, len(x.shape), *rest)

    for _ in range(b.rng.choice((0, 1, 1, 2, 5))):
        other = b.pick(fits)
        if other is None or b.rng.random() < 0.3:
            other = b.of(x.dtype, (*rest[0], b.rng.choice((0, 1, 2)), *rest[1]))
        parts.insert(b.rng.randint(0, len(parts)), other)
    shape = (*rest[0], sum(p.shape[axis] for p in parts), *rest[1])
    if prod(shape) <= LARGEST:
        b.op("stablehlo.concatenate", parts, shape, x.dtype, f"dimension = {axis} : i64")


def _reverse(b: Body) -> None:
    x = b.pick(lambda v: len(v.shape) > 0)
    if x is not None:
        axes = b.rng.sample(range(len(x.shape)), b.rng.randint(0, len(x.shape)))
        b.op("stablehlo.reverse", [x], x.shape, x.dtype, f"dimensions = {ints(axes)}")


def _starts(b: Body, shape: Sequence[int]) -> list[Value]:
    """Of one type, anywhere: the start is clamped. The interpreter takes large unsigned ones for negative, and XLA
    writes outside of an axis that the type cannot count.
    """
    dtype = b.rng.choice(SIGNED[1:] if max(shape, default=0) > 127 else SIGNED)
    return [b.of(dtype, ()) if b.rng.random() < 0.5 else b.number(b.rng.randrange(8), dtype) for _ in shape]


def _dynamic_slice(b: Body) -> None:
    x = b.pick()
    assert x is not None
    sizes = [b.rng.randint(0 if b.rng.random() < 0.1 else min(size, 1), size) for size in x.shape]
    b.op("stablehlo.dynamic_slice", [x, *_starts(b, x.shape)], sizes, x.dtype, f"slice_sizes = {ints(sizes)}")


def _dynamic_update_slice(b: Body) -> None:
    x = b.pick()
    assert x is not None
    update = b.of(x.dtype, tuple(b.rng.randint(min(size, 1), size) for size in x.shape))
    near = x.near or update.near
    b.op("stablehlo.dynamic_update_slice", [x, update, *_starts(b, x.shape)], x.shape, x.dtype, near=near)


def _gather(b: Body) -> None:
    """Axes of the operand collapsed, batched or sliced, some of them with a start; index vectors along any axis."""
    x = b.pick(lambda v: 0 < v.size < 500 and len(v.shape) < 4)
    if x is None:
        return
    rng, rank = b.rng, len(x.shape)
    roles = [rng.choice(("batch", "collapse", "keep", "keep")) for _ in range(rank)]
    batched, collapsed, kept = (
        [axis for axis in range(rank) if roles[axis] == role] for role in ("batch", "collapse", "keep")
    )
    sizes = [rng.randint(1, size) if role == "keep" else 1 for role, size in zip(roles, x.shape, strict=True)]
    started = rng.sample([*collapsed, *kept], rng.randint(0, len(collapsed) + len(kept)))
    batch = [*(x.shape[axis] for axis in batched), *rng.choice(((), (1,), (3,), (2, 3)))]
    order = rng.sample(range(len(batch)), len(batch))
    batch = [batch[i] for i in order]
    vector = rng.randint(0, len(batch))
    shape = [*batch[:vector], len(started), *batch[vector:]]
    if len(started) == 1 and rng.random() < 0.4:
        shape, vector = batch, len(batch)
    at = [order.index(i) for i in range(len(batched))]
    offsets = sorted(rng.sample(range(len(batch) + len(kept)), len(kept)))
    rest, mine = iter(batch), iter([sizes[axis] for axis in kept])
    out = [next(mine) if axis in offsets else next(rest) for axis in range(len(batch) + len(kept))]
    if prod(out) > LARGEST:
        return
    parts = {
        "offset_dims": offsets, "collapsed_slice_dims": collapsed, "operand_batching_dims": batched,
        "start_indices_batching_dims": [i + (i >= vector) for i in at], "start_index_map": started,
    }  # fmt: skip
    given = "".join(f"{key} = {list(value)}, " for key, value in parts.items() if value)
    b.op(
        "stablehlo.gather", [x, b.of(rng.choice(SIGNED), tuple(shape))], out, x.dtype,
        f"dimension_numbers = #stablehlo.gather<{given}index_vector_dim = {vector}>, slice_sizes = {ints(sizes)}",
    )  # fmt: skip


def _axes(b: Body, x: Value) -> tuple[list[int], tuple[int, ...]]:
    """Axes to reduce, and the shape of what is left."""
    axes = sorted(b.rng.sample(range(len(x.shape)), b.rng.randint(0 if b.rng.random() < 0.2 else 1, len(x.shape))))
    return axes, tuple(size for axis, size in enumerate(x.shape) if axis not in axes)


def reducer(types: Sequence[str], lines: Sequence[str], results: Sequence[str]) -> str:
    t = [f"tensor<{t}>" for t in types]
    names = [f"%x{i}: {s}" for i, s in enumerate(t)] + [f"%y{i}: {s}" for i, s in enumerate(t)]
    returned = f'"stablehlo.return"({", ".join(results)}) : ({", ".join(t)}) -> ()'
    return "\n".join(["{", f"^bb0({', '.join(names)}):", *lines, returned, "}"])


def _reduce(b: Body) -> None:
    """One to three operands of any types, each with a monoid of its own."""
    x = b.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return
    axes, shape = _axes(b, x)
    inputs = [x] + [b.of(b.rng.choice(b.types), x.shape) for _ in range(b.rng.choice((0, 0, 0, 1, 2)))]
    inits, lines, near = [], [], []
    for i, v in enumerate(inputs):
        choice = monoids(v.dtype, v.size)
        if v.dtype in FLOATS and (v.near or v.size > 16):  # whether a product overflows on the way depends on the order
            choice.remove("multiply")
        if v.near and v.dtype not in FLOATS or v.dtype in COMPLEX:
            v = inputs[i] = b.converted(v, "i8") if not v.near else b.of("i8", v.shape)
            choice = monoids("i8", v.size)
        name = b.rng.choice(choice)
        chooses = name in ("maximum", "minimum")
        if name == "add" and v.dtype in HALVES + TINY:
            v = inputs[i] = b.whole(v)
            chooses = True
        inits.append(initial(b, v, name, folded=v.size > prod(shape)))
        t = f"tensor<{v.dtype}>"
        lines.append(f'%z{i} = "stablehlo.{name}"(%x{i}, %y{i}) : ({t}, {t}) -> {t}')
        near.append(v.near or v.dtype in FLOATS and not chooses)
    outs = [Value(b.fresh(), shape, v.dtype, n) for v, n in zip(inputs, near, strict=True)]
    region = reducer([v.dtype for v in inputs], lines, [f"%z{i}" for i in range(len(inputs))])
    b.emit("stablehlo.reduce", inputs + inits, outs, f"dimensions = {ints(axes)}", region)


def initial(b: Body, v: Value, name: str, folded: bool = True) -> Value:
    """What changes nothing; sometimes any value, where it does not matter how often it is taken in. `folded`: whether
    more than one element is reduced; of one, XLA leaves the initial value out (`random_judge.FAULTS`).
    """
    if name in ("maximum", "minimum", "or") and not v.near and b.rng.random() < 0.3 and folded:
        return b.of(v.dtype, (), near=False)
    return b.number(MONOIDS[name][1](v.dtype), v.dtype)


def _arg_reduce(b: Body) -> None:
    """The greatest (least) value and its first place."""
    x = b.pick(lambda v: len(v.shape) > 0 and not v.near and v.dtype not in ("i1", *COMPLEX) and max(v.shape) < 100)
    if x is None:
        return
    axes, shape = _axes(b, x)
    if not axes:  # XLA leaves such a reduction out; with the initial value, whose place is 0, other places may change
        return
    index = b.rng.choice(("i32", "i64", "ui32"))
    place = b.iota(x.shape, index)
    word = b.rng.choice(("GT", "LT"))
    t, u = f"tensor<{x.dtype}>", f"tensor<{index}>"
    d = "comparison_direction = #stablehlo<comparison_direction "
    lines = [
        f'%m = "stablehlo.compare"(%x0, %y0) <{{{d}{word}>}}> : ({t}, {t}) -> tensor<i1>',
        f'%n = "stablehlo.compare"(%x0, %x0) <{{{d}NE>}}> : ({t}, {t}) -> tensor<i1>',
        '%f = "stablehlo.or"(%m, %n) : (tensor<i1>, tensor<i1>) -> tensor<i1>',
        f'%e = "stablehlo.compare"(%x0, %y0) <{{{d}EQ>}}> : ({t}, {t}) -> tensor<i1>',
        f'%l = "stablehlo.compare"(%x1, %y1) <{{{d}LT>}}> : ({u}, {u}) -> tensor<i1>',
        '%b = "stablehlo.and"(%e, %l) : (tensor<i1>, tensor<i1>) -> tensor<i1>',
        '%k = "stablehlo.or"(%f, %b) : (tensor<i1>, tensor<i1>) -> tensor<i1>',
        f'%z0 = "stablehlo.select"(%f, %x0, %y0) : (tensor<i1>, {t}, {t}) -> {t}',
        f'%z1 = "stablehlo.select"(%k, %x1, %y1) : (tensor<i1>, {u}, {u}) -> {u}',
    ]
    start = limits(x.dtype)[word != "GT"]
    inits = [b.number(start, x.dtype), b.number(0, index)]
    outs = [Value(b.fresh(), shape, x.dtype), Value(b.fresh(), shape, index)]
    b.emit(
        "stablehlo.reduce", [x, place, *inits], outs, f"dimensions = {ints(axes)}",
        reducer([x.dtype, index], lines, ["%z0", "%z1"]),
    )  # fmt: skip


def _ordered_reduce(b: Body) -> None:
    """Monoids where x y is not y x: maps z -> a z + c one after the other; the last of marked elements."""
    x = b.pick(lambda v: len(v.shape) > 0 and v.dtype in INTEGERS)
    if x is None:
        return
    axes, shape = _axes(b, x)
    if b.rng.random() < 0.5:
        other, types = b.of(x.dtype, x.shape), [x.dtype] * 2
        t = f"tensor<{x.dtype}>"
        lines = [
            f'%z0 = "stablehlo.multiply"(%x0, %y0) : ({t}, {t}) -> {t}',
            f'%w = "stablehlo.multiply"(%y0, %x1) : ({t}, {t}) -> {t}',
            f'%z1 = "stablehlo.add"(%w, %y1) : ({t}, {t}) -> {t}',
        ]
        inits = [b.number(1, x.dtype), b.number(0, x.dtype)]
    else:
        other, types = b.of("i1", x.shape), [x.dtype, "i1"]
        t = f"tensor<{x.dtype}>"
        lines = [
            f'%z0 = "stablehlo.select"(%y1, %y0, %x0) : (tensor<i1>, {t}, {t}) -> {t}',
            '%z1 = "stablehlo.or"(%x1, %y1) : (tensor<i1>, tensor<i1>) -> tensor<i1>',
        ]
        inits = [b.number(0, x.dtype), b.number(0, "i1")]
    outs = [Value(b.fresh(), shape, t) for t in types]
    b.emit(
        "stablehlo.reduce", [x, other, *inits], outs, f"dimensions = {ints(axes)}",
        reducer(types, lines, ["%z0", "%z1"]),
    )  # fmt: skip


def _dot(b: Body) -> None:
    """Some axes batched, some contracted, the rest free, in any order on both sides."""
    x = b.pick(
        lambda v: (
            v.dtype in INTEGERS + ROUNDED + COMPLEX and len(v.shape) <= 4 and not (v.near and v.dtype not in FLOATS)
        )
    )
    if x is None:
        return
    axes = b.rng.sample(range(len(x.shape)), len(x.shape))
    batch = axes[: b.rng.choice((0, 0, 1, 2))]
    contract = [axis for axis in axes if axis not in batch][: b.rng.choice((0, 1, 1, 1, 2))]
    length = prod(x.shape[axis] for axis in contract)
    if length == 0 or 4 * length > sums(x.dtype):  # the interpreter aborts; not exact
        contract = []
    free = [axis for axis in range(len(x.shape)) if axis not in batch + contract]
    own = [b.rng.choice((0, 1, 2, 3, 4, 5)) for _ in range(b.rng.choice((0, 1, 1, 2)))]
    bound = [*batch, *contract]
    sizes = [x.shape[axis] for axis in bound] + own
    order = b.rng.sample(range(len(sizes)), len(sizes))
    y = b.of(x.dtype, tuple(sizes[i] for i in order), near=x.dtype in FLOATS)
    if x.dtype in HALVES + TINY:
        x, y = b.whole(x), b.whole(y)
    elif x.dtype in COMPLEX:
        x, y = b.tame(x), b.tame(y)
    at = [order.index(i) for i in range(len(sizes))]
    right_free = [size for i, size in zip(order, (sizes[i] for i in order), strict=True) if i >= len(bound)]
    shape = [x.shape[axis] for axis in batch] + [x.shape[axis] for axis in free] + right_free
    if prod(shape) > LARGEST:
        return
    parts = {
        "lhs_batching_dimensions": batch,
        "rhs_batching_dimensions": at[: len(batch)],
        "lhs_contracting_dimensions": contract,
        "rhs_contracting_dimensions": at[len(batch) : len(bound)],
    }
    given = ", ".join(f"{key} = {list(value)}" for key, value in parts.items() if value)
    out = x.dtype
    if x.dtype in ("i8", "i16") and b.rng.random() < 0.5:
        out = "i32"
    elif x.dtype == "f32" and not (x.near or y.near) and b.rng.random() < 0.2:
        out = "f64"
    near = x.dtype in FLOATS + COMPLEX
    made = b.op(
        "stablehlo.dot_general", [x, y], shape, out, f"dot_dimension_numbers = #stablehlo.dot<{given}>", near=near
    )
    if out in REAL and not near:
        b.values.remove(made)
        b.positive_zero(made)


ELEMENTWISE: tuple[Rule, ...] = (
    _unary, _unary, _near_unary, _binary, _binary, _binary, _compare, _select, _clamp, _convert, _bitcast, _atan2,
)  # fmt: skip
MOVEMENT: tuple[Rule, ...] = (
    _reshape, _transpose, _broadcast, _slice, _pad, _concatenate, _reverse, _dynamic_slice, _dynamic_update_slice,
    _gather,
)  # fmt: skip
CONTRACTION: tuple[Rule, ...] = (_reduce, _reduce, _arg_reduce, _ordered_reduce, _dot, _dot)
