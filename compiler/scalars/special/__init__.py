"""Special functions of CHLO as arithmetic: written once over an emitter, for f32 and f64, the same on every device.

A function takes and gives `Number`s and may use any scalar op. No device and no runtime knows it: kernels hold its
expansion, and so does tensor bytecode. `ROWS` are these ops as scalar ops of the compiler, beside those of
`schema/scalars.py`.

Polynomials are fits of nearly constant functions, in t = (x - K) / (x + K) where the range is wide. What each is a fit
of stands in tests/compiler/test_special_coefficients.py. Bounds: docs/numerics.md.
"""

from typing import Final

from orchestrion.schema.dtypes import FLOAT
from orchestrion.schema.scalar_meanings import Array, Meaning
from orchestrion.schema.scalars import ScalarOp

from .bessel import bessel_i1e
from .error_function import erf_inv
from .gamma import digamma, lgamma
from .zeta import polygamma, zeta

#: name -> number of operands, doc
_TABLE: Final = {
    "bessel_i1e": (1, "e^-|x| I1(x), I1 the modified Bessel function of the first kind"),
    "digamma": (1, "derivative of lgamma; NaN at 0, -1, -2, ..."),
    "erf_inv": (1, "the inverse of erf; +-inf at +-1, NaN beyond"),
    "lgamma": (1, "log |gamma(x)|; inf at 0, -1, -2, ..."),
    "polygamma": (2, "polygamma(n, x): derivative of order n of digamma; NaN unless n is 0, 1, 2, ..."),
    "zeta": (2, "zeta(x, q), Hurwitz's; inf at x = 1, NaN below"),
}


def _meaning(name: str) -> Meaning:
    """The expansion over NumPy arrays."""

    def compute(*operands_and_out: Array) -> Array:
        from orchestrion.compiler.scalars.numpy_emitter import NumpyEmitter  # here: it is made of this table

        *operands, out = operands_and_out
        out[...] = NumpyEmitter().op(name, *operands)
        return out

    return compute


#: the functions, each with the name of its scalar op
FUNCTIONS: Final = (bessel_i1e, digamma, erf_inv, lgamma, polygamma, zeta)

ROWS: Final[dict[str, ScalarOp]] = {
    name: ScalarOp(name, ("T",) * arity, "T", {FLOAT: _meaning(name)}, doc) for name, (arity, doc) in _TABLE.items()
}
