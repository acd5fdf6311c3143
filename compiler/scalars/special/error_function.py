"""erf_inv.

Up to 3/4, x P(x^2). Beyond, s Q(t) with w = -log(1 - x^2), s = sqrt(w) and t = (w - K) / (w + K): the inverse grows as
s does, and Q is nearly constant. Source of the variable w: M. Giles, "Approximating the erfinv function", 2010.
"""

from orchestrion.compiler.scalars.math.number import Number, polynomial, select, sign_of, with_sign

from .coefficients_generated import TABLES

NEAR = 0.75


def erf_inv(x: Number) -> Number:
    """+-inf at +-1, NaN beyond."""
    table, magnitude = TABLES[x.dtype], abs(x)
    near = x * polynomial(x * x, table.erf_inv)
    w = -((1.0 - magnitude) * (magnitude + 1.0)).op("log")
    # w is infinite at one: t must not be
    t = (w - table.erf_inv_center) / (w + table.erf_inv_center)
    far = w.sqrt() * polynomial(select(w < float("inf"), t, 1.0), table.erf_inv_tail)
    return select(magnitude < NEAR, near, with_sign(far, sign_of(x)))
