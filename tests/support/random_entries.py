"""Random entries for tests of schedules: a function per kind of body, which makes a `structured_bodies.Case` of a seed.

Sizes are small, mostly such that tiles divide some of them and leave a rest of others.
"""

import random
from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from stablehlo_text import ints
from structured_bodies import REDUCERS, Case, Draft, Layout, Shape, Value

from orchestrion.compiler.ir.dims import DEFAULT_GREATEST, Dim

#: elements of a tensor
LARGEST = 4000
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20, 24, 32, 33)
#: lengths of reductions; for several of the long ones some devices have too few turns of loops
LONG = (1000, 4096, 5000, 20_001, 34_000)
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 31, 32, 40, 63, 64, 65, 100, 127, 128, 129, 192, 256, 300)
TYPES = ("f32", "f32", "f32", "i32", "i32", "i64", "i16", "ui8", "f64")


def _shape(rng: random.Random, least: int = 1, most: int = 4) -> tuple[int, ...]:
    """A shape of bounded rank and size."""
    shape: list[int] = []
    for _ in range(rng.randint(least, most)):
        room = max(LARGEST // prod(shape), 1)
        shape.append(rng.choice([size for size in SIZES if size <= room]))
    return tuple(shape)


def _size(draft: Draft, sizes: Sequence[int], dynamic: float) -> int:
    """A size: a number, or a symbol with any bounds that hold it, or one less than a symbol."""
    rng = draft.rng
    size = rng.choice(sizes)
    if rng.random() >= dynamic:
        return size
    if rng.random() < 0.15:
        return draft.symbol(size + 1) - 1
    greatest = rng.choice((DEFAULT_GREATEST, DEFAULT_GREATEST, size, 2 * size, max(size, 300)))
    return draft.symbol(size, rng.choice((1, 1, min(size, 4), size)), greatest)


# what is fused in front of heroes and behind them


def _elementwise(draft: Draft, value: Value, count: int) -> Value:
    """Some elementwise ops, all of which but the transcendental ones NumPy computes bit for bit."""
    rng = draft.rng
    for _ in range(count):
        names = ["add", "subtract", "multiply", "maximum", "minimum"]
        names += ["negate", "abs"] if value.is_float else ["and", "xor"]
        if value.dtype == "f32" and rng.random() < 0.15:
            value = draft.apply("tanh", value, near=True)
            continue
        name = rng.choice(names)
        if name in ("negate", "abs"):
            value = draft.apply(name, value)
        else:
            value = draft.apply(name, value, _other(draft, value))
    return value


def _other(draft: Draft, value: Value) -> Value:
    """Another value of the type: an argument, a constant, or a broadcast along some axes."""
    rng = draft.rng
    way = rng.choice(("argument", "constant", "broadcast", "same"))
    if way == "same":
        return value
    if way == "argument":
        return draft.argument(value.shape, value.dtype)
    if way == "constant":
        return draft.broadcast(draft.constant(rng.choice((0.5, 2, 3)), value.dtype), value.shape, ())
    axes = sorted(rng.sample(range(len(value.shape)), rng.randint(0, len(value.shape))))
    shape: Shape = tuple(value.shape[axis] if rng.random() < 0.9 else 1 for axis in axes)
    return draft.broadcast(draft.argument(shape, value.dtype), value.shape, axes)


def _moved(draft: Draft, value: Value) -> Value:
    """An op that moves elements. Sizes that are no numbers stay."""
    rng = draft.rng
    static = [axis for axis, size in enumerate(value.shape) if not isinstance(size, Dim)]
    ways: list[Callable[[Draft, Value, list[int]], Value]] = [_transposed]
    if static:
        ways += [_padded, _concatenated, _sliced, _reversed]
    if len(static) == len(value.shape) and value.array.size:
        ways += [_reshaped, _dynamic_slice]
    return rng.choice(ways)(draft, value, static)


def _transposed(draft: Draft, value: Value, static: list[int]) -> Value:
    return draft.transpose(value, draft.rng.sample(range(len(value.shape)), len(value.shape)))


def _padded(draft: Draft, value: Value, static: list[int]) -> Value:
    rng, axis = draft.rng, draft.rng.choice(static)
    zeros = [0] * len(value.shape)
    low, high, inside = zeros[:], zeros[:], zeros[:]
    low[axis], high[axis], inside[axis] = rng.randint(0, 3), rng.randint(0, 3), rng.choice((0, 0, 1))
    size = value.array.shape[axis]
    sizes = list(value.array.shape)
    sizes[axis] = low[axis] + high[axis] + size + inside[axis] * (size - 1)
    filler = draft.constant(rng.choice((0, 3)), value.dtype)
    array = np.full(sizes, filler.array)
    end = low[axis] + size + inside[axis] * (size - 1)
    array[(*[slice(None)] * axis, slice(low[axis], end, inside[axis] + 1))] = value.array
    shape = (*value.shape[:axis], sizes[axis], *value.shape[axis + 1 :])
    attributes = f"edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, interior_padding = {ints(inside)}"
    return draft.op("stablehlo.pad", [value, filler], shape, value.dtype, array, attributes)


def _concatenated(draft: Draft, value: Value, static: list[int]) -> Value:
    axis = draft.rng.choice(static)
    shape = (*value.shape[:axis], draft.rng.randint(1, 5), *value.shape[axis + 1 :])
    parts = [value, draft.argument(shape, value.dtype)]
    draft.rng.shuffle(parts)
    array = np.concatenate([one.array for one in parts], axis)
    whole = (*value.shape[:axis], array.shape[axis], *value.shape[axis + 1 :])
    return draft.op("stablehlo.concatenate", parts, whole, value.dtype, array, f"dimension = {axis} : i64")


def _sliced(draft: Draft, value: Value, static: list[int]) -> Value:
    rng = draft.rng
    if len(static) < len(value.shape):
        return _transposed(draft, value, static)
    starts = [rng.randint(0, size // 2) for size in value.array.shape]
    limits = [rng.randint(start + 1, size) for start, size in zip(starts, value.array.shape, strict=True)]
    strides = [rng.choice((1, 1, 2, 3)) for _ in starts]
    array = value.array[tuple(map(slice, starts, limits, strides))]
    attributes = f"start_indices = {ints(starts)}, limit_indices = {ints(limits)}, strides = {ints(strides)}"
    return draft.op("stablehlo.slice", [value], array.shape, value.dtype, array, attributes)


def _reversed(draft: Draft, value: Value, static: list[int]) -> Value:
    axis = draft.rng.choice(static)
    array = np.flip(value.array, axis)
    return draft.op("stablehlo.reverse", [value], value.shape, value.dtype, array, f"dimensions = {ints([axis])}")


def _reshaped(draft: Draft, value: Value, static: list[int]) -> Value:
    shape, rest = [], value.array.size
    while rest > 1 and len(shape) < 3:
        size = draft.rng.choice([size for size in range(1, rest + 1) if rest % size == 0])
        shape.append(size)
        rest //= size
    shape.append(rest)
    return draft.op("stablehlo.reshape", [value], tuple(shape), value.dtype, value.array.reshape(shape))


def _dynamic_slice(draft: Draft, value: Value, static: list[int]) -> Value:
    rng, shape = draft.rng, value.array.shape
    sizes = [rng.randint(1, size) for size in shape]
    starts = [draft.argument((), "i32", np.asarray(rng.randint(-2, size), np.int32)) for size in shape]
    places = [min(max(int(one.array), 0), whole - size) for one, whole, size in zip(starts, shape, sizes, strict=True)]
    array = value.array[tuple(slice(at, at + size) for at, size in zip(places, sizes, strict=True))]
    attributes = f"slice_sizes = {ints(sizes)}"
    return draft.op("stablehlo.dynamic_slice", [value, *starts], tuple(sizes), value.dtype, array, attributes)


# kinds of bodies


def elementwise(rng: random.Random) -> Case:
    """Ops that move elements and ops on elements; results of one size or of several, encoded, or a slice in place."""
    draft = Draft(rng)
    dynamic = rng.random() < 0.2
    shape: Shape = _shape(rng)
    if dynamic:
        shape = tuple(_size(draft, (1, 2, 3, 5, 8, 12), 0.6) for _ in range(rng.randint(1, 3)))
    value = draft.argument(shape, rng.choice(TYPES))
    seen = [value]
    for _ in range(rng.randint(1, 5)):
        made = _moved(draft, value) if rng.random() < 0.5 else _elementwise(draft, value, 1)
        if made.array.size <= 4 * LARGEST:
            value = made
            seen.append(value)
    if value.name == seen[0].name:
        value = _elementwise(draft, value, 1)
    static = all(not isinstance(size, Dim) for size in value.shape)
    way = rng.choice(("plain", "plain", "several", "encoded", "in place")) if static and value.array.size else "plain"
    if way == "encoded":
        draft.encoded_result(value, _layout(rng, value.array.shape))
        return draft.case("encoded")
    if way == "in place":
        draft.updated_in_place(tuple(size + rng.randint(0, 4) for size in value.array.shape), value)
        return draft.case("in place")
    draft.result(value)
    for other in seen[1:] if way == "several" else ():
        if other.name != value.name:
            draft.result(other)
    return draft.case("elementwise")


def _layout(rng: random.Random, shape: tuple[int, ...]) -> Layout:
    """Any layout of a shape."""
    axes = rng.sample(range(len(shape)), len(shape))
    groups: list[list[int]] = []
    for axis in axes:
        if groups and rng.random() < 0.2:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    tiles = [rng.choice((1, 2, 3, 4, 8, 16)) if rng.random() < 0.6 else 1 for _ in groups]
    cut = [group for group, tile in enumerate(tiles) if tile > 1]
    return Layout(tuple(map(tuple, groups)), tuple(tiles), tuple(rng.sample(cut, len(cut))))


def reduction(rng: random.Random) -> Case:
    """One reduction along some axes, with ops in front of it and behind it."""
    draft = Draft(rng)
    dynamic = 0.5 if rng.random() < 0.3 else 0.0
    kept = [_size(draft, (1, 2, 3, 5, 8, 12, 20), dynamic) for _ in range(rng.randint(0, 2))]
    length = rng.choice(LENGTHS)
    if rng.random() < 0.06:
        kept, length = [rng.choice((1, 2, 16))], rng.choice(LONG)
    folded = [_size(draft, (length,), dynamic)]
    if length <= max(LENGTHS) and rng.random() < 0.4:
        folded = [_size(draft, [s for s in SIZES if s * s <= 400], dynamic) for _ in range(rng.randint(1, 3))]
    axes = [(size, number < len(kept)) for number, size in enumerate([*kept, *folded])]
    rng.shuffle(axes)
    shape = tuple(size for size, _ in axes)
    dims = [axis for axis, (_, stays) in enumerate(axes) if not stays]
    name = rng.choice([*REDUCERS, "add"])
    dtype = rng.choice(("i32", "i64")) if name in ("affine", "multiply") else rng.choice(TYPES)
    values = [_fused_operand(draft, shape, dtype) for _ in range(2 if name in ("affine", "argmax") else 1)]
    start = 0 if rng.random() < 0.5 else 3
    starts = [draft.constant(start, dtype) if rng.random() < 0.8 else draft.argument((), dtype) for _ in values]
    results = draft.reduce(values, starts, dims, REDUCERS[name])
    for value in results:
        if rng.random() < 0.4:
            value = _elementwise(draft, value, 1)
        draft.result(value)
    return draft.case("reduction")


def _fused_operand(draft: Draft, shape: Shape, dtype: str) -> Value:
    """A value of the shape, loaded as it is or computed."""
    rng = draft.rng
    if rng.random() < 0.4:
        return draft.argument(shape, dtype)
    if rng.random() < 0.5:
        order = rng.sample(range(len(shape)), len(shape))
        value = draft.argument(tuple(shape[axis] for axis in order), dtype)
        value = draft.transpose(value, [order.index(axis) for axis in range(len(shape))])
    else:
        value = draft.argument(shape, dtype)
    return _elementwise(draft, value, rng.randint(1, 2))


def contraction(rng: random.Random) -> Case:
    """A dot with batch, free and contracted axes, operands in any order or encoded, ops in front of it and behind."""
    draft = Draft(rng)
    dynamic = 0.4 if rng.random() < 0.35 else 0.0
    groups = [
        [_size(draft, sizes, dynamic) for _ in range(rng.choice(counts))]
        for sizes, counts in (
            ((1, 2, 3), (0, 0, 1, 2)),
            ((1, 2, 3, 4, 8, 12, 16, 17, 20, 32), (0, 1, 1, 1, 2)),
            ((1, 4, 5, 8, 12, 16, 20, 24, 32), (0, 1, 1, 1, 2)),
            ((1, 2, 3, 4, 8, 9, 16, 24, 65), (0, 1, 1, 1, 1, 1, 1, 2)),
        )
    ]
    if prod(prod(draft.sizes(tuple(group))) for group in groups) > 60_000:
        groups = [group[:1] for group in groups]
    batch, left, right, contract = groups
    dtype = rng.choice(("f32", "f32", "f32", "f32", "i32", "f64", "i16"))
    packed = not draft.symbols and len(left) == len(right) == len(contract) == 1 and not batch and rng.random() < 0.5
    operands, axes = [], []
    for free, is_left in ((left, True), (right, False)):
        if packed:
            tile = rng.choice((2, 4, 8, 16))
            shape = (free[0], contract[0]) if is_left else (contract[0], free[0])
            groups_of = ((0,), (1,)) if is_left else ((1,), (0,))
            operands.append(draft.encoded_argument(shape, dtype, Layout(groups_of, (tile, 1), (0,))))
            axes.append(((), (0 if is_left else 1,), (1 if is_left else 0,)))
            continue
        sizes = [*batch, *free, *contract]
        order = rng.sample(range(len(sizes)), len(sizes)) if rng.random() < 0.6 else list(range(len(sizes)))
        operands.append(_fused_operand(draft, tuple(sizes[at] for at in order), dtype))
        places = [order.index(at) for at in range(len(sizes))]
        first, second = len(batch), len(batch) + len(free)
        own = sorted(places[first:second])
        axes.append((tuple(places[:first]), tuple(own), tuple(places[second:])))
    _finished_dot(draft, operands, axes)
    return draft.case("packed" if packed else "contraction")


def _finished_dot(draft: Draft, operands: Sequence[Value], axes: Sequence[tuple[tuple[int, ...], ...]]) -> None:
    """The dot and what is behind it. `axes`: per operand its batch, free and contracted axes."""
    rng, (x, y) = draft.rng, operands
    (lhs_batch, lhs_free, lhs_contract), (rhs_batch, rhs_free, rhs_contract) = axes
    shape = tuple(x.shape[axis] for axis in (*lhs_batch, *lhs_free)) + tuple(y.shape[axis] for axis in rhs_free)
    wide = [one.array.astype(np.float64) if one.is_float else one.array for one in operands]
    left = wide[0].transpose([*lhs_batch, *lhs_free, *lhs_contract])
    right = wide[1].transpose([*rhs_batch, *rhs_contract, *rhs_free])
    batch, sizes = draft.sizes(tuple(x.shape[axis] for axis in lhs_batch)), draft.sizes(shape)
    depth = prod(left.shape[len(lhs_batch) + len(lhs_free) :])
    rows, columns = prod(sizes[len(batch) : len(batch) + len(lhs_free)]), prod(sizes[len(batch) + len(lhs_free) :])
    array = np.matmul(left.reshape(prod(batch), rows, depth), right.reshape(prod(batch), depth, columns))
    parts = {
        "lhs_batching_dimensions": lhs_batch, "rhs_batching_dimensions": rhs_batch,
        "lhs_contracting_dimensions": lhs_contract, "rhs_contracting_dimensions": rhs_contract,
    }  # fmt: skip
    text = ", ".join(f"{name} = {list(dims)}" for name, dims in parts.items() if dims)
    attributes = f"dot_dimension_numbers = #stablehlo.dot<{text}>"
    value = draft.op(
        "stablehlo.dot_general", [x, y], shape, x.dtype, array.reshape(sizes), attributes, near=x.is_float or x.near
    )
    behind = _elementwise(draft, value, rng.choice((0, 0, 1, 2)))
    if rng.random() < 0.15 and shape:
        behind = _moved(draft, behind)
    draft.result(behind)
    if rng.random() < 0.15 and behind.name != value.name:
        draft.result(value)


def rows(rng: random.Random) -> Case:
    """Reductions along the last axes of a tensor, each used by what comes behind, as in softmax and norms."""
    draft = Draft(rng)
    dynamic = 0.6 if rng.random() < 0.4 else 0.0
    outer = [_size(draft, (1, 2, 3, 5, 8), dynamic / 2) for _ in range(rng.randint(1, 2))]
    inner = [_size(draft, LENGTHS, dynamic)]
    if rng.random() < 0.06:
        outer, inner = [rng.choice((1, 2))], [_size(draft, LONG, dynamic)]
    elif rng.random() < 0.2:
        inner = [_size(draft, (1, 2, 3, 5, 8), dynamic / 2) for _ in range(2)]
    shape, dims = (*outer, *inner), list(range(len(outer), len(outer) + len(inner)))
    dtype = rng.choice(("f32", "f32", "f32", "i32", "f64"))
    value, kept, reduced = draft.argument(shape, dtype), list(range(len(outer))), []
    if rng.random() < 0.3:
        value = _elementwise(draft, value, 1)
    for number in range(rng.randint(1, 3)):
        name = rng.choice(("add", "add", "maximum", "minimum", "last", "first"))
        start = 0 if rng.random() < 0.6 else 2
        (one,) = draft.reduce([value], [draft.constant(start, dtype)], dims, REDUCERS[name])
        reduced.append(one)
        wide = draft.broadcast(one, shape, kept)
        value = draft.apply(rng.choice(("subtract", "add", "maximum")), value, wide)
        if dtype == "f32" and number == 0 and rng.random() < 0.5:
            low = draft.broadcast(draft.constant(1, dtype), shape, ())
            value = draft.apply("exponential", draft.apply("minimum", value, low), near=True)
    draft.result(value)
    if rng.random() < 0.3:
        draft.result(reduced[-1])
    return draft.case("rows")


def library(rng: random.Random) -> Case:
    """Rows that are added to others in place, or Fourier transforms of lines."""
    draft = Draft(rng)
    if rng.random() < 0.5:
        draft.scattered_in_place(rng.randint(1, 3), rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 6), "i32")
        return draft.case("scatter")
    count, length = rng.randint(1, 6), rng.choice((2, 3, 4, 6, 8, 12, 16, 30))
    value = draft.argument((count, length, 2), "f32")
    angles = -2 * np.pi * np.arange(length) / length
    roots = draft.argument((length, 2), "f32", np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32))
    lines = np.fft.fft(value.array[..., 0] + 1j * value.array[..., 1])
    array = np.stack([lines.real, lines.imag], -1)
    attributes = "dimension = 1 : i64, inverse = false"
    draft.result(draft.op("flow.fft", [value, roots], value.shape, "f32", array, attributes, near=True))
    return draft.case("fft")


#: kind -> what draws a body of it, and how often
KINDS: dict[str, tuple[Callable[[random.Random], Case], int]] = {
    "elementwise": (elementwise, 3),
    "reduction": (reduction, 3),
    "contraction": (contraction, 6),
    "rows": (rows, 3),
    "library": (library, 2),
}


def draw(rng: random.Random) -> Case:
    """A body of any kind."""
    kinds = list(KINDS.values())
    (make, _), *_ = rng.choices(kinds, [weight for _, weight in kinds])
    return make(rng)
