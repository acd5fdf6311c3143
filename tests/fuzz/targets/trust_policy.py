"""A keys file is read or KeysError; what it allows, its text says: nothing in it is passed over."""

import random
import tomllib

from fuzzing import check, tokens_mutated

from orchestrion.schema.errors import KeysError
from orchestrion.schema.trust.policy import MODES, SCOPES, named_files, parse
from orchestrion.schema.trust.signature_set import ED25519, Signature, SignatureSet, encode
from orchestrion.schema.trust.signers import Subject, examine

MAX_BYTES = 8192
SECONDS = 2.0
#: Ed25519's base point and P-256's, as public keys
_KEYS = (
    "MCowBQYDK2VwAyEAWGZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmY=",
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==",
)
_PEM = b"-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----" % _KEYS[0].encode()
_FULL = """[policy]
mode = "{mode}"
[[key]]
name = "one"
public = '''-----BEGIN PUBLIC KEY-----
{first}
-----END PUBLIC KEY-----'''
scopes = ["code", "weights", "native"]
not-before = 2026-01-01
not-after = 2027-01-01T12:00:00+02:00
revoked = false
models = ["mobilenet"]
[[key]]
name = "two"
public = "-----BEGIN PUBLIC KEY-----\\n{second}\\n-----END PUBLIC KEY-----"
[minimum-version]
mobilenet = 7
"""
POOL = (
    b"[[key]]", b"[policy]", b"[minimum-version]", b"name", b"public", b"file", b"scopes", b"revoked = true", b"models",
    b"not-after = 2020-01-01", b"not-before = 07:30:00", b"mode = ", b"[", b"{", b"'''", b'"', b"\n", b"9" * 5000,
)  # fmt: skip
SUBJECT = Subject("module", bytes(32), frozenset(SCOPES), "mobilenet", 7)


def seeds():
    for mode in MODES:
        yield _FULL.format(mode=mode, first=_KEYS[0], second=_KEYS[1]).encode()
    yield b""
    yield b'[[key]]\nname = "a"\nfile = "a.pub.pem"\n'
    yield b'[minimum-version]\n"a b" = 3\n'


def mutate(choose: random.Random, data: bytes) -> bytes:
    """Lines left out, doubled, exchanged; values of another line."""
    lines = data.decode(errors="ignore").split("\n")
    if choose.random() < 0.5:
        return "\n".join(tokens_mutated(choose, lines, [line.decode() for line in POOL])).encode()
    at, other = choose.randrange(len(lines)), choose.choice(lines)
    lines[at] = lines[at].partition("=")[0] + "=" + other.partition("=")[2]
    return "\n".join(lines).encode()


def one_input(data: bytes) -> None:
    try:
        files = [b"-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----" % _KEYS[0].encode()] * len(
            named_files(data)
        )
        policy = parse(data, files)
    except KeysError as error:
        check("\n" not in str(error) or "not TOML" in str(error), "an error of several lines")
        return
    said = tomllib.loads(data.decode())
    check(set(said) <= {"policy", "key", "minimum-version"}, "an unknown table was passed over")
    check(policy.mode == said.get("policy", {}).get("mode", "require"), "another mode")
    rows = said.get("key", [])
    check(len(policy.keys) == len(rows) == len(policy.by_id), "another number of keys")
    check(dict(policy.minimum_versions) == said.get("minimum-version", {}), "other versions")
    for key, row in zip(policy.keys, rows, strict=True):
        check(key.revoked == row.get("revoked", False), "a revoked key")
        check(key.scopes == set(row.get("scopes", ("code", "weights"))), "other scopes")
        check((key.not_after is None) == ("not-after" not in row), "a key that does not expire")
        check((key.models is None) == ("models" not in row), "a key for all models")
    signature = Signature(ED25519, next(iter(policy.by_id), bytes(32)), (), bytes(64))
    for now in (-1e12, 0.0, 1.8e9, 1e12):
        trust = examine(policy, SUBJECT, [encode(SignatureSet("module", bytes(32), (signature,)))], now)
        check(trust.refusal and "\n" not in trust.refusal, "trusted, or refused in several lines")
