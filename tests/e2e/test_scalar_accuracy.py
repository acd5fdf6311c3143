"""Every float op on every device, through the whole road, on the hardest arguments known: within its bound.

`benchmarks/measure_accuracy.py` found them, with mpmath as the oracle, and wrote docs/numerics-table.md.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accuracy import DTYPES, FUNCTIONS, cases, program

from orchestrion import compiler

TARGETS = {"reference": ["reference"], "opencl": ["opencl"], "vulkan": ["spirv"]}
TABLE = Path(__file__).parent.parent.parent / "docs" / "numerics-table.md"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device", TARGETS)
def test_functions_stay_within_the_bound(device: str, dtype: str, load_on: Callable[[bytes, str], Any]) -> None:
    kept = cases(dtype)
    source = program(dtype, {index: case.operands for index, case in kept.items()})
    loaded = load_on(compiler.compile(source, targets=TARGETS[device]), device)
    refusals = (case.refusal(np.asarray(loaded[f"f{index}"](*case.operands))) for index, case in kept.items())
    assert not [refusal for refusal in refusals if refusal]


def test_the_table_has_a_row_for_each_within_its_bound() -> None:
    rows = [line.split(" | ") for line in TABLE.read_text().splitlines() if line.startswith("| `")]
    assert [row[0].strip("| ").replace("`", "") for row in rows] == [function.name for function in FUNCTIONS]
    for row, function in zip(rows, FUNCTIONS, strict=True):
        assert row[1].split(" of ")[0] == f"{function.bound:g}"
        assert max(float(cell.strip(" |")) for cell in row[2:]) <= function.bound
