"""Files that hold no StableHLO are named for what they are, with the way on."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.compiler.errors import CompileError
from orchestrion.tools import compile as vm_compile


def archive(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as zip:
        for name in names:
            zip.writestr(name, "")
    return made.getvalue()


def saved(save: Callable[..., None]) -> bytes:
    made = io.BytesIO()
    save(made, np.arange(3))
    return made.getvalue()


def field(number: int, value: int | bytes) -> bytes:
    """A field of a protobuf message."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


HEADER = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
GRAPH = field(1, field(4, b"MatMul\xff")) + field(2, b"graph")
FILES: list[tuple[bytes, str]] = [
    (field(1, 8) + field(2, b"pytorch") + field(7, GRAPH), "an ONNX model, which is no input of this compiler"),
    (
        field(1, b"jit_f") + field(2, b"main.4") + field(3, b"\xff\xfe"),
        "a protobuf of HLO: the compiler reads StableHLO",
    ),
    (field(1, 1) + field(2, b"\xff\xfe\xfd"), "the graph of a TensorFlow SavedModel: take the StableHLO"),
    (b"HloModule jit_f, entry_computation_layout={()->f32[]}\n", "HLO text: the compiler reads StableHLO"),
    (b"\x1c\0\0\0TFL3\0\0", "a TFLite model: take the StableHLO of a tf.function"),
    (b"GGUF\x03\0\0\0", "a GGUF file, weights without a program"),
    (len(HEADER).to_bytes(8, "little") + HEADER + bytes(4), "a safetensors file, weights without a program"),
    (archive("m/archive_format", "m/models/model.json"), "a program of torch.export: make a program of the model"),
    (archive("m/code/m.py", "m/constants.pkl", "m/data.pkl"), "a TorchScript program"),
    (archive("m/data.pkl", "m/data/0"), "a file of torch.save"),
    (archive("config.json", "model.weights.h5"), "a Keras model: load it in Keras"),
    (saved(np.savez), "a NumPy archive"),
    (saved(np.save), "a NumPy array"),
    (archive("readme.txt"), "a zip archive"),
    (b"PK\x03\x04cut", "a damaged zip archive"),
    (b'#!/usr/bin/env python\n"""A "model"."""\n\nimport jax\n', "a file of Python: give its function and examples"),
    (pickle.dumps({"w": b"\xff"}), "a pickle, which is not read"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x03\x02\x23\x07\0\0", "SPIR-V"),
]


@pytest.mark.parametrize(("data", "what"), FILES, ids=[what.partition(":")[0] for _, what in FILES])
def test_a_file_is_named_for_what_it_is(data: bytes, what: str, tmp_path: Path) -> None:
    """Whatever its name is, and as bytes too."""
    path = tmp_path / "model.mlir"
    path.write_bytes(data)
    for source, name in ((path, "model.mlir"), (data, "<bytes>")):
        with pytest.raises(CompileError) as refused:
            compiler.compile(source)
        assert str(refused.value).startswith(f"{name}: no StableHLO, this is {what}")


def test_a_saved_model_is_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    arguments = [str(folder), "-o", str(tmp_path / "m.fb")]
    assert vm_compile.main(arguments) == 1
    assert "model: no StableHLO, this is a folder; give a file in it" in capsys.readouterr().err
    (folder / "saved_model.pb").write_bytes(b"")
    assert vm_compile.main(arguments) == 1
    assert "model: no StableHLO, this is a TensorFlow SavedModel: take the StableHLO" in capsys.readouterr().err


def test_a_module_is_named(tmp_path: Path) -> None:
    blob = compiler.compile(COPY.format('"mhlo.copy"(%x) : (tensor<4xf32>) -> tensor<4xf32>'), targets="reference")
    with pytest.raises(CompileError, match="this is a compiled module already: vm-run runs it"):
        compiler.compile(blob)


def test_noise_is_nothing_in_particular() -> None:
    random = np.random.default_rng(0)
    for size in (0, 1, 9, 40, 400):
        for _ in range(20):
            with pytest.raises(CompileError, match="<bytes>: "):
                compiler.compile(b"\xfe" + random.bytes(size))


COPY = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = {}
  return %0 : tensor<4xf32>
}}
"""


@pytest.mark.parametrize(
    "op",
    [
        '"mhlo.copy"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
        "mhlo.copy %x : tensor<4xf32>",
        'mhlo.copy %x {frontend = "tf"} : tensor<4xf32> loc("here")',
        "stablehlo.custom_call @mhlo.copy(%x) : (tensor<4xf32>) -> tensor<4xf32>",
    ],
)
def test_a_copy_gives_back_its_operand(op: str) -> None:
    """TensorFlow writes `mhlo.copy`, an op of a dialect that jaxlib does not register."""
    x = np.arange(4, dtype=np.float32)
    with vm.load(compiler.compile(COPY.format(op), targets="reference"), device="reference") as program:
        np.testing.assert_array_equal(program.main(x), x)
