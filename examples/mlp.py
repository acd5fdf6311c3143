"""Exports the example MLP from JAX: writes mlp.mlir, an input, and what JAX computes for it.

    python -m pip install -e '.[all]' jax
    python examples/mlp.py

Three layers (32 -> 64 -> 64 -> 10, tanh and relu between, softmax at the end) on a batch of eight. The weights are
drawn from a fixed seed and become constants of the program.
"""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

HERE = Path(__file__).resolve().parent
BATCH, SIZES = 8, (32, 64, 64, 10)


def weights() -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(2026)
    return [
        ((random.normal(size=(m, n)) / np.sqrt(m)).astype(np.float32), random.normal(size=n).astype(np.float32) * 0.1)
        for m, n in zip(SIZES, SIZES[1:], strict=False)
    ]


def mlp(x: jax.Array) -> jax.Array:
    """f32[8, 32] -> f32[8, 10], rows that sum to one."""
    (w0, b0), (w1, b1), (w2, b2) = weights()
    hidden = jnp.tanh(x @ w0 + b0)
    hidden = jax.nn.relu(hidden @ w1 + b1)
    return jax.nn.softmax(hidden @ w2 + b2)


def main() -> None:
    x = np.random.default_rng(7).normal(size=(BATCH, SIZES[0])).astype(np.float32)
    # locations name the file inside the repository, not where this machine keeps it
    jax.config.update("jax_hlo_source_file_canonicalization_regex", f"{re.escape(str(HERE.parent))}/")
    exported = export.export(jax.jit(mlp))(x)
    (HERE / "mlp.mlir").write_text(exported.mlir_module())
    np.save(HERE / "mlp_input.npy", x)
    np.save(HERE / "mlp_output.npy", np.asarray(jax.jit(mlp)(x)))


if __name__ == "__main__":
    main()
