"""Programs by their seed, for the tests and the long run: what was made, whether it passed, and how it ended."""

import random
from collections import Counter
from dataclasses import dataclass, field

import judge_modules
import judge_tensors
import passing_tensors
from mutate_numbers import Impossible
from passing_edits import edited
from passing_modules import Made, Site

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.writer import write

#: the part of the modules that is changed near the border
EDITED = 0.4


@dataclass
class Outcome:
    """`passed`: the checker took it. `rows`: what is in it. `ends`: how it ended, by number of runs."""

    passed: bool
    rows: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)


def functions_of(seed: int, share: float = EDITED) -> tuple[Site, list[Made]]:
    """A module's functions, one of them changed in a share of the modules."""
    site = Site(seed)
    functions = site.functions()
    if site.choose.random() < share:
        at = site.choose.randrange(1, len(functions))
        try:
            functions[at] = edited(site.choose, functions[at])
        except Impossible:
            pass
    return site, functions


def module_of(seed: int, share: float = EDITED) -> tuple[bytes | None, list[Made]]:
    """The file of a seed; None where what was changed has no encoding."""
    site, functions = functions_of(seed, share)
    try:
        return write(site.module(functions)), functions
    except (Impossible, ModuleError):
        return None, functions


def run_module(seed: int, null: bool = True) -> Outcome:
    """`Broken`, or any exception that must not come out, is a finding."""
    data, functions = module_of(seed)
    if data is None:
        return Outcome(False, ends=Counter({"not written": 1}))
    ends = judge_modules.judge(data, seed, null)
    passed = not ends["load: ModuleError"]
    rows = Counter(row.name for one in functions for row, _ in one.lines) if passed else Counter()
    return Outcome(passed, rows, ends)


def run_tensors(seed: int) -> Outcome:
    made = passing_tensors.make(seed, libraries=random.Random(seed).random() < 0.1)
    ends = judge_tensors.judge(made, seed)
    return Outcome(bool(ends["result"]), Counter(made.taken), ends)


def finding(seed: int, tensors: bool) -> str | None:
    """What is wrong with the program of a seed, where a bug was put in; nothing where it cannot be made at all."""
    try:
        made = passing_tensors.make(seed) if tensors else module_of(seed, 1.0)[0]
    except Exception:  # the generator asks the checker, which has the bug
        return None
    try:
        if isinstance(made, bytes):
            judge_modules.judge(made, seed, null=False)
        elif made is not None:
            judge_tensors.judge(made, seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
