"""vm-compile: compiles a program into one module file (or, with `--compile-to`, into the text of a phase).

The module's digest is added to the user's trust store, so that native code in it (OpenCL C) may run on this machine and
its initializers have no limits. A module compiled from the text of `ll_seq` or a later phase is not added.

Standard error shows progress if it is a terminal, and finally one line with the file's size and the elapsed time.
"""

import argparse
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from orchestrion.compiler.driver import PHASES_WITHOUT_SOURCE_OPS, SCHEDULED, Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.garbage import collection_paused
from orchestrion.compiler.options import CHOICES
from orchestrion.compiler.pipeline import PASSES, PHASES
from orchestrion.compiler.profiles import DEFAULT, MACHINES
from orchestrion.compiler.sequencer.arena import MAX_ALLOCATION
from orchestrion.compiler.steps import Steps
from orchestrion.compiler.targets.choice import default_targets, help_text, profile_names
from orchestrion.compiler.targets.cpu.levels import GROUPS, LEVELS, levels_named
from orchestrion.schema.printable import printable_text
from orchestrion.schema.profiles import PROFILES

from . import cli, progress
from .arguments import Parser, meanings, one_of, whole
from .attributes import add_attributes, attributes_of

if TYPE_CHECKING:
    from orchestrion.compiler.placement import Report
    from orchestrion.compiler.targets.schedule_file import ScheduleFile

EXAMPLES = (
    ("vm-compile model.mlir -o model.fb", "Compiles for every target into one module."),
    (
        "vm-compile model.mlir -o model.fb --target=spirv,reference --report",
        "Compiles for Vulkan and NumPy, and says where each op of the source is computed.",
    ),
    (
        "vm-compile model.mlir -o model.fb --parameters=weights.safetensors",
        "Writes the weights to a file of their own.",
    ),
    ("vm-compile model.mlir -o model.fb --schedules=model.schedules", "Takes the schedules that vm-tune found."),
    ("vm-compile model.mlir -o model.fb --time-passes", "Prints how long each pass took."),
    ("vm-compile model.mlir --compile-to=flow", "Prints the IR after the phase flow."),
)


def names_of(kind: str, known: Sequence[str], text: str, group: str = "") -> tuple[str, ...]:
    """Parses a comma-separated list of names, each unique, and known or declared in the plugin group."""
    found = tuple(text.split(","))
    unknown = [name for name in found if name not in known]
    if unknown and group:
        from orchestrion.schema.plugins import declared

        known = [*known, *declared(group)]
        unknown = [name for name in found if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"no {kind} {', '.join(unknown)}: there are {', '.join(known)}")
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"a {kind} is there twice: {text}")
    return found


def targets_of(text: str) -> tuple[str, ...]:
    """The profiles of a list of targets and devices."""
    try:
        return profile_names(text)
    except CompileError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def processors_of(text: str) -> tuple[str, ...]:
    """The instruction sets of a list."""
    names = tuple(text.split(","))
    try:
        levels_named(names)
    except CompileError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return names


def compile_(options: argparse.Namespace) -> int:
    attributes = attributes_of(options)
    refuse_together(options, attributes)
    source = cli.read_bytes("-") if options.input == "-" else Path(options.input)
    steps, warned = Steps(), list[str]()
    job = compilation(options, attributes, steps, warned)
    start, text = perf_counter(), ""
    try:
        with ExitStack() as stack:
            if not options.quiet and not options.print_ir_after:
                steps.told = stack.enter_context(progress.following(sys.stderr))
            if options.compile_to is not None:
                text = job.text(source, options.compile_to)
            else:
                warned += write_module(job, source, options)
    finally:
        if options.time_passes and steps.done:
            print(progress.table(steps.done), end="", file=sys.stderr)
        for warning in warned:
            print(printable_text(f"vm-compile: {warning}"), file=sys.stderr)
    if options.compile_to is not None:
        write_text(text, options.output)
    elif not options.quiet:
        size = os.stat(options.output).st_size
        print(f"{options.output}: {size:,} bytes, in {perf_counter() - start:.2f} s", file=sys.stderr)
    return cli.DONE


