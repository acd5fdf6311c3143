"""The LAPACK library: its results satisfy their definitions, and it refuses invalid arguments."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from orchestrion.hal.libraries.registry import Spec, find

pytest.importorskip("scipy")

RANDOM = np.random.default_rng(5)
TYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
BATCHES = pytest.mark.parametrize("batch", [(), (3,), (2, 1)])
I32 = np.int32


def run(name: str, inputs: list[Any], outputs: list[Any], **attributes: Any) -> list[np.ndarray[Any, Any]]:
    """Runs a function on arrays after the checks that a device makes. Outputs are (shape, type)."""
    function = find(f"lapack.{name}")
    arrays = [np.array(x, order="C") for x in inputs]
    made = [np.full(shape, 77, dtype) for shape, dtype in outputs]
    assert function.check is not None
    function.check(*([Spec(array.dtype, array.shape) for array in group] for group in (arrays, made)), attributes)
    for array in arrays:
        array.flags.writeable = False
    function.run(arrays, made, attributes)
    return made


def values(dtype: Any, *shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(dtype)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-4 if got.dtype == np.float32 else 1e-11, atol=1e-4)


@TYPES
@BATCHES
@pytest.mark.parametrize("lower", [False, True])
def test_potrf(dtype: Any, batch: tuple[int, ...], lower: bool) -> None:
    """Only one triangle is read and written."""
    root = values(dtype, *batch, 4, 4) + 4 * np.eye(4, dtype=dtype)
    whole = root @ np.swapaxes(root, -1, -2)
    mask = np.tril(np.ones((4, 4), bool)) if lower else np.triu(np.ones((4, 4), bool))
    factor, info = run("potrf", [np.where(mask, whole, 9)], [(whole.shape, dtype), (batch, I32)], lower=lower)
    assert not info.any() and (factor[..., ~mask] == 9).all()
    factor = np.where(mask, factor, 0)
    turned = np.swapaxes(factor, -1, -2)
    close(factor @ turned if lower else turned @ factor, whole)


def test_potrf_of_what_is_not_definite() -> None:
    _, info = run("potrf", [np.diag([1.0, -1.0, 1.0])], [((3, 3), np.float64), ((), I32)])
    assert info == 2


@TYPES
@BATCHES
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (5, 3), (2, 4)])
def test_getrf(dtype: Any, batch: tuple[int, ...], rows: int, columns: int) -> None:
    a, least = values(dtype, *batch, rows, columns), min(rows, columns)
    lu, pivots, info = run("getrf", [a], [(a.shape, dtype), ((*batch, least), I32), (batch, I32)])
    assert not info.any()
    for index in np.ndindex(batch):
        lower = np.tril(lu[index], -1)[:, :least] + np.eye(rows, least)
        product = lower @ np.triu(lu[index])[:least]
        for place, other in reversed(list(enumerate(pivots[index] - 1))):
            product[[place, other]] = product[[other, place]]
        close(product.astype(dtype), a[index])


@TYPES
@BATCHES
def test_gesv(dtype: Any, batch: tuple[int, ...]) -> None:
    a, x = values(dtype, *batch, 4, 4) + 4 * np.eye(4, dtype=dtype), values(dtype, *batch, 4, 2)
    found, info = run("gesv", [a, a @ x], [(x.shape, dtype), (batch, I32)])
    close(found, x)
    assert not info.any()
    assert run("gesv", [np.zeros_like(a), x], [(x.shape, dtype), (batch, I32)])[1].all()


@TYPES
@BATCHES
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (5, 3)])
def test_geqrf_and_orgqr(dtype: Any, batch: tuple[int, ...], rows: int, columns: int) -> None:
    a = values(dtype, *batch, rows, columns)
    packed, tau = run("geqrf", [a], [(a.shape, dtype), ((*batch, columns), dtype)])
    (q,) = run("orgqr", [packed, tau], [(a.shape, dtype)])
    close(q @ np.triu(packed)[..., :columns, :], a)
    close(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(columns, dtype=dtype), (*batch, columns, columns)))


@TYPES
@BATCHES
@pytest.mark.parametrize("trans", [False, True])
def test_ormqr(dtype: Any, batch: tuple[int, ...], trans: bool) -> None:
    """Multiplication from both sides, also with a q for all rows."""
    a, c = values(dtype, *batch, 5, 3), values(dtype, *batch, 5, 2)
    packed, tau = run("geqrf", [a], [(a.shape, dtype), ((*batch, 3), dtype)])
    whole = np.concatenate([packed, np.zeros((*batch, 5, 2), dtype)], axis=-1)
    (q,) = run("orgqr", [whole, tau], [(whole.shape, dtype)])
    q = np.swapaxes(q, -1, -2) if trans else q
    close(run("ormqr", [packed, tau, c], [(c.shape, dtype)], trans=trans)[0], q @ c)
    turned = np.swapaxes(c, -1, -2)
    close(run("ormqr", [packed, tau, turned], [(turned.shape, dtype)], trans=trans, left=False)[0], turned @ q)


@TYPES
@BATCHES
@pytest.mark.parametrize("lower", [False, True])
def test_syevd(dtype: Any, batch: tuple[int, ...], lower: bool) -> None:
    root = values(dtype, *batch, 4, 4)
    a = root + np.swapaxes(root, -1, -2)
    given = np.tril(a) if lower else np.triu(a)
    vectors, found, info = run("syevd", [given], [(a.shape, dtype), ((*batch, 4), dtype), (batch, I32)], lower=lower)
    assert not info.any()
    close(a @ vectors, vectors * found[..., None, :])
    close(run("syevd", [given], [((*batch, 4), dtype), (batch, I32)], lower=lower)[0], found)


@TYPES
@BATCHES
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (5, 3), (2, 4)])
def test_gesdd(dtype: Any, batch: tuple[int, ...], rows: int, columns: int, whole: bool) -> None:
    a, least = values(dtype, *batch, rows, columns), min(rows, columns)
    left, right = (rows, columns) if whole else (least, least)
    shapes = [((*batch, rows, left), dtype), ((*batch, right, columns), dtype), (batch, I32)]
    s, u, vt, info = run("gesdd", [a], [((*batch, least), dtype), *shapes])
    assert not info.any()
    close((u[..., :least] * s[..., None, :]) @ vt[..., :least, :], a)
    close(np.swapaxes(u, -1, -2) @ u, np.broadcast_to(np.eye(left, dtype=dtype), (*batch, left, left)))
    close(run("gesdd", [a], [((*batch, least), dtype), (batch, I32)])[0], s)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["syevd", "gesdd"])
def test_one_matrix_of_a_batch_is_not_finite(name: str, value: float) -> None:
    a = np.stack([np.eye(3), np.full((3, 3), value)])
    found, info = run(name, [a], [((2, 3), np.float64), ((2,), I32)])
    assert list(info) == [0, 1]
    assert (found[0] == 1).all() and np.isnan(found[1]).all()


F32, SQUARE = np.float32, (4, 4)


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "attributes", "message"),
    [
        ("potrf", [(4, 3)], [(4, 3), ()], {}, "a has shape [4, 3], expected a square matrix"),
        ("potrf", [(4,)], [(4,), ()], {}, "a has shape [4], expected rank 2 at least"),
        ("potrf", [SQUARE], [SQUARE, (1,)], {}, "result 1 has shape [1], expected []"),
        ("potrf", [SQUARE], [SQUARE], {}, "1 results, expected 2"),
        ("potrf", [SQUARE], [SQUARE, ()], {"lower": "L"}, "attribute lower must be a bool, is 'L'"),
        ("getrf", [(4, 3)], [(4, 3), (4,), ()], {}, "result 1 has shape [4], expected [3]"),
        ("gesv", [SQUARE, (3, 2)], [(3, 2), ()], {}, "b has shape [3, 2], expected [4, 2]"),
        ("gesv", [SQUARE, (4,)], [(4,), ()], {}, "b has shape [4], expected [4, 4]"),
        ("geqrf", [(2, 4, 3)], [(2, 4, 3), (2, 4)], {}, "result 1 has shape [2, 4], expected [2, 3]"),
        ("orgqr", [(3, 4), (3,)], [(3, 4)], {}, "tau of shape [3] for 3 rows and 4 columns"),
        ("orgqr", [(4, 3), (4,)], [(4, 3)], {}, "tau of shape [4] for 4 rows and 3 columns"),
        ("orgqr", [(4, 3), ()], [(4, 3)], {}, "tau of shape [] for 4 rows and 3 columns"),
        ("ormqr", [(4, 3), (3,), (5, 2)], [(5, 2)], {}, "a has shape [4, 3], expected [5, 3]"),
        ("ormqr", [(4, 3), (4,), (4, 2)], [(4, 2)], {}, "tau of shape [4] for a of shape [4, 3]"),
        ("gees", [SQUARE], [SQUARE, (4,), (3,), ()], {}, "result 2 has shape [3], expected [4]"),
        ("geev", [SQUARE], [(4,), (4,), ()], {"left": True}, "3 results, expected 5"),
        ("gehrd", [SQUARE], [SQUARE, (3,), ()], {"high": 5}, "rows 1 to 5 of 4"),
        ("gtsv", [(3,), (4,), (4,), (4, 2)], [(4, 2), ()], {}, "dl has shape [3], expected [4]"),
        ("sytrd", [SQUARE], [SQUARE, (4,), (4,), (3,), ()], {}, "result 2 has shape [4], expected [3]"),
        ("syevd", [SQUARE], [SQUARE, (3,), ()], {}, "result 1 has shape [3], expected [4]"),
        ("gesdd", [(5, 3)], [(3,), (5, 5), (3, 4), ()], {}, "result 1 has shape [5, 5], expected [5, 3]"),
        ("gesdd", [(5, 3)], [(3,), (5, 3), (3, 3)], {}, "3 results, expected 4"),
    ],
)
def test_calls_that_are_refused(name: str, inputs: Any, outputs: Any, attributes: Any, message: str) -> None:
    function = find(f"lapack.{name}")
    info = np.dtype(I32) if name not in ("geqrf", "orgqr", "ormqr") else np.dtype(F32)
    results = [Spec(np.dtype(F32), shape) for shape in outputs[:-1]] + [Spec(info, outputs[-1])]
    if name == "getrf":
        results[1] = Spec(info, outputs[1])
    assert function.check is not None
    with pytest.raises(ValueError) as refused:
        function.check([Spec(np.dtype(F32), shape) for shape in inputs], results, attributes)
    assert message in str(refused.value)


def test_info_is_a_whole_number() -> None:
    check = find("lapack.potrf").check
    assert check is not None
    with pytest.raises(ValueError, match="result 1 is of float32, expected int32"):
        check([Spec(np.dtype(F32), SQUARE)], [Spec(np.dtype(F32), SQUARE), Spec(np.dtype(F32), ())], {})


SQUARE = (60, 60)


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("geqrf", [SQUARE], [SQUARE, (60,)]),
        ("gees", [SQUARE], [SQUARE, SQUARE, (60,), (60,), ()]),
        ("geev", [SQUARE], [(60,), (60,), SQUARE, SQUARE, ()]),
        ("gehrd", [SQUARE], [SQUARE, (59,), ()]),
        ("gtsv", [(60,), (60,), (60,), SQUARE], [SQUARE, ()]),
        ("sytrd", [SQUARE], [SQUARE, (60,), (59,), (59,), ()]),
        ("gesdd", [SQUARE], [(60,), SQUARE, SQUARE, ()]),
        ("gesdd", [(200, 20)], [(20,), (200, 200), (20, 20), ()]),
        ("gesdd", [SQUARE], [(60,), ()]),
        ("gesv", [SQUARE, SQUARE], [SQUARE, ()]),
        ("getrf", [SQUARE], [SQUARE, (60,), ()]),
        ("orgqr", [SQUARE, (60,)], [SQUARE]),
        ("ormqr", [SQUARE, (60,), SQUARE], [SQUARE]),
        ("potrf", [SQUARE], [SQUARE, ()]),
        ("syevd", [SQUARE], [SQUARE, (60,), ()]),
    ],
)
def test_a_run_takes_no_more_memory_than_is_said(name: str, inputs: Any, outputs: Any) -> None:
    """`memory.temporaries` counts results twice, because SciPy makes some of its own."""
    function, rng = find(f"lapack.{name}"), np.random.default_rng(1)
    arrays = [rng.normal(size=shape) for shape in inputs]
    arrays[0] = arrays[0] + 100 * np.eye(*inputs[0]) if len(inputs[0]) > 1 else arrays[0] + 100
    whole = {"getrf": 2, "geqrf": 0, "orgqr": 0, "ormqr": 0}.get(name, 1)
    types = [np.float64] * (len(outputs) - whole) + [np.int32] * whole
    results = [np.empty(shape, kind) for shape, kind in zip(outputs, types, strict=True)]
    attributes = {"geev": {"right": True}, "gehrd": {"high": 60}}.get(name, {})
    function.run(arrays, results, attributes)
    tracemalloc.start()
    try:
        function.run(arrays, results, attributes)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    taken = (1 + function.workspace) * sum(x.nbytes for x in arrays) + sum(x.nbytes for x in results)
    assert peak <= taken + 8192
