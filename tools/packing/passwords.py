"""Passwords of private keys on the command line: prompted for, or read from a source that other users cannot see."""

import os
import sys

from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

_ASK = ""
#: the most bytes that `cryptography` accepts
_MAX_BYTES = 1023


def add_password(made: Parser, of_what: str) -> None:
    made.add_argument(
        "--password",
        metavar="SOURCE",
        nargs="?",
        const=_ASK,
        help=f"{of_what} has a password: env:NAME, file:PATH, or asked for when SOURCE is left out "
        "(pass:TEXT is seen by whoever lists processes)",
    )


def password(source: str | None, twice: bool = False) -> bytes | None:
    """The password; None without `--password`. `twice`: a new password, prompted for twice on a terminal."""
    if source is None:
        return None
    found = _ask(twice) if source == _ASK else _from(source)
    if not found:
        raise cli.InputError("the password is empty")
    secret = found.encode(errors="surrogateescape")  # the environment and the command line may not be UTF-8
    if len(secret) > _MAX_BYTES:
        raise cli.InputError(f"the password has {len(secret)} bytes, the limit is {_MAX_BYTES}")
    return secret


def _from(source: str) -> str:
    kind, colon, rest = source.partition(":")
    if not colon:
        kind, rest = "pass", source
    if kind == "env":
        if rest not in os.environ:
            raise cli.InputError(f"--password=env:{rest}: the variable is not set")
        return os.environ[rest]
    if kind == "file":
        return _line(cli.read_bytes(rest), rest)
    if kind == "pass":
        return rest
    raise cli.UsageError("--password takes env:NAME, file:PATH or pass:TEXT")


def _line(data: bytes, path: str) -> str:
    try:
        return data.decode().split("\n", 1)[0].rstrip("\r")
    except UnicodeDecodeError:
        raise cli.InputError(f"{path}: the password is not text") from None


def _ask(twice: bool) -> str:
    if not sys.stdin.isatty():
        return _line(sys.stdin.buffer.readline(), "standard input")
    from getpass import getpass

    found = getpass("Password of the key: ")
    if twice and getpass("The same again: ") != found:
        raise cli.InputError("the two passwords differ")
    return found
