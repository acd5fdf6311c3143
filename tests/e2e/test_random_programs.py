"""Random StableHLO programs on every device: whatever is fused, shared, cloned or copied, the numbers are right.

What is right say StableHLO's own interpreter and XLA (`random_judge.py`). A fixed set of programs here, thousands from
seeds by `make fuzz` (`tests/fuzz/long_run.py`).
"""

import random as randoms
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from oracle_process import Oracles, Unanswered
from random_judge import ORACLES, faults, with_second_opinions
from random_programs import generate

from orchestrion import compiler

LoadOn = Callable[[bytes, str], Any]

#: device -> target
DEVICES = {"reference": "reference", "cpu": "cpu", "vulkan": "spirv", "opencl": "opencl"}
#: how many programs there are; more in the long run
COUNTS = (5, pytest.param(48, marks=pytest.mark.long))
#: of so many, one may be a program that neither oracle can run
JUDGED = 10


@pytest.fixture(scope="module")
def oracles() -> Iterator[Oracles]:
    pytest.importorskip("jax")
    found = Oracles()
    yield found
    found.close()


@pytest.mark.parametrize("count", COUNTS)
def test_programs(count: int, oracles: Oracles, load_on: LoadOn) -> None:
    unjudged: list[str] = []

    @settings(
        max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck), print_blob=False,
    )  # fmt: skip
    @given(st.randoms(use_true_random=False))
    def run(random: randoms.Random) -> None:
        made = generate(random, random.choice((5, 8, 12, 20)))
        wanted = {}
        for oracle in ORACLES:
            try:
                wanted[oracle] = oracles.ask(oracle, made.text, *made.arguments)
            except Unanswered:
                continue
        if not wanted:
            unjudged.append(made.text)
            return
        module = compiler.compile(made.text, targets=list(DEVICES.values()))
        for device in DEVICES:
            program = load_on(module, device)
            wrong = list(faults(program, made, wanted))
            if wrong:
                wanted = with_second_opinions(oracles, made, wanted, {value for value, _ in wrong})
                wrong = list(faults(program, made, wanted))
            assert not wrong, f"{device}: {wrong}\n{made.text}"

    run()
    assert len(unjudged) <= count // JUDGED, unjudged
