"""The CHLO dialect, which JAX writes beside StableHLO: the ops of it that are no others in disguise (`expand.py`)."""

from __future__ import annotations

from orchestrion.compiler.ir.dialect import Dialect

from .elementwise import OPS

DIALECT = Dialect("chlo", [op for name, op in OPS.items() if name.startswith("chlo.")])
