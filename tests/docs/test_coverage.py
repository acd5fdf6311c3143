"""docs/coverage.md is what the compiler says: all of it where it is written anew, some cells of each row otherwise."""

import inspect
import os
from pathlib import Path

import pytest

pytest.importorskip("jaxlib")

from jaxlib.mlir.dialects import chlo, stablehlo
from op_coverage import COLUMNS, NO_ROWS, TYPES, cell, page, proven
from op_rows import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "coverage.md"


def test_each_op_of_the_dialects_has_a_row() -> None:
    """Names that begin with an underscore are steps of jaxlib's own passes."""
    classes = [one for dialect in (stablehlo, chlo) for _, one in inspect.getmembers(dialect, inspect.isclass)]
    known = {one.OPERATION_NAME for one in classes if hasattr(one, "OPERATION_NAME")}
    assert set(ROWS) | set(NO_ROWS) == {name for name in known if "._" not in name}


def test_the_page_says_what_the_compiler_says() -> None:
    """Every op with some of the types, others for each op."""
    if os.environ.get("BLESS"):
        PAGE.write_text(page(proven))
    rows = {line.split("`")[1]: line for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    known = {line.partition(". ")[2]: line.partition(". ")[0] for line in PAGE.read_text().splitlines()}
    for number, (name, row) in enumerate(ROWS.items()):
        types = [TYPES[(7 * number + step) % len(TYPES)] for step in (0, 9, 17)] if row.varies else ["f32"]
        line = rows[name].split(" | ")
        for type in types:
            said = cell(name, type)
            said = f"({known.get(said, said)})" if said not in ("✓", "–") else said
            column = 1 + next(at for at, of in enumerate(COLUMNS.values()) if type in of) if row.varies else 1
            parts = line[column].removesuffix(" |").split("<br>")
            shown = next((part for part in parts if len(parts) == 1 or type in part.split(" ", 1)[1].split(", ")), "")
            assert shown.split(" ")[0] == said, f"{name} of {type}: BLESS=1 pytest tests/docs/test_coverage.py"
