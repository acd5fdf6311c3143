"""Operands of dots in the layouts of targets, and in one that no target likes: the same bits as in row-major order.

On the reference device sums are exact: NumPy's BLAS adds in an order that depends on strides.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import is_everyday, of_the_day
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from phase_texts import check_phases_continue
from stablehlo_text import DTYPES, apply, ints, main, tensor

from orchestrion import compiler
from orchestrion.compiler.driver import Compilation

LoadOn = Callable[[bytes, str], Any]
Array = np.ndarray[Any, Any]
EACH_DEVICE = pytest.mark.parametrize("device", ["reference", "opencl", "vulkan"])
PROFILE = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}


def dot_text(shape: tuple[int, int, int, int], dtype: str, swapped: bool) -> str:
    """A batched dot of (batches, rows, depth, columns), its operands transposed if wanted, and something behind it."""
    batches, rows, depth, columns = shape
    left = (batches, depth, rows) if swapped else (batches, rows, depth)
    right = (batches, columns, depth) if swapped else (batches, depth, columns)
    out = tensor((batches, rows, columns), dtype)
    numbers = (
        "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
        f"lhs_contracting_dimensions = [{1 if swapped else 2}], rhs_contracting_dimensions = [{2 if swapped else 1}]"
    )
    types = [tensor(left, dtype), tensor(right, dtype)]
    bias = tensor((columns,), dtype)
    lines = [
        "%d = " + apply("dot_general", "%a0, %a1", f"dot_dimension_numbers = #stablehlo.dot<{numbers}>", types, out),
        "%b = " + apply("broadcast_in_dim", "%a2", f"broadcast_dimensions = {ints([2])}", [bias], out),
        "%r = " + apply("add", "%d, %b", "", [out, out], out),
    ]
    return main([*types, bias], lines, [("%r", out)])


def arguments(shape: tuple[int, int, int, int], dtype: str, swapped: bool, exact: bool) -> list[Array]:
    batches, rows, depth, columns = shape
    random = np.random.default_rng(sum(shape))
    left = random.integers(-9, 9, (batches, rows, depth)).astype(DTYPES[dtype])
    right = random.integers(-9, 9, (batches, depth, columns)).astype(DTYPES[dtype])
    if dtype in ("f32", "f64") and not exact:
        left, right = left / 7, right / 3
    bias = np.arange(columns).astype(DTYPES[dtype])
    if swapped:
        left, right = left.transpose(0, 2, 1), right.transpose(0, 2, 1)
    return [np.ascontiguousarray(x.astype(DTYPES[dtype])) for x in (left, right, bias)]


def result(text: str, device: str, encodings: str, load_on: LoadOn, given: list[Array]) -> Array:
    module = compiler.compile(text, targets=[PROFILE[device]], encodings=encodings)
    return np.asarray(load_on(module, device).main(*given))


SIZES = st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 70), st.integers(0, 40))
DTYPES_OF = {"reference": ("f32", "f64", "i32", "i8"), "opencl": ("f32", "i8"), "vulkan": ("f32", "f64", "i32", "i8")}


@pytest.mark.sampled(every=5)
@pytest.mark.parametrize(("device", "dtype"), [(device, x) for device, found in DTYPES_OF.items() for x in found])
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(shape=SIZES, swapped=st.booleans())
def test_any_shape(load_on: LoadOn, device: str, dtype: str, shape: tuple[int, int, int, int], swapped: bool) -> None:
    text, given = dot_text(shape, dtype, swapped), arguments(shape, dtype, swapped, device == "reference")
    plain = result(text, device, "none", load_on, given)
    for encodings in ("test", "always"):
        assert result(text, device, encodings, load_on, given).tobytes() == plain.tobytes(), encodings
    left, right = (x.transpose(0, 2, 1) if swapped else x for x in given[:2])
    np.testing.assert_allclose(plain, left @ right + given[2], rtol=1e-5, atol=1e-4)


@EACH_DEVICE
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 9, 1, 17), (1, 33, 129, 16)])
def test_shapes_at_the_edges_of_tiles(load_on: LoadOn, device: str, shape: tuple[int, int, int, int]) -> None:
    for swapped in (False, True) if device != "opencl" else (False,):
        text, given = dot_text(shape, "f32", swapped), arguments(shape, "f32", swapped, device == "reference")
        plain = result(text, device, "none", load_on, given)
        for encodings in ("test", "always", "default"):
            assert result(text, device, encodings, load_on, given).tobytes() == plain.tobytes(), (encodings, swapped)


@EACH_DEVICE
def test_constant_weights_of_as_many_rows_as_a_call_brings(load_on: LoadOn, device: str) -> None:
    """The weights are in tiles, the rows are not: few and many of them, on both sides of a tile, and weights that are
    contracted over their other axis.
    """
    jax = pytest.importorskip("jax")
    from jax import export

    weights = np.random.default_rng(0).integers(-9, 9, (21, 19)).astype(np.float32)
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("b, 21"), np.float32)
    text = export.export(jax.jit(lambda x: ((x @ weights) @ weights.T, x @ weights)))(shape).mlir_module()
    loaded = [
        load_on(compiler.compile(text, targets=[PROFILE[device]], encodings=encodings), device)
        for encodings in ("test", "always")
    ]
    for rows in (1, 7, 8, 19):
        x = np.random.default_rng(rows).integers(-9, 9, (rows, 21)).astype(np.float32)
        for program in loaded:
            there, back = program.main(x)
            np.testing.assert_array_equal(back, x @ weights)
            np.testing.assert_array_equal(there, x @ weights @ weights.T)


#: device -> under which options its target encodes dots of sizes that a call brings
ENCODED = {"reference": ["test"], "opencl": ["default", "always", "test"], "vulkan": ["always", "test"]}


def scores(x: Any, y: Any, n: Any) -> Any:
    """Rows against rows of four heads, as many on both sides; twice as many, and 21 rows, against the former."""
    heads = [n.transpose(n.reshape(z, (*z.shape[:2], 4, 8)), (0, 2, 1, 3)) for z in (x, y)]
    many = n.concatenate([x, x], 1)
    return n.einsum("bhqd,bhkd->bhqk", *heads), n.einsum("bqd,bkd->bqk", many, y), n.einsum("qd,bkd->bqk", x[0, :1], y)


@pytest.mark.sampled(every=2)
@EACH_DEVICE
@pytest.mark.parametrize("shape", ["b, s, 32", "b, 100, 32"])
def test_columns_of_which_a_call_brings_the_number(load_on: LoadOn, device: str, shape: str) -> None:
    """They are ordered, and in tiles where only the number of batches is unknown: fewer than a tile has, as many, and
    more; in the layout of a target, and in row-major order.
    """
    jax = pytest.importorskip("jax")
    from jax import export
    from jax import numpy as jnp

    given = jax.ShapeDtypeStruct(export.symbolic_shape(shape), np.float32)
    text = export.export(jax.jit(lambda x, y: scores(x, y, jnp)))(given, given).mlir_module()
    modules = {
        name: compiler.compile(text, targets=[PROFILE[device]], encodings=name)
        for name in ("none", "default", "always", "test")
    }
    loaded = [load_on(module, device) for module in modules.values()]
    assert [name for name, module in modules.items() if module != modules["none"]] == ENCODED[device]
    for batches, length in [(2, 1), (1, 7), (2, 8), (3, 15), (2, 16), (2, 17), (2, 50)] if "s" in shape else [(3, 100)]:
        random = np.random.default_rng(length)
        x, y = (random.integers(-9, 9, (batches, length, 32)).astype(np.float32) for _ in range(2))
        for program in loaded:
            for got, want in zip(program.main(x, y), scores(x, y, np), strict=True):
                np.testing.assert_array_equal(got, want, f"{batches} x {length}")


@pytest.mark.sampled(every=3)
@EACH_DEVICE
def test_programs_in_the_test_layout(
    cases: dict[str, Any],
    device: str,
    load_on: LoadOn,
    check: Callable[[Any, list[Array]], None],
    pytestconfig: pytest.Config,
) -> None:
    """Every program of these tests that has a dot, with all its dots encoded."""
    tried = 0
    for case in of_the_day(pytestconfig, cases.values(), 6):
        source = case.lowered()
        if "dot_general" not in str(source.as_text()):
            continue
        results = load_on(compiler.compile(source, targets=[PROFILE[device]], encodings="test"), device).main(
            *case.arguments()
        )
        check(case, list(results) if isinstance(results, tuple | list) else [results])
        tried += 1
    assert tried >= (2 if is_everyday(pytestconfig) else 5)


@pytest.mark.long
@pytest.mark.parametrize("encodings", ["test", "always"])
def test_every_phase_continues_to_the_same_bytes(encodings: str, tmp_path: Path) -> None:
    check_phases_continue(dot_text((2, 20, 30, 40), "f32", False), tmp_path, encodings=encodings)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(compiler.CompileError, match="encodings is .odd., one of default, none"):
        compiler.Compilation(encodings="odd")


@pytest.mark.parametrize("rows", [40, 16])
@pytest.mark.parametrize("columns", [96, 50])
def test_native_code_reads_constant_matrices_from_tiles(load_on: LoadOn, rows: int, columns: int) -> None:
    """Constants alone, from 32 rows on, with a multiple of 32 columns. The bits are those of row-major order."""
    pytest.importorskip("llvmlite")
    jax = pytest.importorskip("jax")
    random = np.random.default_rng(0)
    x, y, w = (random.standard_normal(s).astype(np.float32) for s in ((rows, 130), (130, columns), (130, columns)))

    def product(x: Any, y: Any) -> Any:
        return x @ w, x @ y

    text = jax.jit(product).lower(x, y).as_text()
    layouts, found = [], []
    for encodings in ("default", "none"):
        schedules = Compilation(["cpu"], encodings=encodings).text(text, "hl_seq")
        layouts.append("tiles = [32, 1]" in schedules)
        found.append(load_on(compiler.compile(text, targets=["cpu"], encodings=encodings), "cpu").main(x, y))
    assert layouts == [rows >= 32 and columns % 32 == 0, False]
    for got, plain, right in zip(*found, (w, y), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(plain))
        np.testing.assert_allclose(np.asarray(got), x @ right, rtol=1e-5, atol=1e-4)
