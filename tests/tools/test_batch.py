"""vm-batch on this machine: inputs, batches, failures, workers that die, resumed runs."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from batches import COLUMNS, InlineWorkers, KillsOne, check, compile_modules, rows

from orchestrion.tools import batch
from orchestrion.tools.batching.local import LocalWorkers

GOLDEN = Path(__file__).parents[1] / "golden"
REFERENCE = "--device=reference"


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modules")
    compile_modules(folder)
    return folder


class Run:
    """Runs vm-batch with workers in this process. `workers` and `options` are those of the last run."""

    workers: InlineWorkers

    def __init__(self, modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._modules = modules
        self._monkeypatch = monkeypatch

    def __call__(self, module: str, *arguments: str, **options: Any) -> int:
        def start(_: Any, setup: Any) -> InlineWorkers:
            self.workers = InlineWorkers(setup, **options)
            return self.workers

        self._monkeypatch.setattr(batch, "start_workers", start)
        return batch.main([str(self._modules / f"{module}.fb"), "--output=out", REFERENCE, *arguments])


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch, modules: Path, tmp_path: Path) -> Run:
    """`inline("dynamic", "--input=in")`, run in `tmp_path` on the reference device."""
    monkeypatch.chdir(tmp_path)
    return Run(modules, monkeypatch)


def write_folder(x: np.ndarray) -> None:
    """Writes the folder `in`, in which every third file is an `.npz`."""
    Path("in").mkdir()
    for index, row in enumerate(x):
        if index % 3:
            np.save(f"in/{index:03d}.npy", row)
        else:
            np.savez(f"in/{index:03d}.npz", x=row)


def write_parquet(x: np.ndarray) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    lists = pa.array(list(x), pa.list_(pa.float32(), COLUMNS))
    pq.write_table(pa.table({"x": lists}), "in.parquet", row_group_size=7)


#: kind of source -> what it is called, and how it is written
SOURCES: dict[str, tuple[str, Callable[[np.ndarray], Any]]] = {
    "folder": ("in", write_folder),
    "npz": ("in.npz", lambda x: np.savez("in.npz", x=x)),
    "compressed": ("in.npz", lambda x: np.savez_compressed("in.npz", x=x)),
    "parquet": ("in.parquet", write_parquet),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("module", ["dynamic", "four", "one"])
def test_sources_and_batches(inline: Run, module: str, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = rows(18)
    path, write = SOURCES[source]
    write(x)
    assert inline(module, f"--input={path}") == 0
    check(Path("out"), x)
    assert capsys.readouterr().out.startswith("18 inputs: 18 done, 0 were done before, 0 failed; ")
    run = json.loads(Path("out/run.json").read_text())
    assert (run["function"], run["total"], run["device"]) == ("main", 18, "reference (NumPy)")
    assert [row[0] for row in run["files"]] == ([path.name for path in sorted(Path("in").glob("*"))])


def test_parquet_columns(modules: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Numbers, lists of lists, flat lists that take the argument's shape, nulls."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    from orchestrion.schema.dtypes import BY_NAME
    from orchestrion.tools.batching.parquet import ParquetSource
    from orchestrion.tools.cli import InputError

    f32, x = BY_NAME["f32"], np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    columns = {
        "number": pa.array([1, 2, 3, None], pa.float32()),
        "nested": pa.array(x.tolist(), pa.list_(pa.list_(pa.float32()))),
        "fixed": pa.array(x.tolist(), pa.list_(pa.list_(pa.float32(), 3), 2)),
        "flat": pa.array(x.reshape(4, 6).tolist(), pa.list_(pa.float32())),
        "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(x),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=3)
    wanted = {name: (f32, () if name == "number" else (-1, 2, 3)) for name in columns}
    source = ParquetSource(tmp_path / "t.parquet", wanted)
    assert source.count == 4
    for index in (2, 0):
        found = source.read(index)
        assert found.pop("number") == index + 1
        for name, array in found.items():
            np.testing.assert_array_equal(array, x[index], name)
            assert array.dtype == np.float32
    with pytest.raises(InputError, match="column 'number' is null"):
        source.read(3)
    with pytest.raises(InputError, match="has no array 'z' and has 'fixed', which is no argument"):
        ParquetSource(tmp_path / "t.parquet", {"z": (f32, ())})


def test_parquet_without_pyarrow(
    inline: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    Path("in.parquet").write_bytes(b"PAR1")
    assert inline("dynamic", "--input=in.parquet") == 1
    assert "in.parquet: reading Parquet needs pyarrow: python -m pip install pyarrow" in capsys.readouterr().err


def test_a_device_that_computes_nothing_is_named(inline: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("in.npz", x=rows(3))
    assert inline("dynamic", "--input=in.npz", "--device=null") == 0
    assert "vm-batch: note: device null computes nothing: results mean nothing\n" in capsys.readouterr().err


def test_batches_have_the_sizes_that_the_module_takes(inline: Run) -> None:
    np.savez("in.npz", x=rows(150))
    for module, sizes in (("dynamic", [64, 64, 22]), ("four", [64, 64, 22]), ("one", [64, 64, 22])):
        assert inline(module, "--input=in.npz", f"--output={module}") == 0
        assert [len(task.inputs) for task in inline.workers.tasks] == sizes
    assert inline("dynamic", "--input=in.npz", "--output=hundred", "--batch-size=100") == 0
    assert [len(task.inputs) for task in inline.workers.tasks] == [100, 50]


def test_fixed_arguments(inline: Run, modules: Path) -> None:
    from orchestrion import compiler

    x, w = rows(6), rows(2)
    blob = compiler.compile(
        lambda params, x: x @ params["w"].T, {"w": w * 0}, np.zeros((4, COLUMNS), np.float32), targets=["reference"]
    )
    (modules / "weights.fb").write_bytes(blob)
    np.savez("in.npz", x=x)
    np.savez("w.npz", **{"params['w']": w})
    assert inline("weights", "--input=in.npz", "--fixed=w.npz") == 0
    with np.load("out/000005.npz") as found:
        np.testing.assert_allclose(found["result"], w @ x[5])


def test_inputs_that_fail_are_listed_and_may_be_repaired(inline: Run, capsys: pytest.CaptureFixture[str]) -> None:
    x = rows(20)
    write_folder(x)
    Path("in/004.npy").write_bytes(b"nothing")
    np.save("in/007.npy", np.zeros(COLUMNS))
    np.savez("in/009.npz", y=x[9])
    assert inline("four", "--input=in") == 1
    check(Path("out"), x, without=(4, 7, 9))
    failed = json.loads(Path("out/failed.json").read_text())
    assert [(row["input"], row["file"]) for row in failed] == [(4, "004.npy"), (7, "007.npy"), (9, "009.npz")]
    for row, words in zip(failed, ("not a .npy file", "expected f32[4,3], got f64", "no array 'x'"), strict=True):
        assert words in row["reason"]
    said = capsys.readouterr()
    assert "20 inputs: 17 done, 0 were done before, 3 failed" in said.out
    assert "vm-batch: 3 of 20 inputs failed, see " in said.err and "input 4 (004.npy): " in said.err
    for index in (4, 7):
        np.save(f"in/{index:03d}.npy", x[index])
    np.savez("in/009.npz", x=x[9])
    assert inline("four", "--input=in") == 0
    check(Path("out"), x)
    assert "20 inputs: 3 done, 17 were done before, 0 failed" in capsys.readouterr().out
    np.save("in/001.npy", x[0])
    assert inline("four", "--input=in") == 1
    assert "input 1 (001.npy) has changed since it was done" in capsys.readouterr().err


def test_an_input_that_ends_its_worker_is_a_failure(inline: Run, capsys: pytest.CaptureFixture[str]) -> None:
    x = rows(70)
    np.savez("in.npz", x=x)
    assert inline("dynamic", "--input=in.npz", dies=lambda task: 66 in task.inputs) == 1
    check(Path("out"), x, without=[66])
    assert "66: 2 workers ended while they did it; the last was ended by SIGSEGV" in capsys.readouterr().err
    assert [task.inputs for task in inline.workers.tasks].count((66,)) == 2


def test_workers_that_end_while_they_start(inline: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("in.npz", x=rows(4))
    assert inline("dynamic", "--input=in.npz", starts=0) == 1
    assert "3 workers ended while they started; the last ended with status 7" in capsys.readouterr().err
    assert not Path("out/run.json").exists()


def test_nothing_is_left_to_do(inline: Run, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("in.npz", x=rows(4))
    assert [inline("dynamic", "--input=in.npz") for _ in range(2)] == [0, 0]
    assert capsys.readouterr().out.endswith("4 inputs: all have results in out\n")


#: what is done after a run of `dynamic` over `in.npz`, arguments of the next, words of its error
NEXT: list[tuple[Callable[[], Any], tuple[str, ...], str]] = [
    (lambda: None, ("four",), "its results are of another run: the module with digest "),
    (lambda: np.savez("in.npz", x=rows(5)), ("dynamic",), "of another run: input files with digest "),
    (lambda: Path("out/run.json").write_text("{}"), ("dynamic",), "run.json: not the file of a run: 'version'"),
    (lambda: Path("out/run.json").write_text('{"version": 2}'), ("dynamic",), "version 2, this vm-batch reads version"),
    (lambda: Path("out/run.json").unlink(), ("dynamic",), "has no run.json but 000000.npz"),
    (lambda: np.savez("w.npz", z=rows(1)), ("dynamic", "--fixed=w.npz"), "'z' is no argument: there are x"),
]


@pytest.mark.parametrize(("change", "arguments", "words"), NEXT, ids=[row[2] for row in NEXT])
def test_results_of_another_run_stay(
    inline: Run, change: Callable[[], Any], arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez("in.npz", x=rows(1))
    assert inline("dynamic", "--input=in.npz") == 0
    kept = Path("out/000000.npz").read_bytes()
    change()
    assert inline(arguments[0], "--input=in.npz", *arguments[1:]) == 1
    assert words in capsys.readouterr().err and Path("out/000000.npz").read_bytes() == kept


#: module, arguments, words of the error
REFUSED: list[tuple[str, tuple[str, ...], str]] = [
    ("dynamic", ("--input=nowhere",), "nowhere: No such file"),
    ("dynamic", ("--input=text.txt",), "inputs are a folder, an .npz file or a .parquet file"),
    ("dynamic", ("--input=empty",), "empty: there are no inputs"),
    ("dynamic", ("--input=mixed",), "b.txt: inputs are .npy and .npz files"),
    ("dynamic", ("--input=broken.npz",), "broken.npz: not an .npz file: File is not a zip file"),
    ("dynamic", ("--input=y.npz",), "has no array 'x' and has 'y', which is no argument or is fixed; arguments with"),
    ("dynamic", ("--input=flat.npz",), "x: expected rows of rank 1, for batches, or rank 2 for f32[b"),
    ("dynamic", ("--input=in.npz", "--batch-size=300"), "--batch-size=300: the function takes 1 to 256 inputs a call"),
    ("four", ("--input=in.npz", "--batch-size=3"), "--batch-size=3: the function takes 4 to 4 inputs a call"),
    ("one", ("--input=in.npz", "--batch-size=3"), "--batch-size=3: the function takes one input a call"),
    ("dynamic", ("--input=in.npz", "--fixed=in.npz"), "all arguments are fixed"),
    ("dynamic", ("--input=in.npz", "--function=nope"), "no function 'nope': the module exports main"),
    ("dynamic", ("--input=in.npz", "--device=nope"), "no driver 'nope'"),
    ("dynamic", ("--input=in.npz", "--device=vulkan"), "vulkan"),
    ("dynamic", ("--input=in.npz", "--policy=nowhere.toml"), "nowhere.toml"),
    ("dynamic", ("--input=in.npz", "--output=text.txt"), "text.txt: Not a directory"),
]


@pytest.mark.parametrize(("module", "arguments", "words"), REFUSED, ids=[row[2] for row in REFUSED])
def test_refused(
    inline: Run, module: str, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez("in.npz", x=rows(3))
    np.savez("y.npz", y=rows(3))
    np.savez("flat.npz", x=rows(3)[:, 0])
    Path("broken.npz").write_bytes(b"PK")
    Path("text.txt").write_text("no inputs")
    for folder, name in (("empty", ".hidden"), ("mixed", "b.txt")):
        Path(folder).mkdir()
        Path(folder, name).write_text("")
    assert inline(module, *arguments) == 1
    assert words in capsys.readouterr().err
    assert not Path("out/run.json").exists()


def test_workers_do_not_fall_back_to_the_reference_device(
    inline: Run, modules: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from orchestrion.hal.registry import DriverStatus
    from orchestrion.vm import predictor

    monkeypatch.setattr(predictor, "list_devices", lambda: [DriverStatus("opencl", (), "pyopencl is not there")])
    np.savez("in.npz", x=rows(3))
    arguments = [str(modules / "dynamic.fb"), "--input=in.npz", "--output=out"]
    monkeypatch.setattr(batch, "start_workers", lambda options, setup: InlineWorkers(setup))
    assert batch.main(arguments) == 1
    said = capsys.readouterr().err
    assert "only the device reference runs the module" in said and "opencl: pyopencl is not there" in said
    assert not Path("out/run.json").exists()


def test_policy_and_native_code_reach_the_workers(
    inline: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An untrusted module is refused by a policy that requires signatures, and on OpenCL without permission."""
    pytest.importorskip("cryptography")
    from signed_modules import keys_file

    from orchestrion.schema.trust import keys

    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    keys_file(tmp_path / "keys.toml", keys.generate("ed25519"), 'scopes = ["code", "weights", "native"]')
    x = np.array([[1, 2, 3, 4]], np.float32)
    np.savez("in.npz", arg0=x, arg1=x)
    arguments = [str(GOLDEN / "v1.0-simple_mul.fb"), "--input=in.npz", "--output=out"]
    monkeypatch.setattr(batch, "start_workers", lambda options, setup: InlineWorkers(setup))
    assert batch.main([*arguments, REFERENCE, "--policy=keys.toml"]) == 1
    assert "it is not signed" in capsys.readouterr().err and not Path("out/run.json").exists()
    from orchestrion.hal.registry import list_devices

    if not next(row for row in list_devices() if row.name == "opencl").devices:
        pytest.skip("no OpenCL here")
    assert batch.main([*arguments, "--device=opencl"]) == 1
    assert "opencl-c is native code" in capsys.readouterr().err
    assert batch.main([*arguments, "--device=opencl", "--allow-native-code"]) == 0
    with np.load("out/000000.npz") as found:
        np.testing.assert_array_equal(found[found.files[0]], x[0] * x[0])


