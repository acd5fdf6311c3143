"""How far float functions are from the truth: what is measured, with mpmath as the oracle, and on which arguments.

A row of `FUNCTIONS` is an op on one range of arguments, with its bound in units in the last place (ulp) of the exact
value, or of `size` where that is larger: a difference is no more exact than what it is a difference of.
`benchmarks/measure_accuracy.py` measures all rows on all devices, writes docs/numerics-table.md and keeps the hardest
arguments with their exact results in `accuracy_cases.npz`, which the tests read: they need no oracle.

On `sys.path` of the tests (pyproject.toml, `pythonpath`), since several folders use it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DTYPES: dict[str, type[Any]] = {"f32": np.float32, "f64": np.float64}
CASES = Path(__file__).with_name("accuracy_cases.npz")
Array = np.ndarray[Any, Any]
#: the exact result as a sum of two f64
Exact = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class Function:
    """One row. `where` chooses among the arguments; `prec`: bits that the oracle works with."""

    op: str
    oracle: Callable[..., Any]
    bound: float = 3.0
    where: Callable[..., Array] | None = None
    of: str = ""
    arguments: Callable[[Any], tuple[Array, ...]] | None = None
    size: Callable[..., Any] | None = None
    prec: int = 200

    @property
    def name(self) -> str:
        """The op without its dialect, and the range."""
        return self.op.partition(".")[2] + (f", {self.of}" if self.of else "")

    def operands(self, dtype: Any) -> tuple[Array, ...]:
        """All arguments to measure with."""
        columns = (hard_cases(dtype),) if self.arguments is None else self.arguments(dtype)
        chosen = np.ones(len(columns[0]), bool) if self.where is None else self.where(*columns)
        return tuple(column[chosen] for column in columns)


def hard_cases(dtype: Any) -> Array:
    """Powers of two and their neighbours, multiples of pi/2 and of ln 2 and theirs, all exponents, values near one."""
    info = np.finfo(dtype)
    random = np.random.default_rng(1)
    powers = np.ldexp(dtype(1), np.arange(info.minexp, info.maxexp)).astype(dtype)
    turns = (np.arange(1, 200) * (math.pi / 2)).astype(dtype)
    logs = (np.arange(1, 150) * math.log(2)).astype(dtype)
    near_one = dtype(1) + random.normal(size=200).astype(dtype) * np.ldexp(dtype(1), -random.integers(0, 50, 200))
    mixed = np.ldexp(random.uniform(1, 2, 600), random.integers(info.minexp, info.maxexp - 1, 600)).astype(dtype)
    moderate = random.uniform(0, 100, 600).astype(dtype)
    small = random.uniform(0, 2, 600).astype(dtype)
    base = np.concatenate([powers, turns, logs, near_one, mixed, moderate, small]).astype(dtype)
    neighbours = [base, np.nextafter(base, dtype(np.inf)), np.nextafter(base, dtype(0))]
    positive = np.concatenate(neighbours)
    positive = positive[np.isfinite(positive) & (positive >= info.tiny)]
    return np.concatenate([positive, -positive])


def pairs(dtype: Any) -> tuple[Array, Array]:
    random = np.random.default_rng(2)
    x = hard_cases(dtype)
    return random.permutation(x)[:3000], random.permutation(x)[:3000]


def near_powers(dtype: Any) -> tuple[Array, Array]:
    """Bases of every size with exponents that keep the power finite, where errors of the logarithm show most."""
    random = np.random.default_rng(3)
    x = np.abs(random.permutation(hard_cases(dtype))[:3000])
    log = np.log2(x.astype(np.float64))
    log[log == 0] = 1
    span = np.finfo(dtype).maxexp - 1
    return x, np.clip(random.uniform(-span, span, len(x)) / log, -1e30, 1e30).astype(dtype)


def unit(dtype: Any) -> tuple[Array]:
    """From -1 to 1, dense at both ends, at zero and at 1/2 and 3/4, where expansions change."""
    random = np.random.default_rng(4)
    bits = np.finfo(dtype).nmant + 1
    near = [0.5 + random.uniform(-0.01, 0.01, 300), 0.75 + random.uniform(-0.01, 0.01, 300)]
    x = np.concatenate(
        [
            random.uniform(0, 1, 1500),
            1 - 2.0 ** -random.uniform(1, bits, 900),
            2.0 ** -random.uniform(0, 90, 500),
            *near,
        ]
    ).astype(dtype)
    return (np.concatenate([x, -x]),)


def gammas(dtype: Any) -> tuple[Array]:
    """Dense up to 10 and beside the roots 1, 2 and 1.4616, sparse to the end of the range; negative ones to -100."""
    random = np.random.default_rng(5)
    end = np.finfo(dtype).maxexp * 0.29
    near = [root + sign * 2.0 ** -random.uniform(1, 40, 150) for root in (1, 2, 1.4616321449683622) for sign in (1, -1)]
    positive = [random.uniform(0, 1, 800), random.uniform(1, 10, 1500), 10 ** random.uniform(-end, end, 400)]
    negative = [random.uniform(0, 3, 1200), random.uniform(3, 100, 600), 10 ** random.uniform(-end, 0, 200)]
    return (np.concatenate([*near, *positive, *(-x for x in negative)]).astype(dtype),)


def zetas(dtype: Any) -> tuple[Array, Array]:
    """x from 1 on, dense beside it; q of every size."""
    random = np.random.default_rng(6)
    x = [random.uniform(1, 3, 400), 1 + 2.0 ** -random.uniform(1, 20, 300), random.uniform(2, 30, 500)]
    q = [random.uniform(0, 3, 400), random.uniform(0, 20, 300), 10 ** random.uniform(-1, 2.5, 500)]
    return np.concatenate(x).astype(dtype), np.concatenate(q).astype(dtype)


def orders(dtype: Any) -> tuple[Array, Array]:
    random = np.random.default_rng(7)
    n = np.concatenate([random.integers(0, 3, 600), random.integers(3, 16, 600)]).astype(dtype)
    return n, np.concatenate([random.uniform(0.05, 40, 1200)]).astype(dtype)


def modest(dtype: Any) -> tuple[Array, Array]:
    """Pairs whose sums, products and quotients stay in range."""
    x, y = pairs(dtype)
    keep = (np.abs(x) > 1e-9) & (np.abs(x) < 1e9) & (np.abs(y) > 1e-9) & (np.abs(y) < 1e9)
    return x[keep], y[keep]


def _mp(name: str) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        import mpmath

        return getattr(mpmath, name)(*arguments)

    return call


def _lgamma(x: Any) -> Any:
    import mpmath

    if x > 0:
        return mpmath.loggamma(x)
    return mpmath.log(abs(mpmath.pi / (x * mpmath.sinpi(x)))) - mpmath.loggamma(-x)


def _erf_inv(x: Any) -> Any:
    """Newton's method on the logarithm of erfc, which is concave."""
    import mpmath

    rest = 1 - abs(x)
    if abs(x) < mpmath.mpf(2) ** -60:
        return x * mpmath.sqrt(mpmath.pi) / 2
    y = mpmath.sqrt(-mpmath.log(rest * (2 - rest)))
    while True:
        value = mpmath.erfc(y)
        step = mpmath.log(value / rest) * value * mpmath.exp(y * y) * mpmath.sqrt(mpmath.pi) / 2
        y += step
        if abs(step) < mpmath.mpf(2) ** -70 * y:
            return mpmath.sign(x) * y


