"""A file is refused, or every export runs on the reference device within limits to results or named errors, and
nothing is left: the property of `mutants.run`.
"""

import random
from functools import cache
from hashlib import sha256

import module_corpus
import mutants
import mutate as mutators
import mutate_file
from fuzzing import check

from orchestrion.schema import writer

MAX_BYTES = 8192
SECONDS = 20.0
_FILE = [row.file for row in mutators.MUTATORS.values() if row.file is not None]


@cache
def _corpus() -> tuple[dict[str, writer.Module], dict[str, bytes]]:
    modules = dict([*module_corpus.assembled(), *module_corpus.of_the_vm()])
    return modules, {name: writer.write(module) for name, module in modules.items()}


def seeds():
    return [data for data in module_corpus.written() if len(data) <= MAX_BYTES]


def mutate(choose: random.Random, data: bytes) -> bytes:
    """A change of this file, or a mutant of the corpus whose rows were changed before it was written."""
    if choose.random() < 0.5:
        return choose.choice(_FILE)(choose, data)
    modules, written = _corpus()
    made = mutators.mutant(modules, choose.choice(list(modules)), choose.getrandbits(40), written)
    return data if made.data is None else made.data


repair = mutate_file.sealed


def one_input(data: bytes) -> None:
    mutants.run(data, threads=sha256(data).digest()[0] % mutants.WITH_THREADS == 0)
    check(not mutants.in_threads, f"in a thread: {mutants.in_threads}")
