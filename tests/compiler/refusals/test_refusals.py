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
    return source + ARROW + "".join(f"// {line}\n" for line in said)


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_messages(path: Path) -> None:
    cases = path.read_text().split(DIVIDER)
    results = [_run(case) for case in cases]
    if os.environ.get("BLESS"):
        path.write_text(DIVIDER.join(results))
    for case, result in zip(cases, results, strict=True):
        assert result == case
