"""Arrays of a call on the command line: by position, by name, from archives; likewise for results."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import vm
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.tools import bench, run
from orchestrion.tools.call_arrays import NamedValues, arguments_of
from orchestrion.vm.exports import Value

B, W = np.arange(3, dtype=np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
X, SCALE = np.full((2, 4), 0.5, np.float32), np.float32(2)
NAMED = {"params['b']": B, "params['w']": W, "x": X, "scale": SCALE}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A function of a dict, an array and a keyword argument that returns a dict."""
    jax = pytest.importorskip("jax")
    from orchestrion import compiler

    def main(params: Any, x: Any, *, scale: Any) -> Any:
        return {"y": (x @ params["w"] + params["b"]) * scale, "sums": [x.sum()]}

    path = tmp_path_factory.mktemp("module") / "m.fb"
    params = {"w": jax.numpy.asarray(W), "b": jax.numpy.asarray(B)}
    path.write_bytes(compiler.compile(main, params, X, kwargs={"scale": SCALE}, targets=["reference"]))
    return path


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("w.npy", W.astype(">f4"))
    np.savez("params.npz", w=W, b=B)
    np.savez("leaves.npz", B, W)
    np.savez("all.npz", **NAMED)  # type: ignore[arg-type]
    np.savez("in_order.npz", *NAMED.values())
    np.savez("dotted.npz", **{"params.w": W, "params/b": B, "x": X, "scale": SCALE})
    np.savez("odd.npz", w=W, c=B)
    np.savez("one.npz", B)
    np.savez("twice.npz", **{"params.w": W, "params/w": W})


# the values of --input, all of which give NAMED
WAYS = [
    "params.b=0,1,2 params.w=@w.npy x=0.5 scale=2",
    "scale=f32=2 x=2x4xf32=0.5 params/w=@w.npy params['b']=3xf32=0,1,2",
    "params=@params.npz x=0.5 scale=2",
    "params=@leaves.npz 2x4xf32=0.5 f32=2",
    "2x4xf32=0.5 params=@params.npz scale=2",
    "3xf32=0,1,2 @w.npy 2x4xf32=0.5 f32=2",
    "x=0.5 3xf32=0,1,2 @w.npy f32=2",
    "@all.npz",
    "@in_order.npz",
    "@dotted.npz",
]


@pytest.mark.parametrize("way", WAYS)
def test_arguments(way: str, module: Path) -> None:
    with vm.load(module) as program:
        found = arguments_of(program, "main", way.split())
    assert [array.dtype for array in found] == [np.float32] * 4
    for got, want in zip(found, NAMED.values(), strict=True):
        np.testing.assert_array_equal(got, want)


# (values of --input, what is said)
BAD = [
    ("", "'main' takes 4 arguments, got 0; params['b'] is missing"),
    ("@in_order.npz f32=1", "'main' takes 4 arguments, got 5"),
    ("params.w=@w.npy x=1 scale=2", "'main' takes 4 arguments, got 3; params['b'] is missing"),
    (
        "params=1",
        "params is a tree of arrays (params['b'], params['w']): give an .npz file, or one of them by its name",
    ),
    ("params=@w.npy", "params is a tree of arrays (params['b'], params['w']): give an .npz file"),
    ("params=@odd.npz", "odd.npz: 'c' is no argument of params; there are params['b'], params['w'], x, scale"),
    ("@params.npz x=0.5 scale=2", "params.npz: 'w' is no argument; there are params['b'], params['w'], x, scale"),
    ("params=@one.npz", "one.npz: 1 arrays, params has 2"),
    ("@twice.npz", "twice.npz: argument params['w'] is there twice"),
    ("params=@params.npz params.w=1", "argument params['w'] is given twice"),
    ("x=@all.npz", "all.npz: an archive of 4 arrays, one array expected"),
    ("y=1", "'y=1': 'y' is neither an argument nor a type: there are params['b'], params['w'], x, scale"),
    ("params.v=1", "'params.v' is neither an argument nor a type"),
    ("x=1,2", "array '2x4xf32=1,2': 2 values for 8 elements"),
    ("x=some", "array '2x4xf32=some': not all values are f32"),
    ("w.npy", "array 'w.npy': expected DIMSxTYPE=VALUES"),
    ("4xq32=1", "array '4xq32=1': no element type 'q32'"),
    ("params=@nothing.npz", "nothing.npz: No such file"),
]


