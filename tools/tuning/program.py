"""A whole program on a device: what its entries take in a call, and whether schedules change its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrion.compiler.bytecode.serialize import module_rows
from orchestrion.compiler.driver import SCHEDULED
from orchestrion.compiler.ir.attributes import ArrayAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.kernel.schedule import Schedule
from orchestrion.compiler.options import Options
from orchestrion.compiler.pipeline import LAST_PHASE, phases_between, run_phases
from orchestrion.compiler.sequencer.hl_seq import programs_of
from orchestrion.compiler.targets.passes.choose_schedules import digest, entries_of
from orchestrion.schema.writer import write

from .rig import Array, difference, numbers
from .search import quartile

if TYPE_CHECKING:
    from orchestrion.vm.program import Program

#: calls whose launches are timed, seconds of them at most
CALLS, SECONDS = 20, 5.0
#: rounds in which both programs are called, seconds of them at most
ROUNDS = 30
#: how much floats of results may differ if a reduction adds up in another order; more for narrow floats, by their bytes
TOLERANCE, NARROW = 1e-4, {1: 0.25, 2: 2.0**-6}


@dataclass(frozen=True)
class Times:
    """Seconds of an entry's launches in a call, their part of the call's time on the device, the op that it is for."""

    seconds: float
    share: float
    op: str = ""


def blob_of(module: Module, options: Options, schedules: Mapping[str, Schedule]) -> bytes:
    """The module file of a module of the phase `hl_seq`, which stays as it is. `schedules`: by digest of the body."""
    copy = module.clone({})
    assert isinstance(copy, Module)
    for program in programs_of(copy):
        for func, dispatch in entries_of(program):
            found = schedules.get(digest(func, dispatch)) if schedules else None
            if found is not None:
                func.schedules = ArrayAttr((found.attribute,))
    run_phases(copy, phases_between(SCHEDULED, LAST_PHASE), options)
    return write(module_rows(copy))


def arguments_for(program: Program, name: str, seed: int) -> list[Any]:
    """Random arguments of an export whose sizes are known."""
    from orchestrion.tools.cli import InputError

    export = next((export for export in program.exports if export.name == name), None)
    if export is None:
        raise InputError(f"no function is called {name}; there are {', '.join(one.name for one in program.exports)}")
    if export.is_dynamic:
        raise InputError(f"{export} has dynamic sizes: give its arrays with --input")
    random = np.random.default_rng(seed)
    return [numbers(random, value.dtype, tuple(value.shape)) for value in export.arguments]


def profile(program: Program, name: str, arguments: Sequence[Any]) -> dict[str, Times]:
    """What each entry takes in a call, the entry that takes the most first. The program is loaded with profiling."""
    function = program[name].flat
    function(*arguments)
    start, calls = perf_counter(), 1
    while calls < CALLS and perf_counter() - start < SECONDS:
        function(*arguments)
        calls += 1
    rows = program.profile().rows(name)
    found: dict[str, float] = {}
    ops: dict[str, str] = {}
    total = 0.0
    for row in rows:
        seconds = row.median_seconds * row.launches / row.calls  # a launch that was held up counts as the others
        total += seconds
        if row.command.kind == "dispatch":
            entry = row.command.entry
            found[entry] = found.get(entry, 0.0) + seconds
            ops.setdefault(entry, row.command.source_op)
    order = sorted(found, key=lambda entry: -found[entry])
    return {entry: Times(found[entry], found[entry] / total if total else 0.0, ops[entry]) for entry in order}


def compared(
    before: Program, after: Program, name: str, arguments: Sequence[Any], exact: bool
) -> tuple[float, float, str]:
    """Seconds of a call of both programs, which are called in turns (the first quartile), and how the results of the
    second differ: bit by bit if `exact`; empty if they do not.
    """
    functions = before[name].flat, after[name].flat
    given = [_arrays(function(*arguments)) for function in functions]
    tolerance = max([TOLERANCE, *(NARROW.get(one.itemsize, 0.0) for one in given[0] if one.dtype.kind in "fV")])
    results = [[one.astype(np.float32) if one.dtype.kind == "V" else one for one in each] for each in given]
    wrong = difference(results[0], results[1], 0.0 if exact else tolerance)
    taken: tuple[list[float], list[float]] = ([], [])
    end = perf_counter() + SECONDS
    while len(taken[0]) < ROUNDS and (perf_counter() < end or not taken[0]):
        for function, times in zip(functions, taken, strict=True):
            start = perf_counter()
            function(*arguments)
            times.append(perf_counter() - start)
    return quartile(taken[0]), quartile(taken[1]), wrong


def _arrays(results: Any) -> list[Array]:
    from orchestrion.tools.run import as_tuple

    return [np.ascontiguousarray(np.asarray(one)).reshape(-1) for one in as_tuple(results)]
