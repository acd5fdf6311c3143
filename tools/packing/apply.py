"""vm-pack apply: creates the new file from the old one and a delta, atomically."""

import argparse

from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser, whole

EXAMPLES = (
    ("vm-pack apply old.fb update.delta -o new.fb", "Makes the new module, and checks that it is the right one."),
)


def add(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    made = cli.subcommand(subparsers, "apply", run, "Makes the new file from the old one and a delta.", EXAMPLES)
    made.add_argument("old", metavar="OLD", help="the file that the delta was made for")
    made.add_argument("delta", metavar="D", help="what `vm-pack delta` wrote")
    made.add_argument("-o", dest="output", metavar="NEW", required=True, help="the new file; may be OLD")
    made.add_argument(
        "--most-bytes",
        metavar="N",
        type=whole(1),
        help="largest file that the delta may make (default: twice the old one, 64 times the delta, and 1 MiB)",
    )


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema.shipping.delta import apply_file

    done = apply_file(options.old, options.delta, options.output, options.most_bytes)
    print(f"{options.output}: {done.new_size:,} bytes, digest {done.new_digest.hex()[:16]}")
    return cli.DONE
