"""docs/conformance.md: its tables are those of the suite."""

import re
from pathlib import Path

from orchestrion.hal.cts import kernels
from orchestrion.hal.cts.catalogue import GROUPS
from orchestrion.hal.cts.tags import TAGS

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def rows(title: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head."""
    section = PAGE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]


def test_files() -> None:
    assert rows("Scope") == [[f"`{group.name}`", group.doc] for group in GROUPS]


def test_tags() -> None:
    assert rows("Tags") == [[f"`{name}`", tag.doc] for name, tag in TAGS.items()]


def test_kernels() -> None:
    for number, (row, entry) in enumerate(zip(rows("Kernels"), kernels.ENTRIES, strict=True)):
        assert row[:2] == [str(number), f"`{entry.name}`"]
        assert re.findall(r"` (\w+)", row[2]) == [access for access, _ in entry.bindings]
        assert row[3] == ", ".join(map(str, entry.workgroup_size))
