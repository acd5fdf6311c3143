"""vm-compile: a program in, one module file out (or, with `--compile-to`, the text of a phase).

The module's digest goes into the user's trust store, so that native code in it (OpenCL C) may run on this machine and
its initializers have no limits. A module that is made from the text of `ll_seq` or a later phase is not put there.
"""

import argparse
import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrion.compiler.driver import LATE, Compilation
from orchestrion.compiler.ir.garbage import paused
from orchestrion.compiler.kernel.machine import DEFAULT, MACHINES
from orchestrion.compiler.pipeline import ENCODINGS, PASSES, PHASES
from orchestrion.compiler.sequencer.arena import MAX_ALLOCATION
from orchestrion.schema.profiles import PROFILES

from . import cli
from .attributes import add_attributes, attributes_of

if TYPE_CHECKING:
    from orchestrion.compiler.placement import Report


def names_of(kind: str, known: Sequence[str], text: str, group: str = "") -> tuple[str, ...]:
    """A list of names separated by commas, each there once and known, or declared in the plugin group."""
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


def compile_(options: argparse.Namespace) -> int:
    output: str | None = options.output
    if output is None and options.compile_to is None:
        raise cli.UsageError("-o OUT is missing")
    phases = list(PHASES)
    if options.compile_to and phases.index(options.compile_to) < phases.index(options.compile_from):
        raise cli.UsageError(f"--compile-from={options.compile_from} comes after --compile-to={options.compile_to}")
    attributes = attributes_of(options)
    if attributes and options.compile_to is not None:
        raise cli.UsageError(f"{', '.join(attributes)}: the text of a phase holds no attributes of a module")
    if options.report and options.compile_to is not None:
        raise cli.UsageError("--report needs the whole way to a module, and --compile-to stops before")
    if options.report and options.compile_from in LATE:
        raise cli.UsageError(f"the text of --compile-from={options.compile_from} has no ops of a source to report")
    job = Compilation(
        targets=options.target,
        encodings=options.encodings,
        machines=options.machine,
        start=options.compile_from,
        dump=None if options.dump_phases is None else Path(options.dump_phases),
        print_after=options.print_ir_after,
        attributes=attributes,
        report=new_report() if options.report else None,
        parameters=None if options.parameters is None else Path(options.parameters),
        parameter_arguments=options.parameter_arguments,
        max_allocation=options.max_allocation,
    )
    source = cli.read_bytes("-") if options.input == "-" else Path(options.input)
    if options.compile_to is not None:
        text = job.text(source, options.compile_to)
        if output is None or output == "-":
            sys.stdout.write(text)
        else:
            cli.write_whole(output, text.encode())
        return cli.DONE
    assert output is not None
    try:
        warning = job.write(source, output)
    finally:
        write_report(job, options.report)
    if warning is not None:
        print(f"vm-compile: {warning}", file=sys.stderr)
    return cli.DONE


def new_report() -> "Report":
    from orchestrion.compiler.placement import Report

    return Report()


def write_report(job: Compilation, path: str | None) -> None:
    """Where the ops of the source went, or who refused which; nothing where the source could not be read."""
    if job.report is not None and path is not None and (job.report.ops or job.report.refusals):
        cli.write_report(path, job.report.text(), job.report.data())


def main(argv: Sequence[str] | None = None) -> int:
    made = cli.parser("vm-compile", "Compiles StableHLO into one module file for several targets.")
    made.add_argument(
        "input",
        metavar="IN",
        help="StableHLO: pretty or generic text, MLIR bytecode, portable artifact, Exported.serialize(); - for stdin",
    )
    made.add_argument("-o", dest="output", metavar="OUT", help="the module file, or the text of --compile-to")
    made.add_argument(
        "--target",
        metavar="NAME,...",
        type=lambda text: names_of("target", list(PROFILES), text, "orchestrion.profiles"),
        default=tuple(PROFILES),
        help=f"targets, best first: {', '.join(PROFILES)} (default: all of these), and those of installed packages",
    )
    made.add_argument(
        "--encodings",
        metavar="NAME",
        choices=ENCODINGS,
        default="default",
        help="how the operands of dots are laid out in memory: "
        + ", or ".join(f"{name}, {doc}" for name, doc in ENCODINGS.items()),
    )
    made.add_argument(
        "--machine",
        metavar="NAME,...",
        type=lambda text: names_of("machine", list(MACHINES), text, "orchestrion.machines"),
        default=(DEFAULT,),
        help=f"kinds of device to make programs for; each takes its own (default: {DEFAULT}, which comes last; "
        "a target's only program runs on all): " + "; ".join(f"{name}, {doc}" for name, doc in MACHINES.items()),
    )
    made.add_argument(
        "--compile-to",
        metavar="PHASE",
        choices=PHASES,
        help=f"stop after a phase and write its text, to standard output without -o; one of {', '.join(PHASES)}",
    )
    made.add_argument(
        "--compile-from", metavar="PHASE", choices=PHASES, default="input", help="IN is the text of this phase"
    )
    made.add_argument("--dump-phases", metavar="DIR", help="write the text after every phase into a folder")
    made.add_argument(
        "--print-ir-after",
        metavar="PASS,...",
        type=lambda text: names_of("pass", list(dict.fromkeys(row.name for row in PASSES)), text),
        default=(),
        help="print the IR after these passes to standard error (vm-opt --list-passes names them)",
    )
    add_attributes(made)
    cli.add_report(made, "say where each op of the source is computed, and what was refused or not taken, and why")
    made.add_argument(
        "--parameters",
        metavar="FILE.safetensors",
        help="take all constants of 4 KiB and more out of the module and write them to this file",
    )
    made.add_argument(
        "--parameter-arguments",
        metavar="NAME,...",
        type=lambda text: tuple(text.split(",")),
        default=(),
        help="arguments whose values come from parameter files when the module is loaded: w, arg0, or params for all "
        "of params[...]",
    )
    made.add_argument(
        "--max-allocation",
        metavar="BYTES",
        type=int,
        default=MAX_ALLOCATION,
        help="intermediate values that take more go into several allocations, for devices that allocate less at once "
        f"(default: {MAX_ALLOCATION})",
    )
    if argv is not None:
        return cli.run("vm-compile", made, compile_, argv)
    with paused():  # the process is ours and ends with this: nobody needs the memory of the IR back
        status = cli.run("vm-compile", made, compile_, argv)
        gc.freeze()
    return status


if __name__ == "__main__":
    sys.exit(main())
