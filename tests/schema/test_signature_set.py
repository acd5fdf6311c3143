"""Signature sets: each has one encoding, every byte is checked, and any other form is refused with its reason."""

import struct
import zlib
from hashlib import sha256

import pytest

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
    part,
    with_signature,
)

DIGEST = bytes(range(32))
PARTS = (Part("LICE", b"\1" * 32), Part("notes", b"\2" * 32))
ONE = Signature(ED25519, b"\1" * 32, (), b"s" * 64)
TWO = Signature(P256, b"\2" * 32, PARTS, b"t" * 64)
THREE = Signature(77, b"\3" * 32, (), b"of another length")
SETS = [
    SignatureSet("module", DIGEST, ()),
    SignatureSet("module", DIGEST, (ONE,)),
    SignatureSet("manifest", DIGEST, (ONE, TWO, THREE)),
]


def sealed(body: bytes) -> bytes:
    """The bytes followed by their checksum."""
    return body + struct.pack("<I", zlib.crc32(body))


@pytest.mark.parametrize("found", SETS, ids=str)
def test_there_and_back(found: SignatureSet) -> None:
    assert decode(encode(found)) == found


def test_the_form() -> None:
    """The bytes that docs/signatures.md promises to other readers."""
    body = b"ORSG" + struct.pack("<I", 1) + b"module\0\0" + DIGEST + struct.pack("<I", 1)
    row = struct.pack("<I", 2) + TWO.key_id + struct.pack("<I", 2)
    parts = b"LICE".ljust(12, b"\0") + b"\1" * 32 + b"notes".ljust(12, b"\0") + b"\2" * 32
    assert encode(SignatureSet("module", DIGEST, (TWO,))) == sealed(
        body + row + parts + struct.pack("<I", 64) + TWO.value
    )


def test_what_is_signed() -> None:
    rows = b"LICE".ljust(12, b"\0") + b"\1" * 32 + b"notes".ljust(12, b"\0") + b"\2" * 32
    assert message("params", DIGEST, PARTS) == (
        b"orchestrion signature 1\nparams\0\0" + DIGEST + struct.pack("<I", 2) + rows
    )


def test_what_a_part_says() -> None:
    data = memoryview(b"text")
    head = b"attachment".ljust(12, b"\0") + b"LICE".ljust(12, b"\0") + struct.pack("<IQ", 1, 4)
    assert part("attachment", "LICE", 1, data) == Part("LICE", sha256(head + data).digest())
    others = [("section", "LICE", 1), ("attachment", "LICF", 1), ("attachment", "LICE", 0)]
    assert len({part(*other, data).digest for other in [("attachment", "LICE", 1), *others]}) == 4


def test_every_byte_counts() -> None:
    data = encode(SETS[2])
    for at in range(len(data)):
        for change in (1, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= change
            with pytest.raises(ModuleError, match="^signature set: "):
                decode(bytes(damaged))


def test_no_byte_may_be_missing_or_follow() -> None:
    data = encode(SETS[2])
    for size in range(len(data)):
        with pytest.raises(ModuleError, match="^signature set: "):
            decode(data[:size])
    for size in range(len(data) - 4):
        with pytest.raises(ModuleError, match="^signature set: "):
            decode(sealed(data[:size]))
    with pytest.raises(ModuleError, match="1 bytes behind its 3 signatures"):
        decode(sealed(data[:-4] + b"\0"))


def changed(at: int, new: bytes, found: SignatureSet = SETS[2]) -> bytes:
    """The set with bytes replaced and its checksum updated."""
    data = encode(found)[:-4]
    return sealed(data[:at] + new + data[at + len(new) :])


FIRST = 52  #: where the first signature starts
REFUSED = {
    "another magic": (changed(0, b"ORCS"), "starts with b'ORCS', not b'ORSG'"),
    "a later version": (changed(4, b"\2"), "version 2; this version of Orchestrion reads 1"),
    "an unknown kind": (changed(8, b"moduli"), "of kind 'manifest'|of kind 'modulist'"),
    "a kind with a gap": (changed(8, b"mod\0le"), "is not printable ASCII filled up with zeros"),
    "a kind that is empty": (changed(8, bytes(8)), "is not printable ASCII filled up with zeros"),
    "a name that is no text": (changed(FIRST + 40 + 4 + 64 + 40, b"\xff"), "is not printable ASCII"),
    "too many signatures": (changed(48, struct.pack("<I", MAX_SIGNATURES + 1)), f"the limit is {MAX_SIGNATURES}"),
    "more signatures than there are": (changed(48, struct.pack("<I", 4)), "truncated"),
    "fewer signatures than there are": (changed(48, struct.pack("<I", 2)), "bytes behind its 2 signatures"),
    "too many parts": (changed(FIRST + 36, struct.pack("<I", MAX_PARTS + 1)), f"the limit is {MAX_PARTS}"),
    "more parts than there are": (changed(FIRST + 36, struct.pack("<I", 200)), "truncated"),
    "a signature that is too long": (changed(FIRST + 40, struct.pack("<I", 2**32 - 1)), "bytes, .* are left"),
    "a short Ed25519": (encode(SETS[1]._replace(signatures=(ONE._replace(value=b"s" * 63),))), "of 63 bytes, not 64"),
    "a long P-256": (encode(SETS[1]._replace(signatures=(TWO._replace(value=b"s" * 65),))), "of 65 bytes, not 64"),
    "keys in another order": (encode(SETS[1]._replace(signatures=(TWO, ONE))), "the ids of its keys do not ascend"),
    "a key twice": (encode(SETS[1]._replace(signatures=(ONE, ONE))), "the ids of its keys do not ascend"),
    "parts in another order": (
        encode(SETS[1]._replace(signatures=(TWO._replace(parts=PARTS[::-1]),))),
        "its parts do not ascend",
    ),
    "a part twice": (
        encode(SETS[1]._replace(signatures=(TWO._replace(parts=(PARTS[0], PARTS[0])),))),
        "its parts do not ascend",
    ),
    "nothing": (b"", "0 bytes, the shortest has 56"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    data, reason = REFUSED[name]
    with pytest.raises(ModuleError, match=reason):
        decode(data)


def test_a_signature_more() -> None:
    found = with_signature(with_signature(SETS[0], TWO), ONE)
    assert found.signatures == (ONE, TWO)
    again = ONE._replace(value=b"u" * 64)
    assert with_signature(found, again).signatures == (again, TWO)
