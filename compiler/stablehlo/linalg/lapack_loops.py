"""Calls of LAPACK as loops, for targets without libraries. The table is `_ROUTINES`.

These are the routines that JAX's linear algebra uses; others stay, and are refused by name. Results equal those of
LAPACK up to rounding, including `info`. This file has `potrf`, `getrf` and `trsm`, for `cholesky`, `solve`, `inv` and
`det`. A routine takes matrices [batch, m, n] and vectors [batch, n], and returns its results in the same form.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import prod
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr, DictAttr, StringAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import is_dynamic
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import F32, F64, TensorType
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, replace
from orchestrion.compiler.stablehlo.complex.parts import parts_of
from orchestrion.compiler.stablehlo.ops.base import is_complex, may_be_empty, tensor_of
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall

from . import lu
from .triangular import cholesky_of, solve

Flags = dict[str, bool]
Routine = Callable[..., list[Tensor] | None]


def expand(op: Operation, rewriter: Rewriter) -> bool:
    """Expands a call; skips malformed calls."""
    if not isinstance(op, CustomCall) or not all(isinstance(x.type, TensorType) for x in (*op.operands, *op.results)):
        return False
    config, target = op.get_as("backend_config", DictAttr), op.get_as("call_target_name", StringAttr)
    row = _ROUTINES.get(target.value) if target is not None else None
    if row is None or config is None or any(op.form_problems()) or not set(config.mapping) <= set(row[0]):
        return False
    known, count, routine = row
    elements = {tensor_of(value).element for value in op.operands}
    if len(op.operands) != count or len(elements) != 1 or not (is_complex(op.operands[0]) or elements <= {F32, F64}):
        return False
    flags = known | {key: isinstance(value, BoolAttr) and value.value for key, value in config.items}
    operands = [Tensor(rewriter, value) for value in op.operands]
    batch = max(operands, key=lambda x: len(x.shape)).shape[:-2]
    if any(x.shape[: len(batch)] != batch or len(x.shape) == len(batch) or 0 in x.shape for x in operands):
        return False
    rest = len(batch)
    made = routine(op, flags, *(x.reshape(prod(batch), *x.shape[rest:]) for x in operands))
    return replace(op, rewriter, None if made is None else [x.reshape(*batch, *x.shape[1:]) for x in made])


def expand_unsupported_by_libraries(op: Operation, rewriter: Rewriter) -> bool:
    """Expands calls that no library supports: with complex operands, or with a symbolic batch, which may be empty. They
    become loops on every target.
    """
    return (any(map(is_complex, op.operands)) or any(may_be_empty(result.type) for result in op.results)) and expand(
        op, rewriter
    )


def _lazy(module: str, function: str) -> Routine:
    """A routine for sizes that are known, in a module that is imported on demand, since few programs need it."""

    def call(op: Operation, flags: Flags, *operands: Tensor) -> list[Tensor] | None:
        if any(is_dynamic(size) for x in operands for size in x.shape[1:]):
            return None
        found: Routine = getattr(import_module(f"{__package__}.{module}"), function)
        return found(op, flags, *operands)

    return call


def _trsm(op: Operation, flags: Flags, a: Tensor, b: Tensor) -> list[Tensor] | None:
    made = solve(a, b, flags["left"], flags["lower"], flags["trans_a"], False, flags["unit_diagonal"])
    return None if made is None else [made]


def _potrf(op: Operation, flags: Flags, a: Tensor) -> list[Tensor] | None:
    """The factor, with the other triangle unchanged; info is the index, from 1, of the first pivot that is not > 0."""
    if len(a.shape) != 3 or a.shape[1] != a.shape[2]:
        return None
    made = cholesky_of(a, flags["lower"])
    rows, columns = a.iota(1), a.iota(2)
    whole = rows.compare("GE" if flags["lower"] else "LE", columns).select(made, a)
    return [whole, _first_bad((parts_of(made)[0] > 0.0) | rows.ne(columns))]


def _first_bad(fine: Tensor) -> Tensor:
    """The index, from 1, of the first false element of each row; 0 if there is none."""
    n = fine.shape[2]
    numbered = fine.iota(1) + 1
    least = fine.select(n + 1, numbered).reduce((1, 2), "minimum", fine.int32(n + 1))
    return (least <= n).select(least, 0)


def _getrf(op: Operation, flags: Flags, a: Tensor) -> list[Tensor] | None:
    made, pivots = lu.lu_factors(a)
    batch, rows, columns = made.shape
    square = made.leading((batch, min(rows, columns), min(rows, columns)))
    bad = square.eq(square.zeros()) & square.iota(1).eq(square.iota(2))
    return [made, pivots, _first_bad(~bad)]


#: Function -> default values of its flags, its number of operands, and the routine that makes its results.
_ROUTINES: Final[dict[str, tuple[Flags, int, Routine]]] = {
    "blas.trsm": ({"left": True, "lower": True, "trans_a": False, "unit_diagonal": False}, 2, _trsm),
    "lapack.gehrd": ({"low": False, "high": False}, 1, _lazy("hessenberg", "gehrd")),
    "lapack.geqrf": ({}, 1, _lazy("lapack_factors", "geqrf")),
    "lapack.gesdd": ({}, 1, _lazy("lapack_factors", "gesdd")),
    "lapack.getrf": ({}, 1, _getrf),
    "lapack.gtsv": ({}, 4, _lazy("tridiagonal", "gtsv")),
    "lapack.orgqr": ({}, 2, _lazy("lapack_factors", "orgqr")),
    "lapack.ormqr": ({"left": True, "trans": False}, 3, _lazy("lapack_factors", "ormqr")),
    "lapack.potrf": ({"lower": True}, 1, _potrf),
    "lapack.syevd": ({"lower": True}, 1, _lazy("lapack_factors", "syevd")),
    "lapack.sytrd": ({"lower": True}, 1, _lazy("hessenberg", "sytrd")),
}

#: Functions that may become loops.
FUNCTIONS: Final = frozenset(_ROUTINES)

#: Function -> the order of a matrix from which it is large: a call is faster than the loops of the device `cpu`
#: (docs/decisions/library-calls.md). NumPy has these functions, so a device needs no other library for them.
_LARGE: Final[dict[str, int]] = {"lapack.syevd": 24, "lapack.gesdd": 24}


def is_large(op: Operation) -> bool:
    """Whether an op calls LAPACK for matrices that are large."""
    if not isinstance(op, CustomCall) or op.function not in _LARGE or not isinstance(op.operands[0].type, TensorType):
        return False
    type = op.operands[0].type
    return type.is_static and type.rank > 1 and min(type.shape[-2:]) >= _LARGE[op.function]


def _expand_small(op: Operation, rewriter: Rewriter) -> bool:
    return not is_large(op) and expand(op, rewriter)


#: What targets make of calls of LAPACK (`parts.PARTS`) -> patterns on calls.
PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {"calls": (), "large": (_expand_small,), "loops": (expand,)}
