"""vm-pack strip: writes a module's file without its debug information. Signatures stay valid.

It removes debug segments: source locations, names of source ops, types of bindings. Names of functions and strings in
the root stay, because the root is signed: without them it would be another module that needs a new signature.
"""

import argparse

from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

EXAMPLES = (
    (
        "vm-pack strip m.fb -o small.fb",
        "Takes out debug information: signatures stay valid, errors no longer name ops.",
    ),
)


def add(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    made = cli.subcommand(subparsers, "strip", run, "Takes debug information out of a module's file.", EXAMPLES)
    made.add_argument("file", metavar="M.fb", help="the module")
    made.add_argument("-o", dest="output", metavar="S.fb", required=True, help="the file to write")


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema.decoder import open_module
    from orchestrion.schema.rows import SegmentKind

    from .rewrite import say, write_without

    module = open_module(options.file)
    debug = {ordinal for ordinal, row in enumerate(module.segments) if row.kind == SegmentKind.Debug}
    gone, size = write_without(module, debug, options.output)
    say(options.output, gone, size)
    return cli.DONE
