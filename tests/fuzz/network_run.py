"""A long run of random parts of networks on the device cpu: large enough for panels, strips and threads.

`python tests/fuzz/network_run.py --count=2000` draws products of matrices, convolutions, attention, norms, loops and
dynamic shapes as JAX writes them, with sizes that no vector divides, element types and epilogues, and runs each with an
instruction set of `--levels` in turn, between guard pages. XLA computes the same in f64; a result may differ by its
roundings. `--levels=aarch64` runs the code under qemu-user. `--seed=n --show` prints the program of a seed.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import jax
import jax.numpy as jnp
import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from cpu_devices import best_level, open_cpu  # noqa: E402
from emulated_cpu import emulated  # noqa: E402
from guard_pages import guard_pages  # noqa: E402

from orchestrion import compiler, vm  # noqa: E402
from orchestrion.compiler.targets.cpu.levels import LEVELS  # noqa: E402
from orchestrion.hal.cpu import driver  # noqa: E402

jax.config.update("jax_enable_x64", True)
Array = Any
#: element type -> its unit of rounding; eight of them for f64, where the roundings of XLA are not known
UNITS = {"float32": 2.0**-24, "float64": 2.0**-50, "bfloat16": 2.0**-8, "float16": 2.0**-11}
#: programs of a level before it is the turn of the next one
TURN = 20
SIZES = (1, 2, 3, 5, 8, 12, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 130, 197, 256, 300)


class Part(NamedTuple):
    """A function of arrays, and arguments for it."""

    function: Callable[..., Array]
    arguments: list[Array]


class Draw:
    """Random choices of one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.type = self.chance.choice(["float32"] * 5 + ["bfloat16", "bfloat16", "float16", "float64"])

    def size(self, most: int = 300) -> int:
        return self.chance.choice([size for size in SIZES if size <= most])

    def array(self, *shape: int, scale: float = 1.0) -> Array:
        return (self.numbers.standard_normal(shape) * scale).astype(jnp.dtype(self.type))


def _epilogue(draw: Draw, columns: int) -> tuple[Callable[..., Array], list[Array]]:
    """A function of a result with that many columns, and arguments for it."""
    bias = draw.array(columns)
    return draw.chance.choice(
        [
            (lambda x: x, []),
            (lambda x, b: jax.nn.relu(x + b), [bias]),
            (lambda x, b: jax.nn.gelu(x + b, approximate=False), [bias]),
            (lambda x, b: jnp.clip(x * b, -1, 3), [bias]),
            (lambda x, b: jax.nn.silu(x) + b, [bias]),
            (lambda x: x / (1 + jnp.abs(x).sum(-1, keepdims=True)), []),
            (lambda x: jax.nn.softmax(x, -1), []),
        ]
    )


def product(draw: Draw) -> Part:
    """A product of matrices: operands transposed or not, batches, an epilogue."""
    m, n, k = draw.size(), draw.size(), draw.size()
    left = draw.chance.choice(["mk", "km"])
    right = draw.chance.choice(["kn", "nk"])
    batch = draw.chance.choice(["", "", "b", "bc"])
    sizes = {"m": m, "n": n, "k": k, "b": draw.chance.randrange(1, 5), "c": draw.chance.randrange(1, 4)}
    shared = batch and draw.chance.random() < 0.3
    x = draw.array(*(sizes[axis] for axis in batch + left))
    y = draw.array(*(sizes[axis] for axis in ("" if shared else batch) + right))
    spec = f"{batch}{left},{'' if shared else batch}{right}->{batch}mn"
    after, more = _epilogue(draw, n)
    return Part(lambda x, y, *more: after(jnp.einsum(spec, x, y), *more), [x, y, *more])


def layers(draw: Draw) -> Part:
    """Layers with weights that are constants, stored by rows or by columns."""
    rows, width, hidden = draw.size(), draw.size(), draw.size()
    first, second = draw.array(width, hidden, scale=width**-0.5), draw.array(hidden, width, scale=hidden**-0.5)
    after, more = _epilogue(draw, hidden)
    residual, turned = draw.chance.random() < 0.5, draw.chance.random() < 0.5
    by_columns = first.T.copy()

    def function(x: Array) -> Array:
        inner = jnp.einsum("mk,nk->mn", x, by_columns) if turned else x @ first
        found = after(inner, *more) @ second
        return x + found if residual else found

    return Part(function, [draw.array(rows, width)])


