"""vm-pack manifest: writes a module's identity and requirements, a few KB that an app reads before it downloads the
module.
"""

import argparse

from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

EXAMPLES = (("vm-pack manifest m.fb -o m.json", "Writes what the module is and needs."),)


def add(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    made = cli.subcommand(subparsers, "manifest", run, "Writes what a module is and needs, as JSON.", EXAMPLES)
    made.add_argument("file", metavar="M.fb", help="the module")
    made.add_argument("--detached", metavar="F", help="the module's signatures, where they lie in a file of their own")
    made.add_argument("-o", dest="output", metavar="FILE.json", required=True, help="the manifest")


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema.decoder import open_module
    from orchestrion.schema.shipping.manifest import write_manifest
    from orchestrion.vm.module_manifest import manifest_of

    sets = [] if options.detached is None else [cli.read_bytes(options.detached)]
    data = write_manifest(manifest_of(open_module(options.file), sets))
    cli.write_whole(options.output, data)
    print(f"{options.output}: {len(data):,} bytes")
    return cli.DONE
