"""docs/module-format.md: its tables are those of the schema and of the container."""

import re
from pathlib import Path

from orchestrion.schema import container, versions
from orchestrion.schema.layout import layout

TEXT = (Path(__file__).parents[2] / "docs" / "module-format.md").read_text(encoding="utf-8")


def test_the_table_of_vectors_is_the_schemas() -> None:
    plan = layout()
    found = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.*) \|$", TEXT, re.MULTILINE)
    assert found == [(vector.name, vector.element, vector.doc) for vector in (plan.header, *plan.vectors)]


def test_versions_and_numbers() -> None:
    assert f"Format version {versions.MAJOR}.{versions.MINOR};" in TEXT
    assert f"A reader of version {versions.MAJOR}.*n* reads {versions.MAJOR}.0 to" in TEXT
    assert f"| 4 | magic | `{container.MAGIC.decode()}` |" in TEXT
    assert f'identifier "{container.IDENTIFIER.decode()}"' in TEXT
    assert f"at a multiple of {container.ALIGNMENT} bytes; from {container.PAGED_FROM >> 10} KiB on" in " ".join(
        TEXT.split()
    )


def test_the_directory_has_the_size_of_its_fields() -> None:
    fields = TEXT.split("## Directory")[1].split("## Root")[0]
    size = sum(int(n) for n in re.findall(r"^\| (\d+) \|", fields, re.MULTILINE))
    middle, _ = container.directory(bytes(64), [])
    assert size == len(middle)
