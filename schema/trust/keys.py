"""Keys of publishers: reads and generates them, signs and verifies with them. `cryptography` is imported on first use.

- Only this file reads public keys, in the form that OpenSSL and `vm-pack keygen` write: PEM with a
  SubjectPublicKeyInfo, Ed25519 or P-256 with an uncompressed point. The id of a key is the SHA-256 of its DER form.
- Private keys are PKCS#8 in PEM, with or without a password.
- A signature has one encoding: Ed25519 as in RFC 8032; P-256 as r and s, 32 bytes each, big endian, s in the lower
  half. OpenSSL accepts both halves of s, so this file requires the lower one.

`KeysError` describes the problem of a key, and never contains any of it.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.schema.errors import KeysError
from orchestrion.schema.hints import install

from .signature_set import ED25519, P256, Part, Signature, message

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

#: `--type` of `vm-pack keygen` -> algorithm
TYPES = {"ed25519": ED25519, "p256": P256}
#: prefix of a public key in DER -> algorithm, number of bytes of the key after it
_FORMS = {
    bytes.fromhex("302a300506032b6570032100"): (ED25519, 32),
    bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004"): (P256, 64),
}
_BEGIN, _END = b"-----BEGIN PUBLIC KEY-----", b"-----END PUBLIC KEY-----"
#: the points of small order of Ed25519 without their sign bit, in each encoding that OpenSSL accepts
_SMALL_ORDER = frozenset(
    map(
        bytes.fromhex,
        (
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        ),
    )
)
#: the order of the group of P-256
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class PublicKey(NamedTuple):
    """A public key. `id` is the SHA-256 of the DER form; `raw` is the key itself (for P-256 its two coordinates)."""

    algorithm: int
    id: bytes
    raw: bytes

    @property
    def short_id(self) -> str:
        """The beginning of the id, for messages."""
        return self.id.hex()[:16]


class PrivateKey(NamedTuple):
    """A private key, and the `public` key that belongs to it."""

    public: PublicKey
    key: Ed25519PrivateKey | EllipticCurvePrivateKey

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.short_id})"


def read_public(pem: bytes) -> PublicKey:
    """Parses one public key in PEM. Raises KeysError for anything else."""
    if b"PRIVATE KEY-----" in pem:
        raise KeysError("it holds a private key, which must not be given away; the public one is in the .pub.pem file")
    text = pem.strip()
    if not text.startswith(_BEGIN) or not text.endswith(_END) or text.count(b"-----BEGIN") != 1:
        raise KeysError("it is not one public key in PEM (BEGIN PUBLIC KEY)")
    try:
        der = base64.b64decode(b"".join(text[len(_BEGIN) : -len(_END)].split()), validate=True)
    except binascii.Error:
        raise KeysError("its PEM is damaged: not base64") from None
    for prefix, (algorithm, size) in _FORMS.items():
        if der.startswith(prefix) and len(der) == len(prefix) + size:
            raw = der[len(prefix) :]
            if algorithm == ED25519 and raw[:-1] + bytes((raw[-1] & 0x7F,)) in _SMALL_ORDER:
                raise KeysError("it is a point of small order: anybody could sign with it")
            return PublicKey(algorithm, sha256(der).digest(), raw)
    raise KeysError("it is neither an Ed25519 key nor a P-256 key with an uncompressed point")


def is_valid(key: PublicKey, kind: str, digest: bytes, signature: Signature) -> bool:
    """Whether the key made the signature. Raises KeysError without `cryptography`, and for an invalid key."""
    if signature.algorithm != key.algorithm:
        return False
    text = message(kind, digest, signature.parts)
    return (_ed25519_valid if key.algorithm == ED25519 else _p256_valid)(key, text, signature.value)


def _ed25519_valid(key: PublicKey, text: bytes, value: bytes) -> bool:
    loaded, wrong = _ed25519_key(key.raw)
    try:
        loaded.verify(value, text)
    except wrong:
        return False
    return True


@lru_cache(16)
def _ed25519_key(raw: bytes) -> tuple[Ed25519PublicKey, type[Exception]]:
    """The key, and the exception that its `verify` raises for a wrong signature."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise _missing(error) from None
    return Ed25519PublicKey.from_public_bytes(raw), InvalidSignature


