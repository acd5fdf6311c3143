"""Shared by the commands that sign and verify: what a signature of a file covers, and the keys.

A module is signed by the SHA-256 of its root, any other file by that of all its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.tools import cli

from .passwords import password

if TYPE_CHECKING:
    from orchestrion.schema.container import Container
    from orchestrion.schema.trust.keys import PrivateKey
    from orchestrion.schema.trust.signature_set import Part, SignatureSet

#: the tag of the attachment with signatures
SIGN = "SIGN"
#: suffix of a file that is no module -> its kind (`signature_set.KINDS`)
KINDS_BY_ENDING = {".safetensors": "params", ".delta": "delta", ".json": "manifest"}


class Signable(NamedTuple):
    """What a signature of a file covers: its kind (`signature_set.KINDS`), its digest, and the parts outside of the
    digest.
    """

    kind: str
    digest: bytes
    parts: tuple[Part, ...] = ()


def of_module(file: Container) -> Signable:
    from orchestrion.vm.admission import parts_of

    return Signable("module", file.digest, parts_of(file))


def of_file(path: str, kind: str) -> Signable:
    """A file that is no module. Raises OSError if it cannot be read."""
    from orchestrion.schema.files import open_regular

    state = sha256()
    with open(open_regular(path), "rb") as file:
        while data := file.read(1 << 20):
            state.update(data)
    return Signable(kind, state.digest())


def signed_pieces(file: Container, keys: Sequence[PrivateKey]) -> list[bytes | memoryview]:
    """The pieces of the module's file with signatures by the keys, in addition to existing ones. Nothing
    is verified.
    """
    from orchestrion.schema import container
    from orchestrion.schema.trust import signature_set

    earlier = [signature_set.decode(row.verified()) for row in file.attachments if row.tag == SIGN]
    data = signature_set.encode(sign_all(of_module(file), keys, earlier))
    others = [row for row in file.attachments if row.tag != SIGN]
    segments = [file.segment(ordinal) if at else None for ordinal, (at, _) in enumerate(file.spans)]
    return container.build(file.root, segments, [*others, container.Attachment(SIGN, data)], file.sections)


def is_module(path: str) -> bool:
    """Whether a file begins like a module. Raises OSError if it cannot be read."""
    from orchestrion.schema.container import IDENTIFIER
    from orchestrion.schema.files import open_regular

    with open(open_regular(path), "rb") as file:
        return file.read(12)[8:] == IDENTIFIER


def read_keys(paths: Sequence[str], password_source: str | None) -> list[PrivateKey]:
    """Reads the private keys. The password is used for each key that has one."""
    from orchestrion.schema.errors import KeysError
    from orchestrion.schema.trust import keys

    secret = password(password_source)
    found = []
    for path in paths:
        data = cli.read_bytes(path)
        try:
            found.append(keys.read_private(data, secret if b"ENCRYPTED" in data else None))
        except KeysError as error:
            raise cli.InputError(f"{path}: {error}") from None
    return found


def sign_all(what: Signable, keys: Sequence[PrivateKey], earlier: Sequence[SignatureSet] = ()) -> SignatureSet:
    """The set with a signature by each key, in addition to those of `earlier` sets for the same file."""
    from orchestrion.schema.trust.keys import sign
    from orchestrion.schema.trust.signature_set import SignatureSet, with_signature

    found = SignatureSet(what.kind, what.digest, ())
    for old in earlier:
        if old[:2] == found[:2]:
            for row in old.signatures:
                found = with_signature(found, row)
    for key in keys:
        found = with_signature(found, sign(key, what.kind, what.digest, what.parts))
    return found