def convolution(draw: Draw) -> Part:
    """A convolution: layouts, strides, padding, dilation, groups."""
    groups = draw.chance.choice([1, 1, 1, 2, 0])
    inputs, outputs = draw.chance.choice([1, 3, 4, 8, 16, 17, 32, 40]), draw.chance.choice([1, 4, 8, 16, 17, 32, 64])
    groups = groups or inputs
    inputs, outputs = inputs * (groups if groups == 2 else 1), outputs * groups
    window, side = draw.chance.choice([1, 2, 3, 3, 3, 5, 7]), draw.chance.choice([7, 8, 14, 17, 28])
    data = draw.chance.choice(["NHWC", "NCHW"])
    kernel = "HWIO" if data == "NHWC" else "OIHW"
    batch, strides = draw.chance.choice([1, 1, 2]), (draw.chance.choice([1, 1, 2]),) * 2
    of = {"N": batch, "H": side, "W": side + draw.chance.choice([0, 0, 3]), "C": inputs}
    x = draw.array(*(of[axis] for axis in data))
    of = {"H": window, "W": window, "I": inputs // groups, "O": outputs}
    weights = draw.array(*(of[axis] for axis in kernel), scale=0.3)
    padding, dilation = draw.chance.choice(["SAME", "VALID"]), draw.chance.choice([1, 1, 1, 2])
    constant = draw.chance.random() < 0.6

    def convolve(x: Array, w: Array) -> Array:
        found = jax.lax.conv_general_dilated(
            x,
            w.astype(x.dtype),
            strides,
            padding,
            None,
            (dilation,) * 2,
            (data, kernel, data),
            feature_group_count=groups,
        )
        return jnp.clip(found, 0, 6)

    return Part((lambda x: convolve(x, weights)) if constant else convolve, [x] if constant else [x, weights])


def attention(draw: Draw) -> Part:
    """Attention, as two layouts write it, with a mask or not. JAX's own takes softmax of f64 in f32, and has no f16."""
    draw.type = {"float64": "float32", "float16": "bfloat16"}.get(draw.type, draw.type)
    batch, heads, width = draw.chance.randrange(1, 3), draw.chance.choice([1, 2, 4, 6]), draw.chance.choice([8, 16, 64])
    queries, keys = draw.size(), draw.size()
    if draw.chance.random() < 0.5:
        q, k, v = (draw.array(batch, length, heads, width) for length in (queries, keys, keys))
        causal = queries == keys and draw.chance.random() < 0.5
        return Part(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=causal), [q, k, v])
    q, k, v = (draw.array(batch, heads, length, width) for length in (queries, keys, keys))
    mask = np.where(draw.numbers.random((queries, keys)) < 0.2, -1e9, 0).astype(np.float32)
    masked = draw.chance.random() < 0.5 and draw.type == "float32"

    def function(q: Array, k: Array, v: Array) -> Array:
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * width**-0.5
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores + mask.astype(q.dtype) if masked else scores), v)

    return Part(function, [q, k, v])


def rows(draw: Draw) -> Part:
    """Norms, sums and others of rows, or of columns."""
    shape, axis = (draw.size(), draw.chance.choice([*SIZES, 777, 1024, 2049])), draw.chance.choice([-1, -1, 0])
    g = draw.array(shape[1])

    def norm(x: Array, g: Array) -> Array:
        centred = x - x.mean(axis, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(axis, keepdims=True) + 1e-3) * g

    functions: list[Callable[..., Array]] = [
        norm,
        lambda x, g: jax.nn.softmax(x * g, axis),
        lambda x, g: jax.nn.logsumexp(x + g, axis),
        lambda x, g: (x * g).sum(axis),
        lambda x, g: jnp.cumsum(x * g, axis),
        lambda x, g: x.max(axis) - (x + g).min(axis),
    ]
    return Part(draw.chance.choice(functions), [draw.array(*shape), g])


