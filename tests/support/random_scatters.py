"""Rules of random programs (see `random_ops.py`) that scatter: axes inserted, batched or in the window, any updates.

The interpreter writes into the operand, where others read it too, so the operand is reshaped to its own shape first,
which compilers leave out again.
"""

import numpy as np
from random_body import Body, Value
from random_ops import Rule, monoids, reducer
from random_types import COMPLEX, REAL, SIGNED


def _scatter(b: Body) -> None:
    """Axes of the operand inserted, batched or in the window, some of them with a start; one or two operands."""
    rng = b.rng
    x = b.pick(lambda v: 0 < v.size < 300 and len(v.shape) < 4 and max(v.shape, default=0) < 128 and not v.near)
    if x is None or not x.shape and rng.random() < 0.8:  # which XLA does not compile for several updates
        return
    rank = len(x.shape)
    roles = [rng.choice(("batch", "insert", "keep", "keep")) for _ in range(rank)]
    batched, inserted, kept = ([a for a in range(rank) if roles[a] == role] for role in ("batch", "insert", "keep"))
    window = [rng.randint(1, size) if role == "keep" else 1 for role, size in zip(roles, x.shape, strict=True)]
    started = rng.sample([*inserted, *kept], rng.randint(0, len(inserted) + len(kept)))
    further = rng.choice(((), (1,), (3,), (2, 3), (9,)))
    if not started and further not in ((), (1,)):  # several updates of a place by empty index vectors: XLA is wrong
        return
    batch = [*(x.shape[axis] for axis in batched), *further]
    order = rng.sample(range(len(batch)), len(batch))
    batch = [batch[i] for i in order]
    vector = rng.randint(0, len(batch))
    places = np.zeros((len(started), *batch), np.int64)
    for i, axis in enumerate(started):
        places[i] = _places(b, x.shape[axis], window[axis], tuple(batch))
    indices = np.moveaxis(places, 0, vector)
    if len(started) == 1 and rng.random() < 0.4:
        indices, vector = places[0], len(batch)
    at = [order.index(i) for i in range(len(batched))]
    inputs = [x] + [b.of(rng.choice(b.types), x.shape, near=False) for _ in range(rng.choice((0, 0, 1)))]
    windows = last = list(range(len(batch), len(batch) + len(kept)))
    if rng.random() < 0.6 and not any(v.dtype in COMPLEX for v in inputs):
        windows = sorted(rng.sample(range(len(batch) + len(kept)), len(kept)))
    rest, mine = iter(batch), iter([window[axis] for axis in kept])
    updated = tuple(next(mine) if axis in windows else next(rest) for axis in range(len(batch) + len(kept)))
    updates = [b.of(v.dtype, updated, near=False) for v in inputs]
    # which update of an element is the last is left open: that of the last index, or in row-major order of the updates
    settable = ["set"] if windows == last else []
    lines = []
    for i, v in enumerate(inputs):
        name = rng.choice([*settable, *monoids(v.dtype, 1 + updates[i].size)])
        if v.dtype in REAL and name in ("add", "multiply"):
            inputs[i], updates[i] = b.whole(v), b.whole(updates[i])
        t = f"tensor<{v.dtype}>"
        lines.append("" if name == "set" else f'%z{i} = "stablehlo.{name}"(%x{i}, %y{i}) : ({t}, {t}) -> {t}')
    results = [f"%z{i}" if line else f"%y{i}" for i, line in enumerate(lines)]
    region = reducer([v.dtype for v in inputs], [line for line in lines if line], results)
    parts = {
        "update_window_dims": windows, "inserted_window_dims": inserted, "input_batching_dims": batched,
        "scatter_indices_batching_dims": [i + (i >= vector) for i in at], "scatter_dims_to_operand_dims": started,
    }  # fmt: skip
    given = "".join(f"{key} = {list(value)}, " for key, value in parts.items() if value)
    index = b.constant(indices, rng.choice(SIGNED))
    outs = [Value(b.fresh(), v.shape, v.dtype) for v in inputs]
    attributes = f"scatter_dimension_numbers = #stablehlo.scatter<{given}index_vector_dim = {vector}>"
    inputs = [b.op("stablehlo.reshape", [v], v.shape, v.dtype) for v in inputs]
    del b.values[-len(inputs) :]
    b.emit("stablehlo.scatter", [*inputs, index, *updates], outs, attributes, region)


def _places(b: Body, size: int, window: int, shape: tuple[int, ...]) -> np.ndarray:
    """Where windows start along an axis; some are outside altogether."""
    state = np.random.default_rng(b.rng.randrange(2**32))
    inside = state.integers(0, size - window + 1, shape)
    outside = state.choice([-window, size], shape)
    return np.asarray(np.where(state.random(shape) < 0.2, outside, inside))


SCATTERS: tuple[Rule, ...] = (_scatter,)
