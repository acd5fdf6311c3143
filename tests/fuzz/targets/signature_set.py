"""A signature set is decoded or ModuleError; what is decoded is encoded to the same bytes."""

import random
import struct
import zlib

from fuzzing import check

from orchestrion.schema.errors import ModuleError
from orchestrion.schema.trust.signature_set import (
    ED25519,
    MAX_PARTS,
    MAX_SIGNATURES,
    P256,
    Part,
    Signature,
    SignatureSet,
    decode,
    encode,
    message,
)

POOL = (b"ORSG", b"module\0\0", b"manifest", b"adapter\0", b"notes".ljust(12, b"\0"), bytes(32))
#: offsets of numbers in the head, and in the first signature
_NUMBERS = (4, 48, 52, 88)


def seeds():
    parts = (Part("LICE", b"\1" * 32), Part("notes", b"\2" * 32))
    rows = (
        Signature(ED25519, b"\1" * 32, (), b"s" * 64),
        Signature(P256, b"\2" * 32, parts, b"t" * 64),
        Signature(77, b"\3" * 32, parts[:1], b"of another length"),
    )
    for count in range(4):
        yield encode(SignatureSet("module", bytes(range(32)), rows[:count]))
    yield encode(SignatureSet("params", bytes(32), rows[1:]))


def mutate(choose: random.Random, data: bytes) -> bytes:
    """A number of the head or of the first signature; a signature or a part twice."""
    at = choose.choice(_NUMBERS)
    if choose.random() < 0.5 and len(data) >= at + 4:
        number = choose.choice((0, 1, 2, 3, 63, 64, 65, MAX_SIGNATURES + 1, MAX_PARTS + 1, 2**31, 2**32 - 1))
        return data[:at] + struct.pack("<I", number) + data[at + 4 :]
    start, size = 52 + choose.choice((0, 40, 84, 108)), choose.choice((44, 108, 196))
    return data[:start] + data[start : start + size] + data[start:]


def repair(data: bytes) -> bytes:
    """With a checksum that fits."""
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4])) if len(data) >= 4 else data


def one_input(data: bytes) -> None:
    try:
        found = decode(data)
    except ModuleError:
        return
    check(encode(found) == data, "another encoding of the same set")
    check(len(found.signatures) <= MAX_SIGNATURES, "too many signatures")
    for row in found.signatures:
        text = message(found.kind, found.digest, row.parts)
        check(len(text) == 24 + 8 + 32 + 4 + 44 * len(row.parts), "a message of another length")
