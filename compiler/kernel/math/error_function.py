"""erf and erfc.

Near zero erf x = x P(x^2). Beyond 3/4, erfc x = e^(-x^2) Q(t) / (1 + 2 x), where t = (x - K) / (x + K) is between -1
and 1 and Q is nearly constant; x^2 is exact, as a double word. Source of the scheme: M. M. Shepherd, J. G. Laframboise,
"Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", 1981.
"""

from typing import Any

from orchestrion.compiler.kernel.emitter import Emitter

from .coefficients_generated import TABLES, Table
from .exponential import exponential_of
from .number import Number, polynomial, select, sign_of, two_product, with_sign

NEAR = 0.75


def _small(x: Number, table: Table) -> Number:
    """erf x for |x| < 3/4."""
    return x * polynomial(x * x, table.erf)


def _tail(magnitude: Number, table: Table) -> Number:
    """erfc of what is at least 3/4."""
    a = select(magnitude > table.erfc_most, magnitude.constant(table.erfc_most), magnitude)
    square = two_product(a, a)
    t = (a - table.erfc_center) / (a + table.erfc_center)
    return exponential_of(-square.high, table, -square.low) * (polynomial(t, table.erfc) / (a + a + 1.0))


def expand_erf(e: Emitter[Any], value: Any) -> Any:
    x = Number(e, value)
    table, magnitude = TABLES[x.dtype], abs(x)
    far = with_sign(1.0 - _tail(magnitude, table), sign_of(x))
    return select(magnitude < NEAR, _small(x, table), far).value


def expand_erfc(e: Emitter[Any], value: Any) -> Any:
    x = Number(e, value)
    table, magnitude = TABLES[x.dtype], abs(x)
    tail = _tail(magnitude, table)
    far = select(x < 0.0, 2.0 - tail, tail)
    return select(magnitude < NEAR, 1.0 - _small(x, table), far).value
