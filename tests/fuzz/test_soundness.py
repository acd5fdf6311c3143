"""Soundness of the bytecode verifier and of the tensor checker: what passes them runs, and harms nothing.

`soundness_run.py` runs more of the same. With `ORCHESTRION_SOUNDNESS=all` each seeded bug is looked for from the first
seed on; else from a seed just in front of one that finds it.
"""

import os
from collections import Counter

import passing_modules
import passing_tensors
import pytest
import seeded_bugs
from everyday import is_everyday
from soundness import finding, run_module, run_tensors

from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.isa import INSTRUCTIONS
from orchestrion.schema.tensor_bytecode import ROWS

MODULES, TENSORS = 200, 400
#: a seeded bug is found within so many programs
MAX_SEEDS = 10_000
FROM_THE_FIRST = os.environ.get("ORCHESTRION_SOUNDNESS") == "all"


def test_every_instruction_has_a_rule() -> None:
    assert passing_modules.without_rule() == []
    assert {*passing_modules.RULES, *passing_modules.BRANCHES} <= {row.name for row in INSTRUCTIONS}
    assert {*HAL_IMPORTS} <= {row.name for row in passing_modules.IMPORTS}


def test_every_tensor_op_has_a_rule() -> None:
    structural = {row.name for row in ROWS if row.scalar is None}
    assert structural == set(passing_tensors.RULES)


def test_modules_that_pass_are_sound() -> None:
    rows: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    passed = 0
    for seed in range(MODULES):
        outcome = run_module(seed)
        rows, ends, passed = rows + outcome.rows, ends + outcome.ends, passed + outcome.passed
    assert MODULES // 2 < passed < MODULES, ends
    assert ends["run: result"] > MODULES and ends["run: Trap"] > MODULES // 2, ends
    assert [row.name for row in INSTRUCTIONS if not rows[row.name]] == []


def test_tensor_code_that_passes_is_sound(pytestconfig: pytest.Config) -> None:
    rows: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    count = TENSORS // 2 if is_everyday(pytestconfig) else TENSORS
    for seed in range(count):
        outcome = run_tensors(seed)
        rows, ends = rows + outcome.rows, ends + outcome.ends
    assert ends["result"] > count // 2, ends
    assert ends["ModuleError"] and ends["MemoryLimitExceeded"] and ends["InvalidArgument"], ends
    assert [row.name for row in ROWS if not rows[row.name] and row.name != "library_call"] == []


def first_finding(name: str, bug: seeded_bugs.Bug, tensors: bool) -> int | None:
    first = 0 if FROM_THE_FIRST else seeded_bugs.NEAR.get(name, 0)
    for seed in range(first, MAX_SEEDS):
        with bug():
            if finding(seed, tensors) is not None:
                return seed
    return None


@pytest.mark.parametrize("name", seeded_bugs.MODULE_BUGS)
def test_a_bug_of_the_verifier_is_found(name: str) -> None:
    found = first_finding(name, seeded_bugs.MODULE_BUGS[name], tensors=False)
    assert found is not None
    assert finding(found, tensors=False) is None  # and nothing is there without it


@pytest.mark.parametrize("name", seeded_bugs.TENSOR_BUGS)
def test_a_bug_of_the_tensor_checker_is_found(name: str) -> None:
    found = first_finding(name, seeded_bugs.TENSOR_BUGS[name], tensors=True)
    assert found is not None
    assert finding(found, tensors=True) is None
