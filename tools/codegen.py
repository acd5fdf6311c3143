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
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrion.compiler.codegen.styles import LIMITS, STYLES, WEIGHTS, Files, Style
from orchestrion.compiler.pipeline import LAST_PHASE, PHASES, phases_between
from orchestrion.compiler.profiles import DEFAULT, MACHINES
from orchestrion.compiler.targets.choice import help_text

from . import cli
from .arguments import Parser, meanings, one_of, whole
from .compile import targets_of

if TYPE_CHECKING:
    from orchestrion.compiler.codegen.subject import Subject
    from orchestrion.compiler.driver import Compilation
    from orchestrion.compiler.ir.builtin import Module as Ir
    from orchestrion.compiler.kernel.machine import Machine
    from orchestrion.schema.module import Module

EXAMPLES = (
    ("vm-codegen model.mlir --style=c -o generated", "Writes the program as C99 without a runtime."),
    ("vm-codegen model.fb --style=c -o generated", "The same from a module of vm-compile --embed-ir."),
    ("vm-codegen model.mlir --style=vulkan -o generated", "Writes the program as C99 that calls Vulkan alone."),
    ("vm-codegen model.fb --style=hal --target=vulkan -o app", "Writes Python that runs it on Vulkan, without the VM."),
)
#: name of an option of styles -> the beginning of its help, and its values
_OPTIONS: dict[str, tuple[str, Mapping[str, str]]] = {
    "weights": ("styles c and vulkan: the place of constants;", WEIGHTS),
    "limits": ("style vulkan: limits of the device;", LIMITS),
}
#: phases of a text in which constant expressions are still computed by the reference device
FOLDED_FROM = ("input", "stablehlo", "flow")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


def codegen(options: argparse.Namespace) -> int:
    style = STYLES[options.style]
    given = {name: value for name in _OPTIONS if (value := getattr(options, name)) is not None}
    for name in given:
        if name not in style.options:
            raise cli.UsageError(f"--{name} has no effect on style {style.name}")
    if options.machine is not None and "machine" in style.options:
        given["machine"] = options.machine
    files = _generated(options, style, given)
    write_files(Path(options.output), files)
    if not options.quiet:
        print(f"{options.output}: {', '.join(sorted(files))}", file=sys.stderr)
    return cli.DONE


def _generated(options: argparse.Namespace, style: Style, given: Mapping[str, str]) -> Files:
    """The files of the style. Style c: also writes the report, and checks the limits of the machine."""
    name, subject = name_of(options), subject_of(options)
    if style.name != "c":
        for flag in ("cc", "counts", "report", "flash", "ram"):
            if getattr(options, flag) is not None:
                raise cli.UsageError(f"--{flag} has no effect on style {style.name}")
        return style.generate(subject, name, given)
    from orchestrion.compiler.codegen.c.generate import files_of
    from orchestrion.compiler.codegen.c.program import ProgramText

    from .footprint import counts_of, footprint_of

    machine = machine_of(options)
    flash, ram = (getattr(options, limit) or getattr(machine, limit) for limit in ("flash", "ram"))
    if options.counts and not options.report:
        raise cli.UsageError("--counts has no effect without --report")
    if options.cc and not (options.report or flash):
        raise cli.UsageError("--cc has no effect without --report or --flash")
    program = ProgramText(subject.program("cpu"), name)
    files = files_of(program, subject.source, {**style.defaults, **given})
    if options.report or flash or ram:
        counts = counts_of(cli.read_bytes(options.counts).decode(errors="replace")) if options.counts else {}
        found = footprint_of(program, files, options.cc, counts)
        if options.report:
            cli.write_whole(options.report, found.text(flash, ram).encode())
        found.check(name, flash, ram)
    return files


def machine_of(options: argparse.Namespace) -> "Machine":
    """The facts about the machine that the code is for."""
    from orchestrion.compiler.kernel.machine import PLAIN
    from orchestrion.compiler.targets.target import target

    return target("cpu").machine(options.machine or DEFAULT) or PLAIN


