"""vm-pack verify: whether a module is whole, and signed by the key."""

import argparse

from orchestrion.tools import cli


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    made = cli.subcommand(subparsers, "verify", run, "Checks every byte of a module, and who signed it.")
    made.add_argument("file", metavar="M.fb", help="the module")
    made.add_argument("--key", metavar="KEY.pub.pem", required=True, help="the public key that must have signed")
    made.add_argument("--detached", metavar="F", required=True, help="the file with the signatures")


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema import keys, signature_set
    from orchestrion.schema.container import open_file
    from orchestrion.schema.errors import Untrusted

    key = keys.read_public(cli.read_bytes(options.key))
    found = signature_set.decode(cli.read_bytes(options.detached))
    digest = open_file(options.file).digest
    if (found.kind, found.digest) != ("module", digest):
        raise Untrusted(f"{options.detached} has the signatures of another file")
    rows = [row for row in found.signatures if row.key_id == key.id]
    if not rows:
        raise Untrusted(f"not signed by the key {key.short_id}")
    if not keys.is_valid(key, found.kind, digest, rows[0]):
        raise Untrusted(f"the signature by the key {key.short_id} is wrong")
    return cli.DONE
