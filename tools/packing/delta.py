"""vm-pack delta: writes a delta from one file to another, which is small if segments are equal
(`schema/shipping/delta.py`).
"""

import argparse
import zlib
from hashlib import sha256
from typing import Any

from orchestrion.tools import cli
from orchestrion.tools.arguments import Parser

EXAMPLES = (
    ("vm-pack delta old.fb new.fb -o update.delta", "Writes what a device that has the old module downloads."),
    (
        "vm-pack delta old.zip new.zip -o update.delta --compression=zlib",
        "The same for bundles, for a Python without lzma.",
    ),
)


def add(subparsers: "argparse._SubParsersAction[Parser]") -> None:
    made = cli.subcommand(subparsers, "delta", run, "Writes what turns one file into another.", EXAMPLES)
    made.add_argument("old", metavar="OLD", help="a module, a bundle, any file")
    made.add_argument("new", metavar="NEW", help="the result of `vm-pack apply OLD D`")
    made.add_argument("-o", dest="output", metavar="D", required=True, help="the delta")
    made.add_argument(
        "--compression",
        choices=("lzma", "zlib"),
        default="lzma",
        help="zlib for devices whose Python lacks lzma (default: lzma)",
    )


def run(options: argparse.Namespace) -> int:
    from orchestrion.schema.files import map_file
    from orchestrion.schema.shipping.delta import LITERAL, read_delta

    old, new = map_file(options.old), map_file(options.new)
    data = make_delta(old, new, options.compression)
    cli.write_whole(options.output, data)
    steps = read_delta(data).steps
    copied = sum(length for offset, length in steps if offset != LITERAL)
    print(f"{options.output}: {len(data):,} bytes; {copied:,} of {len(new):,} bytes are copied from {options.old}")
    return cli.DONE


def make_delta(old: memoryview, new: memoryview, compression: str = "lzma") -> bytes:
    """The delta, after a test that it reproduces the new file."""
    from orchestrion.schema.shipping.delta import LITERAL, Delta, apply, read_delta, write_delta

    from .matching import find_steps

    steps = find_steps(old, new)
    packer = _lzma() if compression == "lzma" else zlib.compressobj(9)
    packed: list[bytes] = []
    at = literals = 0
    for offset, length in steps:
        if offset == LITERAL:
            packed.append(packer.compress(new[at : at + length]))
            literals += length
        at += length
    packed.append(packer.flush())
    body = memoryview(b"".join(packed))
    ends = len(old), sha256(old).digest(), len(new), sha256(new).digest()
    data = write_delta(Delta(*ends, compression, steps, literals, body, 0))
    for _ in apply(old, read_delta(data), len(new)):
        pass
    return data


def _lzma() -> Any:
    from orchestrion.schema.shipping.delta import lzma_filters

    try:
        import lzma
    except ImportError:
        raise cli.InputError("this Python was built without lzma: --compression=zlib") from None
    return lzma.LZMACompressor(lzma.FORMAT_RAW, filters=lzma_filters())
