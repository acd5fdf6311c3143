"""vm-opt: runs named passes over IR text.

The passes are those of the compiler's table, and `verify`, which refuses IR that violates a rule. External text is
always verified before the first pass that relies on it.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import cli
from .arguments import Parser

if TYPE_CHECKING:
    from orchestrion.compiler.ir.builtin import Module

EXAMPLES = (
    ("vm-opt program.mlir --pass=canonicalize,cse,dce", "Runs three passes and prints the IR."),
    ("vm-opt --list-passes", "Lists the passes in the compiler's order, with the reason for each one's place."),
)

#: the pass that is not in the compiler's table
VERIFY = "verify"


def listed() -> str:
    """Every pass, its phases, and the reasons for its position."""
    from orchestrion.compiler.pipeline import PASSES

    rows = [(row.name, row.phase, row.why) for row in PASSES]
    rows.append((VERIFY, "any", "refuses IR that breaks a rule, with everything that is wrong"))
    width = max(len(name) for name, _, _ in rows)
    return "\n".join(f"{name:{width}}  {phase:11}  {why}" for name, phase, why in rows)


def passed(options: argparse.Namespace) -> "Module":
    """The module after the passes."""
    from orchestrion.compiler.errors import CompileError
    from orchestrion.compiler.ir.parser import parse
    from orchestrion.compiler.ir.verifier import check_body, check_input
    from orchestrion.compiler.options import Options
    from orchestrion.compiler.pipeline import passes_named, run_passes
    from orchestrion.compiler.targets.choice import profile_names

    names = [name for names in options.passes for name in names.split(",") if name]
    try:
        rows = {row.name: row for row in passes_named([name for name in names if name != VERIFY])}
    except CompileError as error:
        raise cli.UsageError(f"--pass: {error}") from None
    try:
        targets = profile_names(options.target)
    except CompileError as error:
        raise cli.UsageError(f"--target: {error}") from None
    try:
        text = cli.read_bytes(options.input).decode()
    except UnicodeDecodeError as error:
        raise cli.InputError(f"{options.input}: not text: {error}") from None
    module = parse(text, options.input)
    check_body(module)
    verified = False
    for name in names:
        row = rows.get(name)
        if row is None or not (verified or row.any_input):
            check_input(module)
            verified = True
        if row is not None:
            run_passes(module, [row], Options(targets))
    return module


def optimize(options: argparse.Namespace) -> int:
    if options.list_passes:
        print(listed())
        return cli.DONE
    if options.input is None:
        raise cli.UsageError("IN.mlir is missing")
    from orchestrion.compiler.ir.printer import print_module

    module = passed(options)
    printed = print_module(module, locations=not options.no_locations)
    if options.output is None:
        sys.stdout.write(printed)
    else:
        cli.write_whole(options.output, printed.encode())
    return cli.DONE


def parser() -> Parser:
    from orchestrion.schema.profiles import PROFILES

    made = cli.parser("vm-opt", "Runs passes over IR in MLIR's generic form.", EXAMPLES)
    made.add_argument("input", metavar="IN.mlir", nargs="?", help="the text; - for standard input")
    group = made.group("passes")
    group.add_argument(
        "--pass", dest="passes", metavar="NAME,...", action="append", default=[], help="passes to run, in order"
    )
    group.add_argument("--target", default=",".join(PROFILES), metavar="NAME,...", help="for passes that make programs")
    group.add_argument("--list-passes", action="store_true", help="list the passes")
    group = made.group("output")
    group.add_argument("-o", dest="output", metavar="OUT.mlir", help="where to write; standard output if absent")
    group.add_argument("--no-locations", action="store_true", help="leave source locations out of the text")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("vm-opt", parser(), optimize, argv)


if __name__ == "__main__":
    sys.exit(main())
