"""The StableHLO dialect, as far as it is supported.

What is not here is unregistered and refused by the legality check.
"""

from __future__ import annotations

from orchestrion.compiler.ir.dialect import Dialect

from . import contraction, elementwise, indexing, structural
from .custom_call import CustomCall

_OPS = elementwise.OPS | structural.OPS | indexing.OPS | contraction.OPS

DIALECT = Dialect("stablehlo", [*_OPS.values(), CustomCall])
