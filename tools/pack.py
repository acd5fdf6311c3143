"""vm-pack: what lies between a compiled module and an app that loads it: keys, signatures, checks, packages.

Each command is a file of `packing/` with two functions: `add(subparsers)` registers the command, `run(options)` does
it and gives the exit status. `COMMANDS` lists them in the order in which `--help` shows them.
"""

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from . import cli
from .packing import (
    apply,
    bundle,
    delta,
    keygen,
    lint,
    manifest,
    parameters,
    sign,
    strip,
    thin,
    unbundle,
    verify,
)

COMMANDS: tuple[ModuleType, ...] = (
    keygen,
    sign,
    verify,
    lint,
    thin,
    strip,
    parameters,
    delta,
    apply,
    manifest,
    bundle,
    unbundle,
)


def pack(options: argparse.Namespace) -> int:
    status: int = options.run(options)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    made = cli.parser("vm-pack", "Makes keys, signs modules, checks and packs them.")
    commands = made.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return cli.run("vm-pack", made, pack, argv)


if __name__ == "__main__":
    sys.exit(main())
