"""Files of schedules: what is accepted, what is refused and where, and what a compilation does with one."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrion import compiler
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import ArgumentTypeError, ArgumentValueError, CompileError, ScheduleWarning
from orchestrion.compiler.kernel.lower import schedules_of
from orchestrion.compiler.placement import Report
from orchestrion.compiler.sequencer.hl_seq import programs_of
from orchestrion.compiler.targets import schedule_file
from orchestrion.compiler.targets.passes.choose_schedules import digest, entries_of
from orchestrion.compiler.targets.schedule_file import DIGITS, HEADER, SavedChoice, ScheduleFile, digest_of, parse

PROGRAM = """func.func @main(%x: tensor<16x24xf32>, %w: tensor<24x32xf32>) -> tensor<16x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<16x24xf32>, tensor<24x32xf32>) -> tensor<16x32xf32>
  func.return %0 : tensor<16x32xf32>
}
"""
UPDATE = """func.func @main(%x: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<1x8xf32>, %i: tensor<i32>) ->
    tensor<8x8xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %y, %i, %z
    : (tensor<8x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8x8xf32>
  func.return %0 : tensor<8x8xf32>
}
"""
D = "0123456789abcdef" * (DIGITS // 16)
STEPS = "[tile(m, 2), tile(n, 8), bind(grid, invocation, 16)]"
LINE = f"schedule opencl cpu {D} {STEPS}"


def saved(text: str, targets: tuple[str, ...] = ("opencl",)) -> list[SavedChoice]:
    """The compiler's own choices for a program, as a file has them."""
    module = Compilation(targets).module(text, "hl_seq")
    return [
        SavedChoice(program.profile, program.machine_name, digest(func, dispatch), tuple(schedules_of(func)))
        for program in programs_of(module)
        for func, dispatch in entries_of(program)
    ]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a file of the choice of PROGRAM with other steps."""

    def made(steps: str, more: str = "") -> Path:
        (choice,) = saved(PROGRAM)
        path = tmp_path / "found.schedules"
        path.write_text(f"{HEADER}\n# a comment\n\nschedule opencl cpu {choice.digest} {steps}\n{more}", "utf-8")
        return path

    return made


def compiled(path: Path | None, stop: str = "hl_seq", source: str = PROGRAM, start: str = "input") -> str:
    file = None if path is None else schedule_file.read(path)
    return Compilation(("opencl",), start=start, schedules=file).text(source.encode(), stop)


# the file


def test_the_text_of_a_file_is_read_back_and_does_not_depend_on_the_order_of_its_choices() -> None:
    choices = [
        SavedChoice(
            target, "cpu", D[::way], parse(f"{HEADER}\n{LINE}\n".encode(), "f").choices[0].schedules, 0, ("1 us",)
        )
        for target in ("spirv", "opencl")
        for way in (1, -1)
    ]
    text = ScheduleFile("f", tuple(choices)).text()
    assert text == ScheduleFile("f", tuple(reversed(choices))).text()
    assert sorted(parse(text.encode(), "f").choices, key=lambda one: one.key) == sorted(
        choices, key=lambda one: one.key
    )
    assert text.startswith(f"{HEADER}\n# 1 us\nschedule opencl cpu ")
    assert parse(text.encode(), "f").choices[0].line == 3


def test_comments_and_notes_cannot_break_a_line() -> None:
    choice = parse(f"{HEADER}\r\n{LINE}\r\n".encode(), "f").choices[0]
    noted = SavedChoice(*choice.key, choice.schedules, 0, ("one\nschedule two\r",))
    assert ScheduleFile("f", (noted,)).text() == f"{HEADER}\n# one schedule two\n{LINE}\n"


REFUSED = [
    (b"", "f:1: the first line is not"),
    (b"orchestrion-schedules 2\n", "f:1: the first line is not 'orchestrion-schedules 1'"),
    (f"{HEADER}\n\xff\n".encode("latin-1"), "f:2: the line is no UTF-8"),
    (f"{HEADER}\n\nschedule\n".encode(), "f:3: 'schedule' is not of the form"),
    (f"{HEADER}\nlayout opencl cpu {D} {STEPS}\n".encode(), "f:2: 'layout opencl cpu "),
    (f"{HEADER}\nschedule opencl cpu {D[1:]} {STEPS}\n".encode(), "is not of the form"),
    (f"{HEADER}\nschedule opencl cpu {D} \n".encode(), "is not of the form"),
    (f"{HEADER}\n{LINE} x\n".encode(), "is not of the form"),
    (
        f"{HEADER}\n{LINE}\n# x\n{LINE}\n".encode(),
        "f:4: the line chooses for the same body, target and machine as line 2",
    ),
    (f"{HEADER}\nschedule opencl cpu {D} [tile(m 2)]\n".encode(), "f:2: tile(m 2) is not of the form tile(d, n)"),
    (f"{HEADER}\nschedule opencl cpu {D} [shrink(m, 2)]\n".encode(), "f:2: no step is called shrink"),
    (
        f"{HEADER}\nschedule opencl cpu {D} [bind(grid, invocation, 8), tile(m, 2)]\n".encode(),
        "do not stand in the order",
    ),
    (f"{HEADER}\n{'#' * 9000}\n".encode(), "f:2: the line has 9000 characters, 8192 are the most"),
    (f"{HEADER}\nschedule opencl cpu {D} {' '.join([STEPS] * 33)}\n".encode(), "33 schedules, 32 are the most"),
    (b"\n" * (schedule_file.MAX_BYTES + 1), f"f: a file of schedules has {schedule_file.MAX_BYTES} bytes at most"),
]


@pytest.mark.parametrize(("data", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_what_is_no_file_of_schedules_is_refused_with_its_line(data: bytes, told: str) -> None:
    with pytest.raises(CompileError, match=re.escape(told)):
        parse(data, "f")


def test_a_file_has_so_many_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_file, "MAX_CHOICES", 2)
    lines = [f"schedule opencl {machine} {D} {STEPS}" for machine in ("a", "b", "c")]
    parse("\n".join([HEADER, *lines[:2]]).encode(), "f")
    with pytest.raises(CompileError, match="f:4: the line is one choice too many"):
        parse("\n".join([HEADER, *lines]).encode(), "f")


# digests


def test_a_digest_knows_no_names_places_or_schedules() -> None:
    (one,) = saved(PROGRAM)
    renamed = PROGRAM.replace("@main", "@other").replace("%x", "%first").replace("\n  %0", "\n\n\n  %0")
    (other,) = saved(renamed)
    assert one == other
    module = Compilation(("opencl",)).module(PROGRAM, "hl_seq")
    for program in programs_of(module):
        for func, dispatch in entries_of(program):
            before = func.schedules
            del func.properties["schedules"]
            assert digest(func, dispatch) == one.digest and before is not None
            assert "schedules" not in func.properties and func.sym_name.value == "main_dispatch_0"


def test_a_digest_is_the_same_for_every_target_and_continued_text() -> None:
    assert len({choice.digest for choice in saved(PROGRAM, ("opencl", "spirv"))}) == 1
    text = compiled(None)
    (again,) = [
        digest(func, dispatch)
        for program in programs_of(Compilation(("opencl",), start="hl_seq").module(text.encode(), "hl_seq"))
        for func, dispatch in entries_of(program)
    ]
    assert [again] == [choice.digest for choice in saved(PROGRAM)]


def test_other_bodies_have_other_digests() -> None:
    programs = [PROGRAM, PROGRAM.replace("x32", "x40"), PROGRAM.replace("f32", "f64"), UPDATE]
    digests = [frozenset(choice.digest for choice in saved(program)) for program in programs]
    assert len(set(digests)) == len(programs)
    for program in programs_of(Compilation(("opencl",)).module(UPDATE, "hl_seq")):
        for func, _ in entries_of(program):
            apart = digest_of(func, "elementwise", ())
            assert apart == digest_of(func, "elementwise", (-1,)) != digest_of(func, "elementwise", (0,))
            assert apart != digest_of(func, "scatter", ())


# a compilation with a file


def test_a_file_goes_before_the_compilers_own_schedules(write: Callable[..., Path]) -> None:
    path = write(STEPS)
    assert f"schedules = [#kernel.schedule<{STEPS}>]" in compiled(path)
    assert f"schedules = [#kernel.schedule<{STEPS}>]" not in compiled(None)
    blob = compiler.compile(PROGRAM, targets=["opencl"], schedules=path)
    assert blob == compiler.compile(PROGRAM, targets=["opencl"], schedules=str(path))
    assert blob != compiler.compile(PROGRAM, targets=["opencl"])


def test_the_compilers_own_schedules_in_a_file_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "own.schedules"
    for program in (PROGRAM, UPDATE):
        path.write_text(ScheduleFile("", tuple(saved(program, ("opencl", "spirv")))).text(), "utf-8")
        with_file = compiler.compile(program, targets=["opencl", "spirv"], schedules=path)
        assert with_file == compiler.compile(program, targets=["opencl", "spirv"])


def test_a_file_changes_text_of_the_phase_hl_seq(write: Callable[..., Path]) -> None:
    path = write(STEPS)
    text = compiled(None)
    for stop in ("hl_seq", "executables"):
        assert compiled(path, stop, text, "hl_seq") == compiled(path, stop)
    message = "the text of phase ll_seq already states the schedules of its entries"
    with pytest.raises(ArgumentValueError, match=message):
        compiled(path, "bytecode", compiled(None, "ll_seq"), "ll_seq")


def test_a_choice_for_no_body_is_told(write: Callable[..., Path]) -> None:
    path = write(STEPS, f"schedule opencl cpu {D} {STEPS}\nschedule spirv cpu {D} {STEPS}\n")
    report = Report()
    with pytest.warns(ScheduleWarning) as told:
        compiler.compile(PROGRAM, targets=["opencl"], schedules=path, report=report)
    (warning,) = told
    assert str(warning.message) == f"schedules that no body of the program has are not used: {path}:5"
    assert warning.filename == __file__
    whats = [row.what for row in report.not_taken if row.what.startswith("the schedules of")]
    assert whats == [f"the schedules of {path}:5", f"the schedules of {path}:6"]
    assert "no program for target spirv and machine cpu has a body of that digest" in report.text()


ILLEGAL = [
    ("[tile(m, 5), tile(n, 8), bind(grid, invocation, 16)]", "tiles of 5 do not divide m, of extent 16"),
    ("[tile(m, 0), tile(n, 8), bind(grid, invocation, 16)]", "tile(m, 0): the count is 1 or more"),
    ("[bind(grid, invocation)]", "a workgroup of 0 invocations; it has from 1 to 128"),
    ("[bind(grid, workgroup), reduce(k, tree)]", "reduce(k, tree): the count is 1 or more"),
    ("[tile(m, 2), tile(n, 8), bind(grid, workgroup), bind(m, local)]", "bind(m, local): the count is 1 or more"),
    ("[bind(grid, invocation, 16), vectorize(n, 0)]", "vectorize(n, 0): the count is 1 or more"),
    ("[bind(grid, invocation, 16), unroll(k, 0)]", "unroll(k, 0): the count is 1 or more"),
    ("[library(sort, 64)]", "a body of kind contraction has no library kernel"),
    ("[specialize(m, ..8), bind(grid, invocation, 16)]", "the extent of m is 16, not dynamic"),
    ("[bind(grid, invocation, 16)] [bind(grid, invocation, 32)]", "has no condition, and stands in front of others"),
    ("[]", "the step bind(grid, ...) is missing"),
]


@pytest.mark.parametrize(("steps", "told"), ILLEGAL, ids=[steps for steps, _ in ILLEGAL])
def test_a_choice_that_does_not_fit_is_refused_with_file_and_line(
    write: Callable[..., Path], steps: str, told: str
) -> None:
    path = write(steps)
    with pytest.raises(CompileError) as error:
        compiler.compile(PROGRAM, targets=["opencl"], schedules=path)
    first = str(error.value).splitlines()[0]
    assert first.startswith(f"{path}:4: for the entry main_dispatch_0 at ") and told in str(error.value)


def test_a_target_without_schedules_takes_none(write: Callable[..., Path]) -> None:
    path = write(STEPS)
    path.write_text(path.read_text("utf-8").replace(" opencl ", " reference "), "utf-8")
    with pytest.raises(CompileError, match=":4: .*: target reference has no schedules"):
        compiler.compile(PROGRAM, targets=["reference"], schedules=path)


def test_a_file_that_cannot_be_read_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="none.schedules: No such file"):
        compiler.compile(PROGRAM, targets=["opencl"], schedules=tmp_path / "none.schedules")
    with pytest.raises(ArgumentTypeError, match="schedules=3: the path of a file expected"):
        compiler.compile(PROGRAM, targets=["opencl"], schedules=3)  # type: ignore[arg-type]
