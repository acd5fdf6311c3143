"""The search for the best schedule of one entry: hill climbing with restarts, by duels on a device.

A *duel* runs two kernels in turns on the same buffers, so that what else the machine does meets both. Other work on the
machine can only lengthen a launch, so a kernel's time is the first quartile of its launches. The challenger wins if
it is faster in each of `BATCHES` batches of launches, and by `MARGIN` in all of them. A schedule whose results differ
from those of the compiler's own is never taken. Equal times, seed and number of trials give equal schedules.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.hal.errors import HalError
from orchestrion.hal.executable import Executable

from .kernels import Code, Kernel
from .rig import Array, Bench, Rig, difference, tolerance_of

#: a challenger is faster by this part at least
MARGIN = 0.03
#: batches of a duel, and rounds of a batch, in each of which both kernels run: as many as fit the seconds
BATCHES, ROUNDS, FEWEST, SECONDS = 3, 12, 3, 0.4
#: changes between a schedule and where the search starts again
JUMP = 3
#: how often the search starts again, at most
MAX_JUMPS = 200
#: a kernel that takes so many times as long as the best one is no start, and loses a duel at once
HOPELESS = 3.0


class Budget:
    """How long a search may go on: until a time, and for so many trials. `used`: trials that were made."""

    def __init__(self, seconds: float, trials: int | None) -> None:
        self._end = monotonic() + seconds
        self._trials = trials
        self.used = 0

    @property
    def seconds(self) -> float:
        """Seconds that are left."""
        return max(self._end - monotonic(), 0.0)

    @property
    def trials(self) -> int | None:
        """Trials that are left; None without a limit."""
        return None if self._trials is None else self._trials - self.used

    @property
    def is_spent(self) -> bool:
        return self.seconds == 0 or self.trials == 0

    def part(self, share: float) -> Budget:
        """A share of what is left, rounded up."""
        left, share = self.trials, min(share, 1.0)
        return Budget(self.seconds * share, None if left is None else math.ceil(left * share))


@dataclass
class Outcome:
    """What was found for an entry. Times are seconds of a launch, of both schedules in one duel. `refused`: schedules
    that were measured to compute something else, or could not be built, with the reason.
    """

    kernel: Kernel
    schedule: Schedule
    before: float = 0.0
    after: float = 0.0
    trials: int = 0
    ran: int = 0  #: of the trials those that computed the same
    refused: list[tuple[Schedule, str]] = field(default_factory=list)

    @property
    def is_tuned(self) -> bool:
        return self.schedule != self.kernel.schedule

    @property
    def is_reordered(self) -> bool:
        """Whether a reduction adds up in another order than before."""
        return is_reordered(self.schedule, self.kernel.schedule)


@dataclass(frozen=True)
class _Built:
    schedule: Schedule
    code: Code
    executable: Executable


class Search:
    """The search for one entry on a device. Raises HalError if the device does not run the compiler's own schedule."""

    def __init__(self, kernel: Kernel, rig: Rig, seed: int, say: Callable[[str], None] = lambda _: None) -> None:
        self._kernel, self._rig, self._say = kernel, rig, say
        self._random = random.Random(f"{seed} {kernel.digest}")
        self._space = kernel.space
        self._tried: set[Schedule] = {kernel.schedule}
        self._outcome = Outcome(kernel, kernel.schedule)
        self._bench = Bench(rig, kernel.memory, seed)
        self._want: list[Array] = []

    def run(self, budget: Budget) -> Outcome:
        """The best schedule that is found within a budget."""
        try:
            first = best = self._build(self._kernel.schedule)
            self._want = self._bench.results(first.code, first.executable)
            for start in self._starts(first.schedule):
                if budget.is_spent:
                    break
                found = self._climb(first if start == first.schedule else self._trial(start, budget), best, budget)
                if found is not None and found is not best and self._duel(found, best) is not None:
                    best = found
                    self._outcome.schedule = best.schedule
            self._settle(first, best)
        finally:
            self._bench.close()
        return self._outcome

    def _starts(self, first: Schedule) -> Iterator[Schedule]:
        """Where to climb from: the compiler's own schedule, some of each form, then some steps beside these and the
        best.
        """
        starts = [first, *(one for one in self._space.starts() if one != first)]
        yield from starts
        for _ in range(MAX_JUMPS):
            jumped = self._random.choice([self._outcome.schedule, *starts])
            for _ in range(JUMP):
                jumped = self._random.choice(self._space.neighbours(jumped) or [jumped])
            if jumped not in self._tried:
                yield jumped

    def _climb(self, start: _Built | None, best: _Built, budget: Budget) -> _Built | None:
        """What is reached from a start by steps each of which is faster; None if the start is hopeless."""
        now = start
        if now is None or (now is not best and self._is_hopeless(now, best)):
            return None
        while not budget.is_spent:
            near = [one for one in self._space.neighbours(now.schedule) if one not in self._tried]
            self._random.shuffle(near)
            trials = (self._trial(one, budget) for one in near)
            better = next((one for one in trials if one is not None and self._duel(one, now) is not None), None)
            if better is None:
                break
            now = better
        return now

    def _trial(self, schedule: Schedule, budget: Budget) -> _Built | None:
        """The kernel of a schedule that was not tried, if it computes the same."""
        if budget.is_spent or schedule in self._tried:
            return None
        self._tried.add(schedule)
        budget.used += 1
        self._outcome.trials += 1
        self._say(f"{budget.seconds:.0f} s left, trial {self._outcome.trials}: {schedule.attribute.body}")
        try:
            made = self._build(schedule)
            wrong = self._difference(made)
        except (CompileError, HalError) as error:
            wrong = str(error)
        if wrong:
            self._outcome.refused.append((schedule, wrong))
            return None
        self._outcome.ran += 1
        return made

    def _build(self, schedule: Schedule) -> _Built:
        code = self._kernel.code(schedule)
        return _Built(schedule, code, self._rig.build(self._kernel.format, code))

    def _difference(self, made: _Built) -> str:
        """How its results differ from those of the compiler's own schedule, bit by bit if both reduce in one order."""
        reordered = is_reordered(made.schedule, self._kernel.schedule)
        tolerance = tolerance_of(self._kernel.memory, int(self._kernel.body.extents.get("k", 0))) if reordered else 0.0
        return difference(self._want, self._bench.results(made.code, made.executable), tolerance)

    def _seconds(self, kernels: Sequence[_Built], rounds: int = 1) -> list[list[float]]:
        """The seconds of each kernel's launches, in turns."""
        taken = self._bench.times([(one.code, one.executable) for one in kernels], rounds)
        return [list(times) for times in zip(*taken, strict=True)]

    def _is_hopeless(self, one: _Built, other: _Built) -> bool:
        """Whether a kernel takes much longer than another; a launch that was held up shows nothing."""
        ((first,), (second,)) = self._seconds((other, one))
        return second > HOPELESS * first and min(self._seconds((one,), FEWEST)[0]) > HOPELESS * first

    def _duel(self, challenger: _Built, other: _Built) -> tuple[float, float] | None:
        """Seconds of the other and of the challenger if that wins; None if not, as early as that is seen."""
        if self._is_hopeless(challenger, other):
            return None
        once = self._seconds((other, challenger))
        rounds = max(FEWEST, min(ROUNDS, int(SECONDS / (once[0][0] + once[1][0] + 1e-9))))
        taken: tuple[list[float], list[float]] = ([], [])
        for _ in range(BATCHES):
            batch = self._seconds((other, challenger), rounds)
            if quartile(batch[1]) >= quartile(batch[0]):
                return None
            for times, more in zip(taken, batch, strict=True):
                times += more
        before, after = map(quartile, taken)
        return (before, after) if after <= (1 - MARGIN) * before else None

    def _settle(self, first: _Built, best: _Built) -> None:
        """Measure both at the end. What does not hold there is not taken."""
        found = None if best is first else self._duel(best, first)
        self._outcome.schedule = first.schedule if found is None else best.schedule
        if found is None:
            found = (quartile(self._seconds((first,), ROUNDS)[0]),) * 2
        self._outcome.before, self._outcome.after = found


def is_reordered(one: Schedule, other: Schedule) -> bool:
    """Whether two schedules of a body reduce in different orders."""
    return list(one.named("reduce")) != list(other.named("reduce"))


def quartile(times: Sequence[float]) -> float:
    """The first quartile of some times: the least that a quarter of them does not exceed."""
    return sorted(times)[(len(times) - 1) // 4]
