"""What the page shows runs, one block after the other; those that name a library where that is there."""

import re
from pathlib import Path
from typing import Any

import pytest

from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.registry import load_driver
from orchestrion.vm.interop import IMPORT_BYTES

PAGE = (Path(__file__).parents[2] / "docs" / "interoperability.md").read_text(encoding="utf-8")
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


def test_the_size_from_which_arguments_are_imported() -> None:
    assert IMPORT_BYTES == 1 << 20 and "from 1 MiB on" in PAGE


def test_alignments() -> None:
    from orchestrion.hal.reference.driver import ReferenceDriver

    assert ReferenceDriver().devices()[0].limits.host_import_alignment == 1
