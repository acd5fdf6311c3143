"""Schedules as text: each step prints and reads back, also in MLIR; what is wrong with kinds and schedules is said."""

import re
from pathlib import Path

import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.attributes import DialectAttr, StringAttr
from orchestrion.compiler.ir.parser import parse as parse_module
from orchestrion.compiler.kernel.schedule import STEPS, WAYS, Schedule, ScheduleError, Step, parse
from orchestrion.schema.writer import write

#: step -> one of each way
EACH_STEP = [
    Step(name, "m", how, 4 if "{count}" in form and (name, how) != ("bind", "workgroup") else 0)
    for name, (form, _) in STEPS.items()
    for how in WAYS.get(name, [""])
]


@pytest.mark.parametrize("step", EACH_STEP, ids=str)
def test_each_step_reads_back(step: Step) -> None:
    schedule = Schedule.of(step)
    assert parse(schedule.attribute) == schedule
    module = parse_module(f'"builtin.module"() <{{schedules = [{schedule}]}}> ({{\n}}) : () -> ()', "text")
    assert str(schedule) in str(module)


def test_mlir_takes_each_step() -> None:
    ir = pytest.importorskip("jaxlib.mlir.ir")
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        for step in EACH_STEP:
            assert str(ir.Attribute.parse(str(Schedule.of(step)))) == str(Schedule.of(step))


def test_steps_stand_in_one_order() -> None:
    given = [Step("guard", "m", "clamp"), Step("tile", "m", count=4), None, Step("bind", "grid", "workgroup")]
    schedule = Schedule.of(*given)
    assert str(schedule) == "#kernel.schedule<[tile(m, 4), bind(grid, workgroup), guard(m, clamp)]>"


WRONG = [
    ("tile(m, 8)", "is not a list of steps such as tile(m, 8)"),
    ("[tile(m, 8),]", "is not a list of steps such as tile(m, 8)"),
    ("[tile(m, 8)bind(grid, workgroup)]", "is not a list of steps such as tile(m, 8)"),
    ("[tiles(m, 8)]", f"no step is called tiles; steps are {', '.join(STEPS)}"),
    ("[tile(m, n)]", "tile(m, n) is not of the form tile(d, n)"),
    ("[tile(m, 08)]", "tile(m, 08) is not of the form tile(d, n)"),
    ("[tile(m, 8, 8)]", "tile(m, 8, 8) is not of the form tile(d, n)"),
    ("[tile(m,8)]", "tile(m,8) is not of the form tile(d, n)"),
    ("[specialize(m, 8)]", "specialize(m, 8) is not of the form specialize(d, ..n)"),
    ("[guard(m, wrap)]", "guard(m, wrap): wrap is none of shift, clamp, pad"),
    ("[bind(grid, workgroup, 0)]", "bind(grid, workgroup, 0) is not of the form bind(grid, workgroup)"),
    ("[bind(grid, workgroup), tile(m, 8)]", "do not stand in the order library, specialize, assume, tile, "),
    ("[tile(m, 8), tile(m, 4)]", "has tile(m) twice"),
]


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_what_is_no_schedule(body: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)):
        parse(DialectAttr("kernel.schedule", body))


def test_another_attribute_is_no_schedule() -> None:
    for other in (StringAttr("tile(m, 8)"), DialectAttr("util.schedule", "[tile(m, 8)]")):
        with pytest.raises(ScheduleError, match=re.escape("is not a #kernel.schedule<[...]>")):
            parse(other)


# in entries

SUM = """"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<8xf32>, %y: tensor<8xf32>):
    %r = "stablehlo.add"(%x, %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%r) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""
KIND, CHOSEN = 'kind = "elementwise"', "schedules = [#kernel.schedule<[bind(grid, invocation, 64)]>]"
PHASES = ["hl_seq", "ll_seq", "executables"]


def after(phase: str) -> str:
    text = Compilation(targets=("spirv",)).text(SUM, phase)
    assert text.count(KIND) == 1 and text.count(CHOSEN) == (phase != "flow")
    return text


def said(text: str, phase: str) -> list[str]:
    """What is said of a text that continues from a phase."""
    with pytest.raises(CompileError) as caught:
        Compilation(targets=("spirv",), start=phase).rows(text)
    return [diagnostic.message for diagnostic in caught.value.diagnostics]


@pytest.mark.parametrize("phase", ["flow", *PHASES])
def test_an_unknown_kind_is_refused(phase: str) -> None:
    (message,) = said(after(phase).replace(KIND, 'kind = "sum"'), phase)
    assert message.startswith('kind "sum" is none of elementwise, reduction, contraction, rows, ')


@pytest.mark.parametrize("phase", ["hl_seq", "ll_seq"])
def test_another_kind_than_that_of_the_body_is_refused(phase: str) -> None:
    messages = said(after(phase).replace(KIND, 'kind = "reduction"'), phase)
    assert messages == ["the entry is of kind elementwise, its attribute says reduction"]


@pytest.mark.parametrize("phase", PHASES)
def test_what_is_no_schedule_is_refused(phase: str) -> None:
    text = after(phase)
    messages = said(text.replace(CHOSEN, "schedules = [#kernel.schedule<[tile(e, 08)]>, 3 : i64]"), phase)
    assert messages == [
        "schedules: tile(e, 08) is not of the form tile(d, n)",
        "schedules: 3 : i64 is not a #kernel.schedule<[...]>",
    ]
    (message,) = said(text.replace(CHOSEN, "schedules = []"), phase)
    assert message.startswith("schedules is an empty list")


def test_schedules_come_in_hl_seq() -> None:
    text = after("flow").replace(KIND, f"{KIND}, {CHOSEN}")
    assert said(text, "flow") == ["has schedules, which entries get in the phase hl_seq"]


@pytest.mark.parametrize("phase", ["hl_seq", "ll_seq"])
@pytest.mark.parametrize(
    ("schedules", "message"),
    [
        (
            ["tile(e, 3), bind(grid, invocation, 64)"],
            "the schedule #kernel.schedule<[tile(e, 3), bind(grid, invocation, 64)]> does not fit: "
            "tile(e, 3): the last dimension in memory has 8 elements, which is no multiple",
        ),
        (
            ["bind(grid, invocation, 64)", "bind(grid, invocation, 32)"],
            "#kernel.schedule<[bind(grid, invocation, 64)]> has no condition, and stands in front of others",
        ),
    ],
)
def test_a_schedule_that_does_not_fit_is_refused(phase: str, schedules: list[str], message: str) -> None:
    given = ", ".join(f"#kernel.schedule<[{steps}]>" for steps in schedules)
    assert message in said(after(phase).replace(CHOSEN, f"schedules = [{given}]"), phase)


@pytest.mark.parametrize("phase", ["hl_seq", "ll_seq"])
def test_an_edited_schedule_is_what_is_lowered(phase: str, tmp_path: Path) -> None:
    """An invocation computes four elements: fewer invocations, other code, and the text continues to the same bytes."""
    edited = "schedules = [#kernel.schedule<[tile(e, 4), bind(grid, invocation, 32)]>]"
    text = after(phase).replace(CHOSEN, edited)
    continued = Compilation(start=phase)
    made = continued.text(text, "executables")
    assert edited in made and "workgroup_size = array<i64: 32, 1, 1>, workload = array<i64: 2, 1, 1>" in made
    assert write(Compilation(start="executables").rows(made)) == write(continued.rows(text))
