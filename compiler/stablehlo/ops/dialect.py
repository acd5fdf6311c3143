"""The StableHLO dialect, as far as it is supported. Other ops are unregistered, and the legality check refuses them."""

from __future__ import annotations

from orchestrion.compiler.ir.dialect import Dialect

from . import contraction, control_flow, dynamic, elementwise, fourier, indexing, scatter, sort, structural, windowed
from .custom_call import CustomCall

_FAMILIES = (elementwise, structural, indexing, contraction, windowed, control_flow, sort, scatter, fourier, dynamic)

_OPS = [*(op for family in _FAMILIES for op in family.OPS.values()), CustomCall]

DIALECT = Dialect("stablehlo", [op for op in _OPS if op.name.startswith("stablehlo.")])
