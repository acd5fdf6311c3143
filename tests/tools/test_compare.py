"""`vm-run --compare`: devices that agree, a device with one wrong op, and the replay of its dispatch."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.targets.opencl.target import TARGET
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.registry import find_device
from orchestrion.schema.writer import write
from orchestrion.tools import run, run_arguments
from orchestrion.tools.layouts import decode, encode, tensor_type

pytestmark = pytest.mark.usefixtures("one_level")

EXAMPLES = Path(__file__).parents[2] / "examples"
#: a loop whose body has dispatches of which one multiplies
PROGRAM = """
func.func @main(%x: tensor<4x6xf32>, %n: tensor<i32>) -> tensor<4x6xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %i, %y = stablehlo.while(%a = %zero, %b = %x) : tensor<i32>, tensor<4x6xf32>
    cond { %p = stablehlo.compare LT, %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %p : tensor<i1> }
    do { %s = stablehlo.reduce(%b init: %f) applies stablehlo.add across dimensions = [1] :
              (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
         %w = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
         %m = stablehlo.maximum %b, %w : tensor<4x6xf32>
         %q = stablehlo.multiply %m, %b : tensor<4x6xf32>
         %next = stablehlo.add %a, %one : tensor<i32>
         stablehlo.return %next, %q : tensor<i32>, tensor<4x6xf32> }
  func.return %y : tensor<4x6xf32>
}
"""


def need(device: str) -> None:
    try:
        find_device(device)
    except DriverUnavailable as error:
        pytest.skip(f"{device}: {error}")


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module whose OpenCL program adds where the other program multiplies. The host runs its loop."""
    pytest.importorskip("jaxlib")
    rows = {name: replace(row, merged_ops=0) for name, row in TARGET.machines.items()}
    monkeypatch.setattr(type(TARGET), "machines", rows)
    text = Compilation(targets=("reference", "opencl")).text(PROGRAM, "executables")
    wrong, count = re.subn(r'"kernel.multiply"(?=\(%\w+, %\w+\) : \(f32, f32\))', '"kernel.add"', text)
    assert count > 0  # the one op, for each element that an invocation holds
    rows = Compilation(targets=("reference", "opencl"), start="executables").rows(wrong)
    path = tmp_path / "faulty.fb"
    path.write_bytes(write(rows))
    return path


def module(tmp_path: Path, name: str, encodings: str) -> str:
    path = tmp_path / "module.fb"
    path.write_bytes(write(Compilation(encodings=encodings).rows(str(EXAMPLES / name))))
    return str(path)