class OneIsKilled(KillsOne, LocalWorkers):
    """Worker processes, one of which is killed."""


def test_a_killed_worker_is_replaced(
    modules: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x = rows(400)
    np.savez("in.npz", x=x)
    monkeypatch.setattr(batch, "start_workers", lambda options, setup: OneIsKilled(setup))
    assert batch.main([str(modules / "dynamic.fb"), "--input=in.npz", "--output=out", REFERENCE]) == 0
    check(Path("out"), x)
    assert "400 inputs: 400 done, 0 were done before, 0 failed, 1 worker replaced" in capsys.readouterr().out


#: vm-batch, which kills its process group when two tasks are done
KILLED = """
import os, sys
from orchestrion.tools import batch
batch.Progress.show = lambda self, totals: os.killpg(0, 9) if totals.done > 64 else None
sys.exit(batch.main(sys.argv[1:]))
"""


def test_a_killed_run_goes_on_where_it_was(modules: Path, tmp_path: Path) -> None:
    x = rows(300)
    np.savez(tmp_path / "in.npz", x=x)
    line = [str(modules / "dynamic.fb"), "--input=in.npz", "--output=out", REFERENCE]
    first = subprocess.run([sys.executable, "-c", KILLED, *line], cwd=tmp_path, start_new_session=True, timeout=100)
    assert first.returncode == -signal.SIGKILL
    output = tmp_path / "out"
    before = {path.name: path.stat().st_mtime_ns for path in output.glob("0*.npz")}
    assert 128 <= len(before) < 300
    (output / ".000003.npz.0a1b2c3d.tmp").write_bytes(b"half of a file")
    command = [sys.executable, "-m", "orchestrion.tools.batch", *line]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert f"300 inputs: {300 - len(before)} done, {len(before)} were done before, 0 failed" in done.stdout
    check(output, x)
    assert before == {name: (output / name).stat().st_mtime_ns for name in before}