def _p256_valid(key: PublicKey, text: bytes, value: bytes) -> bool:
    r, s = int.from_bytes(value[:32], "big"), int.from_bytes(value[32:], "big")
    if not 0 < r < _ORDER or not 0 < s <= _ORDER // 2:
        return False
    loaded, scheme, wrong = _p256_key(key.raw)
    try:
        loaded.verify(_der(r, s), text, scheme)
    except wrong:
        return False
    return True


@lru_cache(16)
def _p256_key(raw: bytes) -> tuple[EllipticCurvePublicKey, ec.ECDSA, type[Exception]]:
    """The key, its signature algorithm, and the exception that its `verify` raises for a wrong signature."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.hashes import SHA256
    except ImportError as error:
        raise _missing(error) from None
    try:
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\4" + raw)
    except ValueError:
        raise KeysError("it is not a point of the curve P-256") from None
    return public, ec.ECDSA(SHA256()), InvalidSignature


def _der(*numbers: int) -> bytes:
    """The two numbers of a P-256 signature in OpenSSL's form: a SEQUENCE of INTEGERs, less than 128 bytes."""
    rows = [number.to_bytes(number.bit_length() // 8 + 1, "big") for number in numbers]
    body = b"".join([bytes((2, len(row))) + row for row in rows])
    return bytes((0x30, len(body))) + body


def sign(key: PrivateKey, kind: str, digest: bytes, parts: tuple[Part, ...] = ()) -> Signature:
    """Signs a file of a kind by its digest, and the parts that the digest does not cover."""
    text = message(kind, digest, parts)
    value = _signed(key, text)
    made = Signature(key.public.algorithm, key.public.id, parts, value)
    if not is_valid(key.public, kind, digest, made):
        raise KeysError("the key made a signature that does not verify")
    return made


def _signed(key: PrivateKey, text: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    if not isinstance(key.key, ec.EllipticCurvePrivateKey):
        return key.key.sign(text)
    r, s = decode_dss_signature(key.key.sign(text, _ecdsa()))
    return r.to_bytes(32, "big") + min(s, _ORDER - s).to_bytes(32, "big")


def _ecdsa() -> ec.ECDSA:
    """Deterministic signatures (RFC 6979) if the installed OpenSSL supports them, otherwise random ones."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        return ec.ECDSA(SHA256(), deterministic_signing=True)
    except UnsupportedAlgorithm:
        return ec.ECDSA(SHA256())


def generate(type: str) -> PrivateKey:
    """Generates a key of a type in `TYPES`."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise _missing(error) from None
    key = Ed25519PrivateKey.generate() if TYPES[type] == ED25519 else ec.generate_private_key(ec.SECP256R1())
    return PrivateKey(read_public(_public_pem(key)), key)


def read_private(pem: bytes, password: bytes | None = None) -> PrivateKey:
    """Parses a private key in PEM. Raises KeysError for another kind of key, and for a missing or wrong password."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise _missing(error) from None
    try:
        key = load_pem_private_key(pem, password)
    except TypeError:
        text = "it has a password: --password" if password is None else "it has no password, but one was given"
        raise KeysError(text) from None
    except (ValueError, UnsupportedAlgorithm):
        other = " or the password is wrong" if password is not None else ""
        raise KeysError(f"it is not a private key in PEM{other}") from None
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return PrivateKey(read_public(_public_pem(key)), key)
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        return PrivateKey(read_public(_public_pem(key)), key)
    raise KeysError("it is neither an Ed25519 nor a P-256 key")


def private_pem(key: PrivateKey, password: bytes | None = None) -> bytes:
    """The key as PKCS#8, encrypted if a password is given."""
    from cryptography.hazmat.primitives import serialization

    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password)
    form = serialization.PrivateFormat.PKCS8
    return key.key.private_bytes(serialization.Encoding.PEM, form, encryption)


def public_pem(key: PrivateKey) -> bytes:
    return _public_pem(key.key)


def _public_pem(key: Ed25519PrivateKey | EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def _missing(error: ImportError) -> KeysError:
    return KeysError(f"signatures need the package cryptography: {install('sign')} ({error})")