@pytest.mark.parametrize("device", ["opencl", "vulkan"])
def test_devices_agree_whatever_their_layouts(device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need(device)
    path = module(tmp_path, "mlp.mlir", "test")
    flags = [f"--device={device}", "--compare=reference", f"--input=@{EXAMPLES / 'mlp_input.npy'}"]
    assert run.main([path, *flags, "--allow-native-code"]) == 0
    out = capsys.readouterr().out
    assert re.match(rf"\d+ dispatch(es)? and 1 result of {device} agree with reference", out)


def test_a_loop_in_one_kernel_is_compared_by_its_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its dispatches are those of one device alone."""
    pytest.importorskip("jaxlib")
    need("opencl")
    path = tmp_path / "loop.fb"
    path.write_bytes(write(Compilation(targets=("reference", "opencl")).rows(PROGRAM)))
    flags = ["--device=opencl", "--allow-native-code", "--compare=reference", "--input=4x6xf32=1.5", "--input=i32=2"]
    assert run.main([str(path), *flags]) == 0
    assert "1 result of opencl agree" in capsys.readouterr().out


def test_the_faulty_op_is_named_and_runs_again(
    faulty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need("opencl")
    folder = tmp_path / "found"
    flags = ["--device=opencl", "--allow-native-code"]
    inputs = ["--input=4x6xf32=1.5", "--input=i32=2"]
    assert (
        run.main(
            [
                str(faulty),
                *flags,
                "--compare=reference",
                *inputs,
                f"--divergence={folder}",
                f"--compare-report={tmp_path / 'r.json'}",
            ]
        )
        == 1
    )
    wrong = [row for row in json.loads((tmp_path / "r.json").read_text())["entries"].values() if row["differs"]]
    assert [row["absolute"] for row in wrong] == [3.0], "10.5 where 13.5 is right"
    told = capsys.readouterr().err
    assert re.search(r"opencl differs from reference at .*stablehlo.multiply.*: \w+, run 1", told)
    assert "given the inputs of reference it differs too" in told
    assert re.search(r"output \d, 4x6xf32, differs in 24 of 24 elements, first at \[0, 0\]: 10.5, expected 13.5", told)
    assert json.loads((folder / "dispatch.json").read_text())["ops"].count("stablehlo.multiply") == 1
    assert run.main([str(faulty), *flags, f"--replay={folder}"]) == 1
    assert "differs in 24 of 24" in capsys.readouterr().err
    assert run.main([str(faulty), "--device=reference", f"--replay={folder}"]) == 0
    assert "agrees" in capsys.readouterr().out


#: one dispatch of seven tensors
OPTIMIZER = """
func.func @main(%p: tensor<6x5xf32>, %m: tensor<6x5xf32>, %v: tensor<6x5xf32>, %g: tensor<6x5xf32>)
    -> (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>) {
  %a = stablehlo.add %m, %g : tensor<6x5xf32>
  %s = stablehlo.multiply %g, %g : tensor<6x5xf32>
  %b = stablehlo.add %v, %s : tensor<6x5xf32>
  %d = stablehlo.divide %a, %b : tensor<6x5xf32>
  %c = stablehlo.subtract %p, %d : tensor<6x5xf32>
  func.return %c, %a, %b : tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
}
"""
TENSORS = [f"--input=6x5xf32={value}" for value in (8, 1.5, 0.5, 2)]


def shared_bindings(tmp_path: Path, wrong: str = "") -> str:
    """A module whose Vulkan program has operands that share bindings. `wrong`: a kernel op in place of `divide`."""
    targets = ("reference", "spirv_least")
    text = Compilation(targets=targets).text(OPTIMIZER, "executables")
    assert "shared = array<i64" in text
    if wrong:
        text, count = re.subn(r'"kernel.divide"', f'"kernel.{wrong}"', text)
        assert count > 0
    path = tmp_path / "shared.fb"
    path.write_bytes(write(Compilation(targets=targets, start="executables").rows(text)))
    return str(path)


def test_operands_that_share_a_binding(tmp_path: Path, least_vulkan: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_bindings(tmp_path)
    for device, right in ((least_vulkan, "reference"), ("reference", least_vulkan)):
        assert run.main([path, f"--device={device}", f"--compare={right}", *TENSORS]) == 0
        out = capsys.readouterr().out
        assert re.match(r"1 dispatch and 3 results of \w+ agree with \w+$", out.splitlines()[0]), out


def test_a_wrong_op_on_operands_that_share_a_binding(
    tmp_path: Path, least_vulkan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, folder = shared_bindings(tmp_path, "multiply"), tmp_path / "found"
    flags = [f"--device={least_vulkan}", "--compare=reference", f"--divergence={folder}"]
    assert run.main([path, *flags, *TENSORS]) == 1
    told = capsys.readouterr().err
    assert "input 0, 6x5xf32, agrees" in told and "input 3, 6x5xf32, agrees" in told
    assert re.search(r"output \d, 6x5xf32, differs in 30 of 30 elements, first at \[0, 0\]: -7.75, expected 7.22", told)
    assert told.count("6x5xf32, agrees") == 6 and "given the inputs of reference it differs too" in told
    assert run.main([path, f"--device={least_vulkan}", f"--replay={folder}"]) == 1
    assert "differs in 30 of 30" in capsys.readouterr().err
    assert run.main([path, "--device=reference", f"--replay={folder}"]) == 0


def test_a_replay_keeps_the_tolerances_of_its_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each dispatch's recorded values are changed a little each time, so both devices differ."""
    from orchestrion.tools import compare

    path, folder = module(tmp_path, "simple_mul.generic.mlir", "none"), tmp_path / "found"
    decoded = compare._decoded
    side = iter(range(1000))

    def off(*given: Any) -> Any:
        array = decoded(*given)
        return array if array is None else array * np.float32(1 + next(side) * 1e-6)

    monkeypatch.setattr(compare, "_decoded", off)
    inputs = ["--input=4xf32=1,2,3,4", "--input=4xf32=10,20,30,40"]
    flags = ["--device=reference", "--compare=reference", *inputs, f"--divergence={folder}", "--expected-rtol=1e-9"]
    assert run.main([path, *flags, "--expected-atol=0", f"--compare-report={tmp_path / 'r.json'}"]) == 1
    capsys.readouterr()
    for name in ("found/dispatch.json", "r.json"):
        found = json.loads((tmp_path / name).read_text())
        assert (found["rtol"], found["atol"]) == (1e-9, 0)
    changed = np.load(folder / "reference.output-2.npy") * np.float32(1 + 1e-4)
    np.save(folder / "reference.output-2.npy", changed)
    assert run.main([path, f"--replay={folder}"]) == 1
    assert "with the inputs of reference, rtol 1e-09, atol 0:" in capsys.readouterr().err
    assert run.main([path, f"--replay={folder}", "--expected-rtol=1e-3"]) == 0
    assert "with the inputs of reference, rtol 0.001, atol 0:" in capsys.readouterr().out


def test_comparing_with_a_device_that_computes_nothing_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = module(tmp_path, "simple_mul.generic.mlir", "none")
    run.main([path, "--device=null", "--compare=null", "--input=4xf32=1", "--input=4xf32=1"])
    said = "vm-run: note: device null computes nothing: the comparison means nothing\n"
    assert capsys.readouterr().err.count(said) == 2
    assert run.main([path, "--device=null", "--input=4xf32=1", "--input=4xf32=1"]) == 0
    assert capsys.readouterr().err == "vm-run: note: device null computes nothing: results mean nothing\n"


def test_no_debug_information_nothing_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = Compilation(targets=("reference",)).rows(str(EXAMPLES / "simple_mul.generic.mlir"))
    for program in rows.programs:
        for executable in program.executables:
            for entry in executable.entries:
                object.__setattr__(entry, "binding_types", ())
    path = tmp_path / "bare.fb"
    path.write_bytes(write(rows))
    flags = ["--device=reference", "--compare=reference", "--input=4xf32=1", "--input=4xf32=1"]
    assert run.main([str(path), *flags]) == 1
    assert "does not say which tensors" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("note", "message"),
    [
        ("{", "not what --compare writes"),
        ("{}", "entry, ran, of_many, workload, parameters, right are needed"),
        (
            '{"entry": "a", "ran": "a", "of_many": true, "workload": [0, 1, 1], "parameters": "", "right": "x"}',
            "workload",
        ),
        (
            '{"entry": "a", "ran": "a", "of_many": true, "workload": [1, 1, 1], "parameters": "", "right": "../x"}',
            "right",
        ),
        (
            '{"entry": "a", "ran": "a", "of_many": true, "workload": [1, 1, 1], "parameters": "zz", "right": "x"}',
            "parameters",
        ),
        (
            '{"entry": "a", "ran": "a", "of_many": true, "workload": [1, 1, 1], "parameters": "", "right": "x"}',
            "no entry a",
        ),
        (
            '{"entry": "a", "ran": "a", "of_many": true, "workload": [1, 1, 1], "parameters": "", "right": "x", '
            '"rtol": -1}',
            "rtol -1",
        ),
    ],
)
def test_a_damaged_folder_is_refused(
    note: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = module(tmp_path, "simple_mul.generic.mlir", "none")
    (tmp_path / "dispatch.json").write_text(note)
    assert run.main([path, f"--replay={tmp_path}"]) == 1
    assert message in capsys.readouterr().err


PAIRS = [(flag, other) for flag, others in run_arguments.ALONE.items() for other in others]


@pytest.mark.parametrize(("flag", "other"), PAIRS)
def test_no_flag_is_passed_over(flag: str, other: str, capsys: pytest.CaptureFixture[str]) -> None:
    values = dict.fromkeys(("repeat", "fuel", "deadline", "memory", "device-memory"), "=1")
    values |= dict.fromkeys((*run_arguments.OF_LOADING, *run_arguments.OF_PARTS), "=1")
    values |= {"list-functions": "", "extra-parameters": "", "module": "=a=b.fb"}
    given = (f"--{flag}{'' if flag == 'check' else '=x'}", f"--{other}{values.get(other, '=x')}")
    with pytest.raises(SystemExit, match="2"):
        run.main(["module.fb", "--device=reference", *given])
    assert f"--{flag} and --{other} cannot be combined" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "tensor<3x5xf32>",
        "tensor<f64>",
        "tensor<64x100xf32, #util.layout<axes = [[1], [0]], tiles = [8, 1], inner = [0]>>",
        "tensor<3x5x7xi32, #util.layout<axes = [[0, 2], [1]], tiles = [4, 3], inner = [1, 0]>>",
    ],
)
def test_layouts_are_undone(text: str) -> None:
    type = tensor_type(text)
    assert type is not None
    values = np.arange(type.num_elements).astype({"f32": "f4", "f64": "f8", "i32": "i4"}[str(type.element)])
    values = values.reshape(type.shape)
    np.testing.assert_array_equal(decode(encode(values, type), type), values)


@pytest.mark.parametrize("text", ["none", "tensor<?xf32>", "tensor<4xf32, #util.layout<axes = []>>", "tensor<"])
def test_other_types_are_unknown(text: str) -> None:
    assert tensor_type(text) is None