def refuse_together(options: argparse.Namespace, attributes: Mapping[str, str]) -> None:
    """Raises UsageError if a flag is missing, or would have no effect."""
    if options.output is None and options.compile_to is None:
        raise cli.UsageError("-o OUT is missing")
    phases = list(PHASES)
    if options.compile_to and phases.index(options.compile_to) < phases.index(options.compile_from):
        raise cli.UsageError(f"--compile-from={options.compile_from} comes after --compile-to={options.compile_to}")
    if attributes and options.compile_to is not None:
        raise cli.UsageError(f"{', '.join(attributes)}: the text of a phase holds no attributes of a module")
    if options.schedules is not None and options.compile_to in phases[: phases.index(SCHEDULED)]:
        raise cli.UsageError(f"--schedules needs phase {SCHEDULED}: --compile-to={options.compile_to} stops before it")
    if options.report and options.compile_to is not None:
        raise cli.UsageError("--report needs a compilation to a module: it cannot be combined with --compile-to")
    if options.embed_ir and options.compile_to is not None:
        raise cli.UsageError("--embed-ir keeps IR in a module, and --compile-to writes none")
    if options.report and options.compile_from in PHASES_WITHOUT_SOURCE_OPS:
        raise cli.UsageError(f"the text of --compile-from={options.compile_from} has no ops of a source to report")


def compilation(
    options: argparse.Namespace, attributes: Mapping[str, str], steps: Steps, warned: list[str]
) -> Compilation:
    """The compilation that the flags describe. A flag has the name of its field, unless it is given another here."""
    same = {name: value for name, value in vars(options).items() if name in Compilation.__dataclass_fields__}
    made: dict[str, Any] = same | {
        "targets": default_targets() if options.target is None else options.target,
        "may_leave_out": options.target is None,
        "warn": lambda text, _: warned.append(text),
        "machines": options.machine,
        "start": options.compile_from,
        "dump": options.dump_phases,
        "print_after": options.print_ir_after,
        "attributes": attributes,
        "report": new_report() if options.report else None,
        "schedules": schedules_of(options.schedules),
        "steps": steps,
    }
    return Compilation(**made)


def schedules_of(path: str | None) -> "ScheduleFile | None":
    if path is None:
        return None
    from orchestrion.compiler.targets import schedule_file

    return schedule_file.read(path)


def write_text(text: str, output: str | None) -> None:
    if output is None or output == "-":
        sys.stdout.write(text)
    else:
        cli.write_whole(output, text.encode())


def write_module(job: Compilation, source: bytes | Path, options: argparse.Namespace) -> list[str]:
    """Writes module and report. Returns warnings."""
    try:
        warning = job.write(source, options.output)
    finally:
        write_report(job, options.report)
    return [] if warning is None else [warning]


def new_report() -> "Report":
    from orchestrion.compiler.placement import Report

    return Report()


def write_report(job: Compilation, path: str | None) -> None:
    """Writes where the source ops are computed, or why they were refused; nothing if the source could not be read."""
    if job.report is not None and path is not None and (job.report.ops or job.report.refusals):
        cli.write_report(path, job.report.text(), job.report.data())


def parser() -> Parser:
    made = cli.parser("vm-compile", "Compiles StableHLO into one module file for several targets.", EXAMPLES)
    made.add_argument(
        "input",
        metavar="IN",
        help="StableHLO: pretty or generic text, MLIR bytecode, portable artifact, Exported.serialize(); - for stdin",
    )
    group = made.group("output")
    group.add_argument("-o", dest="output", metavar="OUT", help="the module file, or the text of --compile-to")
    group.add_argument("--quiet", action="store_true", help="print no progress and no final line with size and time")
    _add_targets(made)
    _add_parameters(made)
    _add_phases(made)
    cli.add_report(made, "say where each op of the source is computed, and what was refused or not taken, and why")
    add_attributes(made)
    return made


