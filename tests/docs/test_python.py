"""What the page shows runs, one block after the other, and its errors exist."""

import builtins
import pkgutil
import re
from pathlib import Path
from typing import Any

from orchestrion import compiler, vm
from orchestrion.hal import errors as hal_errors

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")


def test_its_code_runs() -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"(?<=^```python\n).*?(?=^```$)", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 10
    for block in blocks:
        exec(block, names)


def test_its_errors_are_what_it_says() -> None:
    """Each name is an error; those that it calls a TypeError or ValueError are one."""
    table = PAGE.split("## Errors")[1].split("\n## ")[0]
    homes = (vm, compiler, vm.errors, hal_errors, builtins)
    for name in re.findall(r"`([\w.]*[A-Z]\w+)`", table):
        found = [getattr(home, name.rpartition(".")[2], None) for home in homes]
        assert any(isinstance(one, type) and issubclass(one, Exception) for one in found), name
    for path, kind in re.findall(r"`([\w.]+)` \(a `(\w+)`\)", table):
        assert issubclass(
            pkgutil.resolve_name(path if path.startswith("orchestrion") else f"orchestrion.{path}"),
            getattr(builtins, kind),
        )
