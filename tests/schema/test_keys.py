"""Publishers' keys: which are read, which are refused, and that a signature has only one encoding."""

import base64
import subprocess
import sys
from hashlib import sha256

import pytest

from orchestrion.schema.hints import install

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from orchestrion.schema.errors import KeysError
from orchestrion.schema.trust import keys
from orchestrion.schema.trust.signature_set import P256, Part

DIGEST = bytes(range(32))
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
SPKI, PLAIN = serialization.PublicFormat.SubjectPublicKeyInfo, serialization.NoEncryption()


@pytest.fixture(scope="module", params=keys.TYPES)
def key(request: pytest.FixtureRequest) -> keys.PrivateKey:
    return keys.generate(request.param)


def test_the_public_key_is_that_of_cryptography(key: keys.PrivateKey) -> None:
    public = key.key.public_key()
    der = public.public_bytes(serialization.Encoding.DER, SPKI)
    found = keys.read_public(public.public_bytes(PEM, SPKI))
    assert found == key.public and found.id == sha256(der).digest() and der.endswith(found.raw)


def test_what_is_signed_verifies_and_nothing_else(key: keys.PrivateKey) -> None:
    parts = (Part("LICE", b"\1" * 32),)
    made = keys.sign(key, "module", DIGEST, parts)
    assert keys.is_valid(key.public, "module", DIGEST, made)
    assert not keys.is_valid(key.public, "params", DIGEST, made)
    assert not keys.is_valid(key.public, "module", DIGEST[::-1], made)
    assert not keys.is_valid(key.public, "module", DIGEST, made._replace(parts=()))
    assert not keys.is_valid(key.public, "module", DIGEST, made._replace(algorithm=3 - made.algorithm))
    other = keys.generate("p256" if made.algorithm == P256 else "ed25519")
    assert not keys.is_valid(other.public, "module", DIGEST, made)


def test_every_byte_of_a_signature_counts(key: keys.PrivateKey) -> None:
    made = keys.sign(key, "module", DIGEST)
    for at in range(64):
        for change in (1, 0x80, 0xFF):
            value = bytearray(made.value)
            value[at] ^= change
            assert not keys.is_valid(key.public, "module", DIGEST, made._replace(value=bytes(value)))


def test_the_same_file_gets_the_same_signature(key: keys.PrivateKey) -> None:
    from cryptography.hazmat.backends.openssl import backend

    if key.public.algorithm == P256 and not backend.ecdsa_deterministic_supported():
        pytest.skip("this OpenSSL has no deterministic ECDSA")
    assert keys.sign(key, "module", DIGEST) == keys.sign(key, "module", DIGEST)


def test_p256_has_one_form_of_a_signature() -> None:
    """OpenSSL accepts s and its negative, but exchanging them must not make another valid file."""
    key = keys.generate("p256")
    for number in range(20):
        digest = bytes([number]) * 32
        made = keys.sign(key, "module", digest)
        s = int.from_bytes(made.value[32:], "big")
        assert 0 < s <= ORDER // 2
        for wrong in (ORDER - s, s + ORDER, 0):
            if wrong < 1 << 256:
                value = made.value[:32] + wrong.to_bytes(32, "big")
                assert not keys.is_valid(key.public, "module", digest, made._replace(value=value))
        assert not keys.is_valid(key.public, "module", digest, made._replace(value=bytes(32) + made.value[32:]))


