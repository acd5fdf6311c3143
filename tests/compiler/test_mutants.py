"""A program in which tokens are exchanged, left out or put in is compiled or refused with the one compile error.

The corpus is the input of every pass and refusal case of the stablehlo phase. The mutants reach the shape rules, the
legality check and the passes behind it: what parses is not right yet.
"""

import random
from pathlib import Path

import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.lexer import Tokens
from orchestrion.compiler.pipeline import passes_of

HERE = Path(__file__).parent
MUTANTS = 1500


def corpus() -> list[list[str]]:
    names = [row.name.replace("-", "_") for row in passes_of("stablehlo")]
    files = [path for path in sorted((HERE / "passes").glob("*.mlir")) if path.stem in names]
    files += sorted((HERE / "refusals").glob("*.mlir"))
    cases = [case.partition("// =====")[0] for path in files for case in path.read_text().split("// -----\n")]
    return [[token for token in Tokens(case, "case").tokens if token] for case in cases]


def mutant(source: random.Random, programs: list[list[str]], pool: list[str]) -> str:
    tokens = list(source.choice(programs))
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        at = source.randrange(len(tokens))
        match source.randrange(6):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, source.choice(pool))
            case 2:
                other = source.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case _:
                alike = [token for token in source.sample(pool, 200) if token[0] == tokens[at][0]]
                tokens[at] = source.choice(alike or pool)
    return " ".join(tokens) + "\n"


def test_mutants_are_compiled_or_refused() -> None:
    programs = corpus()
    pool = [token for tokens in programs for token in tokens]
    source = random.Random(20)
    refused = 0
    for number in range(MUTANTS):
        text = mutant(source, programs, pool)
        try:
            Compilation(targets=("reference",)).module(text.encode(), "stablehlo")
        except CompileError as error:
            assert error.diagnostics and all(found.message for found in error.diagnostics)
            refused += 1
        except Exception as error:
            pytest.fail(f"mutant {number}: {type(error).__name__}: {error}\n{text}")
    assert MUTANTS // 4 < refused < MUTANTS
