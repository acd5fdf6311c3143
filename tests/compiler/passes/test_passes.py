"""Every `.mlir` file here: what a pass makes of a module, as text.

A file holds cases divided by `// -----`. A case starts with comment lines: `// passes: a, b`, optionally `// targets:
reference, spirv`, `// encodings: test`, `// machines: gpu, cpu`, `// parameters: true`, `// arguments: w, b`, `//
allocation: BYTES`, `// callbacks: drop`, `// quantized: float` and `// lapack: loops`, and what to look at. Then the
input, a line `// =====`, and what must come out (without locations). `BLESS=1` writes what comes out; review the diff.
"""

import os
import re
from pathlib import Path

import pytest

from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.ir.verifier import check_own
from orchestrion.compiler.options import MAX_ALLOCATION, Options
from orchestrion.compiler.pipeline import PASSES, passes_named, run_passes
from orchestrion.compiler.profiles import DEFAULT

HERE = Path(__file__).parent
DIVIDER = "// -----\n"
ARROW = "// =====\n"
FILES = sorted(HERE.glob("*.mlir"))


def _header(case: str, key: str) -> list[str]:
    line = re.search(rf"^// {key}: (.*)$", case, re.MULTILINE)
    return [item.strip() for item in line[1].split(",")] if line else []


def _run(case: str) -> str:
    """The case with what comes out behind its arrow."""
    source = case.partition(ARROW)[0].rstrip("\n") + "\n"
    module = parse(source, "case.mlir")
    passes = _header(case, "passes")
    encodings = _header(case, "encodings") or ["default"]
    machines = tuple(_header(case, "machines") or [DEFAULT])
    options = Options(
        tuple(_header(case, "targets") or ["reference"]),
        encodings[0],
        machines,
        parameters=bool(_header(case, "parameters")),
        parameter_arguments=tuple(_header(case, "arguments")),
        max_allocation=int((_header(case, "allocation") or [MAX_ALLOCATION])[0]),
        callbacks=(_header(case, "callbacks") or ["refuse"])[0],
        quantized=(_header(case, "quantized") or ["integer"])[0],
        lapack=(_header(case, "lapack") or ["default"])[0],
    )
    run_passes(module, passes_named(passes), options)
    check_own(module, ", ".join(passes))
    return source + ARROW + print_module(module, locations=False).rstrip("\n") + "\n"


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_text(path: Path) -> None:
    cases = path.read_text().split(DIVIDER)
    results = [_run(case) for case in cases]
    if os.environ.get("BLESS"):
        path.write_text(DIVIDER.join(results))
    for case, result in zip(cases, results, strict=True):
        assert result == case, f"{path.name}: {_header(case, 'passes')}"


def test_every_pass_before_the_executables_has_a_file() -> None:
    phases = ("stablehlo", "flow", "hl_seq", "ll_seq")
    wanted = {row.name.replace("-", "_") for row in PASSES if row.phase in phases}
    wanted.remove("check_legality")  # it changes nothing; what it refuses is in ../refusals
    assert wanted <= {path.stem for path in FILES}
