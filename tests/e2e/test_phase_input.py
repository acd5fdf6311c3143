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
MATMUL = """
func.func @main(%x: tensor<6x7xf32>, %i: tensor<7x5xi8>) -> tensor<6x5xf32> {
  %w = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 1.0]]> : tensor<5x2xf32>
  %n = stablehlo.sine %w : tensor<5x2xf32>
  %c = stablehlo.convert %i : (tensor<7x5xi8>) -> tensor<7x5xf32>
  %y = stablehlo.dot_general %x, %c, contracting_dims = [1] x [0]
      : (tensor<6x7xf32>, tensor<7x5xf32>) -> tensor<6x5xf32>
  %z = stablehlo.dot_general %y, %n, contracting_dims = [1] x [0]
      : (tensor<6x5xf32>, tensor<5x2xf32>) -> tensor<6x2xf32>
  %r = stablehlo.dot_general %z, %n, contracting_dims = [1] x [1]
      : (tensor<6x2xf32>, tensor<5x2xf32>) -> tensor<6x5xf32>
  return %r : tensor<6x5xf32>
}
"""
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


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("target", ["reference", "spirv", "opencl"])
@pytest.mark.parametrize("phase", ["stablehlo", "flow", "hl_seq", "ll_seq", "executables", "bytecode"])
def test_mutants(phase: str, target: str, cases: dict[str, Any]) -> None:
    source = compiler.Compilation(targets=(target,)).text(cases["residual"].lowered(), phase)
    _judge(source, phase, target, "default")


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("target", ["reference", "spirv"])
@pytest.mark.parametrize("phase", ["flow", "hl_seq", "ll_seq"])
def test_mutants_of_encodings(phase: str, target: str) -> None:
    source = compiler.Compilation(targets=(target,), encodings="test").text(MATMUL, phase)
    _judge(source, phase, target, "test")


def _judge(source: str, phase: str, target: str, encodings: str) -> None:
    text = print_module(parse(source), locations=False)
    refused = 0
    for seed in range(MUTANTS):
        job = compiler.Compilation(targets=(target,), start=phase, encodings=encodings)
        try:
            data = write(job.rows(mutant(text, seed)))
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
        ('"func.return"(%0) : (tensor<4xf32>) -> ()', "func.return: returns a value that is not exported"),
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


LHS = "#util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [4, 4, 4]>"
ENCODED = """"builtin.module"() ({
  GLOBALS
  "flow.executable"() <{sym_name = "e"}> ({
    "func.func"() <{function_type = (CODED) -> PLAIN, sym_name = "e"}> ({
    ^bb0(%0: CODED):
      ENTRY
    }) : () -> ()
  }) : () -> ()
  "func.func"() <{function_type = (PLAIN) -> PLAIN, sym_name = "main"}> ({
  ^bb0(%0: PLAIN):
    %1 = "flow.hoistable_dispatch"() ({
      BODY
    }) : () -> CODED
    %2 = "flow.dispatch"(%1) <{entry = @e::@e, workload = array<i64: 16, 1, 1>}> : (CODED) -> PLAIN
    "func.return"(%2) : (PLAIN) -> ()
  }) : () -> ()
}) : () -> ()
"""
SET = '"flow.set_encoding"(%0) : (PLAIN) -> CODED\n'
UNSET = '"flow.unset_encoding"(%0) : (CODED) -> PLAIN\n'
RIGHT = {
    "GLOBALS": "",
    "ENTRY": f'%1 = {UNSET}"func.return"(%1) : (PLAIN) -> ()',
    "BODY": f'%3 = {SET}"flow.yield"(%3) : (CODED) -> ()',
    "CODED": f"tensor<4x4xf32, {LHS}>",
    "PLAIN": "tensor<4x4xf32>",
}


def encoded(**wrong: str) -> str:
    text = ENCODED
    for name, part in (RIGHT | wrong).items():
        text = text.replace(name, part)
    return text


@pytest.mark.parametrize("encodings", ["default", "none", "always", "test"])
def test_encodings_by_hand(encodings: str) -> None:
    read_module(write(compiler.Compilation(start="flow", encodings=encodings).rows(encoded())))


@pytest.mark.parametrize(
    ("place", "text", "message"),
    [
        ("CODED", "tensor<4x4xf32, #util.encoding<x>>", "is neither #util.encoding<...> nor #util.layout<...>"),
        ("CODED", f"tensor<4x4xf32, {LHS.replace('4, 4, 4', '5, 4, 4')}>", "the free axes have 4 elements, sizes say"),
        (
            "ENTRY",
            '%1 = "stablehlo.negate"(%0) : (CODED) -> CODED\n'
            '%2 = "flow.unset_encoding"(%1) : (CODED) -> PLAIN\n"func.return"(%2) : (PLAIN) -> ()',
            "encoded tensors are only made, kept and dispatched",
        ),
        (
            "ENTRY",
            f'%1 = {UNSET} %2 = "flow.set_encoding"(%1) : (PLAIN) -> CODED\n'
            '%3 = "flow.unset_encoding"(%2) : (CODED) -> PLAIN\n"func.return"(%3) : (PLAIN) -> ()',
            "takes off an encoding that is not an argument's",
        ),
        ("BODY", '"flow.yield"(%0) : (PLAIN) -> ()', "must give"),
        ("BODY", '^bb0(%9: CODED):\n"flow.yield"(%9) : (CODED) -> ()', "without arguments"),
        (
            "GLOBALS",
            '"util.global"() <{sym_name = "g", type = tensor<4xf32>}> : () -> ()',
            "global @g has no value, and no initializer stores to it",
        ),
    ],
)
def test_wrong_encodings(place: str, text: str, message: str) -> None:
    with pytest.raises(compiler.CompileError, match=message):
        compiler.Compilation(start="flow").rows(encoded(**{place: text}))


def test_a_symbolic_encoding_has_no_place_in_a_program() -> None:
    text = compiler.Compilation(targets=("reference",), encodings="test").text(MATMUL, "hl_seq")
    layout = "tensor<6x7xf32, #util.layout<axes = [[1], [0]], tiles = [3, 5], inner = [1, 0]>>"
    symbolic = "#util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [6, 5, 7]>"
    assert layout in text
    with pytest.raises(compiler.CompileError, match="which is not supported"):
        compiler.Compilation(targets=("reference",), start="hl_seq").rows(
            text.replace(layout, f"tensor<6x7xf32, {symbolic}>")
        )