def _erfc(x: Any) -> Any:
    """Beyond +-100 it is 0 or 2 for every format, and the oracle has no patience."""
    import mpmath

    return mpmath.erfc(max(min(x, mpmath.mpf(100)), mpmath.mpf(-100)))


def _zeta(x: Any, q: Any) -> Any:
    """Euler and Maclaurin's summation from q + 60 on: mpmath's own loses digits where q is large."""
    import mpmath

    start = q + 60
    total = mpmath.fsum((q + k) ** -x for k in range(60)) + start ** (1 - x) / (x - 1) + start**-x / 2
    factor = x / start ** (x + 1)
    for j in range(1, 40):
        total += mpmath.bernoulli(2 * j) / mpmath.factorial(2 * j) * factor
        factor *= (x + 2 * j - 1) * (x + 2 * j) / start**2
    return total


def _polygamma(n: Any, x: Any) -> Any:
    import mpmath

    if n == 0:
        return mpmath.digamma(x)
    return (-1) ** (int(n) + 1) * mpmath.factorial(n) * _zeta(n + 1, x)


def _i1e(x: Any) -> Any:
    import mpmath

    return mpmath.exp(-abs(x)) * mpmath.besseli(1, x)


def _cbrt(x: Any) -> Any:
    import mpmath

    return mpmath.sign(x) * mpmath.cbrt(abs(x))


