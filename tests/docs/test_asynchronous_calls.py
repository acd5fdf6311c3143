"""What the page shows runs, one block after the other; those that name a library where that is there."""

import re
from pathlib import Path
from typing import Any

import pytest

from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.registry import load_driver

PAGE = (Path(__file__).parents[2] / "docs" / "asynchronous-calls.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python *(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("library", ["", "opencl", "vulkan"])
def test_its_python_runs(library: str) -> None:
    if library:
        try:
            load_driver(library).devices()
        except DriverUnavailable as error:
            pytest.skip(str(error))
    assert any(wanted == library for wanted, _ in BLOCKS)
    names: dict[str, Any] = {}
    for wanted, block in BLOCKS:
        if wanted in ("", library):
            exec(block, names)
