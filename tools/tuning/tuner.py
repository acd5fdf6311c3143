"""One run of `vm-tune`: compile, profile a call, search entry by entry, compare the whole program before and after."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from orchestrion.compiler.driver import SCHEDULED, Compilation
from orchestrion.compiler.ir.garbage import collection_paused
from orchestrion.compiler.options import Options
from orchestrion.compiler.profiles import DEFAULT, MACHINES
from orchestrion.compiler.sequencer.hl_seq import programs_of
from orchestrion.compiler.targets.choice import profile_names
from orchestrion.compiler.targets.kernel_target import KernelTarget
from orchestrion.compiler.targets.schedule_file import SavedChoice
from orchestrion.compiler.targets.target import target
from orchestrion.hal.errors import HalError
from orchestrion.hal.registry import find_device
from orchestrion.tools import cli
from orchestrion.tools.call_arrays import arguments_of
from orchestrion.tools.run import choose

from . import program as programs
from .kernels import Kernel, kernels_of
from .program import Times
from .report import EntryRow, Tuning, steps_text
from .rig import Bench, Rig
from .search import Budget, Outcome, Search

if TYPE_CHECKING:
    from orchestrion.compiler.ir.builtin import Module
    from orchestrion.vm.program import Program

#: kernels that take less of a call than this are left as they are
LEAST_SHARE = 0.005


class _Call(NamedTuple):
    """A function of the program and its arguments."""

    name: str
    arguments: Sequence[Any]


class Tuner:
    """`say`: shows where it is. Raises InputError if the device's target has no schedules."""

    def __init__(self, options: argparse.Namespace, say: Callable[[str], None]) -> None:
        self._options, self._say = options, say
        self._info = find_device(options.device)[1]
        name = profile_names((options.device,))[0]
        found = target(name)
        if not isinstance(found, KernelTarget):
            raise cli.InputError(f"device {self._info.id} runs code of target {name}, which has no schedules")
        self._target = found
        own = next((machine for machine in MACHINES if machine in self._info.features), DEFAULT)
        self._machine: str = own if options.machine is None else options.machine
        if found.machine(self._machine) is None:
            raise cli.InputError(f"target {name} has no row for machine {self._machine}")
        self._compile = Options((name,), options.encodings, (self._machine,))

    def run(self) -> tuple[Tuning, list[SavedChoice]]:
        """What was found, and the choices for the file."""
        self._say("compile")
        module = self._module()
        kernels = self._kernels(module)
        self._say("load")
        blob = programs.blob_of(module, self._compile, {})
        with self._loaded(blob, profiling=self._info.timestamps) as loaded:
            call = self._call(loaded)
            self._say("profile")
            times = programs.profile(loaded, *call) if self._info.timestamps else {}
        tuning = Tuning(self._info.id, self._info.name, self._target.name, self._machine, call.name)
        found = self._search(kernels, times, tuning)
        if found:
            self._say("compare")
            with self._loaded(blob) as before:
                found = self._confirmed(module, found, tuning, before, call)
        return tuning, [self._saved(one) for one in found]

    # the program

    def _module(self) -> Module:
        """The program after the phase in which schedules are chosen, for this device alone."""
        options, start = self._options, self._options.compile_from
        source = cli.read_bytes("-") if options.input == "-" else Path(options.input)
        machines = (DEFAULT,) if start == SCHEDULED else (self._machine,)
        job = Compilation((self._target.name,), machines=machines, encodings=options.encodings, start=start)
        with collection_paused():
            module = job.module(source, SCHEDULED)
        wanted = self._target.name, self._machine
        there = programs_of(module)
        for program in there:
            if (program.profile, program.machine_name) != wanted:
                program.erase()
        if not programs_of(module):
            names = ", ".join(program.sym_name.value for program in there) or "none"
            raise cli.InputError(f"no program is for target {wanted[0]} and machine {wanted[1]}; there are {names}")
        return module

    def _kernels(self, module: Module) -> dict[str, Kernel | str]:
        """The entries of the program by name; of one that cannot be tuned the reason."""
        return {name: found for program in programs_of(module) for name, found in kernels_of(program, self._target)}

    @contextmanager
    def _loaded(self, blob: bytes, profiling: bool = False) -> Iterator[Program]:
        """The program on the device. Its code was compiled here, so it may run."""
        from orchestrion import vm

        program = vm.load(blob, device=self._options.device, allow_native_code=True, profiling=profiling)
        try:
            yield program
        finally:
            program.close()

    def _call(self, program: Program) -> _Call:
        name = choose(program, self._options.function)
        if self._options.arrays:
            return _Call(name, arguments_of(program, name, self._options.arrays))
        return _Call(name, programs.arguments_for(program, name, self._options.seed))

    # the search

    def _search(self, kernels: Mapping[str, Kernel | str], times: Mapping[str, Times], tuning: Tuning) -> list[Outcome]:
        """Outcomes of entries whose schedule changes; a row of the table for each entry of the call."""
        options, found = self._options, list[Outcome]()
        budget = Budget(options.budget, options.trials)
        with Rig(options.device) as rig:
            times = times or _alone(kernels, rig, options.seed)
            tuned = [entry for entry, row in times.items() if row.share >= LEAST_SHARE]
            tuned = [entry for entry in tuned if isinstance(kernels.get(entry), Kernel)][: options.entries]
            weights = {entry: math.sqrt(times[entry].share) for entry in tuned}
            for entry, row in times.items():
                kernel = kernels.get(entry, "it is no kernel of the program")
                if isinstance(kernel, str) or entry not in tuned:
                    tuning.rows.append(_untouched(entry, row, kernel))
                    continue
                part = budget.part(weights[entry] / (sum(weights.values()) or 1.0))
                del weights[entry]
                place = f"[{tuned.index(entry) + 1}/{len(tuned)}] {entry}"
                outcome = self._tuned(kernel, rig, part, place, tuning)
                budget.used += part.used
                if outcome is not None:
                    tuning.rows.append(_row(entry, row, outcome))
                    found += [outcome] if outcome.is_tuned else []
                else:
                    tuning.rows.append(_untouched(entry, row, "the device does not run it by itself"))
        return found

    def _tuned(self, kernel: Kernel, rig: Rig, budget: Budget, place: str, tuning: Tuning) -> Outcome | None:
        """The outcome of an entry; None, with a note, if the device does not run it by itself."""
        try:
            return Search(kernel, rig, self._options.seed, lambda text: self._say(f"{place}: {text}")).run(budget)
        except HalError as error:
            tuning.notes.append(f"{kernel.name} is not tuned: {error}")
            return None

    # the whole program

    def _confirmed(
        self, module: Module, found: list[Outcome], tuning: Tuning, before: Program, call: _Call
    ) -> list[Outcome]:
        """The outcomes with which the whole program computes the same. If it does not, those that change the order of a
        reduction are left out. Raises InputError if the others change results, too.
        """
        for chosen in (found, [one for one in found if not one.is_reordered]):
            exact = not any(one.is_reordered for one in chosen)
            schedules = {one.kernel.digest: one.schedule for one in chosen}
            with self._loaded(programs.blob_of(module, self._compile, schedules)) as after:
                tuning.before, tuning.after, wrong = programs.compared(before, after, *call, exact)
            tuning.exact = exact
            if not wrong:
                return chosen
            if exact:
                raise cli.InputError(
                    f"schedules that keep the order of reductions give other results of {call.name}: {wrong}"
                )
            left_out = ", ".join(one.kernel.name for one in found if one.is_reordered)
            tuning.notes.append(f"not taken, as results of {call.name} differ: schedules of {left_out}: {wrong}")
        return []

    def _saved(self, outcome: Outcome) -> SavedChoice:
        kernel = outcome.kernel
        note = f"{kernel.name}: {1e6 * outcome.before:,.1f} us -> {1e6 * outcome.after:,.1f} us on {self._info.name}"
        return SavedChoice(self._target.name, self._machine, kernel.digest, (outcome.schedule,), 0, (note,))


