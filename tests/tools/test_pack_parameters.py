"""vm-pack parameters, and the flags of the other commands that name parameter files."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.safetensors import Values, open_file, write_file
from orchestrion.tools import bench, compile, dump, opt, pack, run

PROGRAM = """
func.func public @main(%w: tensor<4x4xf32> loc("w"), %x: tensor<4xf32> loc("x")) -> tensor<4xf32> {
  %c = stablehlo.constant dense<"0xDATA"> : tensor<1024xf32> loc("table")
  %s = stablehlo.slice %c [2:6] : (tensor<1024xf32>) -> tensor<4xf32> loc("table")
  %0 = stablehlo.dot_general %w, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %s : tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
"""
TABLE = np.arange(1024, dtype=np.float32)
WEIGHTS = np.arange(16, dtype=np.float32).reshape(4, 4)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module that takes `w` from the loading program and `table` from the file written next to it."""
    pytest.importorskip("jaxlib")
    (tmp_path / "p.mlir").write_text(PROGRAM.replace("DATA", TABLE.tobytes().hex()))
    place = tmp_path / "m.fb"
    flags = ["--target=reference,spirv", "--parameter-arguments=w", f"--parameters={tmp_path / 'm.safetensors'}"]
    assert compile.main([str(tmp_path / "p.mlir"), "-o", str(place), *flags]) == 0
    return place


def saved(path: Path, **arrays: np.ndarray) -> str:
    write_file(path, {name.replace("__", "."): Values(BY_NAME["f32"], a.shape, a) for name, a in arrays.items()})
    return str(path)


def test_what_a_module_takes(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pack.main(["parameters", str(module)]) == 0
    digest = sha256(TABLE).hexdigest()
    assert capsys.readouterr().out.splitlines() == [
        f"{module} takes 2 parameters, 4,160 bytes",
        f"  'table': 1024xf32, 4,096 bytes, compiled with {digest[:16]}",
        "  'w': 4x4xf32, 64 bytes, any values",
    ]
    assert pack.main(["parameters", str(module), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == [
        {"name": "table", "type": "1024xf32", "bytes": 4096, "compiled_with": digest},
        {"name": "w", "type": "4x4xf32", "bytes": 64, "compiled_with": None},
    ]


def test_files_are_checked(module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, w = str(tmp_path / "m.safetensors"), saved(tmp_path / "w.safetensors", w=WEIGHTS)
    adapter = saved(tmp_path / "a.safetensors", w__lora_A=np.ones((1, 4), "f"), w__lora_B=np.ones((4, 1), "f"))
    assert pack.main(["parameters", str(module), table, w, f"--adapter={adapter}"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"  'table': 1024xf32, 4,096 bytes, as compiled in {table}",
        f"  'w': 4x4xf32, 64 bytes, values {sha256(WEIGHTS).hexdigest()[:16]} in {w}, changed by 1 adapter",
    ]
    other = saved(tmp_path / "t.safetensors", table=TABLE + 1, w=WEIGHTS)
    assert pack.main(["parameters", str(module), other]) == 0
    assert f"values {sha256(TABLE + 1).hexdigest()[:16]} in {other}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"w": WEIGHTS}, "parameters do not fit the module: missing 'table' (1024xf32)"),
        ({"w": WEIGHTS[1:], "table": TABLE}, "'w' is 3x4xf32 in {file}, wanted 4x4xf32"),
        ({"w": WEIGHTS, "table": TABLE, "v": TABLE}, "{file} holds 'v', which the module does not want"),
    ],
)
def test_files_that_do_not_fit(
    arrays: dict[str, np.ndarray], message: str, module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = saved(tmp_path / "x.safetensors", **arrays)
    assert pack.main(["parameters", str(module), file]) == 1
    error = capsys.readouterr().err
    assert error.startswith("vm-pack: ") and error.count("\n") == 1 and message.format(file=file) in error
    assert run.main([str(module), "--input=4xf32=1", f"--parameters={file}"]) == 1
    assert message.format(file=file) in capsys.readouterr().err


def test_an_adapter_that_does_not_fit(module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    adapter = saved(tmp_path / "a.safetensors", v__lora_A=np.ones((1, 4), "f"), v__lora_B=np.ones((4, 1), "f"))
    assert pack.main(["parameters", str(module), f"--adapter={adapter}"]) == 1
    error = capsys.readouterr().err
    assert error == f"vm-pack: adapter {adapter} does not fit the module: the module has no parameters 'v'\n"


def test_files_are_stored_where_modules_find_them(module: Path, tmp_path: Path) -> None:
    table, w = tmp_path / "m.safetensors", saved(tmp_path / "w.safetensors", w=WEIGHTS)
    store = f"--store={tmp_path / 'parameters'}"
    assert pack.main(["parameters", str(module), str(table), w, store]) == 0
    table.unlink()
    digests = {path.stem for path in (tmp_path / "parameters").iterdir()}
    assert all(sha256((tmp_path / "parameters" / f"{d}.safetensors").read_bytes()).hexdigest() == d for d in digests)
    assert len(digests) == 2
    found = [f"--parameters={tmp_path / 'parameters'}", "--input=4xf32=1,2,3,4", f"--output=@{tmp_path / 'y.npy'}"]
    assert run.main([str(module), *found]) == 0
    assert np.array_equal(np.load(tmp_path / "y.npy"), WEIGHTS @ [1, 2, 3, 4] + TABLE[2:6])


def test_run_and_bench_take_parameters_and_adapters(module: Path, tmp_path: Path, capsys) -> None:
    w = saved(tmp_path / "w.safetensors", w=WEIGHTS)
    a, b = np.full((1, 4), 2, "f"), np.full((4, 1), 3, "f")
    adapter = saved(tmp_path / "a.safetensors", w__lora_A=a, w__lora_B=b)
    flags = [f"--parameters={w}", f"--parameters={tmp_path / 'm.safetensors'}", f"--adapter={adapter}"]
    for device in ("reference", "vulkan"):
        output = f"--output=@{tmp_path / 'y.npy'}"
        assert run.main([str(module), f"--device={device}", "--input=4xf32=1,2,3,4", *flags, output]) == 0
        assert np.array_equal(np.load(tmp_path / "y.npy"), (WEIGHTS + b @ a) @ [1, 2, 3, 4] + TABLE[2:6])
    assert bench.main([str(module), "--seconds=0.01", *flags]) == 0
    capsys.readouterr()
    assert run.main([str(module), "--device=vulkan", "--compare=reference", "--input=4xf32=1,2,3,4", *flags]) == 0
    assert "agree" in capsys.readouterr().out


def test_dump_says_what_lies_outside(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump.main([str(module)]) == 0
    out = capsys.readouterr().out
    assert "parameters 4,160 bytes outside the module" in out
    assert "  parameter table: 1024xf32, 4,096 bytes, segment" in out
    assert "taken out" not in out


def test_the_file_of_the_compiler(module: Path, tmp_path: Path) -> None:
    file = open_file(tmp_path / "m.safetensors")
    assert list(file.tensors) == ["table"] and bytes(file.bytes_of("table")) == TABLE.tobytes()
    assert TABLE.tobytes() not in module.read_bytes()


def test_module_and_parameters_cannot_be_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.mlir").write_text("func.func @main(%x: tensor<f32>) -> tensor<f32> { func.return %x : tensor<f32> }")
    out = str(tmp_path / "m.fb")
    assert compile.main([str(tmp_path / "p.mlir"), "-o", out, f"--parameters={out}", "--target=reference"]) == 1
    assert "module and parameters cannot go to one file" in capsys.readouterr().err


def test_passes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["--list-passes"]) == 0
    assert "mark-parameters" in capsys.readouterr().out
