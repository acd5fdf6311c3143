"""Calls that bring few rows or columns, or few elements to fold, run kernels of their own; the results are the same."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.compiler import Compilation, compile
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.dims import evaluate
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.hal.registry import list_devices
from orchestrion.schema.rows import UP_TO
from orchestrion.schema.writer import write
from orchestrion.tools.entries import called

jax = pytest.importorskip("jax")
from jax import export  # noqa: E402
from jax import numpy as jnp  # noqa: E402

VULKAN = pytest.mark.skipif(
    all(status.name != "vulkan" or not status.devices for status in list_devices()), reason="no device vulkan"
)
#: rows of calls
SIZES = (1, 3, 4, 5, 9, 13, 100, 256, 257, 301)

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
    """The six dispatches have a kernel for few rows, or short reductions, each."""
    loaded, before = vm.load(compile(text, targets=["spirv"]), "vulkan", profiling=True), 0
    lowered = parse(Compilation(targets=("spirv",)).text(text, "executables"), "text")
    entries = [ll_seq.specializations_of(op) for op in lowered.walk() if isinstance(op, ll_seq.Entry)]
    special = [rows for rows in entries if rows]
    assert len(special) == 6
    counts = [
        sum(any(evaluate(row.size, {"b": size}) <= row.most for row in rows) for rows in special) for size in SIZES
    ]
    assert counts[0] == 6 and counts[-1] == 0
    for size, few in zip(SIZES, counts, strict=True):
        x = np.random.default_rng(size).normal(size=(size, 6)).astype(np.float32)
        for got, want in zip(loaded.main(x), program(x, np), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())
        rows = [row for row in loaded.profile().rows() if UP_TO in row.command.entry]
        assert sum(row.launches for row in rows) - before == few, size
        assert all(row.command.source_op for row in rows)
        before += few


#: schedules of a dot for few rows, for few columns, for all others
SCHEDULES = [
    "[specialize(m, ..7), tile(m, 2), tile(n, 4), bind(grid, invocation, 32), guard(m, clamp), guard(n, clamp)]",
    "[specialize(n, ..15), assume(m, 8..), tile(m, 8), tile(n, 4), bind(grid, invocation, 32), guard(m, shift), "
    "guard(n, clamp)]",
    "[assume(m, 8..), assume(n, 16..), tile(m, 8), tile(n, 16), bind(grid, invocation, 32), guard(m, shift), "
    "guard(n, shift)]",
]
#: rows and columns that a call brings -> what stands behind the name of the entry that computes them
OF_COLUMNS = {
    (1, 9): "_up_to_7",
    (3, 2): "_up_to_7",
    (8, 7): "_up_to_15_columns",
    (9, 15): "_up_to_15_columns",
    (2, 16): "_up_to_7",
    (8, 17): "",
    (21, 33): "",
}


@pytest.mark.parametrize("device", ["vulkan", "opencl"])
def test_columns_decide_as_well(device: str) -> None:
    if all(status.name != device or not status.devices for status in list_devices()):
        pytest.skip(f"no device {device}")
    scope = export.SymbolicScope()
    shapes = [export.symbolic_shape(shape, scope=scope) for shape in ("b, 5", "5, s")]
    given = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    source = export.export(jax.jit(lambda x, y: x @ y))(*given).mlir_module_serialized
    text = Compilation(targets=("spirv" if device == "vulkan" else device,)).text(source, "hl_seq")
    schedules = ", ".join(f"#kernel.schedule<{one}>" for one in SCHEDULES)
    text, count = re.subn(r"schedules = \[.*?>\]", f"schedules = [{schedules}]", text)
    assert count == 1
    module = write(Compilation(start="hl_seq").rows(text))
    loaded = vm.load(module, device, profiling=True, allow_native_code=True)
    before: Counter[str] = Counter()
    for (rows, columns), name in OF_COLUMNS.items():
        random = np.random.default_rng(rows)
        x, y = (random.integers(-9, 9, shape).astype(np.float32) for shape in ((rows, 5), (5, columns)))
        np.testing.assert_array_equal(loaded.main(x, y), x @ y, f"{rows} x {columns}")
        now: Counter[str] = Counter()
        for row in loaded.profile().rows():
            now[row.command.entry] += row.launches
        run = now - before
        assert run == {f"main_dispatch_0{name}": 1}, (rows, columns)
        assert {called(one, {*now, "main_dispatch_0"}) for one in run} == {"main_dispatch_0"}
        before = now


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"most = (\d+) : i64", r"most = \1.0 : f64", "names no entry, or no size and the most that it may be"),
        (r"(most = \d+ : i64, size = #util.dims)<b>", r"\1<c>", "which is not one of its symbols"),
        (r'_up_to_\d+"', '_less"', "_less is not an entry of the executable"),
    ],
)
def test_an_entry_of_few_fits_the_one_it_stands_for(
    old: str, new: str, message: str, text: bytes, tmp_path: Path
) -> None:
    Compilation(targets=("spirv",), dump=tmp_path).rows(text)
    path = next(path for path in tmp_path.iterdir() if "executables" in path.name)
    changed, count = re.subn(old, new, path.read_text(), count=1)
    assert count == 1
    path.write_text(changed)
    with pytest.raises(CompileError, match=message):
        Compilation(start="executables").rows(str(path))
