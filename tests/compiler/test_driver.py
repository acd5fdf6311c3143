"""What can be asked of a compilation: targets, phases to start and stop at, dumps, IR after a pass; and what cannot."""

import io
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation, CompileOptions
from orchestrion.compiler.errors import ArgumentTypeError, CompileError
from orchestrion.compiler.options import CHOICES, Settings
from orchestrion.compiler.pipeline import PASSES, PHASES, passes_named, passes_of, phases_between
from orchestrion.hal.policy import Policy
from orchestrion.schema.container import open_file
from orchestrion.schema.profiles import PROFILES

PROGRAM = """"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xf32>):
    %1 = "stablehlo.negate"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.add"(%1, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%2) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""


def test_the_same_source_gives_the_same_bytes(tmp_path: Path) -> None:
    wanted = compiler.compile(PROGRAM)
    assert compiler.compile(PROGRAM.encode()) != b"" and compiler.compile(PROGRAM) == wanted
    compiler.compile_to_file(PROGRAM, tmp_path / "a.fb")
    assert (tmp_path / "a.fb").read_bytes() == wanted
    assert compiler.compile(PROGRAM, targets=["reference"]) != wanted


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"targets": 3}, "targets=3: a name or several expected"),
        ({"machines": 3}, "machines=3: a name or several expected"),
        ({"parameter_arguments": 3}, "parameter_arguments=3: a name or several expected"),
        ({"attributes": 3}, "attributes=3: a dict of texts and numbers expected"),
        ({"report": 3}, "report=3: a compiler.Report expected"),
        ({"parameters": 3}, "parameters=3: the path of a file expected"),
        ({"max_allocation": "1"}, "max_allocation='1': a whole number of bytes expected"),
        ({"schedules": 3}, "schedules=3: the path of a file expected"),
    ],
)
def test_options_of_the_wrong_type(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        compiler.compile(PROGRAM, **options)
    assert str(caught.value) == expected


def test_an_option_that_there_is_not() -> None:
    with pytest.raises(TypeError, match="no option is called target; options are targets, encodings, machines"):
        compiler.compile(PROGRAM, target="spirv")  # type: ignore[call-arg]


def test_options_have_one_name() -> None:
    """An option of `compile` and one of the passes are fields of a compilation; so is one with several values."""
    named = {field.name for field in fields(Compilation)}
    assert {*CompileOptions.__annotations__, *CHOICES, *(field.name for field in fields(Settings))} <= named


def test_every_phase_is_dumped(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    job = Compilation(targets=("reference",), dump=folder)
    job.rows(PROGRAM)
    files = sorted(path.name for path in folder.iterdir())
    assert files == [f"{index}-{phase}.mlir" for index, phase in enumerate(PHASES)]
    for phase, name in zip(PHASES, files, strict=True):
        assert (folder / name).read_text() == Compilation(targets=("reference",)).text(PROGRAM, phase)


def test_ir_is_printed_after_a_pass() -> None:
    stream = io.StringIO()
    Compilation(print_after=("cse", "inline"), stream=stream).module(PROGRAM, "stablehlo")
    text = stream.getvalue()
    assert text.index("// IR after inline (stablehlo)") < text.index("// IR after cse (stablehlo)")
    assert text.count('"builtin.module"') == 2


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CompileError, match="file: File exists"):
        Compilation(dump=tmp_path / "file").module(PROGRAM, "input")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targets": ("nothing",)}, "no target is called nothing; targets are reference, spirv, spirv_least, opencl"),
        ({"targets": ()}, "no target is given; targets are"),
        ({"targets": ("spirv", "spirv")}, "a target is given twice: spirv, spirv"),
        ({"start": "later"}, "no phase is called later; phases are input, stablehlo"),
        ({"print_after": ("sing",)}, "no pass is called sing; passes are"),
    ],
)
def test_what_cannot_be_asked(options: dict[str, object], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        Compilation(**options)  # type: ignore[arg-type]


def test_phases_go_one_way() -> None:
    assert phases_between("input", "flow") == ["stablehlo", "flow"] and phases_between("flow", "flow") == []
    with pytest.raises(CompileError, match="the input is of phase flow, which comes after input"):
        Compilation(start="flow").module(PROGRAM, "input")


def test_a_later_phase_is_read_from_generic_text_and_verified() -> None:
    with pytest.raises(CompileError, match="<text>: the phase flow is read from generic text only"):
        Compilation(start="flow").module("module {\n}\n", "flow")
    with pytest.raises(CompileError, match="<text>:1:1: flow.dispatch: property entry is missing"):
        Compilation(start="flow").module('"flow.dispatch"() : () -> ()\n', "flow")


def digest(path: Path) -> bytes:
    return bytes(open_file(path).digest)


@pytest.mark.parametrize("start", PHASES)
@pytest.mark.parametrize("targets", [("reference",), ("spirv",), tuple(PROFILES)])
def test_what_is_vouched_for(
    targets: tuple[str, ...], start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its formats, what was compiled here from a phase before `ll_seq`: from there on the text holds a plan of
    memory, or code, that may be somebody else's. That is said of a module with native code.
    """
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    text = Compilation(targets=targets).text(PROGRAM, start)
    said = Compilation(targets=targets, start=start).write(text, tmp_path / "a.fb")
    late = list(PHASES).index(start) >= list(PHASES).index("ll_seq")
    assert Policy().trusts(digest(tmp_path / "a.fb")) == (not late)
    if late and "opencl" in targets:
        assert said is not None and f"the text of phase {start} may hold native code made elsewhere" in said
    else:
        assert said is None


def test_a_module_of_spirv_alone_runs_where_it_was_compiled(
    swiftshader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused as "not compiled on this machine" on a device without robust buffer access 2."""
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    blob = compiler.compile(PROGRAM, targets=["spirv"])
    program = vm.load(blob, swiftshader)
    assert program.device.policy.trusts(program.module.container.digest)
    assert not program["main"](np.arange(4, dtype=np.float32)).any()
    program.close()


def test_native_code_of_the_text_counts_not_that_of_the_targets(tmp_path: Path) -> None:
    """Late text says itself which programs there are, whatever targets are asked for."""
    text = Compilation(targets=("reference",)).text(PROGRAM, "bytecode")
    assert Compilation(start="bytecode").write(text, tmp_path / "a.fb") is None
    text = Compilation(targets=("opencl",)).text(PROGRAM, "bytecode")
    assert Compilation(targets=("reference",), start="bytecode").write(text, tmp_path / "a.fb") is not None


def test_a_store_that_others_may_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Native code could not run, so that is an error; other code runs with limits, which is said."""
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "trust").mkdir(parents=True)
    (tmp_path / "home" / "trust").chmod(0o777)
    with pytest.raises(CompileError, match="cannot be put into the trust store: .*may be written by other users"):
        Compilation().write(PROGRAM, tmp_path / "a.fb")
    said = Compilation(targets=("spirv",)).write(PROGRAM, tmp_path / "a.fb")
    assert said is not None and said.endswith("the module runs with the limits of one that is not trusted")
    assert compiler.compile(PROGRAM, targets=["reference"])


def test_every_phase_has_passes_and_every_pass_a_reason() -> None:
    assert {row.phase for row in PASSES} == set(PHASES) - {"input"}
    assert [row.phase for row in PASSES] == sorted((row.phase for row in PASSES), key=list(PHASES).index)
    for row in PASSES:
        assert row.why and callable(row.run) and passes_named([row.name])[0].path == row.path
    assert not passes_of("input")
    assert Compilation().targets == tuple(PROFILES)
