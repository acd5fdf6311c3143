"""vm-pack sign: writes publishers' signatures, into the module or into a file of their own.

A module is signed by the SHA-256 of its root, any other file by that of all its bytes. Signatures that are there stay,
those of the same key are replaced.
"""

import argparse

from orchestrion.tools import cli

from .passwords import add_password


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    made = cli.subcommand(subparsers, "sign", run, "Signs a module.")
    made.add_argument("file", metavar="M.fb", help="the module")
    made.add_argument("--key", metavar="KEY.pem", action="append", required=True, help="the private key; repeat")
    made.add_argument("--detached", metavar="F", required=True, help="write the signatures to a file of their own")
    add_password(made, "the private key")


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema import signature_set
    from orchestrion.schema.container import open_file

    from .signing import Signable, read_keys, sign_all

    what = Signable("module", open_file(options.file).digest)
    keys = read_keys(options.key, options.password)
    cli.write_whole(options.detached, signature_set.encode(sign_all(what, keys)))
    return cli.DONE
