"""vm-pack unbundle: writes the files of a bundle to a folder, after verifying every byte."""

import argparse

from orchestrion.schema.printable import printable
from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

EXAMPLES = (
    ("vm-pack unbundle bundle.zip -o folder", "Verifies the bundle first, and writes nothing where that fails."),
)


def add(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    made = cli.subcommand(subparsers, "unbundle", run, "Verifies a bundle and writes its files to a folder.", EXAMPLES)
    made.add_argument("file", metavar="BUNDLE", help="what `vm-pack bundle` wrote")
    made.add_argument("-o", dest="output", metavar="FOLDER", required=True, help="where the files go")


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema.shipping.bundle import unpack_bundle

    found = unpack_bundle(options.file, options.output)
    print(printable(f"{options.output}: {', '.join(found)}"))
    return cli.DONE
