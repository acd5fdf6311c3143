"""Every `.mlir` file here: programs that are refused, and everything that is said about them, at once.

A file holds cases divided by `// -----`: a program in the generic form, a line `// =====`, then each message as a
comment. `BLESS=1` writes what is said; review the diff.
"""

import os
from pathlib import Path

import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError, ParseError

HERE = Path(__file__).parent
DIVIDER = "// -----\n"
ARROW = "// =====\n"
FILES = sorted(HERE.glob("*.mlir"))


def _run(case: str) -> str:
    """The case with what is said about it behind its arrow."""
    source = case.partition(ARROW)[0].rstrip("\n") + "\n"
    with pytest.raises(CompileError) as caught:
        Compilation().module(source.encode(), "stablehlo")
    assert not isinstance(caught.value, ParseError), caught.value
    said = [str(diagnostic).replace("<bytes>:", "") for diagnostic in caught.value.diagnostics]
    return source + ARROW + "".join(f"// {line}\n" for text in said for line in text.splitlines())


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_messages(path: Path) -> None:
    cases = path.read_text().split(DIVIDER)
    results = [_run(case) for case in cases]
    if os.environ.get("BLESS"):
        path.write_text(DIVIDER.join(results))
    for case, result in zip(cases, results, strict=True):
        assert result == case


CALLEE = """"func.func"() <{{
    function_type = (tensor<f32>) -> tensor<f32>, sym_name = "f{0}", sym_visibility = "private"}}> ({{
  ^bb0(%a: tensor<f32>):
    %c = {1} : (tensor<f32>) -> tensor<f32>
    "func.return"(%c) : (tensor<f32>) -> ()
  }}) : () -> ()
"""
MAIN = """"func.func"() <{function_type = (tensor<4xf32>, tensor<f32>) -> tensor<f32>, sym_name = "main"}> ({
  ^bb0(%x: tensor<4xf32>, %i: tensor<f32>):
    %0 = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = "func.call"(%a) <{callee = @f0}> : (tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%c) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    "func.return"(%0) : (tensor<f32>) -> ()
  }) : () -> ()
"""


@pytest.mark.parametrize(("depth", "accepted"), [(100, True), (2000, False)])
def test_calls_nested_deeply(depth: int, accepted: bool) -> None:
    """A chain of calls from a reducer: inlined, or refused before anything recurses over it."""
    calls = [f'"func.call"(%a) <{{callee = @f{at + 1}}}>' for at in range(depth)] + ['"stablehlo.negate"(%a)']
    functions = "".join(CALLEE.format(at, call) for at, call in enumerate(calls))
    source = f'"builtin.module"() ({{\n{MAIN}{functions}}}) : () -> ()\n'
    if accepted:
        assert "func.call" not in Compilation().text(source, "stablehlo")
    else:
        with pytest.raises(CompileError, match="makes calls nested deeper than 200"):
            Compilation().module(source, "stablehlo")