def _capped(name: str) -> Callable[[Any], Any]:
    """A function that overflows far beyond the range of the formats, where the oracle would take long."""
    return lambda x: _mp(name)(max(min(x, 20000), -20000))


def _within(most: float) -> Callable[[Array], Array]:
    return lambda x: np.abs(x) <= most


def _positive(x: Array, *rest: Array) -> Array:
    return x > 0


FUNCTIONS: tuple[Function, ...] = (
    Function("stablehlo.add", lambda x, y: x + y, 0.5, arguments=modest),
    Function("stablehlo.subtract", lambda x, y: x - y, 0.5, arguments=modest),
    Function("stablehlo.multiply", lambda x, y: x * y, 0.5, arguments=modest),
    Function("stablehlo.divide", lambda x, y: x / y, 0.5, arguments=modest),
    Function("stablehlo.sqrt", _mp("sqrt"), 0.5, _positive),
    Function("stablehlo.rsqrt", lambda x: 1 / _mp("sqrt")(x), where=_positive),
    Function("stablehlo.cbrt", _cbrt),
    Function("stablehlo.exponential", _capped("exp")),
    Function("stablehlo.exponential_minus_one", _capped("expm1")),
    Function("stablehlo.log", _mp("log"), where=_positive),
    Function("stablehlo.log_plus_one", _mp("log1p"), where=lambda x: x > -1),
    Function("stablehlo.logistic", lambda x: 1 / (1 + _capped("exp")(-x))),
    Function("stablehlo.power", _mp("power"), arguments=near_powers),
    Function("stablehlo.sine", _mp("sin"), prec=1300),
    Function("stablehlo.cosine", _mp("cos"), prec=1300),
    Function("stablehlo.tan", _mp("tan"), prec=1300),
    Function("stablehlo.tanh", _mp("tanh")),
    Function("stablehlo.atan2", _mp("atan2"), arguments=pairs),
    Function("chlo.acos", _mp("acos"), arguments=unit),
    Function("chlo.acosh", _mp("acosh"), where=lambda x: x >= 1),
    Function("chlo.asin", _mp("asin"), arguments=unit),
    Function("chlo.asinh", _mp("asinh")),
    Function("chlo.atan", _mp("atan")),
    Function("chlo.atanh", _mp("atanh"), where=lambda x: np.abs(x) < 1, arguments=unit),
    Function("chlo.cosh", _capped("cosh")),
    Function("chlo.sinh", _capped("sinh")),
    Function("chlo.erf", _mp("erf")),
    Function("chlo.erfc", _erfc),
    Function("chlo.erf_inv", _erf_inv, where=lambda x: np.abs(x) < 1, arguments=unit),
    Function("chlo.lgamma", _lgamma, where=lambda x: x > -2, of="x > -2", arguments=gammas),
    Function(
        "chlo.lgamma", _lgamma, where=lambda x: x < -2, of="x < -2", arguments=gammas,
        size=lambda x: max(abs(_mp("loggamma")(-x)), 1),
    ),
    Function("chlo.digamma", _mp("digamma"), where=_positive, of="x > 0", arguments=gammas),
    Function(
        "chlo.digamma", _mp("digamma"), 4, lambda x: x < 0, of="x < 0", arguments=gammas,
        size=lambda x: max(abs(_mp("digamma")(-x)), 1),
    ),
    Function("chlo.polygamma", _polygamma, 6, arguments=orders),
    Function("chlo.zeta", _zeta, arguments=zetas),
    Function("chlo.bessel_i1e", _i1e, where=_within(1e5)),
)  # fmt: skip


