"""The StableHLO dialect, as far as it is supported. Other ops are unregistered, and the legality check refuses them."""

from __future__ import annotations

from orchestrion.compiler.ir.dialect import Dialect, ops_in

from . import (
    contraction,
    control_flow,
    custom_call,
    dynamic,
    elementwise,
    fourier,
    indexing,
    scatter,
    sort,
    structural,
    windowed,
)

_FAMILIES = (structural, indexing, contraction, windowed, control_flow, sort, scatter, fourier, dynamic, custom_call)
_ELEMENTWISE = [op for name, op in elementwise.OPS.items() if name.startswith("stablehlo.")]

DIALECT = Dialect("stablehlo", [*_ELEMENTWISE, *ops_in(*map(vars, _FAMILIES))])
