"""Exports an example with a symbolic batch from JAX: writes center.mlir.

    python -m pip install -e '.[all]' jax
    python examples/center.py

Two batches of four numbers a row, of as many rows as a call brings: the first without its mean, plus the second.
"""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import export

HERE = Path(__file__).resolve().parent


def center(x: jax.Array, y: jax.Array) -> jax.Array:
    """f32[b, 4], f32[b, 4] -> f32[b, 4]."""
    return x - x.mean(axis=0) + y


def main() -> None:
    rows = jax.ShapeDtypeStruct(export.symbolic_shape("b, 4"), jnp.float32)
    # locations name the file inside the repository, not where this machine keeps it
    jax.config.update("jax_hlo_source_file_canonicalization_regex", f"{re.escape(str(HERE.parent))}/")
    (HERE / "center.mlir").write_text(export.export(jax.jit(center))(rows, rows).mlir_module())


if __name__ == "__main__":
    main()