def _alone(kernels: Mapping[str, Kernel | str], rig: Rig, seed: int) -> dict[str, Times]:
    """What each entry takes by itself, once, on a device that has no timestamps."""
    found = {}
    for name, kernel in kernels.items():
        if isinstance(kernel, Kernel):
            bench = Bench(rig, kernel.memory, seed)
            try:
                code = kernel.code(kernel.schedule)
                launches = bench.times([(code, rig.build(kernel.format, code))], 3)
            finally:
                bench.close()
            found[name] = median(one[0] for one in launches)
    total = sum(found.values()) or 1.0
    return {name: Times(found[name], found[name] / total) for name in sorted(found, key=lambda name: -found[name])}


def _untouched(entry: str, times: Times, kernel: Kernel | str) -> EntryRow:
    why = kernel if isinstance(kernel, str) else "not searched"
    steps = "" if isinstance(kernel, str) else steps_text(kernel.schedule)
    return EntryRow(entry, times.op, times.share, 0.0, 0.0, steps, steps, why=why)


def _row(entry: str, times: Times, outcome: Outcome) -> EntryRow:
    refused = tuple((steps_text(schedule), reason) for schedule, reason in outcome.refused)
    chosen, found = steps_text(outcome.kernel.schedule), steps_text(outcome.schedule)
    measured = outcome.before, outcome.after
    return EntryRow(entry, times.op, times.share, *measured, chosen, found, outcome.trials, refused)
