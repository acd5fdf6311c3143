"""Calls of LAPACK as loops, for targets without libraries. The table is `_ROUTINES`.

These are the routines that JAX's linear algebra uses; others stay, and are refused by name. Results equal those of
LAPACK up to rounding, including `info`. This file has `potrf`, `getrf` and `trsm`, for `cholesky`, `solve`, `inv` and
`det`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final

from orchestrion.compiler.ir.attributes import BoolAttr, DictAttr, StringAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter
from orchestrion.compiler.ir.types import F32, F64, TensorType
from orchestrion.compiler.stablehlo.builders.basic import compare, elementwise, i32_splat
from orchestrion.compiler.stablehlo.builders.shape_builders import iota, reduce_axes, reshape, slice_range, zeros
from orchestrion.compiler.stablehlo.complex.parts import parts_of
from orchestrion.compiler.stablehlo.ops.base import is_complex, may_be_empty, tensor_of
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall

from . import lu
from .triangular import batch_of_matrices, cholesky_of, shapes_fit, solve

Routine = Callable[[Operation, Rewriter, dict[str, bool]], list[Value] | None]


def expand(op: Operation, rewriter: Rewriter) -> bool:
    """Expands a call; skips malformed calls."""
    if not isinstance(op, CustomCall) or not all(isinstance(x.type, TensorType) for x in (*op.operands, *op.results)):
        return False
    config, target = op.get_as("backend_config", DictAttr), op.get_as("call_target_name", StringAttr)
    name = target.value if target is not None else ""
    known, made_by = _ROUTINES.get(name, (None, None))
    if (
        known is None
        or made_by is None
        or config is None
        or any(op.form_problems())
        or not set(config.mapping) <= set(known)
    ):
        return False
    elements = {tensor_of(value).element for value in op.operands}
    if not all(map(is_complex, op.operands)) and not elements <= {F32, F64}:
        return False
    flags = dict(known)
    for key, value in config.items:
        flags[key] = isinstance(value, BoolAttr) and value.value
    made = made_by(op, rewriter, flags)
    if made is None:
        return False
    rewriter.replace(op, made)
    return True


def expand_unsupported_by_libraries(op: Operation, rewriter: Rewriter) -> bool:
    """Expands calls that no library supports: with complex operands, or with a symbolic batch, which may be empty. They
    become loops on every target.
    """
    return (any(map(is_complex, op.operands)) or any(may_be_empty(result.type) for result in op.results)) and expand(
        op, rewriter
    )


def _lazy(module: str, function: str) -> Routine:
    """A routine in a module that is imported on demand, since few programs need it."""

    def call(op: Operation, rewriter: Rewriter, flags: dict[str, bool]) -> list[Value] | None:
        found: Routine = getattr(import_module(f"{__package__}.{module}"), function)
        return found(op, rewriter, flags)

    return call


def _trsm(op: Operation, rewriter: Rewriter, flags: dict[str, bool]) -> list[Value] | None:
    if (len(op.operands), len(op.results)) != (2, 1) or op.results[0].type != op.operands[1].type:
        return None
    a, b = op.operands
    if not shapes_fit(a, b, flags["left"]):
        return None
    return [solve(rewriter, a, b, flags["left"], flags["lower"], flags["trans_a"], False, flags["unit_diagonal"])]


def _potrf(op: Operation, rewriter: Rewriter, flags: dict[str, bool]) -> list[Value] | None:
    """The factor, with the other triangle unchanged; info is the index of the first pivot that is not
    positive, from 1.
    """
    if len(op.operands) != 1 or len(op.results) != 2:
        return None
    type = tensor_of(op.operands[0])
    if type.rank < 2 or type.shape[-1] != type.shape[-2] or type.num_elements == 0:
        return None
    wide = batch_of_matrices(rewriter, op.operands[0])
    shape = tensor_of(wide).shape
    made = cholesky_of(rewriter, wide, flags["lower"])
    rows, columns = iota(rewriter, shape, 1), iota(rewriter, shape, 2)
    inside = compare(rewriter, "GE" if flags["lower"] else "LE", rows, columns)
    whole = elementwise(rewriter, "select", inside, made, wide)
    pivots = parts_of(rewriter, made)[0]
    positive = pivots.compare("GT", 0.0).value
    fine = elementwise(rewriter, "or", positive, compare(rewriter, "NE", rows, columns))
    return [_shaped(rewriter, whole, op.results[0]), _shaped(rewriter, _first_bad(rewriter, fine), op.results[1])]


def _first_bad(rewriter: Rewriter, fine: Value) -> Value:
    """The index, from 1, of the first false element of each row; 0 if there is none."""
    batch, n, _ = tensor_of(fine).shape
    numbered = elementwise(rewriter, "add", iota(rewriter, (batch, n, n), 1), i32_splat(rewriter, 1, (batch, n, n)))
    none = i32_splat(rewriter, n + 1, (batch, n, n))
    least = reduce_axes(
        rewriter,
        elementwise(rewriter, "select", fine, none, numbered),
        (1, 2),
        "minimum",
        i32_splat(rewriter, n + 1, ()),
    )
    any_bad = compare(rewriter, "LE", least, i32_splat(rewriter, n, (batch,)))
    return elementwise(rewriter, "select", any_bad, least, i32_splat(rewriter, 0, (batch,)))


def _shaped(rewriter: Rewriter, value: Value, result: Value) -> Value:
    return reshape(rewriter, value, tensor_of(result).shape)


def _getrf(op: Operation, rewriter: Rewriter, flags: dict[str, bool]) -> list[Value] | None:
    if len(op.operands) != 1 or len(op.results) != 3:
        return None
    type = tensor_of(op.operands[0])
    if type.rank < 2 or type.num_elements == 0:
        return None
    made = lu.lu_factors(rewriter, batch_of_matrices(rewriter, op.operands[0]))
    batch, rows, columns = tensor_of(made[0]).shape
    least = min(rows, columns)
    square = slice_range(rewriter, made[0], (0, 0, 0), (batch, least, least))
    shape = tensor_of(square).shape
    zero = compare(rewriter, "EQ", square, zeros(rewriter, tensor_of(square)))
    on = compare(rewriter, "EQ", iota(rewriter, shape, 1), iota(rewriter, shape, 2))
    bad = elementwise(rewriter, "and", zero, on)
    made.append(_first_bad(rewriter, elementwise(rewriter, "not", bad)))
    return [_shaped(rewriter, value, result) for value, result in zip(made, op.results, strict=True)]


#: Function -> default values of its flags, and the routine that makes its results.
_ROUTINES: Final[dict[str, tuple[dict[str, bool], Routine]]] = {
    "blas.trsm": ({"left": True, "lower": True, "trans_a": False, "unit_diagonal": False}, _trsm),
    "lapack.gehrd": ({"low": False, "high": False}, _lazy("hessenberg", "gehrd")),
    "lapack.geqrf": ({}, _lazy("lapack_factors", "geqrf")),
    "lapack.gesdd": ({}, _lazy("lapack_factors", "gesdd")),
    "lapack.getrf": ({}, _getrf),
    "lapack.gtsv": ({}, _lazy("tridiagonal", "gtsv")),
    "lapack.orgqr": ({}, _lazy("lapack_factors", "orgqr")),
    "lapack.ormqr": ({"left": True, "trans": False}, _lazy("lapack_factors", "ormqr")),
    "lapack.potrf": ({"lower": True}, _potrf),
    "lapack.syevd": ({"lower": True}, _lazy("lapack_factors", "syevd")),
    "lapack.sytrd": ({"lower": True}, _lazy("hessenberg", "sytrd")),
}

#: Functions that may become loops.
FUNCTIONS: Final = frozenset(_ROUTINES)

PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {"stablehlo.custom_call": (expand,)}
