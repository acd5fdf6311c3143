"""Calls that bring few rows, or few elements to fold, run kernels of their own on Vulkan, and give the same results."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.compiler import Compilation, compile
from orchestrion.compiler.errors import CompileError
from orchestrion.hal.registry import list_devices
from orchestrion.schema.rows import UP_TO

jax = pytest.importorskip("jax")
from jax import export  # noqa: E402
from jax import numpy as jnp  # noqa: E402

VULKAN = pytest.mark.skipif(
    all(status.name != "vulkan" or not status.devices for status in list_devices()), reason="no device vulkan"
)
#: calls that bring so many rows -> how many of the six dispatches are of few: tiles have 4 rows behind a tanh, else 8,
#: and folds of 257 elements take a workgroup
FEW = {1: 6, 3: 6, 4: 4, 5: 4, 9: 4, 13: 3, 100: 2, 256: 2, 257: 0, 301: 0}

W = np.random.default_rng(0).normal(size=(6, 21)).astype(np.float32)


def program(x: Any, n: Any) -> Any:
    """A dot with a ragged edge on both sides, one of twice as many rows; folds of few results and of one; a dot of one
    row; a fold of three times as many. `n` is NumPy or its like in JAX."""
    y = n.tanh(x @ W)
    return y, n.concatenate([x, x]) @ W[:, :8], y.sum(0), y.max(), x[:, 0] @ y, (x[:, :3] * 2).min()


@pytest.fixture(scope="module")
def text() -> bytes:
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("b, 6"), jnp.float32)
    return export.export(jax.jit(lambda x: program(x, jnp)))(shape).mlir_module_serialized


@VULKAN
def test_sizes_decide_which_kernels_run_and_nothing_else(text: bytes) -> None:
    loaded, before = vm.load(compile(text, targets=["spirv"]), "vulkan", profiling=True), 0
    for size, few in FEW.items():
        x = np.random.default_rng(size).normal(size=(size, 6)).astype(np.float32)
        for got, want in zip(loaded.main(x), program(x, np), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())
        rows = [row for row in loaded.profile().rows() if UP_TO in row.command.entry]
        assert sum(row.launches for row in rows) - before == few, size
        assert all(row.command.source_op for row in rows)
        before += few


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("most = 3 : i64", "most = 3.0 : f64", "names no entry, or no size and the most that it may be"),
        (
            "most = 3 : i64, size = #util.dims<b>",
            "most = 3 : i64, size = #util.dims<c>",
            "which is none of its symbols",
        ),
        ('_up_to_3"', '_less"', "_less is no entry of the executable"),
    ],
)
def test_an_entry_of_few_fits_the_one_it_stands_for(
    old: str, new: str, message: str, text: bytes, tmp_path: Path
) -> None:
    Compilation(targets=("spirv",), dump=tmp_path).rows(text)
    path = next(path for path in tmp_path.iterdir() if "executables" in path.name)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(CompileError, match=message):
        Compilation(start="executables").rows(str(path))
