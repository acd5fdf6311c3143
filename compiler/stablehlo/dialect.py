"""The StableHLO dialect, as far as it is supported.

What is not here is unregistered and refused by the legality check.
"""

from __future__ import annotations

from orchestrion.compiler.ir.dialect import Dialect

from . import contraction, elementwise, indexing, structural

DIALECT = Dialect(
    "stablehlo",
    [*elementwise.OPS.values(), *structural.OPS.values(), *indexing.OPS.values(), *contraction.OPS.values()],
)
