"""Any legal schedule computes the same: random bodies with random schedules, judged on the device of each target.

`tests/fuzz/schedule_run.py` runs more of the same. With `ORCHESTRION_SCHEDULES=all` each seeded bug is looked for from
the first seed on; else from a seed just in front of one that finds it.
"""

import os
import random
from collections.abc import Iterator

import pytest
import seeded_lowering_bugs
from random_entries import KINDS
from random_entries import draw as draw_case
from random_schedules import draw as draw_schedules
from schedule_runs import DRIVERS, Judge, body_of
from schedule_trials import PER_CASE, trial

from orchestrion.compiler.kernel.legality import choice_problems, problems
from orchestrion.compiler.kernel.schedule import STEPS
from orchestrion.compiler.targets.target import target
from orchestrion.hal.errors import DriverUnavailable

#: bodies, of `PER_CASE` schedules each
SEEDS = 12
#: seeds of long runs on cpu: tiles that were read as rows, parts in an array whose length is no power of two, a row of
#: 34,000 elements for more invocations than a workgroup has, columns that two vectors share, to which products were
#: added twice, and places of loads that depend on the number of an invocation
FOUND = (770095, 770220, 770107, 770452, 229, 544)
#: a seeded bug is found within so many bodies
MAX_SEEDS = 400
FROM_THE_FIRST = os.environ.get("ORCHESTRION_SCHEDULES") == "all"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with pytest.MonkeyPatch.context() as given:
        given.setenv("ORCHESTRION_CACHE", "off")
        opened = Judge()
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def targets(judge: Judge) -> tuple[str, ...]:
    """The targets whose devices are here; skips the test if there are none."""
    found, reasons = [], []
    for name in DRIVERS:
        try:
            judge.device(name)
            found.append(name)
        except DriverUnavailable as error:
            reasons.append(str(error))
    if not found:
        pytest.skip("; ".join(reasons))
    return tuple(found)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(SEEDS))
def test_legal_schedules_compute_the_same(judge: Judge, targets: tuple[str, ...], seed: int) -> None:
    outcome = trial(judge, seed, targets)
    assert outcome.findings == []
    assert outcome.pairs.total() == PER_CASE


@pytest.mark.sampled
@pytest.mark.parametrize("seed", [*range(SEEDS), *FOUND])
def test_legal_schedules_compute_the_same_in_native_code(judge: Judge, seed: int) -> None:
    pytest.importorskip("llvmlite")
    try:
        judge.device("cpu")
    except DriverUnavailable as error:
        pytest.skip(str(error))
    assert trial(judge, seed, ("cpu",)).findings == []


def test_panels_are_drawn_and_legal() -> None:
    """No device is needed."""
    machine, legal, drawn = target("cpu").row("cpu"), 0, 0
    for seed in range(300):
        rng = random.Random(seed)
        body = body_of(draw_case(rng))
        for schedule in draw_schedules(rng, body, machine).schedules:
            if schedule.sums:
                drawn += 1
                legal += next(problems(body, schedule, machine), None) is None
    assert 2 * legal >= drawn >= 20


def test_most_well_typed_draws_are_legal_and_have_every_step() -> None:
    """No device is needed: 300 bodies, and that each of their schedules is legal or not."""
    well_typed = legal = 0
    taken: set[str] = set()
    kinds: set[str] = set()
    for seed in range(300):
        rng = random.Random(seed)
        body = body_of(draw_case(rng))
        kinds.add(body.kind)
        drivers = target(rng.choice(list(DRIVERS)))
        machine = drivers.row(rng.choice(list(drivers.machines)))
        drawn = draw_schedules(rng, body, machine)
        schedules = list(drawn.schedules)
        refused = any(any(problems(body, one, machine)) for one in schedules) or any(choice_problems(body, schedules))
        well_typed += drawn.well_typed
        if not refused:
            legal += drawn.well_typed
            taken |= {step.name for one in schedules for step in one.steps}
    assert 2 * legal >= well_typed and well_typed < 300
    assert taken == set(STEPS)
    assert {"elementwise", "reduction", "contraction", "rows", "scatter", "fft"} <= kinds and len(KINDS) == 5


@pytest.mark.parametrize("name", seeded_lowering_bugs.BUGS)
def test_a_bug_of_the_lowering_is_found(judge: Judge, targets: tuple[str, ...], name: str) -> None:
    bug = seeded_lowering_bugs.BUGS[name]
    first = 0 if FROM_THE_FIRST else seeded_lowering_bugs.NEAR.get(name, 0)
    for seed in range(first, first + MAX_SEEDS):
        with bug():
            findings = trial(judge, seed, targets).findings
        if findings:
            break
    else:
        pytest.fail(f"not found within {MAX_SEEDS} bodies")
    assert trial(judge, seed, targets).findings == []  # and nothing is there without it
