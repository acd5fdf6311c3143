"""Any module: `vm-codegen --style=hal` refuses it with a named error, or writes Python text, the same each time."""

import random
from functools import cache

import module_corpus
import mutate as mutators
import mutate_file
from fuzzing import check
from hal_code import generated

from orchestrion.compiler.errors import CompileError
from orchestrion.schema import writer
from orchestrion.schema.errors import ModuleError

MAX_BYTES = 8192
SECONDS = 20.0


@cache
def _corpus() -> tuple[dict[str, writer.Module], dict[str, bytes]]:
    modules = dict([*module_corpus.assembled(), *module_corpus.of_the_vm(), *module_corpus.compiled()])
    return modules, {name: writer.write(module) for name, module in modules.items()}


def seeds():
    return [data for data in _corpus()[1].values() if len(data) <= MAX_BYTES]


def mutate(choose: random.Random, data: bytes) -> bytes:
    """A mutant of the corpus whose rows were changed before it was written."""
    modules, written = _corpus()
    made = mutators.mutant(modules, choose.choice(list(modules)), choose.getrandbits(40), written)
    return data if made.data is None else made.data


repair = mutate_file.sealed


def one_input(data: bytes) -> None:
    try:
        files = generated(data, "model")
    except (ModuleError, CompileError):
        return
    compile(files["model.py"], "model.py", "exec")
    check(generated(data, "model") == files, "other text the second time")
