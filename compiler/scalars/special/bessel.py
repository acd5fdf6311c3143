"""bessel_i1e: e^-|x| I1(x).

Up to 8 the power series of I1(x) / x in x^2, which has positive terms only, times e^-|x|; beyond, a fit of
sqrt(|x|) e^-|x| I1(|x|) in 16 / |x| - 1, which is between -1 and 1.
"""

from orchestrion.compiler.scalars.math.number import Number, polynomial, select, sign_of, with_sign

from .coefficients_generated import TABLES

FAR = 8.0


def bessel_i1e(x: Number) -> Number:
    """Odd; 0 with its sign at 0 and at both ends."""
    table, y = TABLES[x.dtype], abs(x)
    near = select(y < FAR, y, y.constant(FAR))
    far = select(y > FAR, y, y.constant(FAR))
    small = (-near).op("exponential") * (near * polynomial(near * near, table.bessel_i1))
    large = polynomial(2.0 * FAR / far - 1.0, table.bessel_i1e) / far.sqrt()
    result = with_sign(select(y < FAR, small, large), sign_of(x))
    return select(x.is_nan(), x, result)
