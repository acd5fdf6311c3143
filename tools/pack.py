"""vm-pack: the steps between a compiled module and an app that loads it: keys, signatures, checks, packages.

Each command is a file of `packing/` with two functions: `add(subparsers)` registers the command, `run(options)` runs it
and returns the exit status. `COMMANDS` lists them in the order of `--help`.
"""

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from . import cli
from .arguments import Parser
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

EXAMPLES = (
    ("vm-pack keygen -o key.pem", "Makes a key pair: key.pem and key.pub.pem."),
    ("vm-pack sign m.fb --key=key.pem -o signed.fb", "Signs a module."),
    ("vm-pack verify signed.fb --key=key.pub.pem", "Checks every byte of it, and the signature."),
    ("vm-pack bundle signed.fb -o bundle.zip", "Packs it with its parameters and papers."),
    ("vm-pack sign --help", "Shows the flags of one command."),
)


def pack(options: argparse.Namespace) -> int:
    status: int = options.run(options)
    return status


def parser() -> Parser:
    made = cli.parser("vm-pack", "Makes keys, signs modules, checks and packs them.", EXAMPLES)
    commands = made.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("vm-pack", parser(), pack, argv)


if __name__ == "__main__":
    sys.exit(main())
