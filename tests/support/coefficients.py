"""Tables of numbers for the compiler's expansions: Chebyshev fits by mpmath, and the text of a generated file.

On `sys.path` of the tests (pyproject.toml, `pythonpath`).
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
from mpmath import mp, mpf

#: points that a function is fitted through
NODES = 72
#: bits of a fit's error below the last place of a result of size one
SPARE = 6


def rational_variable(center: Any, lo: Any, hi: Any) -> tuple[Callable[[Any], Any], tuple[Any, Any]]:
    """x as a function of t = (x - center) / (x + center), and the interval of t for lo <= x <= hi."""
    middle = mpf(center)
    return lambda t: middle * (1 + t) / (1 - t), ((lo - middle) / (lo + middle), (hi - middle) / (hi + middle))


def chebyshev(function: Callable[[Any], Any], interval: tuple[Any, Any], precision: int, weight: Any = 1) -> list[Any]:
    """The fewest coefficients, constant term first, whose error times `weight` stays below 2^-(precision + SPARE)."""
    lo, hi = map(mpf, interval)
    middle, half = (lo + hi) / 2, (hi - lo) / 2
    cosines = _cosines(mp.prec)
    values = [function(middle + half * cosines[2 * j + 1]) for j in range(NODES)]
    series = [
        2
        * mpmath.fdot(values, [cosines[k * (2 * j + 1) % (4 * NODES)] for j in range(NODES)])
        / (NODES if k else 2 * NODES)
        for k in range(NODES)
    ]
    terms, error = NODES, mpf(0)
    while error + abs(series[terms - 1]) * weight < mpf(2) ** -(precision + SPARE):
        terms -= 1
        error += abs(series[terms]) * weight
    assert terms < NODES - 8, f"the fit needs more than {NODES} points"
    return _monomials(series[:terms], middle, half)


@functools.cache
def _cosines(precision: int) -> list[Any]:
    """cos(m pi / (2 NODES)) for m below 4 NODES, a whole turn, in the working precision of mpmath."""
    assert precision == mp.prec
    return [mpmath.cos(mpmath.pi * m / (2 * NODES)) for m in range(4 * NODES)]


def _monomials(series: Sequence[Any], middle: Any, half: Any) -> list[Any]:
    """The coefficients in x of a Chebyshev series in (x - middle) / half, by Clenshaw's recurrence."""

    def next_of(current: list[Any], before: list[Any], term: Any) -> list[Any]:
        # 2 u current - before + term, u being the scaled variable
        made = [-b for b in before] + [mpf(0)] * (len(current) + 1 - len(before))
        for i, value in enumerate(current):
            made[i + 1] += 2 * value / half
            made[i] -= 2 * value * middle / half
        made[0] += term
        return made

    current, before = [mpf(0)], [mpf(0)]
    for term in reversed(series[1:]):
        current, before = next_of(current, before, term), current
    # the last step takes u once, not twice
    made = [mpf(0)] * (len(current) + 1)
    for i, value in enumerate(current):
        made[i + 1] += value / half
        made[i] -= value * middle / half
    for i, value in enumerate(before):
        made[i] -= value
    made[0] += series[0]
    return made[: len(series)]


def _annotation(key: str, value: Any) -> str:
    if isinstance(value, tuple):
        return f"tuple[{type(value[0]).__name__}, ...]"
    return type(value).__name__


def _literal(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + "".join(f"\n            {_literal(item)}," for item in value) + "\n        )"
    return f"0x{value:X}" if isinstance(value, int) else repr(value)


def render(doc: str, tables: dict[str, dict[str, Any]]) -> str:
    """A module with a row per float format; every row has the same names."""
    fields = "\n".join(f"    {key}: {_annotation(key, value)}" for key, value in tables["f32"].items())
    rows = "\n".join(
        f'    "{name}": Table(\n'
        + "".join(f"        {key}={_literal(value)},\n" for key, value in row.items())
        + "    ),"
        for name, row in tables.items()
    )
    return f'''"""{doc}"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of one format. A `high` and `low` pair sums to the constant."""

{fields}


TABLES: dict[str, Table] = {{
{rows}
}}
'''
