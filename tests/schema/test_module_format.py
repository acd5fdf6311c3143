"""The tables of docs/module-format.md are those of the schema and of the container."""

import json
import re
from pathlib import Path

from orchestrion.schema import container, imported, rows, trees, versions
from orchestrion.schema.attributes import KNOWN
from orchestrion.schema.dtypes import DTYPES
from orchestrion.schema.layout import layout
from orchestrion.schema.profiles import FEATURES

NOTE = container.Attachment("NOTE", b"")
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
    more = len(container.directory(bytes(64), [5])[0]) - size, len(container.directory(bytes(64), [], [NOTE])[0]) - size
    assert more == tuple(int(n) for n in re.findall(r"^\| (\d+) each \|", fields, re.MULTILINE))
    assert f"A section's header, {len(container.section_header(container.Section('s', b'')))} bytes:" in fields


def test_kinds_of_segments_and_known_tags_are_listed() -> None:
    assert re.findall(r"^\| `([A-Z]\w+)` \| ", TEXT.split("### Segments")[1], re.MULTILINE) == [
        kind.name for kind in rows.SegmentKind
    ]
    assert all(f"attachment `{tag}`" in TEXT for tag in container.ATTACHMENTS)
    assert not container.SECTIONS


def test_codes_of_types_and_bits_of_features_are_listed() -> None:
    types = TEXT.split("### Element types")[1].split("###")[0]
    codes = re.findall(r"0x(\w{4}) \| `(\S+)`", types)
    assert [(int(code, 16), name) for code, name in codes] == [(row.code, row.name) for row in DTYPES]
    features = TEXT.split("### Features")[1].split("###")[0]
    listed = re.findall(r"^\| (\d+) \| ([\w-]+) \| (.*) \|$", features, re.MULTILINE)
    assert listed == [(str(bit), name, doc) for bit, (name, doc) in enumerate(FEATURES.items())]


def test_attributes_with_a_meaning_are_listed() -> None:
    text = TEXT.split("### Attributes")[1].split("###")[0]
    listed = re.findall(r"^\| `([^`]+)` \| (\w+) \| (\w+) \| (.*) \|$", text, re.MULTILINE)
    assert [row for row in listed if row[0] in KNOWN] == [
        (key, "module", row.kind, row.doc) for key, row in KNOWN.items()
    ]
    others = [(key, owner) for key, owner, _, _ in listed if key not in KNOWN]
    assert others == [(f"{imported.PREFIX}NAME.FUNCTION", "module"), (trees.KEY, "export")]


def test_the_tree_of_the_page_is_read_and_each_node_is_listed() -> None:
    text = TEXT.split("### Trees of arguments and results")[1].split("\n## ")[0]
    example = text.split("```json\n")[1].split("```")[0]
    found = trees.decode(example, 3, 2)
    assert json.loads(trees.encode(found)) == json.loads(example)
    assert [f"`{name}`" in text for name in (*json.loads(example), *trees.ACCESSORS)] == [True] * 6
    nodes = re.findall(r'"(list|tuple|dict|record|static)":', text.split("A node is one of these")[1])
    assert nodes == ["list", "tuple", "dict", "record", "static"]
    bounds = f"at most {trees.MAX_TEXT >> 20} MiB, and a tree at most {trees.MAX_DEPTH} levels"
    assert bounds in " ".join(text.split())