def exact(function: Function, operands: tuple[Array, ...]) -> tuple[Exact, Array]:
    """The results, and the sizes that count where they are larger (zeros where the result itself counts)."""
    import mpmath

    highs, lows, sizes = [], [], []
    with mpmath.workprec(function.prec):
        for row in zip(*(operand.tolist() for operand in operands), strict=True):
            arguments = [mpmath.mpf(number) for number in row]
            value = +mpmath.re(function.oracle(*arguments))
            highs.append(float(value))
            lows.append(float(value - highs[-1]) if math.isfinite(highs[-1]) else 0.0)
            sizes.append(float(function.size(*arguments)) if function.size else 0.0)
    return (np.array(highs), np.array(lows)), np.array(sizes)


def ulps(got: Array, want: Exact, dtype: Any, sizes: Array | float = 0.0) -> Array:
    """Distances in units in the last place of the exact value; overflow and flushed subnormals count as exact."""
    info = np.finfo(dtype)
    high, low = want
    wide = got.astype(np.float64)
    with np.errstate(all="ignore"):
        _, exponents = np.frexp(np.maximum(np.abs(high), sizes))
        exponents = np.where((high == 0) & (np.asarray(sizes) == 0), info.minexp, exponents - 1)
        place = np.maximum(exponents, info.minexp) - info.nmant
        errors = np.ldexp(np.abs((wide - high) - low), -place)
        limit = float(info.max)
        huge = (np.abs(high) >= limit * (1 - 2.0**-info.nmant)) & (np.abs(wide) >= limit / 1.000001)
        errors = np.where(huge & (np.sign(wide) == np.sign(high)), 0.0, errors)
        errors = np.where(np.isnan(high) & np.isnan(wide), 0.0, errors)
        flushed = (np.abs(high) < float(info.tiny) * 1.000001) & (wide == 0)
        errors = np.where(flushed, np.minimum(errors, 0.5), errors)
    return np.where(np.isnan(errors), np.inf, errors)


def program(dtype: str, operands: dict[int, tuple[Array, ...]]) -> str:
    """A module in StableHLO with a public function per row, `f0`, `f1`, ..., for these arguments."""
    bodies = []
    for index, columns in operands.items():
        kind = f"tensor<{len(columns[0])}x{dtype}>"
        arguments = ", ".join(f"%a{i}: {kind}" for i in range(len(columns)))
        values, kinds = ", ".join(f"%a{i}" for i in range(len(columns))), ", ".join([kind] * len(columns))
        bodies.append(
            f'"func.func"() <{{function_type = ({kinds}) -> {kind}, sym_name = "f{index}"}}> ({{\n^bb0({arguments}):\n'
            f'  %0 = "{FUNCTIONS[index].op}"({values}) : ({kinds}) -> {kind}\n'
            f'  "func.return"(%0) : ({kind}) -> ()\n}}) : () -> ()'
        )
    return '"builtin.module"() ({\n' + "\n".join(bodies) + "\n}) : () -> ()\n"


@dataclass(frozen=True, slots=True)
class Case:
    """The arguments that are kept of a row for a type, with their exact results and sizes."""

    function: Function
    operands: tuple[Array, ...]
    want: Exact
    sizes: Array

    def refusal(self, got: Array) -> str:
        """The worst result, where it is outside the bound; else empty."""
        errors = ulps(got, self.want, got.dtype.type, self.sizes)
        worst = int(np.argmax(errors))
        if errors[worst] <= self.function.bound:
            return ""
        arguments = ", ".join(float(column[worst]).hex() for column in self.operands)
        return f"{self.function.name}({arguments}) = {float(got[worst]).hex()}: {errors[worst]:.2f} ulp"


def cases(dtype: str) -> dict[int, Case]:
    """What is kept for a type, by the number of the row."""
    with np.load(CASES) as kept:
        found = {}
        for index, function in enumerate(FUNCTIONS):
            key = f"{function.name}/{dtype}/"
            names = [name for name in kept.files if name.startswith(f"{key}x")]
            operands = tuple(kept[name] for name in sorted(names))
            found[index] = Case(function, operands, (kept[f"{key}high"], kept[f"{key}low"]), kept[f"{key}size"])
        return found
