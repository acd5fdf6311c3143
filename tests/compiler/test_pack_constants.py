"""Constants in the layout of their only program: what is packed at compile time, and what is left to initializers."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("llvmlite")
pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from orchestrion import compiler, vm
from orchestrion.compiler.flow.layout import Layout
from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.targets.passes.encodings.pack_constants import packed

#: so many rows and columns that `CpuTarget.layout` packs the right operand; 72 columns are no whole number of vectors
ROWS, DEPTH, COLUMNS = 64, 320, 72


def values(*shape: int) -> NDArray[Any]:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


X, W, V = values(ROWS, DEPTH), values(DEPTH, COLUMNS), values(DEPTH, COLUMNS, 1)[..., 0]


def places(layout: Layout, shape: tuple[int, ...]) -> NDArray[Any]:
    """The position in memory of each element, by the docstring of `flow/layout.py`."""
    found = np.empty(shape, np.int64)
    memory = layout.physical_shape(shape)
    for at in product(*map(range, shape)):
        coordinates = [
            int(np.ravel_multi_index([at[axis] for axis in group], [shape[axis] for axis in group]))
            for group in layout.axes
        ]
        tiles = [coordinate // tile for coordinate, tile in zip(coordinates, layout.tiles, strict=True)]
        inner = [coordinates[group] % layout.tiles[group] for group in layout.inner]
        found[at] = np.ravel_multi_index([*tiles, *inner], memory)
    return found


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        (Layout(((1,), (0,)), (8, 1), (0,)), (3, 20)),
        (Layout(((1,), (0,)), (4, 3), (1, 0)), (7, 9)),
        (Layout(((0,), (1, 3), (2,)), (1, 4, 3), (2, 1)), (2, 3, 5, 7)),
        (Layout(((3,), (0, 1, 2)), (16, 1), (0,)), (3, 3, 4, 24)),
        (Layout(((0,), (1,)), (1, 1), ()), (4, 5)),
    ],
)
@pytest.mark.parametrize("element", ["f32", "i8", "bf16", "f64"])
def test_elements_lie_where_the_layout_says(layout: Layout, shape: tuple[int, ...], element: str) -> None:
    count = int(np.prod(shape))
    width = {"f32": np.uint32, "i8": np.uint8, "bf16": np.uint16, "f64": np.uint64}[element]
    bits = (np.arange(count) % 251 + 1).astype(width)
    given = DenseElements(TensorType(shape, scalar(element)), bits.tobytes())
    result = packed(given, layout)
    memory = np.frombuffer(result.data, width)
    assert result.type.shape == layout.physical_shape(shape) and memory.size == result.type.num_elements
    want = np.zeros_like(memory)
    want[places(layout, shape).reshape(-1)] = bits
    np.testing.assert_array_equal(memory, want)


def test_a_splat_is_padded() -> None:
    given = DenseElements(TensorType((3, 5), scalar("f32")), np.float32(2).tobytes())
    result = packed(given, Layout(((1,), (0,)), (4, 1), (0,)))
    assert np.frombuffer(result.data, np.float32).sum() == 3 * 5 * 2 and len(result.data) == 2 * 3 * 4 * 4


def loaded(function: Any, targets: list[str], **options: Any) -> tuple[int, int, NDArray[Any]]:
    """Dispatches of the load on `cpu`, bytes of the module, and the result of a call."""
    blob = compiler.compile(jax.jit(function).lower(X), targets=targets, **options)
    program = vm.load(blob, device="cpu", parameters=options.get("parameters"))
    try:
        return program.statistics()["load"]["dispatches"], len(blob), program.main(X)
    finally:
        program.close()


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_CACHE", "off")


def test_the_file_has_the_packed_form_alone() -> None:
    """The load computes nothing, and the module has the constant once, with at most a padded tile."""
    dispatches, size, result = loaded(lambda x: x @ W, ["cpu"])
    plain, plain_size, want = loaded(lambda x: x @ W, ["cpu"], encodings="none")
    assert dispatches == plain == 0
    assert size <= plain_size + DEPTH * 32 * 4 + 8192
    np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-4)


def test_other_programs_read_the_constant_as_it_was() -> None:
    dispatches, _, result = loaded(lambda x: x @ W, ["cpu", "reference"])
    alone, _, want = loaded(lambda x: x @ W, ["cpu"])
    assert (dispatches, alone) == (1, 0)
    np.testing.assert_array_equal(result, want)


def test_a_constant_that_is_read_in_two_orders_is_packed_at_load() -> None:
    dispatches, _, result = loaded(lambda x: (x @ W) + jnp.sum(jnp.sin(x[0, 0] * W)), ["cpu"])
    assert dispatches == 1
    np.testing.assert_allclose(result, X @ W + np.sin(X[0, 0] * W).sum(), rtol=1e-4, atol=1e-3)


def test_each_of_two_constants_is_packed() -> None:
    dispatches, _, result = loaded(lambda x: (x @ W) * (x @ V), ["cpu"])
    assert dispatches == 0
    np.testing.assert_allclose(result, (X @ W) * (X @ V), rtol=1e-4, atol=1e-3)


def test_a_file_of_parameters_has_constants_as_they_were(tmp_path: Path) -> None:
    dispatches, _, result = loaded(lambda x: x @ W, ["cpu"], parameters=tmp_path / "w.safetensors")
    assert dispatches == 1
    np.testing.assert_allclose(result, X @ W, rtol=1e-4, atol=1e-3)