def name_of(options: argparse.Namespace) -> str:
    """The prefix of names: `--name`, or the name of the input up to its first dot."""
    given = options.name is not None
    name = options.name if given else Path(options.input).name.partition(".")[0]
    if not _IDENTIFIER.fullmatch(name):
        what = f"--name={name}" if given else f"the name of the input, {name},"
        why = "is not made of letters, digits and underscores behind a letter"
        raise cli.UsageError(f"{what} {why}" + ("" if given else ": give a --name"))
    return str(name)


def subject_of(options: argparse.Namespace) -> "Subject":
    """The input: a module file, which is recognised by its identifier, or a program."""
    from orchestrion.schema import decoder
    from orchestrion.schema.container import IDENTIFIER

    data = cli.read_bytes(options.input)
    if data[8:12] != IDENTIFIER:
        return _compiled(options, data)
    style = STYLES[options.style]
    without_effect = {"compile_from", *([] if style.renders_module else ["target"])}
    without_effect |= set() if "machine" in style.options else {"machine"}
    for flag in sorted(without_effect):
        if getattr(options, flag) is not None:
            raise cli.UsageError(f"--{flag.replace('_', '-')} has no effect: {options.input} is a module")
    from orchestrion.compiler.codegen.subject import Subject, embedded_ir

    module = decoder.read_module(data)
    name = Path(options.input).name
    if style.renders_module:
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
    style, start = STYLES[options.style], options.compile_from or next(iter(PHASES))
    machine = options.machine or DEFAULT
    if options.machine is None and "machine" in style.options and "hl_seq" in phases_between(start, LAST_PHASE):
        machine = "gpu"  # later text states its machines
    lapack = "default" if style.renders_module else "loops"
    job = Compilation(targets=options.target or style.targets, machines=(machine,), start=start, lapack=lapack)

    @cache
    def module() -> "Module":
        return _module(job, source)

    def ir() -> "Ir":
        if not machine_of(options).flash or job.start not in FOLDED_FROM:
            return job.module(source, EMBEDDED)
        from .initial_values import with_values

        later = replace(job, start="flow", machines=job.machines)
        return later.module(with_values(job.text(source, "flow")).encode(), EMBEDDED)

    return Subject(Path(options.input).name, module, ir)


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
        help=meanings({row.name: row.doc for row in STYLES.values()}),
    )
    group.add_argument(
        "--name", metavar="NAME", help="prefix of files and names (default: the name of the input up to its first dot)"
    )
    for name, (doc, rows) in _OPTIONS.items():
        group.add_argument(f"--{name}", metavar="WHAT", type=one_of(rows), help=f"{doc} {meanings(rows)}")
    group.add_argument("--report", metavar="FILE", help="style c: write the flash and RAM of each kernel")
    for limit, what in (("flash", "constants and code"), ("ram", "the memory of a context")):
        group.add_argument(
            f"--{limit}", metavar="BYTES", type=whole(1),
            help=f"style c: fail if {what} take more (default: that of the machine)",
        )  # fmt: skip
    group.add_argument("--cc", metavar="COMMAND", help="style c: the compiler and flags by which code is measured")
    group.add_argument(
        "--counts", metavar="FILE", help="style c: for --report, lines 'KERNEL: N instructions' of a run of the code"
    )
    group.add_argument("--quiet", action="store_true", help="do not print the names of the files")
    group = made.group("which program")
    group.add_argument(
        "--target",
        metavar="NAME,...",
        type=targets_of,
        help=f"targets to compile for: {help_text()} (default: those that the style renders); if IN is a module, for "
        "style hal only",
    )
    group.add_argument(
        "--machine",
        metavar="NAME",
        type=one_of(MACHINES),
        help=f"kind of device; {meanings(MACHINES)} (default: {DEFAULT}; style vulkan: gpu, or the first program of "
        "the module)",
    )
    group.add_argument("--compile-from", metavar="PHASE", type=one_of(PHASES), help="IN is the text of this phase")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("vm-codegen", parser(), codegen, argv)


if __name__ == "__main__":
    sys.exit(main())