def test_p256_signatures_are_handed_on_as_der() -> None:
    """Numbers of any length, as `cryptography` itself encodes them."""
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    for r in (1, 127, 128, 255, 256, 1 << 247, (1 << 255) - 1, 1 << 255, ORDER - 1):
        for s in (1, 128, ORDER // 2):
            assert keys._der(r, s) == encode_dss_signature(r, s)


def pem(der: bytes) -> bytes:
    return b"-----BEGIN PUBLIC KEY-----\n" + base64.encodebytes(der) + b"-----END PUBLIC KEY-----\n"


def public_pem(private: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed448.Ed448PrivateKey) -> bytes:
    return private.public_key().public_bytes(PEM, SPKI)


def test_the_forms_of_pem() -> None:
    public = keys.public_pem(keys.generate("ed25519"))
    for same in (public.replace(b"\n", b"\r\n"), b"\n  " + public + b"\n\n", public.strip()):
        assert keys.read_public(same) == keys.read_public(public)


def test_public_keys_that_are_refused() -> None:
    good = keys.generate("ed25519")
    public = keys.public_pem(good)
    der = base64.b64decode(public.split(b"\n")[1])
    with pytest.raises(KeysError, match="it holds a private key"):
        keys.read_public(keys.private_pem(good))
    with pytest.raises(KeysError, match="it holds a private key"):
        keys.read_public(public + keys.private_pem(good))
    for text in (b"", b"ssh-ed25519 AAAA", public + public, public[:-6], b"x" + public):
        with pytest.raises(KeysError, match="not one public key in PEM"):
            keys.read_public(text)
    with pytest.raises(KeysError, match="its PEM is damaged"):
        keys.read_public(public.replace(b"MCow", b"MC*w"))
    point = ec.generate_private_key(ec.SECP256R1()).public_key()
    compressed = point.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint)
    short = bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200") + compressed
    others = [public_pem(rsa.generate_private_key(65537, 2048)), public_pem(ec.generate_private_key(ec.SECP384R1()))]
    others += [public_pem(ec.generate_private_key(ec.SECP256K1())), public_pem(ed448.Ed448PrivateKey.generate())]
    for text in (*others, pem(short), pem(der[:-1]), pem(der + b"\0"), pem(b"")):
        with pytest.raises(KeysError, match="neither an Ed25519 key nor a P-256 key"):
            keys.read_public(text)


@pytest.mark.parametrize("sign", [0, 1])
def test_points_of_small_order(sign: int) -> None:
    """Under such a key a forged signature (R the neutral point, s 0) would verify for at least one file in eight."""
    prefix, p = bytes.fromhex("302a300506032b6570032100"), 2**255 - 19
    eighths = ["26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"]
    eighths.append("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
    ys = [0, 1, p - 1, p, p + 1, *[int.from_bytes(bytes.fromhex(text), "little") for text in eighths]]
    for y in ys:
        raw = (y | sign << 255).to_bytes(32, "little")
        with pytest.raises(KeysError, match="small order: anybody could sign"):
            keys.read_public(pem(prefix + raw))


def test_a_point_off_the_curve() -> None:
    key = keys.generate("p256")
    made = keys.sign(key, "module", DIGEST)
    raw = bytearray(key.public.raw)
    raw[-1] ^= 1
    with pytest.raises(KeysError, match="not a point of the curve"):
        keys.is_valid(key.public._replace(raw=bytes(raw)), "module", DIGEST, made)


def test_private_keys(key: keys.PrivateKey) -> None:
    plain, closed = keys.private_pem(key), keys.private_pem(key, b"open sesame")
    assert keys.read_private(plain).public == keys.read_private(closed, b"open sesame").public == key.public
    assert key.key.private_bytes(PEM, PKCS8, PLAIN) == plain and plain != closed
    with pytest.raises(KeysError, match="it has a password"):
        keys.read_private(closed)
    with pytest.raises(KeysError, match="or the password is wrong"):
        keys.read_private(closed, b"open")
    with pytest.raises(KeysError, match="it has no password"):
        keys.read_private(plain, b"open sesame")
    with pytest.raises(KeysError, match="not a private key in PEM"):
        keys.read_private(keys.public_pem(key))


def test_private_keys_of_other_kinds() -> None:
    for other in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())):
        with pytest.raises(KeysError, match="neither an Ed25519 nor a P-256 key"):
            keys.read_private(other.private_bytes(PEM, PKCS8, PLAIN))


def test_no_text_shows_a_private_key(key: keys.PrivateKey) -> None:
    secret = keys.private_pem(key)
    shown = f"{key} {key!r}"
    if isinstance(key.key, Ed25519PrivateKey):
        assert key.key.private_bytes_raw().hex() not in shown
    assert not any(line.decode() in shown for line in secret.split(b"\n")[1:-2])
    with pytest.raises(KeysError) as refused:
        keys.read_public(secret)
    assert not any(line.decode() in str(refused.value) for line in secret.split(b"\n")[1:-2])


def test_public_keys_are_read_without_cryptography(key: keys.PrivateKey) -> None:
    """The error for verifying a signature says what to install."""
    made = keys.sign(key, "module", DIGEST)
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from orchestrion.schema.trust import keys; from orchestrion.schema.trust.signature_set import Signature\n"
        f"key = keys.read_public({keys.public_pem(key)!r}); print(key.id.hex())\n"
        f"try: keys.is_valid(key, 'module', {DIGEST!r}, Signature(*{tuple(made)!r}))\n"
        "except keys.KeysError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(key.public.id.hex())
    assert install("sign") in done.stdout
