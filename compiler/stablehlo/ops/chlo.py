"""The CHLO dialect, which JAX uses beside StableHLO: its ops that `expand.py` does not replace by others."""

from __future__ import annotations

from orchestrion.compiler.ir.dialect import Dialect

from .elementwise import OPS

DIALECT = Dialect("chlo", [op for name, op in OPS.items() if name.startswith("chlo.")])
