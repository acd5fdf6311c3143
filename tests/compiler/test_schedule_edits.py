"""What stands in a schedule is what is lowered: each step changes the kernel as it says, and texts continue."""

import random
import re
from typing import Any

import pytest
from random_schedules import draw
from schedule_runs import DRIVERS, Judge, entry_of, module_of
from scheduled_bodies import BODIES

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.ir.attributes import ArrayAttr, DialectAttr
from orchestrion.compiler.ir.parser import parse as parse_module
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.lower import illegal, lower_entry
from orchestrion.compiler.kernel.schedule import ATTRIBUTE, parse
from orchestrion.compiler.sequencer.ll_seq import Entry
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.target import target
from orchestrion.schema.writer import write

GRID, GROUP = "bind(grid, invocation, 32)", "bind(grid, workgroup)"
LOCAL = "bind(m, local, 4), bind(n, local, 4)"
CLAMP = "guard(m, clamp), guard(n, clamp)"
SLICES = "stage(lhs, shared, 4), stage(rhs, shared, 4)"


def lowered(body: str, texts: list[str], name: str = "opencl") -> list[Entry]:
    """The entries that are made of a body by schedules."""
    schedules = [parse(DialectAttr(ATTRIBUTE, f"[{text}]")) for text in texts]
    module = module_of(BODIES[body](), schedules)
    lower_entry(entry_of(module), target(name).row("cpu"))
    return [op for op in module.walk() if isinstance(op, Entry)]


#: body, schedule, invocations, size of a workgroup. The dot is of 8 by 20 results, there are 60 elements and 4 rows
EDITS = [
    ("elements", GRID, 60, 32),
    ("elements", "bind(grid, invocation, 64)", 60, 64),
    ("elements", f"tile(e, 2), {GRID}", 30, 32),
    ("elements", f"tile(e, 5), {GRID}", 12, 32),
    ("dot", GRID, 160, 32),
    ("dot", f"tile(m, 4), tile(n, 4), {GRID}", 10, 32),
    ("dot", f"tile(m, 8), tile(n, 16), {GRID}, guard(n, shift)", 2, 32),
    ("dot", f"tile(m, 3), tile(n, 4), {GRID}, guard(m, clamp)", 15, 32),
    ("dot", f"tile(m, 2), tile(n, 2), {GROUP}, {LOCAL}, {CLAMP}", 3 * 16, 16),
    ("dot", f"{GROUP}, reduce(k, tree, 8)", 160 * 8, 8),
    ("reduction", f"{GROUP}, reduce(k, tree, 64)", 4 * 64, 64),
    ("rows", GRID, 4, 32),
    ("rows", f"{GROUP}, reduce(k, tree, 32)", 4 * 32, 32),
]


@pytest.mark.parametrize(("body", "text", "invocations", "size"), EDITS)
def test_a_schedule_says_how_many_invocations_there_are(body: str, text: str, invocations: int, size: int) -> None:
    (entry,) = lowered(body, [text])
    assert entry.workload.ints == (invocations, 1, 1)
    assert entry.workgroup_size is not None and entry.workgroup_size.ints == (size, 1, 1)


#: body, schedule, an edit of it, what is in the code of the edited schedule alone
CODE = [
    ("dot", f"tile(m, 4), tile(n, 4), {GRID}", f"tile(m, 4), tile(n, 4), {GRID}, vectorize(n, 4)", "vector"),
    (
        "dot",
        f"tile(m, 2), tile(n, 2), {GROUP}, {LOCAL}, {CLAMP}",
        f"tile(m, 2), tile(n, 2), {GROUP}, {LOCAL}, {SLICES}, {CLAMP}",
        "kernel.barrier",
    ),
    ("reduction", GRID, f"{GROUP}, reduce(k, tree, 8)", "kernel.shared"),
    ("rows", f"{GROUP}, reduce(k, tree, 8)", f"{GROUP}, reduce(k, tree, 8), stage(k, register)", None),
    ("reduction", GRID, f"{GRID}, unroll(k, 4)", None),
    ("dot", f"tile(m, 4), tile(n, 4), {GRID}", f"tile(m, 4), tile(n, 4), reorder(n, m), {GRID}", None),
    ("dot", f"tile(m, 3), {GRID}, guard(m, shift)", f"tile(m, 3), {GRID}, guard(m, clamp)", None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "text", "edited", "has"), CODE)
