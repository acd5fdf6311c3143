"""Files of a synthetic version 1.9: what may be skipped is skipped, and what must not be is refused by name."""

import json
from pathlib import Path

import pytest
from later_format import Later, files, main

from orchestrion import vm
from orchestrion.schema.decoder import read_module
from orchestrion.schema.disassembler import listing
from orchestrion.schema.errors import ModuleError
from orchestrion.tools.dump import describe
from orchestrion.tools.dump import listing as lines
from orchestrion.vm.errors import NoProgram

FILES = files()


@pytest.mark.parametrize("name", [name for name, file in FILES.items() if not file.refusal])
def test_what_is_optional_is_skipped(name: str) -> None:
    program = vm.load(FILES[name].data)
    assert program.seven() == 7
    assert program.name == "today"
    program.close()


@pytest.mark.parametrize("name", [name for name, file in FILES.items() if file.refusal])
def test_what_is_required_is_refused_by_name(name: str) -> None:
    with pytest.raises((ModuleError, NoProgram)) as caught:
        vm.load(FILES[name].data)
    assert FILES[name].refusal in str(caught.value)


@pytest.mark.parametrize("file", [file for file in FILES.values() if not file.refusal], ids=list)
def test_what_is_optional_is_listed(file: Later) -> None:
    """vm-dump shows what it does not know instead of failing."""
    assert list(lines(describe(read_module(file.data))))


def test_the_skipped_programs_are_told() -> None:
    program = vm.load(FILES["another program's bytecode"].data)
    assert program.skipped == [("later", "wants bytecode 1.9, this version runs up to 1.0")]
    program.close()
    program = vm.load(FILES["another program's profile"].data)
    assert program.skipped == [], "a program for another device is no news"
    program.close()


def test_the_disassembler_says_what_it_does_not_know() -> None:
    with pytest.raises(ModuleError, match='attribute "later.table" is of kind 9, unknown here'):
        listing(read_module(FILES["attribute kind"].data), lambda format, payload: "")


def test_the_files_are_written_for_readers_elsewhere(tmp_path: Path) -> None:
    main(tmp_path)
    rows = json.loads((tmp_path / "expected.json").read_text(encoding="utf-8"))
    assert {row["holds"]: ((tmp_path / row["file"]).read_bytes(), row["refusal"]) for row in rows} == FILES
