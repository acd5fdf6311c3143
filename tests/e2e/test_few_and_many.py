"""Calls that bring few rows or columns, or few elements to fold, run kernels of their own; the results are the same."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.compiler import Compilation, compile
from orchestrion.compiler.errors import CompileError
from orchestrion.hal.registry import list_devices
from orchestrion.schema.rows import UP_TO
from orchestrion.tools.entries import called

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
    row; a fold of three times as many. `n` is NumPy or its like in JAX.
    """
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


#: rows and columns that a call brings -> what stands behind the name of the entry that computes them
OF_COLUMNS = {
    (1, 9): {"vulkan": "_up_to_7", "opencl": "_up_to_15_columns"},
    (3, 2): {"vulkan": "_up_to_7", "opencl": "_up_to_15_columns"},
    (8, 7): {"vulkan": "_up_to_7_columns", "opencl": "_up_to_15_columns"},
    (9, 15): {"vulkan": "", "opencl": "_up_to_15_columns"},
    (2, 16): {"vulkan": "_up_to_7", "opencl": ""},
    (8, 17): {"vulkan": "", "opencl": ""},
    (21, 33): {"vulkan": "", "opencl": ""},
}


@pytest.mark.parametrize("device", ["vulkan", "opencl"])
def test_columns_decide_as_well(device: str) -> None:
    if all(status.name != device or not status.devices for status in list_devices()):
        pytest.skip(f"no device {device}")
    scope = export.SymbolicScope()
    shapes = [export.symbolic_shape(shape, scope=scope) for shape in ("b, 5", "5, s")]
    given = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    source = export.export(jax.jit(lambda x, y: x @ y))(*given).mlir_module_serialized
    module = compile(source, targets=["spirv" if device == "vulkan" else device])
    loaded = vm.load(module, device, profiling=True, allow_native_code=True)
    before: Counter[str] = Counter()
    for (rows, columns), names in OF_COLUMNS.items():
        random = np.random.default_rng(rows)
        x, y = (random.integers(-9, 9, shape).astype(np.float32) for shape in ((rows, 5), (5, columns)))
        np.testing.assert_array_equal(loaded.main(x, y), x @ y, f"{rows} x {columns}")
        now: Counter[str] = Counter()
        for row in loaded.profile().rows():
            now[row.command.entry] += row.launches
        run = now - before
        assert run == {f"main_dispatch_0{names[device]}": 1}, (rows, columns)
        assert {called(name, {*now, "main_dispatch_0"}) for name in run} == {"main_dispatch_0"}
        before = now


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("most = 3 : i64", "most = 3.0 : f64", "names no entry, or no size and the most that it may be"),
        (
            "most = 3 : i64, size = #util.dims<b>",
            "most = 3 : i64, size = #util.dims<c>",
            "which is not one of its symbols",
        ),
        ('_up_to_3"', '_less"', "_less is not an entry of the executable"),
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
