"""`vm.Predictor`: a dict of columns in, a dict of columns out, in the batches that a module takes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.hal import registry
from orchestrion.hal.registry import DriverStatus
from orchestrion.vm import predictor as predictors
from orchestrion.vm.errors import CallerError, LoadError

pytest.importorskip("jax")

import jax

from orchestrion import compiler

Compiled = Callable[[str], bytes]
F32 = np.float32


def _layer(params: Any, x: Any) -> Any:
    return {"y": x @ params["w"], "n": x.sum(1)}


def _dynamic(function: Callable[..., Any], *texts: str) -> bytes:
    scope = jax.export.SymbolicScope(["b >= 2", "b <= 8"])
    shapes = [jax.export.symbolic_shape(text, scope=scope) for text in texts]
    return compiler.compile(function, *[jax.ShapeDtypeStruct(shape, F32) for shape in shapes], targets=["reference"])


def _static(function: Callable[..., Any], *shapes: tuple[int, ...]) -> bytes:
    return compiler.compile(function, *[np.zeros(shape, F32) for shape in shapes], targets=["reference"])


SOURCES: dict[str, Callable[[], bytes]] = {
    "four rows": lambda: _static(lambda x, y: (x * 2 + y, x.sum(1)), (4, 3), (4, 3)),
    "two to eight rows": lambda: _dynamic(lambda x: {"twice": x * 2}, "b, 3"),
    "rows of any length": lambda: _dynamic(lambda x: x - x[:, :1], "b, n"),
    "a mean": lambda: _static(lambda x: x.mean(), (4, 3)),
    "square": lambda: _dynamic(lambda x: x + 1, "b, b"),
    "twice as many": lambda: _dynamic(lambda x, y: (x, y), "2*b, 3", "b, 3"),
    "weights": lambda: compiler.compile(
        _layer, {"w": np.zeros((3, 2), F32)}, np.zeros((4, 3), F32), targets=["reference"]
    ),
    "a dict": lambda: compiler.compile(
        lambda d: {"s": d["a"] + d["b"]}, {"a": np.zeros(4, F32), "b": np.zeros(4, F32)}, targets=["reference"]
    ),
}


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    known: dict[str, bytes] = {}
    return lambda name: known.setdefault(name, known.get(name) or SOURCES[name]())


def predictor(blob: bytes, **options: Any) -> vm.Predictor:
    return vm.Predictor(blob, "reference", **options)


def rows(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(count).normal(size=(count, *shape)).astype(F32)


@pytest.mark.parametrize("count", [1, 4, 10])
def test_batches_of_one_size_are_padded_and_cut(compiled: Compiled, count: int) -> None:
    made = predictor(compiled("four rows"))
    x, y = rows(count, 3), rows(count, 3) + 1
    found = made({"x": x, "y": y})
    assert list(found) == ["result[0]", "result[1]"]
    np.testing.assert_array_equal(found["result[0]"], x * 2 + y)
    np.testing.assert_allclose(found["result[1]"], x.sum(1), rtol=1e-6)
    assert len(made.program.statistics()["calls"]) == -(-count // 4)


@pytest.mark.parametrize(("count", "calls"), [(1, 1), (5, 1), (8, 1), (17, 3)])
def test_batches_keep_the_bounds_of_a_symbol(compiled: Compiled, count: int, calls: int) -> None:
    made = predictor(compiled("two to eight rows"))
    x = rows(count, 3)
    np.testing.assert_array_equal(made({"x": x})["twice"], x * 2)
    assert len(made.program.statistics()["calls"]) == calls
    assert made.axis({"x": 1}) == (True, 2, 8)


def test_rows_of_the_arguments_rank_are_a_call_each(compiled: Compiled) -> None:
    made = predictor(compiled("four rows"))
    x = rows(3, 4, 3)
    found = made({"x": x, "y": x})
    np.testing.assert_array_equal(found["result[0]"], x * 3)
    assert found["result[1]"].shape == (3, 4) and len(made.program.statistics()["calls"]) == 3


def test_rows_of_different_shapes(compiled: Compiled) -> None:
    x = np.empty(5, object)
    for place, length in enumerate([2, 3, 2, 4, 3]):
        x[place] = rows(1, length)[0]
    made = predictor(compiled("rows of any length"))
    found = made({"x": x})["result"]
    assert found.dtype == object and len(made.program.statistics()["calls"]) == 3
    for got, row in zip(found, x, strict=True):
        np.testing.assert_array_equal(got, row - row[0])


def test_fixed_arguments_are_on_the_device_once(compiled: Compiled) -> None:
    w, x = rows(3, 2), rows(4, 3)
    made = predictor(compiled("weights"), fixed={"params['w']": w})
    assert made.names.results == ("n", "y")
    for _ in range(2):
        np.testing.assert_allclose(made({"x": x})["y"], x @ w, rtol=1e-5)
    assert [call["host_to_device_bytes"] for call in made.program.statistics()["calls"]] == [x.nbytes, x.nbytes]
    with pytest.raises(CallerError, match="'v' is no argument of"):
        predictor(compiled("weights"), fixed={"v": w})
    with pytest.raises(CallerError, match=r"params\['w'\]: expected f32\[3,2\], got f32\[4,3\]"):
        predictor(compiled("weights"), fixed={"params['w']": x})


def test_names_of_a_dict_and_kept_columns(compiled: Compiled) -> None:
    made = predictor(compiled("a dict"), keep=["id"])
    found = made({"a": rows(2, 4), "b": rows(2, 4), "id": np.array([7, 8])})
    assert found.keys() == {"s", "id"} and found["id"].tolist() == [7, 8]
    with pytest.raises(CallerError, match="column 's' of keep has the name of a result"):
        predictor(compiled("a dict"), keep=["s"])


def test_no_rows(compiled: Compiled) -> None:
    made = predictor(compiled("two to eight rows"))
    made({"x": rows(2, 3)})
    assert made({"x": rows(0, 3)})["twice"].shape == (0, 3)


#: program, rows, words of the error
REFUSED: list[tuple[str, dict[str, tuple[int, ...]], str]] = [
    ("a mean", {"x": (3,)}, r"no batch dimension is common to x: f32\[4,3\] and result: f32\[\]"),
    ("square", {"x": (3,)}, "b is not only the leading dimension"),
    ("twice as many", {"x": (3,), "y": (3,)}, "no batch dimension is common to x: .* and y: "),
    ("four rows", {"x": (3,), "y": (4, 3)}, "rows of x lack the leading dimension of the argument, and rows of y have"),
    ("four rows", {"x": (), "y": ()}, r"x: expected rows of rank 1, for batches, or rank 2 for f32\[4,3\], got 0"),
    ("four rows", {"x": (3,)}, "column 'y' is missing; rows are for x, y of main"),
    ("four rows", {"x": (3,), "y": (3,), "z": ()}, "column 'z' is no argument and not in keep"),
    ("four rows", {"x": (5,), "y": (5,)}, r"expected f32\[4,3\], got f32\[4,5\]"),
]


@pytest.mark.parametrize(("name", "shapes", "words"), REFUSED, ids=[f"{row[0]} {row[1]}" for row in REFUSED])
def test_refused_rows(compiled: Compiled, name: str, shapes: dict[str, tuple[int, ...]], words: str) -> None:
    made = predictor(compiled(name))
    with pytest.raises(CallerError, match=words):
        made({column: rows(4, *shape) for column, shape in shapes.items()})


def test_refused_columns_and_functions(compiled: Compiled) -> None:
    made = predictor(compiled("four rows"))
    with pytest.raises(CallerError, match="different numbers of rows: {'x': 4, 'y': 5}"):
        made({"x": rows(4, 3), "y": rows(5, 3)})
    made({"x": rows(4, 3), "y": rows(4, 3)})
    with pytest.raises(CallerError, match="which is one row a call; the rows before had many rows a call"):
        made({"x": rows(2, 4, 3), "y": rows(2, 4, 3)})
    with pytest.raises(CallerError, match="no function 'nope': the module exports main"):
        predictor(compiled("four rows"), function="nope")


def test_the_reference_device_is_used_only_if_it_is_named(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    there = [DriverStatus(row.name, row.devices, row.reason) for row in registry.list_devices()]
    there = [row for row in there if row.name in predictors.NAMED_ONLY]
    monkeypatch.setattr(
        predictors, "list_devices", lambda: (*there, DriverStatus("opencl", (), "pyopencl is not installed"))
    )
    with pytest.raises(LoadError, match="only the device reference runs the module") as caught:
        vm.Predictor(compiled("four rows"))
    assert "opencl: pyopencl is not installed" in str(caught.value) and "null" not in str(caught.value)


def test_the_device_is_the_first_that_runs_the_module(compiled: Compiled) -> None:
    opencl = next(row for row in registry.list_devices() if row.name == "opencl")
    if not opencl.devices:
        pytest.skip(opencl.reason)
    made = vm.Predictor(compiler.compile(lambda x: x + 1, np.zeros((2, 2), F32)))
    assert made.program.device.info.driver not in predictors.NAMED_ONLY
    with pytest.raises(LoadError, match="opencl: "):
        vm.Predictor(compiled("four rows"))