def test_a_step_changes_the_code(body: str, text: str, edited: str, has: str | None) -> None:
    before, behind = (str(lowered(body, [one])[0]).partition("^bb0")[2] for one in (text, edited))
    assert before and before != behind
    if has is not None:
        assert has not in before and has in behind


def test_a_condition_makes_an_entry() -> None:
    entries = lowered("dynamic rows", [f"specialize(k, ..64), {GRID}", f"{GROUP}, reduce(k, tree, 8)"])
    assert [op.symbol for op in entries] == ["entry", "entry_up_to_64"]
    assert [op.workgroup_size and op.workgroup_size.ints[0] for op in entries] == [8, 32]


# texts of phases

SOURCE = """
func.func @main(%a: tensor<12x20xf32>, %b: tensor<20x16xf32>, %s: tensor<16xf32>) -> (tensor<12x16xf32>, tensor<f32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<12x20xf32>, tensor<20x16xf32>) -> tensor<12x16xf32>
  %m = stablehlo.reduce(%d init: %z) applies stablehlo.maximum across dimensions = [1]
    : (tensor<12x16xf32>, tensor<f32>) -> tensor<12xf32>
  %w = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<12xf32>) -> tensor<12x16xf32>
  %r = stablehlo.subtract %d, %w : tensor<12x16xf32>
  %e = stablehlo.exponential %r : tensor<12x16xf32>
  %t = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0]
    : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  return %e, %t : tensor<12x16xf32>, tensor<f32>
}
"""


def drawn(text: str, name: str, seed: int) -> tuple[str, list[str]]:
    """The text of a phase with random legal schedules in place of those that were chosen, and these."""
    rng, module, found = random.Random(seed), parse_module(text, "text"), list[str]()
    row = target(name).row("cpu")
    for op in module.walk():
        if not isinstance(op, Func | Entry) or op.get("schedules") is None:
            continue
        body = Body.of_function(op, ()) if isinstance(op, Func) else Body.of_entry(op)
        schedules = list(draw(rng, body, row).schedules)
        while any(illegal(body, schedules, row)):
            schedules = list(draw(rng, body, row).schedules)
        _give(op, schedules)
        found.append(", ".join(map(str, schedules)))
    return str(module), found


def _give(op: Any, schedules: list[Any]) -> None:
    op.schedules = ArrayAttr(tuple(one.attribute for one in schedules))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("phase", ["hl_seq", "ll_seq"])
@pytest.mark.parametrize("name", DRIVERS)
def test_drawn_schedules_continue_to_the_same_bytes(name: str, phase: str, seed: int) -> None:
    text, schedules = drawn(Compilation(targets=(name,)).text(SOURCE, phase), name, seed)
    assert len(schedules) >= 3
    assert str(parse_module(text, "again")) == text
    whole = write(Compilation(targets=(name,), start=phase).rows(text))
    for later in ("ll_seq", "executables"):
        continued = Compilation(targets=(name,), start=phase).text(text, later)
        if later == "ll_seq":
            assert re.findall(r"schedules = \[(.*?)\], sym_name", continued) == schedules
        assert write(Compilation(targets=(name,), start=later).rows(continued)) == whole


def test_edited_text_computes_what_it_says() -> None:
    """Without a device: a text of hl_seq with another tile gives another workload."""
    text = Compilation(targets=("opencl",)).text(SOURCE, "hl_seq")
    tile = re.search(r"tile\(m, \d+\), tile\(n, \d+\)", text)
    assert tile is not None
    workloads = set()
    for edited in ("tile(m, 2), tile(n, 4)", "tile(m, 4), tile(n, 8)"):
        steps = re.sub(r"\[tile\(m.*?\]>", f"[{edited}, {GRID}]>", text)
        made = Compilation(targets=("opencl",), start="hl_seq").text(steps, "executables")
        assert edited in made
        workloads.add(int(re.search(rf"{re.escape(edited)}.*?workload = array<i64: (\d+), 1, 1>", made)[1]))  # type: ignore[index]
    assert workloads == {24, 6}


def test_a_judge_refuses_what_legality_refuses() -> None:
    refused = [parse(DialectAttr(ATTRIBUTE, f"[tile(e, 7), {GRID}]"))]
    assert Judge().refusals(BODIES["elements"](), refused, "opencl", "cpu")
