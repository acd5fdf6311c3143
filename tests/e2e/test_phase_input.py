"""Text of any phase may come from anybody: what is wrong with it is a CompileError, never a crash nor a bad module.

Mutants of real texts: lines lost, doubled, swapped; numbers, names, types, lists exchanged. Each is refused in words or
compiles to a module that the decoder takes.
"""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from orchestrion import compiler
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module
from orchestrion.schema.decoder import read_module
from orchestrion.schema.writer import write

MUTANTS = 60
NAME = re.compile(r'[%@][\w.]+|"[\w.]+"|!\w+\.\w+(?:<[^>]*>)?|tensor<[^>]*>')
NUMBER = re.compile(r"\d+")
LIST = re.compile(r"\[[^\[\]]*\]|array<[^<>]*>")
PROPERTY = re.compile(r"(, )?\w+ = [^,{}<>]+")
NUMBERS = ("0", "1", "2", "7", "-1", "1000", str(2**31), str(2**63))
LISTS = ("[]", "array<i64>", "array<i64: 1>", "array<i64: 1, 2, 3, 4>", '["read"]', "[1 : i64]")


def _replace(line: str, pattern: re.Pattern[str], by: Callable[[str], str], choice: random.Random) -> str:
    found = list(pattern.finditer(line))
    if not found:
        return line
    match = choice.choice(found)
    return line[: match.start()] + by(match[0]) + line[match.end() :]


def mutant(text: str, seed: int) -> str:
    """The text with one change."""
    choice = random.Random(seed)
    lines = text.split("\n")
    at, other = (choice.choice([i for i, line in enumerate(lines) if '"' in line]) for _ in range(2))
    names = NAME.findall(text)
    match choice.randrange(7):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = _replace(lines[at], NUMBER, lambda _: choice.choice(NUMBERS), choice)
        case 4:
            lines[at] = _replace(lines[at], NAME, lambda x: choice.choice([n for n in names if n[0] == x[0]]), choice)
        case 5:
            lines[at] = _replace(lines[at], PROPERTY, lambda _: "", choice)
        case _:
            lines[at] = _replace(lines[at], LIST, lambda _: choice.choice(LISTS), choice)
    return "\n".join(lines)


@pytest.mark.parametrize("target", ["reference", "spirv", "opencl"])
@pytest.mark.parametrize("phase", ["stablehlo", "flow", "hl_seq", "ll_seq", "executables", "bytecode"])
def test_mutants(phase: str, target: str, cases: dict[str, Any]) -> None:
    source = compiler.Compilation(targets=(target,)).text(cases["residual"].lowered(), phase)
    text = print_module(parse(source), locations=False)
    refused = 0
    for seed in range(MUTANTS):
        try:
            data = write(compiler.Compilation(targets=(target,), start=phase).rows(mutant(text, seed)))
        except compiler.InternalError:
            raise
        except compiler.CompileError as error:
            assert error.diagnostics and str(error).strip()
            refused += 1
        else:
            read_module(data)
    assert refused > MUTANTS // 3


@pytest.mark.parametrize(
    ("phase", "text", "message"),
    [
        ("flow", '"builtin.module"() ({\n^bb0:\n}) : () -> ()', "has no function"),
        ("hl_seq", '"builtin.module"() ({\n^bb0:\n}) : () -> ()', "has no program"),
        (
            "hl_seq",
            '"builtin.module"() ({"hl_seq.program"() <{sym_name = "abacus"}> ({\n^bb0:\n}) : () -> ()}) : () -> ()',
            "no target is called abacus",
        ),
        ("stablehlo", '"builtin.module"() ({"some.op"() : () -> ()}) : () -> ()', "some.op: may not stand in"),
    ],
)
def test_message(phase: str, text: str, message: str) -> None:
    with pytest.raises(compiler.CompileError, match=message):
        compiler.Compilation(start=phase).rows(text)


PROGRAM = """"builtin.module"() ({
  "hl_seq.program"() <{sym_name = "spirv"}> ({
    "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
    ^bb0(%0: tensor<4xf32>):
      BODY
    }) : () -> ()
  }) : () -> ()
}) : () -> ()
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('"func.return"(%0) : (tensor<4xf32>) -> ()', "func.return: returns what is not exported"),
        (
            '%1 = "hl_seq.clone"(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"func.return"(%1) : (tensor<4xf32>) -> ()',
            "hl_seq.clone: operand source is of type tensor<4xf32>, must be: a resource",
        ),
    ],
    ids=["return", "clone"],
)
def test_tensors_are_no_resources(body: str, message: str) -> None:
    with pytest.raises(compiler.CompileError, match=message):
        compiler.Compilation(start="hl_seq").rows(PROGRAM.replace("BODY", body))