def _add_targets(made: Parser) -> None:
    group = made.group("targets")
    group.add_argument(
        "--target",
        metavar="NAME,...",
        type=targets_of,
        help=f"targets, best first, or the devices they are for: {help_text()}, and those of installed packages "
        f"(default: those of {', '.join(PROFILES)} that can compile the program)",
    )
    group.add_argument(
        "--target-cpu",
        metavar="NAME,...",
        type=processors_of,
        default=(),
        help=f"instruction sets for target cpu: {', '.join(LEVELS)}; or {meanings(GROUPS)} (default: host)",
    )
    group.add_argument(
        "--machine",
        metavar="NAME,...",
        type=lambda text: names_of("machine", list(MACHINES), text, "orchestrion.machines"),
        default=(DEFAULT,),
        help=f"kinds of device to make programs for; each selects its own (default: {DEFAULT}, which comes last; "
        "a target's only program runs on all); " + meanings(MACHINES),
    )
    for name, (doc, values) in CHOICES.items():
        default = next(iter(values))
        group.add_argument(
            f"--{name}",
            metavar="NAME",
            type=one_of(values),
            default=default,
            help=f"{doc}; {meanings(values)} (default: {default})",
        )
    group.add_argument(
        "--schedules", metavar="FILE", help="schedules of kernels that vm-tune found, in place of the compiler's own"
    )
    group.add_argument(
        "--max-allocation",
        metavar="BYTES",
        type=whole(1),
        default=MAX_ALLOCATION,
        help="intermediate values that take more go into several allocations, for devices that allocate less at once "
        f"(default: {MAX_ALLOCATION})",
    )


def _add_parameters(made: Parser) -> None:
    group = made.group("parameters", "docs/parameters.md shows how.")
    group.add_argument(
        "--parameters",
        metavar="FILE.safetensors",
        type=Path,
        help="take all constants of 4 KiB and more out of the module and write them to this file",
    )
    group.add_argument(
        "--parameter-arguments",
        metavar="NAME,...",
        type=lambda text: tuple(text.split(",")),
        default=(),
        help="arguments whose values come from parameter files when the module is loaded: w, arg0, or params for all "
        "of params[...]",
    )


def _add_phases(made: Parser) -> None:
    group = made.group("phases of the compiler", "docs/ir.md says what the phases are.")
    group.add_argument(
        "--compile-to",
        metavar="PHASE",
        type=one_of(PHASES),
        help=f"stop after a phase and write its text, to standard output without -o; one of {', '.join(PHASES)}",
    )
    group.add_argument(
        "--compile-from", metavar="PHASE", type=one_of(PHASES), default="input", help="IN is the text of this phase"
    )
    group.add_argument(
        "--embed-ir",
        action="store_true",
        help="keep the IR of phase executables in a debug segment of the module, for vm-codegen",
    )
    group.add_argument("--dump-phases", metavar="DIR", type=Path, help="write the text after every phase into a folder")
    group.add_argument(
        "--print-ir-after",
        metavar="PASS,...",
        type=lambda text: names_of("pass", list(dict.fromkeys(row.name for row in PASSES)), text),
        default=(),
        help="print the IR after these passes to standard error (vm-opt --list-passes names them)",
    )
    group.add_argument(
        "--time-passes", action="store_true", help="print a table with the time of every pass to standard error"
    )


def main(argv: Sequence[str] | None = None) -> int:
    if argv is not None:
        return cli.run("vm-compile", parser(), compile_, argv)
    with collection_paused():  # the process ends after this, so the memory of the IR need not be freed
        status = cli.run("vm-compile", parser(), compile_, argv)
        gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(main())
