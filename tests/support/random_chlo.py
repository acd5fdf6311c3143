"""Rules of random programs (see `random_ops.py`) for CHLO, which JAX emits, and random bits: only XLA runs these."""

from random_body import Body, Value
from random_ops import Rule
from random_types import FLOATS, INTEGERS, REAL

NEAR = ("erf", "erfc", "sinh", "cosh", "asinh", "acosh", "atanh", "asin", "acos", "atan", "lgamma", "bessel_i1e", "tan")
EXACT = ("is_inf", "is_neg_inf", "is_pos_inf")


def _function(b: Body) -> None:
    x = b.pick(lambda v: v.dtype in FLOATS and not v.near)
    if x is not None:
        b.op(f"chlo.{b.rng.choice(NEAR)}", [b.tame(x)], x.shape, x.dtype, near=True)


def _test(b: Body) -> None:
    x = b.pick(lambda v: v.dtype in FLOATS and not v.near)
    if x is not None:
        b.op(f"chlo.{b.rng.choice(EXACT)}", [x], x.shape, "i1")


def _square(b: Body) -> None:
    x = b.pick(lambda v: v.dtype in FLOATS and not v.near)
    if x is not None:
        b.op("chlo.square", [x], x.shape, x.dtype)


def _top_k(b: Body) -> None:
    """The greatest of numbers that are none of them NaN, and where they are."""
    x = b.pick(lambda v: v.dtype in INTEGERS + FLOATS and len(v.shape) > 0 and v.shape[-1] > 0 and not v.near)
    if x is None:
        return
    if x.dtype in REAL:
        x = b.op("stablehlo.select", [b.compare(x, x, "NE"), b.like(x, 1), x], x.shape, x.dtype)
    k = b.rng.randint(1, min(x.shape[-1], 9))
    outs = [Value(b.fresh(), (*x.shape[:-1], k), t) for t in (x.dtype, "i32")]
    b.emit("chlo.top_k", [x], outs, f"k = {k} : i64")


def _random_bits(b: Body) -> None:
    name, length = b.rng.choice((("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3)))
    state = b.of("ui64", (length,), near=False)
    shape = b.rng.choice(((), (1,), (5,), (2, 3), (7, 3), (64,)))
    outs = [Value(b.fresh(), (length,), "ui64"), Value(b.fresh(), shape, b.rng.choice(("ui32", "ui64")))]
    b.emit("stablehlo.rng_bit_generator", [state], outs, f"rng_algorithm = #stablehlo<rng_algorithm {name}>")


CHLO: tuple[Rule, ...] = (_function, _function, _test, _square, _top_k, _random_bits)
