"""vm-codegen: writes source code that runs a program, for apps that build it in.

The input is a module file, or a program in any form that vm-compile accepts, from any phase. A style that renders IR
needs a module that was compiled with `--embed-ir`. Either all files are written, or none.
"""

import argparse
import errno
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrion.compiler.codegen.styles import STYLES, WEIGHTS, Files
from orchestrion.compiler.pipeline import PHASES
from orchestrion.compiler.targets.choice import help_text

from . import cli
from .arguments import Parser, one_of
from .compile import targets_of

if TYPE_CHECKING:
    from orchestrion.compiler.codegen.subject import Subject
    from orchestrion.compiler.driver import Compilation
    from orchestrion.schema.module import Module

EXAMPLES = (
    ("vm-codegen model.mlir --style=c -o generated", "Writes the program as C99 without a runtime."),
    ("vm-codegen model.fb --style=c -o generated", "The same from a module of vm-compile --embed-ir."),
    ("vm-codegen model.fb --style=hal --target=vulkan -o app", "Writes Python that runs it on Vulkan, without the VM."),
)
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


def codegen(options: argparse.Namespace) -> int:
    style = STYLES[options.style]
    given = {name: value for name in ("weights",) if (value := getattr(options, name)) is not None}
    for name in given:
        if name not in style.options:
            raise cli.UsageError(f"--{name} has no effect on style {style.name}")
    files = style.generate(subject_of(options), name_of(options), given)
    write_files(Path(options.output), files)
    if not options.quiet:
        print(f"{options.output}: {', '.join(sorted(files))}", file=sys.stderr)
    return cli.DONE


def name_of(options: argparse.Namespace) -> str:
    """The prefix of names: `--name`, or the name of the input up to its first dot."""
    name = options.name if options.name is not None else Path(options.input).name.partition(".")[0]
    if not _IDENTIFIER.fullmatch(name):
        raise cli.UsageError(f"--name={name} is no name of letters, digits and underscores that begins with a letter")
    return str(name)


def subject_of(options: argparse.Namespace) -> "Subject":
    """The input: a module file, which is recognised by its identifier, or a program."""
    from orchestrion.schema import decoder
    from orchestrion.schema.container import IDENTIFIER

    data = cli.read_bytes(options.input)
    if data[8:12] != IDENTIFIER:
        return _compiled(options, data)
    renders_module = STYLES[options.style].renders_module
    for flag in ("compile_from",) if renders_module else ("target", "compile_from"):
        if getattr(options, flag) is not None:
            raise cli.UsageError(f"--{flag.replace('_', '-')} has no effect: {options.input} is a module")
    from orchestrion.compiler.codegen.subject import Subject, embedded_ir

    module = decoder.read_module(data)
    name = Path(options.input).name
    if renders_module:
        _verify(module)
    return Subject(name, lambda: module, lambda: embedded_ir(module, name), options.target)


def _verify(module: "Module") -> None:
    """Verify the bytecode of all programs: styles rely on what the VM relies on. Raises ModuleError."""
    from orchestrion.vm.verifier import verify

    for ordinal in range(len(module.programs)):
        verify(module, ordinal)


def _compiled(options: argparse.Namespace, data: bytes) -> "Subject":
    """The subject of a program that is compiled first."""
    from orchestrion.compiler.codegen.subject import Subject
    from orchestrion.compiler.driver import EMBEDDED, Compilation

    source: bytes | Path = data if options.input == "-" else Path(options.input)
    job = Compilation(
        targets=options.target or STYLES[options.style].targets, start=options.compile_from or next(iter(PHASES))
    )

    @cache
    def module() -> "Module":
        return _module(job, source)

    return Subject(Path(options.input).name, module, lambda: job.module(source, EMBEDDED))


def _module(job: "Compilation", source: bytes | Path) -> "Module":
    from orchestrion.schema.decoder import read_module
    from orchestrion.schema.writer import write

    return read_module(write(job.rows(source)))


def write_files(folder: Path, files: Files) -> None:
    """Writes all files into a folder, which is made if it is not there. Each has a temporary name until all are
    complete. Raises OSError, and leaves nothing behind.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in files:
        if (folder / name).is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder, not a file", str(folder / name))
    made: dict[Path, Path] = {}
    try:
        for name, content in files.items():
            place = folder / f".{name}.{os.urandom(4).hex()}.tmp"
            made[place] = folder / name
            place.write_bytes(content if isinstance(content, bytes) else content.encode())
        for place, target in made.items():
            place.replace(target)
    except BaseException:
        for place in made:
            with suppress(FileNotFoundError):
                place.unlink()
        raise


def _texts(rows: Mapping[str, str]) -> str:
    return ", or ".join(f"{name}, {doc}" for name, doc in rows.items())


def parser() -> Parser:
    made = cli.parser("vm-codegen", "Writes source code that runs a program.", EXAMPLES)
    made.add_argument("input", metavar="IN", help="a module, or a program that vm-compile accepts; - for stdin")
    group = made.group("output")
    group.add_argument("-o", dest="output", metavar="DIR", required=True, help="the folder for the files")
    group.add_argument(
        "--style",
        metavar="NAME",
        type=one_of(STYLES),
        required=True,
        help=_texts({row.name: row.doc for row in STYLES.values()}),
    )
    group.add_argument("--name", metavar="NAME", help="prefix of files and names (default: the name of the input)")
    group.add_argument(
        "--weights", metavar="PLACE", type=one_of(WEIGHTS), help=f"style c: constants are {_texts(WEIGHTS)}"
    )
    group.add_argument("--quiet", action="store_true", help="do not print the names of the files")
    group = made.group("programs of a text, which is compiled first, and of a module")
    group.add_argument(
        "--target",
        metavar="NAME,...",
        type=targets_of,
        help=f"targets, of {help_text()} (default: those that the style renders); of a module for style hal alone",
    )
    group.add_argument("--compile-from", metavar="PHASE", type=one_of(PHASES), help="IN is the text of this phase")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("vm-codegen", parser(), codegen, argv)


if __name__ == "__main__":
    sys.exit(main())
