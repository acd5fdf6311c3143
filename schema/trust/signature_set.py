"""A signature set: the signatures of one file, as the attachment `SIGN` of a module or a separate file, in a strict
form.

    magic "ORSG" | u32 version, 1 | kind, 8 bytes | digest, 32 bytes | u32 signatures | signatures | CRC-32 of the rest
    signature: u32 algorithm | key id, 32 bytes | u32 parts | parts | u32 length | the signature itself
    part:      name, 12 bytes | SHA-256, 32 bytes

- A signature is made over `message`: the kind, the digest and the parts. The digest is the SHA-256 of prefix and root
  for a module, which includes the digests of all segments, and the SHA-256 of the file otherwise.
- Parts are attachments and trailing sections of a module, which its root does not name. `part` digests one.
- Key id: SHA-256 of the DER form of the public key. A set has one signature per key, key ids ascend, and so do parts.
- Names and kinds are printable ASCII, padded with zeros. Numbers are little endian. So equal sets have equal bytes.

A signature of an unknown algorithm is accepted here but never counts. `keys.py` computes and verifies signatures.
"""

import struct
import zlib
from hashlib import sha256
from typing import NamedTuple

from orchestrion.schema.errors import ModuleError

MAGIC, VERSION = b"ORSG", 1
ED25519, P256 = 1, 2
#: algorithm -> its name in messages; both have signatures of 64 bytes
ALGORITHMS = {ED25519: "Ed25519", P256: "ECDSA P-256"}
SIGNATURE_BYTES, DIGEST_BYTES = 64, 32
#: the kinds of files that may be signed
KINDS = ("module", "params", "adapter", "delta", "manifest")
#: the most signatures of a set, parts of a signature, and bytes of a set, which bound the cost of checking one
MAX_SIGNATURES, MAX_PARTS = 64, 256
MAX_BYTES = 1 << 20

_CONTEXT = b"orchestrion signature 1\n"
_HEAD = struct.Struct("<4sI8s32sI")
_SIGNATURE = struct.Struct("<I32sI")
_PART = struct.Struct("<12s32s")
_COUNT = struct.Struct("<I")


class Part(NamedTuple):
    """An attachment or a trailing section that a signature covers."""

    name: str
    digest: bytes


class Signature(NamedTuple):
    """A signature. `value` is the key's signature of `message`: 64 bytes for the known algorithms."""

    algorithm: int
    key_id: bytes
    parts: tuple[Part, ...]
    value: bytes


class SignatureSet(NamedTuple):
    """Signatures of one file. `kind`: one of `KINDS`; `digest`: that of the signed file."""

    kind: str
    digest: bytes
    signatures: tuple[Signature, ...]


def message(kind: str, digest: bytes, parts: tuple[Part, ...]) -> bytes:
    """The bytes that are signed."""
    rows = b"".join([_PART.pack(name.encode(), value) for name, value in parts])
    return _CONTEXT + kind.encode().ljust(8, b"\0") + digest + _COUNT.pack(len(parts)) + rows


def part(place: str, name: str, flags: int, data: bytes | memoryview) -> Part:
    """The part for an attachment (`place` is "attachment") or a trailing section ("section")."""
    head = struct.pack("<12s12sIQ", place.encode(), name.encode(), flags, len(data))
    state = sha256(head)
    state.update(data)
    return Part(name, state.digest())


def with_signature(found: SignatureSet, added: Signature) -> SignatureSet:
    """The set with one more signature, which replaces one by the same key."""
    others = [row for row in found.signatures if row.key_id != added.key_id]
    return found._replace(signatures=tuple(sorted((*others, added), key=lambda row: row.key_id)))


def encode(found: SignatureSet) -> bytes:
    head = _HEAD.pack(MAGIC, VERSION, found.kind.encode(), found.digest, len(found.signatures))
    body = head + b"".join(map(_encoded, found.signatures))
    return body + _COUNT.pack(zlib.crc32(body))


def _encoded(row: Signature) -> bytes:
    parts = b"".join([_PART.pack(name.encode(), digest) for name, digest in row.parts])
    head = _SIGNATURE.pack(row.algorithm, row.key_id, len(row.parts))
    return head + parts + _COUNT.pack(len(row.value)) + row.value


def decode(data: bytes | memoryview) -> SignatureSet:
    """Parses a set. Raises ModuleError unless `encode` returns the same bytes; offsets in errors count
    within the set.
    """
    if len(data) > MAX_BYTES:
        raise ModuleError(f"signature set: {len(data)} bytes, the limit is {MAX_BYTES}", 0)
    data = bytes(data)
    end = len(data) - _COUNT.size
    if end < _HEAD.size:
        raise ModuleError(f"signature set: {len(data)} bytes, the shortest has {_HEAD.size + _COUNT.size}", 0)
    magic, version, kind, digest, count = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ModuleError(f"signature set: starts with {magic!r}, not {MAGIC!r}", 0)
    if version != VERSION:
        raise ModuleError(f"signature set: version {version}; this version of Orchestrion reads {VERSION}", 4)
    if zlib.crc32(data[:end]) != _COUNT.unpack_from(data, end)[0]:
        raise ModuleError("signature set: damaged, its checksum differs", end)
    name = _name(kind, 8)
    if name not in KINDS:
        raise ModuleError(f"signature set: of kind {name!r}; there are {', '.join(KINDS)}", 8)
    if count > MAX_SIGNATURES:
        raise ModuleError(f"signature set: {count} signatures, the limit is {MAX_SIGNATURES}", 48)
    rows: list[Signature] = []
    at = _HEAD.size
    for _ in range(count):
        row, after = _decoded(data, at, end)
        if rows and row.key_id <= rows[-1].key_id:
            raise ModuleError("signature set: the ids of its keys do not ascend", at)
        rows.append(row)
        at = after
    if at != end:
        raise ModuleError(f"signature set: {end - at} bytes behind its {count} signatures", at)
    return SignatureSet(name, digest, tuple(rows))


def _decoded(data: bytes, at: int, end: int) -> tuple[Signature, int]:
    """The signature at `at`, and the start of the next one."""
    if at + _SIGNATURE.size > end:
        raise ModuleError("signature set: truncated", end)
    algorithm, key_id, count = _SIGNATURE.unpack_from(data, at)
    at += _SIGNATURE.size
    if count > MAX_PARTS:
        raise ModuleError(f"signature set: {count} parts, the limit is {MAX_PARTS}", at - 4)
    if at + count * _PART.size + _COUNT.size > end:
        raise ModuleError("signature set: truncated", end)
    parts: list[Part] = []
    for place in range(at, at + count * _PART.size, _PART.size):
        name, digest = _PART.unpack_from(data, place)
        row = Part(_name(name, place), digest)
        if parts and row <= parts[-1]:
            raise ModuleError("signature set: its parts do not ascend", place)
        parts.append(row)
    at += count * _PART.size
    (length,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    if length > end - at:
        raise ModuleError(f"signature set: a signature of {length} bytes, {end - at} are left", at - 4)
    if algorithm in ALGORITHMS and length != SIGNATURE_BYTES:
        raise ModuleError(f"signature set: {ALGORITHMS[algorithm]} of {length} bytes, not {SIGNATURE_BYTES}", at - 4)
    return Signature(algorithm, key_id, tuple(parts), data[at : at + length]), at + length


def _name(field: bytes, offset: int) -> str:
    name = field.rstrip(b"\0")
    if not name or any(byte < 33 or byte > 126 for byte in name):
        raise ModuleError(f"signature set: the name {field!r} is not printable ASCII filled up with zeros", offset)
    return name.decode()
