"""vm-pack keygen: generates a key pair. The private key is for signing, the public one for keys files.

`key.pem` is PKCS#8, readable by its owner only; `key.pub.pem` lies in the same folder. Neither is printed, and an
existing key is only replaced with `--force`.
"""

import argparse
import os
from contextlib import suppress

from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

from .passwords import add_password, password

EXAMPLES = (
    ("vm-pack keygen -o key.pem", "Makes key.pem, which stays secret, and key.pub.pem."),
    ("vm-pack keygen -o key.pem --type=p256 --password", "Makes keys for ECDSA, and asks for a password."),
)


def add(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    made = cli.subcommand(subparsers, "keygen", run, "Makes a key pair for signing.", EXAMPLES)
    made.add_argument(
        "--type", choices=("ed25519", "p256"), default="ed25519", help="Ed25519 (default), or ECDSA over P-256"
    )
    made.add_argument("-o", dest="output", metavar="KEY.pem", required=True, help="writes KEY.pem and KEY.pub.pem")
    made.add_argument("--force", action="store_true", help="replace existing keys")
    add_password(made, "the private key")


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema.trust import keys

    private, public = options.output, public_path(options.output)
    for path in (private, public):
        if os.path.lexists(path) and not (options.force and os.path.isfile(path)):
            raise cli.InputError(f"{path}: is there already" + ("; --force replaces it" if not options.force else ""))
    secret = password(options.password, twice=True)
    key = keys.generate(options.type)
    if options.force:
        for path in (private, public):
            with suppress(FileNotFoundError):
                os.unlink(path)
    _write_new(private, keys.private_pem(key, secret), 0o600)
    try:
        _write_new(public, keys.public_pem(key), 0o644)
    except BaseException:
        os.unlink(private)
        raise
    print(f"wrote {private} (private) and {public}: {options.type} key {key.public.short_id}")
    return cli.DONE


def public_path(private: str) -> str:
    """The path of the public key of a private one."""
    stem, ending = os.path.splitext(private)
    return f"{stem}.pub.pem" if ending == ".pem" else f"{private}.pub.pem"


def _write_new(path: str, data: bytes, mode: int) -> None:
    """Writes a file that must not exist yet, atomically; it has `mode` from its creation on."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with open(file, "wb") as whole:
            whole.write(data)
    except BaseException:
        os.unlink(path)
        raise
