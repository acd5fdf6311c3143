"""Rules of random programs (see `random_ops.py`) for complex numbers, and for ops that are like no other.

Complex numbers that are multiplied or put through a function have small parts first: what infinities become differs
between implementations.
"""

from random_body import Body, Value
from random_ops import Rule, reducer
from random_types import COMPLEX, FLOATS, INTEGERS, REAL, limits, part
from stablehlo_text import ints

NEAR_COMPLEX = (
    "exponential", "exponential_minus_one", "log_plus_one", "logistic", "sine", "cosine", "tanh", "sqrt", "multiply",
    "divide", "abs", "power",
)  # fmt: skip


def _complex(b: Body) -> None:
    """Made of two floats."""
    x = b.pick(lambda v: v.dtype in FLOATS)
    if x is not None:
        y = b.of(x.dtype, x.shape)
        b.op("stablehlo.complex", [x, y], x.shape, f"complex<{x.dtype}>", near=x.near or y.near)


def _parts(b: Body) -> None:
    x = b.pick(lambda v: v.dtype in COMPLEX)
    if x is not None and not x.near:
        b.op(f"stablehlo.{b.rng.choice(('real', 'imag'))}", [x], x.shape, part(x.dtype))


def _function(b: Body) -> None:
    x = b.pick(lambda v: v.dtype in COMPLEX and not v.near)
    if x is None:
        return
    name = b.rng.choice(NEAR_COMPLEX)
    operands = [b.tame(x)]
    if name in ("multiply", "divide", "power"):
        other = b.of(x.dtype, x.shape, near=False)
        operands.append(b.tame(other))
    if name in ("divide", "power"):  # away from zero
        at = 1 if name == "divide" else 0
        nine = b.number(9, x.dtype, x.shape)
        operands[at] = b.op("stablehlo.add", [operands[at], nine], x.shape, x.dtype)
    out = part(x.dtype) if name == "abs" else x.dtype
    b.op(f"stablehlo.{name}", operands, x.shape, out, near=True)


def _is_finite(b: Body) -> None:
    x = b.pick(lambda v: v.dtype in REAL and not v.near)
    if x is not None:
        b.op("stablehlo.is_finite", [x], x.shape, "i1")


def _reduce_precision(b: Body) -> None:
    x = b.pick(lambda v: v.dtype in FLOATS and not v.near)
    if x is not None:
        exponent, mantissa = b.rng.randint(3, 8), b.rng.randint(1, 12)
        attributes = f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32"
        b.op("stablehlo.reduce_precision", [x], x.shape, x.dtype, attributes)


def _barrier(b: Body) -> None:
    given = [v for v in (b.pick() for _ in range(b.rng.randint(1, 3))) if v is not None]
    outs = [Value(b.fresh(), v.shape, v.dtype, v.near) for v in given]
    b.emit("stablehlo.optimization_barrier", given, outs)


def _size(b: Body) -> None:
    x = b.pick(lambda v: len(v.shape) > 0)
    if x is not None:
        axis = b.rng.randrange(len(x.shape))
        b.op("stablehlo.get_dimension_size", [x], (), "i32", f"dimension = {axis} : i64", near=False)


def _map(b: Body) -> None:
    """A function of two ops, of one to three operands of one type."""
    x = b.pick(lambda v: v.dtype in INTEGERS)
    if x is None:
        return
    given = [x, *(b.of(x.dtype, x.shape) for _ in range(b.rng.randrange(3)))]
    t = f"tensor<{x.dtype}>"
    names = [f"%x{i}" for i in range(len(given))]
    first, second = b.rng.choice(("add", "multiply", "xor", "maximum")), b.rng.choice(("subtract", "minimum", "and"))
    lines = [
        f"^bb0({', '.join(f'{name}: {t}' for name in names)}):",
        f'%s = "stablehlo.{first}"({names[0]}, {names[-1]}) : ({t}, {t}) -> {t}',
        f'%r = "stablehlo.{second}"(%s, {names[len(names) // 2]}) : ({t}, {t}) -> {t}',
        f'"stablehlo.return"(%r) : ({t}) -> ()',
    ]
    region = "{" + "\n".join(["", *lines]) + "\n}"
    b.op(
        "stablehlo.map", given, x.shape, x.dtype, f"dimensions = {ints(range(len(x.shape)))}", near=False, region=region
    )


def _tuple(b: Body) -> None:
    given = [v for v in (b.pick() for _ in range(b.rng.randint(1, 3))) if v is not None]
    types = ", ".join(v.type for v in given)
    name = b.fresh()
    b.lines.append(f'{name} = "stablehlo.tuple"({", ".join(v.name for v in given)}) : ({types}) -> tuple<{types}>')
    at = b.rng.randrange(len(given))
    out = Value(b.fresh(), given[at].shape, given[at].dtype, given[at].near)
    b.lines.append(
        f'{out.name} = "stablehlo.get_tuple_element"({name}) <{{index = {at} : i32}}> '
        f": (tuple<{types}>) -> ({out.type})"
    )
    b.values.append(out)


def _select_reduce(b: Body) -> None:
    """A reducer of several ops on integers: of two, the one with more bits, the greater of equals."""
    x = b.pick(lambda v: v.dtype in INTEGERS and len(v.shape) > 0)
    if x is None:
        return
    axis = b.rng.randrange(len(x.shape))
    t = f"tensor<{x.dtype}>"
    d = "comparison_direction = #stablehlo<comparison_direction "
    lines = [
        f'%p = "stablehlo.popcnt"(%x0) : ({t}) -> {t}',
        f'%q = "stablehlo.popcnt"(%y0) : ({t}) -> {t}',
        f'%g = "stablehlo.compare"(%p, %q) <{{{d}GT>}}> : ({t}, {t}) -> tensor<i1>',
        f'%e = "stablehlo.compare"(%p, %q) <{{{d}EQ>}}> : ({t}, {t}) -> tensor<i1>',
        f'%m = "stablehlo.maximum"(%x0, %y0) : ({t}, {t}) -> {t}',
        f'%s = "stablehlo.select"(%g, %x0, %y0) : (tensor<i1>, {t}, {t}) -> {t}',
        f'%z = "stablehlo.select"(%e, %m, %s) : (tensor<i1>, {t}, {t}) -> {t}',
    ]
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    start = b.number(min(limits(x.dtype)[0], 0) if x.dtype.startswith("u") else 0, x.dtype)
    b.op("stablehlo.reduce", [x, start], shape, x.dtype, f"dimensions = {ints([axis])}", False,
         reducer([x.dtype], lines, ["%z"]))  # fmt: skip


COMPLEX_NUMBERS: tuple[Rule, ...] = (_complex, _parts, _function, _function)
OTHERS: tuple[Rule, ...] = (
    _is_finite, _reduce_precision, _barrier, _size, _map, _tuple, _select_reduce, *COMPLEX_NUMBERS,
)  # fmt: skip
