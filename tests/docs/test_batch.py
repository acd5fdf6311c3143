"""What docs/batch.md shows of `vm.Predictor` runs."""

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

PAGE = (Path(__file__).parents[2] / "docs" / "batch.md").read_text(encoding="utf-8")


def test_its_code_runs() -> None:
    names: dict[str, Any] = {}
    (block,) = re.findall(r"(?<=^```python\n).*?(?=^```$)", PAGE, re.MULTILINE | re.DOTALL)
    exec(block, names)
