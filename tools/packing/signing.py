"""What the commands that sign share: what is signed of a file, and the keys that sign it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.tools import cli

from .passwords import password

if TYPE_CHECKING:
    from orchestrion.schema.keys import PrivateKey
    from orchestrion.schema.signature_set import Part, SignatureSet


class Signable(NamedTuple):
    """What a signature of a file says: its kind (`signature_set.KINDS`), its digest, the parts beside the digest."""

    kind: str
    digest: bytes
    parts: tuple[Part, ...] = ()


def whole_file(path: str, kind: str) -> Signable:
    """A file that is no module: the SHA-256 of all its bytes. `OSError` where it cannot be read."""
    from orchestrion.schema.files import open_regular

    state = sha256()
    with open(open_regular(path), "rb") as file:
        while data := file.read(1 << 20):
            state.update(data)
    return Signable(kind, state.digest())


def read_keys(paths: Sequence[str], password_source: str | None) -> list[PrivateKey]:
    """The private keys. `--password` holds for each of them that has one."""
    from orchestrion.schema import keys
    from orchestrion.schema.errors import KeysError

    secret = password(password_source)
    found = []
    for path in paths:
        data = cli.read_bytes(path)
        try:
            found.append(keys.read_private(data, secret if b"ENCRYPTED" in data else None))
        except KeysError as error:
            raise cli.InputError(f"{path}: {error}") from None
    return found


def sign_all(what: Signable, keys: Sequence[PrivateKey], earlier: SignatureSet | None = None) -> SignatureSet:
    """The set with a signature by each key, beside those that are in `earlier`."""
    from orchestrion.schema.keys import sign
    from orchestrion.schema.signature_set import SignatureSet, with_signature

    found = SignatureSet(what.kind, what.digest, ()) if earlier is None else earlier
    for key in keys:
        found = with_signature(found, sign(key, what.kind, what.digest, what.parts))
    return found
