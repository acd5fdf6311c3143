"""Names of a stranger's module: terminals get no characters that they interpret, lines stay lines."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrion.compiler.driver import Compilation
from orchestrion.schema import writer
from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.disassembler import disassemble
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.lexer import quote
from orchestrion.vm.errors import Place, Trap

#: sets the title, sets a colour, clears the screen by a control of 8 bits, writes from right to left, ends the line
ODD = "\x1b]0;title\x07\x1b[31m\x9b2J\u202e\r\nowned"
EXAMPLE = Path(__file__).parents[2] / "examples" / "simple_mul.generic.mlir"
INPUTS = ("--device=reference", "--input=4xf32=1", "--input=4xf32=2")
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A module whose every name has ODD in it."""
    rows = Compilation(targets=("reference",)).rows(EXAMPLE.read_text())
    (export,) = rows.exports
    values = {
        field: [replace(value, name=value.name + ODD) for value in getattr(export, field)]
        for field in ("arguments", "results")
    }
    exports = [replace(export, name=export.name + ODD, doc=ODD, **values)]
    programs = [
        replace(
            program,
            name=program.name + ODD,
            functions=[replace(one, name=one.name + ODD) for one in program.functions],
            executables=[replace(one, name=one.name + ODD) for one in program.executables],
        )
        for program in rows.programs
    ]
    path = tmp_path_factory.mktemp("odd") / "odd.fb"
    attributes = {"model.name": ODD, ODD: ODD}
    made = replace(rows, exports=exports, programs=programs, producer=ODD, attributes=attributes)
    path.write_bytes(writer.write(made))
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("dump",), ("dump", "--disassemble"), ("dump", "--json"), ("run", "--list-functions"), ("run", *INPUTS),
        ("run", "--device=reference", "--function=nope"), ("run", "--device=reference", "--input=5xf32=1"),
        ("run", "--device=reference", "--input=no=1"), ("run", "--check", "--device=reference"),
        ("run", *INPUTS, "--expected-output=4xf32=9"), ("run", *INPUTS, "--report"), ("run", "--device=null"),
        ("run", *INPUTS, "--compare=reference"), ("bench", *INPUTS), ("bench", *INPUTS, "--profile"),
        ("pack", "lint"), ("pack", "parameters"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_control_characters(odd: Path, command: tuple[str, ...], command_folder: Path, tmp_path: Path) -> None:
    tool, *flags = command
    words = [flags.pop(0)] if tool == "pack" else []
    done = subprocess.run(
        [command_folder / f"vm-{tool}", *words, odd, *flags],
        capture_output=True, cwd=tmp_path, env=os.environ | {"TERM": "xterm"}, timeout=120,
    )  # fmt: skip
    for said in (done.stdout.decode(), done.stderr.decode()):
        assert "Traceback" not in said and not _CONTROL.search(said), said
    assert done.stdout + done.stderr


def test_errors() -> None:
    trap = Trap(f"no {ODD}")
    trap.chain = (Place(ODD, 1, ODD), Place(ODD, 2, None))
    for error in (ModuleError(ODD), trap):
        assert not _CONTROL.search(str(error))
    assert len(str(trap).splitlines()) == 2 + len(trap.chain), "the places take a line each"


def test_listings_are_read_again() -> None:
    text = f"attribute {quote(ODD)} = {quote(ODD)}"
    data = writer.write(assemble(text))
    shown = disassemble(read_module(data))
    assert not _CONTROL.search(shown) and writer.write(assemble(shown)) == data
