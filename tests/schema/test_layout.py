"""The schema's text: what layout.py reads from it, what it refuses, and that flatc's output belongs to it."""

import os
import shutil
import subprocess
from pathlib import Path

import module_generated
import pytest

from orchestrion.schema import layout
from orchestrion.schema.module import Module

SCHEMA = Path(layout.__file__).with_name("module.fbs")
TEXT = SCHEMA.read_text(encoding="utf-8")


def test_a_module_has_a_slot_for_each_vector() -> None:
    plan = layout.layout()
    own = {"container", "guard", "_verified", "_locations"}
    assert set(Module.__slots__) == {plan.header.name, *(v.name for v in plan.vectors)} | own


def test_struct_sizes_are_those_of_flatc() -> None:
    for vector in (layout.layout().header, *layout.layout().vectors):
        if vector.row is not None:
            assert vector.format.size == getattr(module_generated, vector.element).SizeOf()


def test_flatc_output_is_up_to_date(tmp_path: Path) -> None:
    if shutil.which("flatc") is None:
        pytest.skip("flatc is not installed (Debian: flatbuffers-compiler)")
    subprocess.run(["flatc", "--python", "--gen-onefile", "-o", tmp_path, SCHEMA], check=True)
    made = (tmp_path / "module_generated.py").read_text(encoding="utf-8")
    if os.environ.get("BLESS") == "1":
        Path(module_generated.__file__).write_text(made, encoding="utf-8")
    assert Path(module_generated.__file__).read_text(encoding="utf-8") == made


@pytest.mark.parametrize("language", ["cpp", "swift", "kotlin", "go", "dart", "rust", "java", "csharp", "ts"])
def test_flatc_makes_readers_in_other_languages(language: str, tmp_path: Path) -> None:
    """flatc refuses a byte array in a struct for half of the languages, so a digest is four numbers."""
    if shutil.which("flatc") is None:
        pytest.skip("flatc is not installed (Debian: flatbuffers-compiler)")
    subprocess.run(["flatc", f"--{language}", "-o", tmp_path, SCHEMA], check=True)
    made = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.*"))
    assert "Digest" in made and "Segment" in made


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  kind:InitializerKind;", "  kind:InitializerKind; more:uint32;", "rows.Initializer has"),
        ("enum Access:uint32 { Read,", "enum Access:uint32 { Peek,", "rows.Access has"),
        ("enum Access:uint32", "enum Access:uint16", "enum Access is uint16; columns are uint32"),
        ("  signature:uint32 (string);", "  signature:uint64 (string);", "signature lies at byte 4"),
        ("  flags:GlobalFlags;\n  pad:uint32 (pad);", "  flags:GlobalFlags;", "Global has 20 bytes"),
        ('file_identifier "ORCH";', "", "no root_type or no file_identifier"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(ValueError, match=message):
        layout.parse(TEXT.replace(old, new))


def test_local_ordinals_need_one_owner() -> None:
    with pytest.raises(ValueError, match="dims has 3 owners"):
        layout.layout().owner("dims")
