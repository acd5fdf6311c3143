"""A property of every file: it is refused, or it runs within its limits to results and named errors.

Mutants are run in processes of their own, a fork for each module of the corpus, so that what kills or hangs one is
found and named. `ORCHESTRION_MUTANTS` says how many there are in all; `ORCHESTRION_MUTANT=name:seed` runs one again.
"""

import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import mutants
import mutate
import pytest
from everyday import of_the_day

from orchestrion.schema import writer

COUNT = int(os.environ.get("ORCHESTRION_MUTANTS", "6000"))
ALONE = os.environ.get("ORCHESTRION_MUTANT", "")
#: the corpus is dealt to so many tests, so that they can run side by side
SHARDS = 4
#: and the mutants of each module to so many, one of which runs every day
PARTS = 4
#: seconds for a mutant on average, and for a process to start
EACH, START = 0.25, 60.0


@pytest.fixture(scope="session")
def corpus_file(corpus: dict[str, writer.Module], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "modules.pickle"
    path.write_bytes(pickle.dumps(corpus))
    return path


def test_the_corpus_runs(corpus: dict[str, writer.Module]) -> None:
    """Undamaged, each module loads and gives at least one result."""
    for name, module in corpus.items():
        found = mutants.run(writer.write(module))
        assert found["run: result"], name
        assert not any(outcome.startswith("load") for outcome in found), name


def test_every_mutator_changes_something(corpus: dict[str, writer.Module]) -> None:
    written = {name: writer.write(module) for name, module in corpus.items()}
    name = "device"
    applied = Counter(change for seed in range(300) for change in mutate.mutant(corpus, name, seed, written).applied)
    assert set(applied) == set(mutate.MUTATORS)
    same = sum(mutate.mutant(corpus, name, seed, written).data == written[name] for seed in range(300))
    assert same < 30


@pytest.mark.skipif(not ALONE, reason="ORCHESTRION_MUTANT names one mutant")
def test_one(corpus: dict[str, writer.Module]) -> None:
    name, _, seed = ALONE.partition(":")
    made = mutate.mutant(corpus, name, int(seed), {name: writer.write(corpus[name])})
    print(made.applied)
    if made.data is not None:
        print(mutants.run(made.data))


@pytest.mark.skipif(bool(ALONE), reason="ORCHESTRION_MUTANT names one mutant")
@pytest.mark.sampled
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("shard", range(SHARDS))
def test_mutants(
    corpus: dict[str, writer.Module],
    corpus_file: Path,
    tmp_path: Path,
    shard: int,
    part: int,
    pytestconfig: pytest.Config,
) -> None:
    count = len(of_the_day(pytestconfig, range(-(-COUNT // len(corpus) // PARTS)), 3))
    names = list(corpus)[shard::SHARDS]
    outcomes: Counter[str] = Counter()
    problems = []
    reports, said = run_process(corpus_file, tmp_path / "progress", names, part * count, count)
    for name, report in reports.items():
        outcomes += Counter(report["outcomes"])
        problems += [f"ORCHESTRION_MUTANT={name}:{seed}  {problem}" for seed, problem in report["failures"].items()]
    assert not problems, "\n".join([*problems, said])
    ran = sum(number for outcome, number in outcomes.items() if outcome.startswith("run"))
    refused = outcomes["load: ModuleError"] + outcomes["load: not written"]
    assert refused > count * len(names) // 10, outcomes
    assert ran > count * len(names) // 2, outcomes
    assert outcomes["run: Trap"] and outcomes["run: result"], outcomes


def run_process(
    corpus_file: Path, progress: Path, names: list[str], first: int, count: int
) -> tuple[dict[str, Any], str]:
    """What became of mutants of modules by name, and which of them broke the property; and what the process said."""
    command = [sys.executable, mutants.__file__, str(corpus_file), str(progress), ",".join(names)]
    command += [str(first), str(count), str(START + count * EACH)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not ended.returncode, ended.stderr[-2000:]
    return json.loads(ended.stdout), ended.stderr[-2000:]
