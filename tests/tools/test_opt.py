"""vm-opt: passes by name, from a file or standard input, and errors for bad command lines and texts."""

import io
import sys
from pathlib import Path

import pytest

from orchestrion.compiler.pipeline import PASSES
from orchestrion.tools.opt import main

PROGRAM = """"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.reverse"(%0) <{dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.reverse"(%1) <{dimensions = array<i64: 0>}> : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "in.mlir"
    path.write_text(PROGRAM)
    return str(path)


def test_passes_run_in_order(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--pass=canonicalize,dce", "--pass=verify", "--no-locations", program]) == 0
    printed = capsys.readouterr().out
    assert "reverse" not in printed and '"func.return"(%0)' in printed and "loc(" not in printed


def test_no_pass_prints_what_was_read(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--no-locations", program]) == 0
    assert capsys.readouterr().out == PROGRAM


def test_a_module_without_a_block_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the first pass, whichever it is."""
    path = tmp_path / "in.mlir"
    path.write_text('"builtin.module"() ({\n}) : () -> ()\n')
    for row in PASSES:
        assert main([f"--pass={row.name}", str(path)]) == 1
        assert "needs one region of one block, has blocks [0]" in capsys.readouterr().err


def test_from_standard_input_into_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PROGRAM.encode())))
    assert main(["-", "-o", str(tmp_path / "out.mlir"), "--no-locations"]) == 0
    assert (tmp_path / "out.mlir").read_text() == PROGRAM and capsys.readouterr().out == ""


def test_passes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-passes"]) == 0
    printed = capsys.readouterr().out
    assert all(row.name in printed and row.why in printed for row in PASSES) and "verify" in printed


def test_a_program_for_each_target(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    passes = [row.name for row in PASSES if row.phase in ("stablehlo", "flow", "hl_seq")]
    assert main([f"--pass={','.join(passes)}", "--target=spirv,opencl", program]) == 0
    printed = capsys.readouterr().out
    assert 'sym_name = "spirv"' in printed and 'sym_name = "opencl"' in printed and "reference" not in printed


def test_a_wrong_command_line_gives_status_2(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["--pass=sing", program], "no pass is called sing"),
        ([], "IN.mlir is missing"),
        (["--target=moon", program], "no target is called moon"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2 and message in capsys.readouterr().err


def test_wrong_text_gives_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.mlir"
    for data, arguments, message in (
        (b'"a.b"(%x) : (i32) -> ()', [], "in.mlir:1:7: %x is not defined"),
        (b"\xff\xfe", [], "not text"),
        (b'"stablehlo.add"() : () -> ()', ["--pass=cse"], "needs 2 operands, has 0"),
        (b'"stablehlo.add"() : () -> ()', ["--pass=verify"], "needs 2 operands, has 0"),
    ):
        path.write_bytes(data)
        assert main([*arguments, str(path)]) == 1
        assert message in capsys.readouterr().err
    assert main([str(tmp_path / "gone")]) == 1 and "No such file" in capsys.readouterr().err
