"""Attributes of a module on the command line of `vm-compile`: model card, licence, name, version, limits, and others.

Flags are derived from the table of `schema/attributes.py`: `--model-name` writes `model.name`, `--limit-fuel` writes
`limits.fuel`. `--model-card` and `--licence` name text files. `--attribute KEY=VALUE` writes any key.
"""

import argparse

from orchestrion.schema.attributes import KNOWN, LIMITS_PREFIX, problem

from . import cli
from .arguments import Parser

#: the most bytes of a file whose text becomes an attribute, because opening the module reads and hashes attributes
MAX_BYTES = 1 << 20

#: flag -> key, for texts in files
_FILES = {"--model-card": "model.card", "--licence": "model.licence"}
#: flag -> key, for values on the command line
_VALUES = {
    "--" + key.replace(LIMITS_PREFIX, "limit-").replace(".", "-"): key for key in KNOWN if key not in _FILES.values()
}


def add_attributes(made: Parser) -> None:
    group = made.add_argument_group("attributes of the module", "docs/limits.md says what limits mean")
    group.add_argument(
        "--attribute", metavar="KEY=VALUE", action="append", default=[], help="an attribute with any key; repeat"
    )
    for flag, key in _FILES.items():
        group.add_argument(flag, metavar="FILE", dest=key, help=f"text file with the {KNOWN[key].doc}")
    for flag, key in _VALUES.items():
        group.add_argument(flag, metavar=KNOWN[key].kind.upper(), dest=key, help=KNOWN[key].doc)


def attributes_of(options: argparse.Namespace) -> dict[str, str]:
    """The attributes of the flags, by key, in the order of the table, then in the given order.

    Raises UsageError if a key is given twice, or a value is malformed; InputError if a file is not text, or too long.
    """
    found: dict[str, str] = {}
    for flag, key in (*_FILES.items(), *_VALUES.items()):
        value = getattr(options, key)
        if value is not None:
            found[key] = _text(flag, value) if flag in _FILES else value
    for given in options.attribute:
        key, equals, value = given.partition("=")
        if not equals or not key:
            raise cli.UsageError(f"--attribute={given}: KEY=VALUE expected")
        if key in found:
            raise cli.UsageError(f"attribute {key} is given twice")
        found[key] = value
    for key, value in found.items():
        why = problem(key, value)
        if why is not None:
            raise cli.UsageError(f"{_flag(key)}: {why}")
        if "\0" in key + value:
            raise cli.UsageError(f"attribute {key} holds a NUL")
    return found


def _flag(key: str) -> str:
    """The flag that sets an attribute."""
    flags = {known: flag for flag, known in (*_FILES.items(), *_VALUES.items())}
    return flags.get(key, "--attribute")


def _text(flag: str, path: str) -> str:
    data = cli.read_bytes(path)
    if len(data) > MAX_BYTES:
        raise cli.InputError(f"{flag}={path}: {len(data)} bytes, the limit of an attribute is {MAX_BYTES}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise cli.InputError(f"{flag}={path}: no UTF-8 text: {error.reason} at byte {error.start}") from None
    if "\0" in text:
        raise cli.InputError(f"{flag}={path}: no text: it holds a NUL")
    return text