def recurrence(draw: Draw) -> Part:
    """A loop whose steps multiply a state by a matrix."""
    steps, rows, width = draw.chance.randrange(1, 20), draw.size(20), draw.size(130)
    weights = draw.array(width, width, scale=0.5 * width**-0.5)

    def function(x: Array, start: Array) -> Array:
        return jax.lax.scan(lambda h, x: (jnp.tanh(h @ weights + x),) * 2, start, x)

    return Part(function, [draw.array(steps, rows, width), draw.array(rows, width)])


KINDS = (product, product, layers, layers, convolution, convolution, attention, rows, recurrence)


def part(seed: int) -> Part:
    draw = Draw(seed)
    return draw.chance.choice(KINDS)(draw)


def wrong(found: Sequence[Array], made: Part) -> str:
    """What differs from the result in f64 by more than its roundings; empty if nothing does."""
    wide = [np.asarray(x, np.float64) for x in made.arguments]
    wanted = jax.tree.leaves(jax.jit(made.function)(*wide))
    given = jax.tree.leaves(jax.jit(made.function)(*made.arguments))
    for got, narrow, want in zip(found, given, wanted, strict=True):
        if got.shape != want.shape or got.dtype != narrow.dtype:
            return f"{got.dtype}{list(got.shape)} where {narrow.dtype}{list(narrow.shape)} is wanted"
        exact, unit = np.asarray(want, np.float64), UNITS[str(got.dtype)]
        away = np.abs(got.astype(np.float64) - exact)
        theirs = np.abs(np.asarray(narrow, np.float64) - exact).max(initial=0)
        allowed = 8 * theirs + 8 * unit * (np.abs(exact).max(initial=0) + 1)
        if not (away <= allowed).all():
            return f"away by {np.nanmax(away):.3g} of {np.abs(exact).max():.3g}, XLA by {theirs:.3g}"
    return ""


def run(seed: int, level: str, device: Any) -> str:
    """What is wrong with the program of a seed; empty if it is right."""
    made = part(seed)
    try:
        module = compiler.compile(made.function, *made.arguments, targets=["cpu"], target_cpu=level)
        program = vm.load(module, device=device)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:600]
    for _ in range(2):
        found = program.main(*made.arguments)
        found = [np.asarray(x) for x in (found if isinstance(found, tuple | list) else (found,))]
        if message := wrong(found, made):
            return message
    return ""


@contextmanager
def device(level: str, at_end: bool) -> Iterator[Any]:
    """A device of two threads for a level, whose buffers lie between guard pages."""
    with ExitStack() as stack:
        if LEVELS[level].architecture == "aarch64":
            stack.enter_context(emulated())
            features = {"Features": "fp asimd asimddp"} if level == "aarch64-dotprod" else {}
            stack.enter_context(patch.object(driver, "description", lambda: features))
        else:
            stack.enter_context(guard_pages(at_end))
        yield stack.enter_context(open_cpu(2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--levels", default=",".join(best_level()), help="instruction sets, in turn")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no further programs after these")
    parser.add_argument("--show", action="store_true", help="print the program of the seed, and nothing else")
    given = parser.parse_args()
    if given.show:
        made = part(given.seed)
        print(jax.jit(made.function).lower(*made.arguments).as_text())
        return
    end, levels, last = time.monotonic() + 60 * given.minutes, given.levels.split(","), given.seed + given.count
    counts = Counter[str]()
    for number, first in enumerate(range(given.seed, last, TURN)):
        level = levels[number % len(levels)]
        with device(level, bool(number // len(levels) % 2)) as opened:
            for seed in range(first, min(first + TURN, last)):
                if time.monotonic() > end:
                    break
                print(f"seed {seed}, {level}", end="\r", flush=True)  # stays if the code ends the process
                if message := run(seed, level, opened):
                    print(f"seed {seed}, {level}: {message}", flush=True)
                counts["wrong" if message else level] += 1
    print(f"right, by level: {dict(counts)}")
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