@pytest.mark.parametrize(("line", "told"), BAD, ids=[line for line, _ in BAD])
def test_what_is_wrong_is_one_line(line: str, told: str, module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(module), *(f"--input={text}" for text in line.split())]) == 1
    error = capsys.readouterr().err
    assert error.startswith("vm-run: ") and told in error and error.count("\n") == 1


def test_results_go_by_name(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [str(module), "--input=@all.npz"]
    assert run.main([*command, "--output=y=@y.npy"]) == 0
    want = (X @ W + B) * SCALE
    np.testing.assert_allclose(np.load("y.npy"), want, rtol=1e-6)
    assert re.fullmatch(r"result\['sums'\]\[0\]: f32=4\.\n", capsys.readouterr().out), "what is saved is not printed"
    assert run.main([*command, "--output=@results.npz"]) == 0
    assert capsys.readouterr().out == ""
    with np.load("results.npz") as saved:
        assert sorted(saved) == ["result['sums'][0]", "result['y']"]
    for expected in ("@results.npz", "y=@y.npy", "sums.0=4", "result.sums=@one.npz"):
        np.savez("one.npz", np.float32(4))
        assert run.main([*command, f"--expected-output={expected}"]) == 0
        assert "as expected" in capsys.readouterr().out
    assert run.main([*command, "--expected-output=sums.0=5"]) == 1
    assert "result['sums'][0] differs in 1 of 1 elements" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("--output=z=@z.npy", "'z' is neither a result nor a type: there are result['sums'][0], result['y']"),
        ("--output=result=@z.npy", "2 results for one file"),
        ("--expected-output=z=1", "'z' is neither a result nor a type"),
    ],
)
def test_results_that_are_not_there(flag: str, told: str, module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([str(module), "--input=@all.npz", flag]) == 1
    assert told in capsys.readouterr().err
    assert not Path("z.npy").exists()


def test_each_output_takes_the_next_result(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--output=@0.npy", "--output=@1.npy"]
    assert run.main([str(module), "--input=@all.npz", *flags]) == 0
    assert (np.load("0.npy").shape, np.load("1.npy").shape) == ((), (2, 3))
    assert run.main([str(module), "--input=@all.npz", *flags, "--output=@2.npy"]) == 1
    assert "--output=@2.npy: 0 results for one file" in capsys.readouterr().err


def test_measurements_and_comparisons_take_the_same(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = ["--input=params=@params.npz", "--input=x=1", "--input=scale=2"]
    assert bench.main([str(module), *inputs, "--repeat=2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["benchmarks"]
    assert run.main([str(module), *inputs, "--device=reference", "--compare=reference"]) == 0
    assert "2 results of reference agree with reference" in capsys.readouterr().out


def test_names_that_are_the_same_in_dots_are_exact_only() -> None:
    f32 = BY_NAME["f32"]
    values = [Value("p['a.b']", f32, ()), Value("p['a']['b']", f32, ()), Value("p['c=d']", f32, (-1,), ("n",))]
    places = NamedValues("argument", values, [value.name for value in values])
    assert places.find("p.a.b") is None and places.below("p") == [0, 1, 2]
    assert [places.find(value.name) for value in values] == [0, 1, 2]
    assert places.split("p['c=d']=4xf32=1") == ("p['c=d']", "4xf32=1")
    assert places.split("f32=1") is None and places.split("@p=q.npy") is None
