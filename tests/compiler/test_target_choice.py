"""Targets that cannot compile a program: left out of the default with one warning, refused where they are named."""

import warnings
from pathlib import Path

import pytest

from orchestrion import compiler
from orchestrion.compiler.errors import CompileError, TargetsError, TargetWarning
from orchestrion.compiler.placement import Report
from orchestrion.compiler.targets.choice import profile_names
from orchestrion.schema.container import open_bytes
from orchestrion.schema.decoder import decode
from orchestrion.schema.profiles import PROFILES
from orchestrion.tools import compile as vm_compile
from orchestrion.tools import pack as vm_pack

#: two calls of library functions, which the reference device and processors have
CALLS = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @acme.first(%x) {api_version = 4 : i32, backend_config = {}}
    : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @acme.second(%0) {api_version = 4 : i32, backend_config = {}}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
PLAIN = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def profiles(blob: bytes) -> list[str]:
    module = decode(open_bytes(blob))
    return [module.strings[program.profile] for program in module.programs]


def test_a_target_that_cannot_is_left_out_with_one_warning() -> None:
    report = Report()
    with pytest.warns(TargetWarning) as said:
        blob = compiler.compile(CALLS, report=report)
    assert profiles(blob) == ["reference", "cpu"] == [row.name for row in report.programs]
    (warning,) = said
    assert warning.filename == __file__
    lines = str(warning.message).splitlines()
    assert lines[0] == "the module is for reference and cpu only; other targets cannot compile this program:"
    assert [(line.split()[0], line.split("function ")[1].split(",")[0]) for line in lines[1:]] == [
        (f"{target}:", f"acme.{name}") for target in ("spirv", "opencl") for name in ("first", "second")
    ]
    assert [row.targets for row in report.left_out] == [
        ("spirv",),
        ("spirv",),
        ("opencl",),
        ("opencl",),
    ]
    assert not report.refusals and "left out, as no program for these targets can be made:" in report.text()


def test_the_module_is_that_of_the_targets_that_can() -> None:
    with pytest.warns(TargetWarning):
        blob = compiler.compile(CALLS)
    assert blob == compiler.compile(CALLS, targets=["reference", "cpu"])


def test_no_warning_where_all_can() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert profiles(compiler.compile(PLAIN)) == [name for name, row in PROFILES.items() if not row.level_of]


@pytest.mark.parametrize("targets", ["spirv", ["vulkan"], ["reference", "spirv"], tuple(PROFILES)])
def test_a_named_target_that_cannot_is_an_error(targets: str | list[str]) -> None:
    with pytest.raises(TargetsError, match="acme.first, and target spirv has no library calls") as refused:
        compiler.compile(CALLS, targets=targets)
    assert "spirv" in refused.value.refusals and len(refused.value.refusals["spirv"]) == 2


def test_all_targets_failing_is_an_error_with_all_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets with library calls refuse when they make code, others before that: the error has the reasons of all."""
    from orchestrion.compiler.targets.reference.target import ReferenceTarget

    def refuse(*_: object) -> None:
        raise CompileError("not on a Tuesday")

    monkeypatch.setattr(ReferenceTarget, "serialize", refuse)
    with pytest.raises(TargetsError) as refused:
        compiler.compile(CALLS)
    assert list(refused.value.refusals) == ["spirv", "opencl", "reference", "cpu"]
    assert "not on a Tuesday" in str(refused.value) and "acme.second" in str(refused.value)


def test_a_target_that_refuses_late_is_left_out_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrion.compiler.targets.opencl.target import OpenCLTarget

    def refuse(*_: object) -> None:
        raise CompileError("not on a Tuesday")

    monkeypatch.setattr(OpenCLTarget, "serialize", refuse)
    with pytest.warns(TargetWarning, match="for reference and spirv and cpu only.*\n  opencl: not on a Tuesday"):
        assert profiles(compiler.compile(PLAIN)) == ["reference", "spirv", "cpu"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("spirv", ("spirv",)),
        (["vulkan"], ("spirv",)),
        ("vulkan:1", ("spirv",)),
        ("numpy,opencl", ("reference", "opencl")),
        (("opencl", "reference"), ("opencl", "reference")),
    ],
)
def test_names_of_targets_and_devices(given: str | list[str], wanted: tuple[str, ...]) -> None:
    assert profile_names(given) == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("cuda", "no target is called cuda; targets are reference, spirv, spirv_least, opencl"),
        ("vulkan:x", "no target is called vulkan:x"),
        (["vulkan", "spirv"], "a target is given twice: vulkan and spirv are both spirv"),
        (["spirv", "spirv"], "a target is given twice: spirv"),
        ([PROFILES["spirv"]], "a target is given as Profile.*, its name expected"),
    ],
)
def test_names_that_stand_for_nothing(given: list[str], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        profile_names(given)
    with pytest.raises(CompileError, match=message):
        compiler.compile(PLAIN, targets=given)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "calls.mlir", tmp_path / "m.fb"
    source.write_text(CALLS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vm_compile.main([str(source), "-o", str(out)]) == 0
    said = capsys.readouterr().err
    assert said.count("vm-compile: ") == 1 and said.count("no library calls") == 4
    assert profiles(out.read_bytes()) == ["reference", "cpu"]
    out.unlink()
    assert vm_compile.main([str(source), "-o", str(out), "--target=vulkan,numpy"]) == 1
    assert "target spirv has no library calls" in capsys.readouterr().err and not out.exists()


def test_devices_stand_for_targets_in_all_commands(tmp_path: Path) -> None:
    source, out, thin = tmp_path / "plain.mlir", tmp_path / "m.fb", tmp_path / "t.fb"
    source.write_text(PLAIN)
    assert vm_compile.main([str(source), "-o", str(out), "--target=numpy,vulkan"]) == 0
    assert profiles(out.read_bytes()) == ["reference", "spirv"]
    assert vm_pack.main(["thin", str(out), "--target=vulkan", "-o", str(thin)]) == 0


def test_text_that_has_its_programs_already_is_not_compiled_again() -> None:
    """A later phase says itself which programs there are: leaving a target out would change nothing."""
    job = compiler.Compilation(may_leave_out=True)
    text = job.text(CALLS, "ll_seq")
    with pytest.raises(TargetsError, match="acme.first"):
        compiler.Compilation(start="ll_seq", may_leave_out=True).rows(text)
