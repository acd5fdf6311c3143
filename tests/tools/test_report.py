"""`--report` of vm-compile and vm-run: text on standard output, JSON in a file, also if the command fails."""

import json
from pathlib import Path

import pytest

from orchestrion.tools import compile as vm_compile
from orchestrion.tools import run as vm_run

EXAMPLES = Path(__file__).parents[2] / "examples"
SIMPLE_MUL = str(EXAMPLES / "simple_mul.mlir")
INPUTS = ("--input=4xf32=1,2,3,4", "--input=4xf32=10,20,30,40")
Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = str(tmp_path / "m.fb")
    assert vm_compile.main([SIMPLE_MUL, "-o", path]) == 0
    return path


def test_compile_prints_places(module: str, tmp_path: Path, capsys: Printed) -> None:
    """The flag does not consume the next argument, and does not change the module."""
    other = tmp_path / "n.fb"
    assert vm_compile.main(["--report", SIMPLE_MUL, "-o", str(other)]) == 0
    assert other.read_bytes() == Path(module).read_bytes()
    text = capsys.readouterr().out
    assert (
        "  0: simple_mul.mlir:4:14: stablehlo.multiply\n    all: dispatch simple_mul_dispatch_0 in simple_mul\n" in text
    )


@pytest.mark.parametrize("name", ["report.json", "report.txt"])
def test_compile_writes_a_file(name: str, tmp_path: Path, capsys: Printed) -> None:
    path = tmp_path / name
    assert vm_compile.main([SIMPLE_MUL, f"--report={path}", "-o", str(tmp_path / "m.fb"), "--target=reference"]) == 0
    assert capsys.readouterr().out == ""
    text = path.read_text()
    if name.endswith(".txt"):
        assert text.startswith("programs of the module")
        return
    data = json.loads(text)
    assert data["version"] == 1 and [row["name"] for row in data["programs"]] == ["reference"]
    assert data["ops"][0]["op"] == "stablehlo.multiply"
    assert data["ops"][0]["places"][0]["executable"] == "simple_mul_dispatch_0"


def test_compile_says_who_refuses(tmp_path: Path, capsys: Printed) -> None:
    path, out = tmp_path / "report.json", tmp_path / "m.fb"
    arguments = [str(EXAMPLES / "library_call.mlir"), f"--report={path}", "-o", str(out)]
    assert vm_compile.main([*arguments, "--target=reference,spirv,opencl"]) == 1
    data = json.loads(path.read_text())
    assert [row["targets"] for row in data["refusals"]] == [["spirv"], ["opencl"]]
    assert data["programs"] == [] and not out.exists()
    assert "and target opencl has no library calls" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--compile-to=flow", "--compile-from=ll_seq"])
def test_compile_refuses_what_has_no_report(flag: str, tmp_path: Path, capsys: Printed) -> None:
    with pytest.raises(SystemExit) as ended:
        vm_compile.main([SIMPLE_MUL, "--report", flag, "-o", str(tmp_path / "m.fb")])
    assert ended.value.code == 2
    assert flag.partition("=")[0] in capsys.readouterr().err


def test_run_reports_without_a_call(module: str, capsys: Printed) -> None:
    assert vm_run.main(["--report", "--device=reference", module]) == 0
    text = capsys.readouterr().out
    assert "  program spirv: not chosen: wants spirv, the device runs tensor-bytecode\n" in text
    assert "trusted: compiled on this machine by this user" in text
    assert "entry simple_mul_dispatch_0, workgroups of 1x1x1: stablehlo.multiply" in text
    assert "result[0]" not in text


def test_run_reports_and_calls(module: str, tmp_path: Path, capsys: Printed) -> None:
    path = tmp_path / "report.json"
    assert vm_run.main([module, "--device=reference", *INPUTS, f"--report={path}"]) == 0
    assert capsys.readouterr().out == "result[0]: 4xf32=[ 10.  40.  90. 160.]\n"
    assert json.loads(path.read_text())["program"] == "reference"


def test_run_reports_what_it_cannot_load(tmp_path: Path, capsys: Printed) -> None:
    path, report = str(tmp_path / "m.fb"), tmp_path / "report.json"
    assert vm_compile.main([SIMPLE_MUL, "-o", path, "--target=spirv"]) == 0
    assert vm_run.main([path, f"--report={report}"]) == 1
    assert "no program of the module runs on device reference" in capsys.readouterr().err
    data = json.loads(report.read_text())
    assert data["program"] == "" and data["failure"].startswith("no program of the module runs on device reference")
    assert data["programs"][0]["reason"] == "wants spirv, the device runs tensor-bytecode"


def test_run_refuses_a_report_of_a_comparison(module: str, capsys: Printed) -> None:
    with pytest.raises(SystemExit) as ended:
        vm_run.main([module, "--compare=reference", "--device=reference", "--report"])
    assert ended.value.code == 2
    assert "--compare and --report cannot be combined" in capsys.readouterr().err
