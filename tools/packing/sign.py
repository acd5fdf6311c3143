"""vm-pack sign: writes publishers' signatures, into the module or into a separate file.

The module is verified completely first, because signing a damaged one would ship it. Existing signatures stay, except
one by the same key, which is replaced.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

from .passwords import add_password

if TYPE_CHECKING:
    from orchestrion.schema.trust.keys import PrivateKey

    from .signing import Signable

EXAMPLES = (
    ("vm-pack sign m.fb --key=key.pem -o signed.fb", "Writes the module with the signature in it."),
    ("vm-pack sign m.fb --key=key.pem --detached=m.sig", "Leaves the module as it is and writes a file beside it."),
    ("vm-pack sign weights.safetensors --key=key.pem --detached=w.sig", "Signs a file of parameters."),
)


def add(subparsers: argparse._SubParsersAction[Parser]) -> None:
    made = cli.subcommand(subparsers, "sign", run, "Signs a module, or another file by all of its bytes.", EXAMPLES)
    made.add_argument("file", metavar="M.fb", help="the module, or a file of --kind")
    made.add_argument("--key", metavar="KEY.pem", action="append", required=True, help="a private key; repeat")
    made.add_argument("-o", dest="output", metavar="S.fb", help="write the signed module; it may be M.fb itself")
    made.add_argument("--detached", metavar="F", help="write the signatures to a file of their own")
    made.add_argument(
        "--kind",
        choices=("params", "adapter", "delta", "manifest"),
        help="kind of a file that is no module (default: by its name)",
    )
    add_password(made, "the private key")


def run(options: argparse.Namespace) -> int:
    from .signing import is_module, read_keys

    if options.output is None and options.detached is None:
        raise cli.UsageError("sign needs -o S.fb or --detached=F")
    if is_module(options.file):
        if options.kind is not None:
            raise cli.UsageError(f"--kind={options.kind}: {options.file} is a module")
        return sign_module(options)
    if options.output is not None:
        raise cli.UsageError(f"{options.file} is no module and can hold no signature: --detached=F")
    what = _whole_file(options)
    return _write_detached(options, what, read_keys(options.key, options.password))


def sign_module(options: argparse.Namespace) -> int:
    from orchestrion.schema.decoder import open_module
    from orchestrion.schema.files import write_whole
    from orchestrion.schema.trust.guard import verify_both

    from .signing import of_module, read_keys, signed_pieces

    module = open_module(options.file)
    verify_both(module)
    file = module.container
    what, keys = of_module(file), read_keys(options.key, options.password)
    if options.output is not None:
        write_whole(options.output, signed_pieces(file, keys), "cannot write the module")
    return cli.DONE if options.detached is None else _write_detached(options, what, keys)


def _whole_file(options: argparse.Namespace) -> Signable:
    from .signing import KINDS_BY_ENDING, of_file

    kind = options.kind
    if kind is None:
        kind = next((kind for ending, kind in KINDS_BY_ENDING.items() if options.file.endswith(ending)), None)
    if kind is None:
        raise cli.UsageError(f"{options.file} is no module, and its name does not say what it is: --kind=KIND")
    return of_file(options.file, kind)


def _write_detached(options: argparse.Namespace, what: Signable, keys: Sequence[PrivateKey]) -> int:
    """Existing signatures of the same file stay. Raises ModuleError if the file contains something else."""
    from orchestrion.schema.trust.signature_set import decode, encode

    from .signing import sign_all

    path = options.detached
    earlier = [decode(cli.read_bytes(path))] if os.path.isfile(path) else []
    cli.write_whole(path, encode(sign_all(what, keys, earlier)))
    return cli.DONE
