"""Trials of schedules: a seed draws a body, a target and a kind of machine, and schedules, each of which is judged.

The machine's own choice comes first: it is legal, whatever is drawn.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

from random_entries import draw as draw_case
from random_schedules import draw as draw_schedules
from schedule_reasons import reason_of
from schedule_runs import DRIVERS, Judge, Wrong, body_of
from structured_bodies import Case

from orchestrion.compiler.kernel.choose import choose
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.profiles import DEFAULT, MACHINES
from orchestrion.compiler.targets.target import target

#: schedules of a body
PER_CASE = 5


@dataclass
class Outcome:
    """Counts of trials. `pairs`: kind of body, target and machine -> bodies with a schedule. `well_typed`: pairs whose
    steps are about what the body has; `accepted`: those of them that are legal; `judged`: all that are. `steps`: name
    -> pairs in which it was drawn; `taken`: those of them that are legal.
    """

    pairs: Counter[str] = field(default_factory=Counter)
    well_typed: int = 0
    accepted: int = 0
    judged: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    taken: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(
            self.pairs + other.pairs,
            self.well_typed + other.well_typed,
            self.accepted + other.accepted,
            self.judged + other.judged,
            self.steps + other.steps,
            self.taken + other.taken,
            self.reasons + other.reasons,
            self.findings + other.findings,
        )


def trial(judge: Judge, seed: int, targets: tuple[str, ...] = tuple(DRIVERS)) -> Outcome:
    """What became of a seed's pairs."""
    rng, found = random.Random(seed), Outcome()
    case = draw_case(rng)
    name, machine = rng.choice(targets), rng.choice(list(MACHINES))
    machine = machine if target(name).machine(machine) is not None else DEFAULT
    row = target(name).row(machine)
    chosen = choose(body_of(case), row)
    own = [*chosen.specialized, chosen.schedule]
    if refused := judge.refusals(case, own, name, machine):
        found.findings.append(_finding(seed, case, name, machine, own, f"chosen, and refused: {refused}"))
    for _ in range(PER_CASE):
        drawn = draw_schedules(rng, body_of(case), row)
        schedules = list(drawn.schedules)
        found.pairs[f"{case.kind} {name} {machine}"] += 1
        found.well_typed += drawn.well_typed
        names = {step.name for schedule in schedules for step in schedule.steps}
        found.steps.update(names)
        try:
            refused = judge.refusals(case, schedules, name, machine)
            found.reasons.update({reason_of(text.split(" does not fit: ")[-1]) for text in refused})
            if not refused:
                found.accepted += drawn.well_typed
                found.judged += 1
                found.taken.update(names)
                judge.judge(case, schedules, name, machine)
        except Exception as error:  # also those of the compiler that nothing should raise
            what = str(error) if isinstance(error, Wrong) else f"{type(error).__name__}: {error}"
            found.findings.append(_finding(seed, case, name, machine, schedules, what))
    return found


def _finding(seed: int, case: Case, name: str, machine: str, schedules: list[Schedule], message: str) -> str:
    texts = ", ".join(map(str, schedules))
    return f"seed {seed}: {case.kind} for {name} on {machine}, sizes {case.symbols}, {texts}: {message}"
