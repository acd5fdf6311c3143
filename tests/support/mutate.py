"""Damage that reaches the verifiers: mutants of modules whose digests and checksums fit.

A mutant is made of a name in the corpus and a seed, and nothing else: `mutant(corpus, name, seed)` gives the same bytes
again. Some mutators rewrite the rows of a module (`mutate_rows`), its bytecode (`mutate_bytecode`) or its tensor
bytecode (`mutate_tensor`) before it is written, others the bytes of the written file (`mutate_file`). `MUTATORS` is
the index.
"""

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

import mutate_bytecode
import mutate_file
import mutate_rows
import mutate_tensor
from mutate_numbers import Impossible

from orchestrion.schema import writer
from orchestrion.schema.errors import ModuleError

Corpus = Mapping[str, writer.Module]


class Mutator(NamedTuple):
    """`rows` and `file`: one of them is there. `weight`: how often it is taken."""

    weight: int
    rows: Callable[[random.Random, writer.Module, list[writer.Module]], writer.Module] | None
    file: Callable[[random.Random, bytes], bytes] | None


def _rows(weight: int, change: Callable[[random.Random, writer.Module, list[writer.Module]], writer.Module]) -> Mutator:
    return Mutator(weight, change, None)


def _file(weight: int, change: Callable[[random.Random, bytes], bytes]) -> Mutator:
    return Mutator(weight, None, change)


MUTATORS: dict[str, Mutator] = {
    "instructions": _rows(12, mutate_bytecode.instructions),
    "spliced code": _rows(3, mutate_bytecode.splice),
    "raw code": _rows(2, mutate_bytecode.raw),
    "registers": _rows(2, mutate_rows.registers),
    "signatures": _rows(2, mutate_rows.signatures),
    "functions": _rows(3, mutate_rows.functions),
    "globals": _rows(2, mutate_rows.globals_),
    "initializers": _rows(2, mutate_rows.initializers),
    "constants": _rows(2, mutate_rows.constants),
    "executables": _rows(3, mutate_rows.executables),
    "exports": _rows(3, mutate_rows.exports),
    "imports": _rows(2, mutate_rows.imports),
    "programs": _rows(1, mutate_rows.programs),
    "attributes": _rows(1, mutate_rows.attributes),
    "versions": _rows(1, mutate_rows.versions),
    "crossover": _rows(2, mutate_rows.crossover),
    "tensor instructions": _rows(8, mutate_tensor.instructions),
    "tensor bytes": _rows(3, mutate_tensor.raw),
    "sizes": _rows(6, mutate_tensor.resize),
    "row fields": _file(8, mutate_file.row_fields),
    "row order": _file(3, mutate_file.row_order),
    "counts": _file(2, mutate_file.counts),
    "offsets": _file(2, mutate_file.offsets),
    "strings": _file(2, mutate_file.strings),
    "directory": _file(2, mutate_file.directory),
    "segments": _file(3, mutate_file.segments),
    "thinned": _file(2, mutate_file.thinned),
    "behind": _file(1, mutate_file.behind),
    "any bytes": _file(4, mutate_file.any_bytes),
}
_NAMES = list(MUTATORS)
_WEIGHTS = [row.weight for row in MUTATORS.values()]


class Mutant(NamedTuple):
    """`data` is None where the rows cannot even be written: refused at once. `applied` are the mutators' names."""

    data: bytes | None
    applied: tuple[str, ...]


def mutant(corpus: Corpus, name: str, seed: int, written: Mapping[str, bytes]) -> Mutant:
    """`written`: the file of each module of the corpus."""
    choose = random.Random(f"{name}/{seed}")
    wanted = choose.choices(_NAMES, _WEIGHTS, k=choose.choices((1, 2, 3, 5), (6, 3, 2, 1))[0])
    module, others = corpus[name], list(corpus.values())
    applied: list[str] = []
    for change in wanted:
        rows = MUTATORS[change].rows
        if rows is not None:
            try:
                module = rows(choose, module, others)
            except Impossible:
                continue
            applied.append(change)
    if not applied:
        data = written[name]
    else:
        try:
            data = writer.write(module)
        except (ModuleError, ValueError):
            return Mutant(None, tuple(applied))
    for change in wanted:
        file = MUTATORS[change].file
        if file is not None:
            data = file(choose, data)
            applied.append(change)
    if not applied:
        data = mutate_file.any_bytes(choose, data)
        applied.append("any bytes")
    return Mutant(data, tuple(applied))
