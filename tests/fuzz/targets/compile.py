"""Generic StableHLO text is compiled for every target or CompileError; what is compiled loads, and runs on the
reference device within limits to results or named errors.
"""

import random
from functools import cache

import mutants
from fuzzing import ROOT, check, tokens_mutated

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.lexer import Tokens
from orchestrion.compiler.pipeline import passes_of
from orchestrion.schema.writer import write

SECONDS = 20.0
_FOLDER = ROOT / "tests" / "compiler"


@cache
def _texts() -> list[str]:
    """The input of every case of the stablehlo phase, refusals included."""
    names = [row.name.replace("-", "_") for row in passes_of("stablehlo")]
    files = [path for path in sorted((_FOLDER / "passes").glob("*.mlir")) if path.stem in names]
    files += sorted((_FOLDER / "refusals").glob("*.mlir"))
    cases = [case.partition("// =====")[0] for path in files for case in path.read_text().split("// -----\n")]
    return [(ROOT / "examples" / "simple_mul.generic.mlir").read_text(), *cases]


@cache
def _pool() -> list[str]:
    return sorted({token for text in _texts() for token in Tokens(text, "t").tokens if token})


def seeds():
    return [text.encode() for text in _texts() if len(text) <= 4096]


def mutate(choose: random.Random, data: bytes) -> bytes:
    tokens = [token for token in Tokens(data.decode(errors="ignore"), "t").tokens if token]
    return (" ".join(tokens_mutated(choose, tokens, _pool())) + "\n").encode()


def one_input(data: bytes) -> None:
    text = data.decode(errors="ignore")
    if not text.lstrip().startswith('"'):
        return  # not the generic form: jaxlib would read it
    try:
        module = Compilation(targets=("reference", "spirv", "opencl")).rows(text.encode())
    except CompileError as error:
        check(error.diagnostics and all(found.message for found in error.diagnostics), "an error without a message")
        return
    found = mutants.run(write(module))
    check(not any(outcome.startswith("load: ModuleError") for outcome in found), "what is compiled does not load")
