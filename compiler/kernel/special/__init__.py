"""Special functions of CHLO as arithmetic: written once over an emitter, for f32 and f64, the same on every device.

A function takes and gives `Number`s and may use any scalar op. No device and no runtime knows it: kernels hold its
expansion, and so does tensor bytecode. `ROWS` are these ops as scalar ops of the compiler, beside those of
`schema/scalars.py`.

Polynomials are fits of nearly constant functions, in t = (x - K) / (x + K) where the range is wide. What each is a fit
of stands in tests/compiler/test_special_coefficients.py. Bounds: docs/numerics.md.
"""

from collections.abc import Callable
from typing import Any, Final

from orchestrion.compiler.kernel.emitter import Emitter
from orchestrion.compiler.kernel.math.number import Number
from orchestrion.schema.dtypes import FLOAT
from orchestrion.schema.scalar_meanings import Array, Meaning
from orchestrion.schema.scalars import ScalarOp

from .bessel import bessel_i1e
from .error_function import erf_inv
from .gamma import digamma, lgamma
from .zeta import polygamma, zeta

#: name, function, number of operands, doc
_TABLE: Final[tuple[tuple[str, Callable[..., Number], int, str], ...]] = (
    ("bessel_i1e", bessel_i1e, 1, "e^-|x| I1(x), I1 the modified Bessel function of the first kind"),
    ("digamma", digamma, 1, "derivative of lgamma; NaN at 0, -1, -2, ..."),
    ("erf_inv", erf_inv, 1, "the inverse of erf; +-inf at +-1, NaN beyond"),
    ("lgamma", lgamma, 1, "log |gamma(x)|; inf at 0, -1, -2, ..."),
    ("polygamma", polygamma, 2, "polygamma(n, x): derivative of order n of digamma; NaN unless n is 0, 1, 2, ..."),
    ("zeta", zeta, 2, "zeta(x, q), Hurwitz's; inf at x = 1, NaN below"),
)


def _expansion(function: Callable[..., Number]) -> Callable[..., Any]:
    def expand(e: Emitter[Any], *values: Any) -> Any:
        return function(*(Number(e, value) for value in values)).value

    return expand


def _meaning(name: str) -> Meaning:
    """The expansion over NumPy arrays."""

    def compute(*operands_and_out: Array) -> Array:
        from orchestrion.compiler.kernel.numpy_emitter import NumpyEmitter  # here: it is made of this table

        *operands, out = operands_and_out
        out[...] = EXPANSIONS[name](NumpyEmitter(), *operands)
        return out

    return compute


#: name -> expansion: emitter and operands in, value out
EXPANSIONS: Final[dict[str, Callable[..., Any]]] = {name: _expansion(function) for name, function, _, _ in _TABLE}

ROWS: Final[dict[str, ScalarOp]] = {
    name: ScalarOp(name, ("T",) * arity, "T", {FLOAT: _meaning(name)}, doc) for name, _, arity, doc in _TABLE
}
