"""Keys files and the policy of a module: each reason for which signatures do not suffice is refused by name."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")

from orchestrion.schema import files
from orchestrion.schema.errors import KeysError, Untrusted
from orchestrion.schema.trust import keys, signers
from orchestrion.schema.trust import policy as trust_policy
from orchestrion.schema.trust.policy import SCOPES, TrustedKey, TrustPolicy, named_files, parse
from orchestrion.schema.trust.signature_set import Part, Signature, SignatureSet, encode
from orchestrion.schema.trust.signers import Subject

DIGEST = bytes(range(32))
CODE, BOTH, ALL = frozenset(["code"]), frozenset(["code", "weights"]), frozenset(SCOPES)
DAY = 86400.0
#: 2026-01-01, UTC
NEW_YEAR = 1767225600.0


@pytest.fixture(scope="module")
def pair() -> list[keys.PrivateKey]:
    return [keys.generate("ed25519"), keys.generate("p256")]


def text_of(key: keys.PrivateKey, more: str = "", name: str = "publisher") -> str:
    """The table of one key."""
    return f'[[key]]\nname = "{name}"\npublic = """{keys.public_pem(key).decode()}"""\n{more}\n'


def policy_of(key: keys.PrivateKey, more: str = "", before: str = "", name: str = "publisher") -> TrustPolicy:
    return parse((before + "\n" + text_of(key, more, name)).encode())


def signed(subject: Subject, *by: keys.PrivateKey, parts: tuple[Part, ...] | None = None) -> bytes:
    covered = subject.parts if parts is None else parts
    rows = [keys.sign(key, subject.kind, subject.digest, covered) for key in by]
    rows.sort(key=lambda row: row.key_id)
    return encode(SignatureSet(subject.kind, subject.digest, tuple(rows)))


SUBJECT = Subject("module", DIGEST, BOTH, "mobilenet", 7)


@pytest.mark.parametrize("number", [0, 1])
def test_a_signed_module_is_trusted(pair: list[keys.PrivateKey], number: int) -> None:
    trust = policy_of(pair[number]).check(SUBJECT, [signed(SUBJECT, pair[number])], NEW_YEAR)
    assert trust.signers == ("publisher",) and trust.scopes == BOTH and not trust.refusal


def refusal(policy: TrustPolicy, subject: Subject, sets: list[bytes], now: float = NEW_YEAR) -> str:
    with pytest.raises(Untrusted) as refused:
        policy.check(subject, sets, now)
    text = str(refused.value)
    assert text.startswith(f"{subject.kind} 0001020304050607 is not trusted: ") and "\n" not in text
    return text.partition(": ")[2]


def test_why_signatures_do_not_count(pair: list[keys.PrivateKey]) -> None:
    """One module for each reason. The same module passes where the reason does not hold."""
    one, two = pair
    good = signed(SUBJECT, one)
    nobody = "no accepted signature for code and weights"
    assert refusal(policy_of(one), SUBJECT, []) == f"it is not signed; {nobody}"
    empty = encode(SignatureSet("module", DIGEST, ()))
    assert refusal(policy_of(one), SUBJECT, [empty]) == f"it is not signed; {nobody}"
    unknown = f"key {one.public.short_id} is not in the keys file; {nobody}"
    assert refusal(policy_of(two), SUBJECT, [good]) == unknown
    other = SUBJECT._replace(digest=DIGEST[:-1] + b"\0")
    of_other = keys.sign(one, "module", other.digest)
    wrong = encode(SignatureSet("module", DIGEST, (of_other,)))
    assert refusal(policy_of(one), SUBJECT, [wrong]) == f"publisher: its signature is wrong; {nobody}"
    text = f"it has the signatures of module 0001020304050607; {nobody}"
    assert refusal(policy_of(one), SUBJECT, [signed(other, one)]) == text
    of_params = signed(SUBJECT._replace(kind="params"), one)
    assert refusal(policy_of(one), SUBJECT, [of_params]).startswith("it has the signatures of params 00010203")
    assert "signature set: damaged" in refusal(policy_of(one), SUBJECT, [good[:-1] + bytes([good[-1] ^ 1])])
    revoked = policy_of(one, "revoked = true")
    assert refusal(revoked, SUBJECT, [good]) == f"publisher: the key is revoked; {nobody}"
    policy_of(one, "revoked = false").check(SUBJECT, [good], NEW_YEAR)


@pytest.mark.parametrize(
    ("validity", "first", "end"),
    [
        ("not-before = 2026-01-01\nnot-after = 2026-01-01", NEW_YEAR, NEW_YEAR + DAY),
        ("not-before = 2026-01-01T12:00:00Z\nnot-after = 2026-01-01T13:00:00Z", NEW_YEAR + DAY / 2, NEW_YEAR + 46800),
        ("not-before = 2026-01-01T12:00:00\nnot-after = 2026-01-02T00:00:00", NEW_YEAR + DAY / 2, NEW_YEAR + DAY),
        ("not-before = 2026-01-01T01:00:00+02:00\nnot-after = 2026-01-02", NEW_YEAR - 3600, NEW_YEAR + 2 * DAY),
    ],
)
def test_validity(pair: list[keys.PrivateKey], validity: str, first: float, end: float) -> None:
    policy, sets = policy_of(pair[0], validity), [signed(SUBJECT, pair[0])]
    for now in (first, end - 1):
        policy.check(SUBJECT, sets, now)
    assert "publisher: the key is not valid before 202" in refusal(policy, SUBJECT, sets, first - 1)
    assert "publisher: the key expired at 2026-01-0" in refusal(policy, SUBJECT, sets, end)


def test_the_clock_is_read_at_each_check(pair: list[keys.PrivateKey], monkeypatch: pytest.MonkeyPatch) -> None:
    policy, sets = policy_of(pair[0], "not-after = 2026-01-01T00:00:00Z"), [signed(SUBJECT, pair[0])]
    monkeypatch.setattr(signers.time, "time", lambda: NEW_YEAR - 1)
    policy.check(SUBJECT, sets)
    monkeypatch.setattr(signers.time, "time", lambda: NEW_YEAR)
    with pytest.raises(Untrusted, match="expired"):
        policy.check(SUBJECT, sets)


def test_what_is_remembered_holds_as_long_as_it_is_true(pair: list[keys.PrivateKey]) -> None:
    """A key that becomes valid or expires between two checks of the same file takes effect at once."""
    later = text_of(pair[1], 'scopes = ["native"]\nnot-before = 2026-01-01\nnot-after = 2026-01-01', "later")
    policy = parse((text_of(pair[0], "not-after = 2026-12-31") + later).encode())
    sets = [signed(SUBJECT, *pair)]
    for now, names in ((-1, 1), (-1, 1), (0, 2), (0, 2), (DAY, 1), (DAY, 1), (0, 2), (-1, 1)):
        trust = policy.check(SUBJECT, sets, NEW_YEAR + now)
        assert len(trust.signers) == names and ("native" in trust.scopes) == (names == 2)
    assert "publisher: the key expired" in refusal(policy, SUBJECT, sets, NEW_YEAR + 365 * DAY)
    unknown = policy_of(pair[0], "not-after = 2031-01-01")
    for _ in range(2):
        assert unknown.check(SUBJECT, sets, NEW_YEAR).signers == ("publisher",)
    assert len(unknown.remembered) == 1


def test_what_is_remembered_is_bounded(pair: list[keys.PrivateKey], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signers, "_MAX_CACHED", 3)
    policy = policy_of(pair[0], "not-after = 2032-01-01")
    for number in range(10):
        subject = SUBJECT._replace(digest=bytes([number]) * 32)
        policy.check(subject, [signed(subject, pair[0])], NEW_YEAR)
        assert len(policy.remembered) <= 3


def test_sets_that_anybody_added_are_not_kept(pair: list[keys.PrivateKey]) -> None:
    """A signed module stays signed whatever else is in its signature set; caching those sets would fill the memory."""
    policy, good = policy_of(pair[0], "not-after = 2033-01-01"), signed(SUBJECT, pair[0])
    for number in range(4):
        sets = [*[bytes([number, place]) * 8192 for place in range(8)], good]
        assert policy.check(SUBJECT, sets, NEW_YEAR).signers == ("publisher",)
    assert not policy.remembered
    policy.check(SUBJECT, [b"few", good], NEW_YEAR)
    assert len(policy.remembered) == 1


def test_dates_at_the_ends_of_the_calendar(pair: list[keys.PrivateKey]) -> None:
    more = "not-before = 9999-12-31T23:59:59-23:59"
    assert "not valid before the end of the calendar" in refusal(
        policy_of(pair[0], more), SUBJECT, [signed(SUBJECT, pair[0])]
    )
    more = "not-before = 0001-01-01T00:00:00+23:59\nnot-after = 9999-12-31"
    policy_of(pair[0], more).check(SUBJECT, [signed(SUBJECT, pair[0])], NEW_YEAR)


def test_scopes_of_several_signers(pair: list[keys.PrivateKey]) -> None:
    """Together they must cover all parts of the module."""
    one, two = pair
    coder = text_of(one, 'scopes = ["code"]', "coder")
    trainer = text_of(two, 'scopes = ["weights"]', "trainer")
    policy = parse((coder + trainer).encode())
    assert policy.check(SUBJECT, [signed(SUBJECT, one, two)], NEW_YEAR).scopes == BOTH
    assert policy.check(SUBJECT, [signed(SUBJECT, one), signed(SUBJECT, two)], NEW_YEAR).scopes == BOTH
    assert policy.check(SUBJECT._replace(needs=CODE), [signed(SUBJECT, one)], NEW_YEAR).scopes == CODE
    assert refusal(policy, SUBJECT, [signed(SUBJECT, one)]) == "no accepted signature for weights"
    assert refusal(policy, SUBJECT, [signed(SUBJECT, two)]) == "no accepted signature for code"
    revoked = parse((coder + trainer + "revoked = true").encode())
    text = "trainer: the key is revoked; no accepted signature for weights"
    assert refusal(revoked, SUBJECT, [signed(SUBJECT, one, two)]) == text


def test_native_code_is_not_in_the_default(pair: list[keys.PrivateKey]) -> None:
    subject = SUBJECT._replace(needs=ALL)
    sets = [signed(subject, pair[0])]
    assert refusal(policy_of(pair[0]), subject, sets) == "no accepted signature for native code"
    policy_of(pair[0], 'scopes = ["code", "weights", "native"]').check(subject, sets, NEW_YEAR)


def test_models(pair: list[keys.PrivateKey]) -> None:
    policy, sets = policy_of(pair[0], 'models = ["mobilenet", "resnet"]'), [signed(SUBJECT, pair[0])]
    policy.check(SUBJECT, sets, NEW_YEAR)
    assert "publisher: the key may not sign model 'other'" in refusal(policy, SUBJECT._replace(model="other"), sets)
    assert "may not sign a module without model.name" in refusal(policy, SUBJECT._replace(model=None), sets)
    long = refusal(policy, SUBJECT._replace(model="x\n" * 10000), sets)
    assert len(long) < 400


def test_no_rollback(pair: list[keys.PrivateKey]) -> None:
    policy = policy_of(pair[0], "", "[minimum-version]\nmobilenet = 7")
    sets = [signed(SUBJECT, pair[0])]
    policy.check(SUBJECT, sets, NEW_YEAR)
    policy.check(SUBJECT._replace(version=8), sets, NEW_YEAR)
    policy.check(SUBJECT._replace(model="other", version=None), sets, NEW_YEAR)
    policy.check(
        SUBJECT._replace(kind="params", model=None), [signed(SUBJECT._replace(kind="params"), pair[0])], NEW_YEAR
    )
    text = "model 'mobilenet' has version 6, the keys file demands 7"
    assert refusal(policy, SUBJECT._replace(version=6), sets) == text
    text = "model 'mobilenet' has no model.version, the keys file demands 7"
    assert refusal(policy, SUBJECT._replace(version=None), sets) == text
    text = "it has no model.name, and the keys file demands versions"
    assert refusal(policy, SUBJECT._replace(model=None, version=9), sets) == text


def test_parts(pair: list[keys.PrivateKey]) -> None:
    """Each part of the file is covered by a trusted signer, and each signed part is in the file."""
    one, two = pair
    notes, card = Part("notes", b"\1" * 32), Part("card", b"\2" * 32)
    policy = parse((text_of(one, name="one") + text_of(two, name="two")).encode())
    whole = SUBJECT._replace(parts=(card, notes))
    policy.check(whole, [signed(whole, one)], NEW_YEAR)
    first, second = signed(SUBJECT, one, parts=(notes,)), signed(SUBJECT, two, parts=(card,))
    policy.check(whole, [first, second], NEW_YEAR)
    assert refusal(policy, whole, [first]) == "no accepted signature covers card"
    assert refusal(policy, whole, [signed(SUBJECT, one)]) == "no accepted signature covers card, notes"
    changed = whole._replace(parts=(card, Part("notes", b"\3" * 32)))
    assert refusal(policy, changed, [signed(whole, one)]).startswith("one: it signed notes, which is not in this file")
    assert refusal(policy, SUBJECT, [signed(whole, one)]).startswith("one: it signed card, notes, which is not in")


def test_a_set_that_nobody_can_read_spoils_no_other(pair: list[keys.PrivateKey]) -> None:
    good = signed(SUBJECT, pair[0])
    policy_of(pair[0]).check(SUBJECT, [b"ORSG\2\0\0\0" + bytes(60), good], NEW_YEAR)
    policy_of(pair[0]).check(SUBJECT, [good[:-1], good], NEW_YEAR)


def test_what_checking_costs_is_bounded(pair: list[keys.PrivateKey]) -> None:
    good = signed(SUBJECT, pair[0])
    many = [encode(SignatureSet("module", DIGEST, ()))] * signers.MAX_SETS
    text = f"more than {signers.MAX_SETS} signature sets"
    assert text in refusal(policy_of(pair[0]), SUBJECT, [*many, good])
    assert "signature set: 1048577 bytes, the limit is 1048576" in refusal(
        policy_of(pair[0]), SUBJECT, [bytes(1 << 24)]
    )


def test_a_refusal_is_no_longer_than_it_must_be(pair: list[keys.PrivateKey]) -> None:
    """A file may have any number of sections and of signatures, so the message is limited."""
    parts = tuple(Part(f"s{number}", bytes(32)) for number in range(10_000))
    rows = tuple(Signature(1, bytes([number]) * 32, (), bytes(64)) for number in range(64))
    text = refusal(policy_of(pair[0]), SUBJECT._replace(parts=parts), [encode(SignatureSet("module", DIGEST, rows))])
    assert "s0, s1, s2, " in text and text.endswith(", 9980 more") and "; 44 more; no accepted signature" in text
    assert len(text) < 2000


def test_modes(pair: list[keys.PrivateKey]) -> None:
    for before in ("", "[policy]", '[policy]\nmode = "require"'):
        assert policy_of(pair[0], before=before).mode == "require"
    warn = policy_of(pair[0], before='[policy]\nmode = "warn"')
    trust = warn.check(SUBJECT, [], NEW_YEAR)
    assert trust.signers == () and "it is not signed" in trust.refusal
    assert policy_of(pair[0], before='[policy]\nmode = "off"').mode == "off"


def test_an_unknown_algorithm_does_not_count(pair: list[keys.PrivateKey]) -> None:
    row = keys.sign(pair[0], "module", DIGEST)._replace(algorithm=9)
    text = refusal(policy_of(pair[0]), SUBJECT, [encode(SignatureSet("module", DIGEST, (row,)))])
    assert "publisher: its signature is of algorithm 9, which this version does not know" in text


REFUSED: dict[str, tuple[str, str]] = {
    "not TOML": ("[policy", "not TOML: "),
    "a nesting without end": ("x = " + "[" * 100_000, "not TOML: "),
    "a number without end": ("x = " + "1" * 10_000, "not TOML: "),
    "an unknown table": ("[polcy]", "unknown 'polcy'; there are policy, key, minimum-version"),
    "an unknown setting": ('[policy]\nmodes = "warn"', r"unknown 'modes' in \[policy\]; there are mode"),
    "an unknown mode": ('[policy]\nmode = "requires"', "mode 'requires'; there are require, warn, off"),
    "a mode of another type": ("[policy]\nmode = 1", "mode is not a text"),
    "a policy that is no table": ("policy = 1", "policy is not a table"),
    "a key that is no list": ("[key]", "key is not a list of tables"),
    "keys that are no tables": ("key = [1]", "key is not a list of tables"),
    "versions that are no table": ("minimum-version = 7", "minimum-version is not a table"),
    "a version as text": ('[minimum-version]\na = "7"', "minimum-version of 'a' is not a whole number"),
    "a version below zero": ("[minimum-version]\na = -1", "minimum-version of 'a' is not a whole number"),
    "a version beyond 63 bits": (f"[minimum-version]\na = {2**63}", "minimum-version of 'a' is not a whole number"),
    "a version that is true": ("[minimum-version]\na = true", "minimum-version of 'a' is not a whole number"),
    "no key in a key": ('[[key]]\nname = "a"', 'either public = "..." or file = "..."'),
    "a key without a name": ('[[key]]\npublic = "x"', "name is not a text"),
    "a name of two lines": ('[[key]]\nname = "a\\nb"\npublic = "x"', "name is not a text of one line"),
    "a key that is none": ('[[key]]\nname = "a"\npublic = "x"', r"key\[0\]: 'a': it is not one public key in PEM"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_keys_files_that_are_refused(name: str) -> None:
    text, reason = REFUSED[name]
    with pytest.raises(KeysError, match=reason):
        parse(text.encode())


FIELDS = {
    "revoke = true": "unknown 'revoke'; there are ",
    "not_after = 2026-01-01": "unknown 'not_after'; there are ",
    "revoked = 1": "revoked is neither true nor false",
    'revoked = "true"': "revoked is neither true nor false",
    "not-after = 7": "not-after is neither a date nor a date with a time",
    "not-before = 07:32:00": "not-before is neither a date nor a date with a time",
    'not-before = "2026-01-01"': "not-before is neither a date nor a date with a time",
    'scopes = "code"': "scopes is not a list of texts",
    "scopes = []": "scopes is not a list of texts",
    'scopes = ["kode"]': "unknown scope 'kode'; there are code, weights, native",
    "scopes = [1]": "scopes is not a text",
    'models = "mobilenet"': "models is not a list of texts",
    "models = []": "models is not a list of texts",
    'file = "x.pem"': 'either public = "..." or file = "..."',
}


@pytest.mark.parametrize("field", FIELDS)
def test_fields_that_are_refused(field: str, pair: list[keys.PrivateKey]) -> None:
    with pytest.raises(KeysError, match=FIELDS[field]):
        policy_of(pair[0], field)


def test_the_same_key_or_name_twice(pair: list[keys.PrivateKey]) -> None:
    one, two = pair
    with pytest.raises(KeysError, match="keys 'a' and 'b' are the same key"):
        parse((text_of(one, name="a") + text_of(one, "revoked = true", name="b")).encode())
    with pytest.raises(KeysError, match="two keys have the same name"):
        parse((text_of(one, name="a") + text_of(two, name="a")).encode())
    with pytest.raises(KeysError, match="scopes"):
        TrustPolicy((TrustedKey("a", one.public, frozenset(["kode"])),))


def test_keys_in_files_of_their_own(tmp_path: Path, pair: list[keys.PrivateKey]) -> None:
    """They are read again whenever the keys file is read."""
    path, public = tmp_path / "keys.toml", tmp_path / "sub" / "a.pub.pem"
    public.parent.mkdir()
    public.write_bytes(keys.public_pem(pair[0]))
    path.write_text('[[key]]\nname = "a"\nfile = "sub/a.pub.pem"\n')
    assert named_files(path.read_bytes()) == ("sub/a.pub.pem",)
    assert [row.key for row in TrustPolicy.read(path).keys] == [pair[0].public]
    public.write_bytes(keys.public_pem(pair[1]))
    assert [row.key for row in TrustPolicy.read(path).keys] == [pair[1].public]
    public.write_bytes(keys.private_pem(pair[1]))
    with pytest.raises(KeysError, match=r"keys.toml: key\[0\]: 'a': it holds a private key"):
        TrustPolicy.read(path)
    public.unlink()
    with pytest.raises(OSError, match="a.pub.pem"):
        TrustPolicy.read(path)


def test_a_keys_file_is_read_when_it_may_have_changed(
    tmp_path: Path, pair: list[keys.PrivateKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file changed in the last seconds is always read: a coarse clock may give two writes the same time."""
    read: list[str] = []
    real = trust_policy.read_whole

    def counting(name: str) -> bytes:
        read.append(name)
        return real(name)

    monkeypatch.setattr(trust_policy, "read_whole", counting)
    path = tmp_path / "keys.toml"
    path.write_text(text_of(pair[0]))
    for _ in range(3):
        TrustPolicy.read(path)
    assert len(read) == 3
    soon = time.time_ns() + 10**10
    monkeypatch.setattr(files.time, "time_ns", lambda: soon)
    for _ in range(3):
        TrustPolicy.read(path)
    assert len(read) == 4
    path.write_text(text_of(pair[0], "revoked = true"))
    assert TrustPolicy.read(path).keys[0].revoked and TrustPolicy.read(path).keys[0].revoked and len(read) == 5
    other = tmp_path / "other.toml"
    other.write_text(text_of(pair[1]))
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)
    assert TrustPolicy.read(path).keys[0].key == pair[1].public


def test_a_changed_keys_file_is_read_again(tmp_path: Path, pair: list[keys.PrivateKey]) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text_of(pair[0]))
    first = TrustPolicy.read(path)
    assert TrustPolicy.read(path) is first
    path.write_text(text_of(pair[0], "revoked = true"))
    assert TrustPolicy.read(path).keys[0].revoked
    path.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(KeysError, match="1048577 bytes, the limit of a keys file is 1048576"):
        TrustPolicy.read(path)


def test_signatures_are_verified_once(pair: list[keys.PrivateKey], monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are cached by key and by signed bytes, so a change of either is verified again."""
    count: list[Any] = []
    real: Callable[..., bool] = signers.is_valid

    def counting(*arguments: Any) -> bool:
        count.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(signers, "_is_valid", signers.lru_cache(8)(counting))
    policy, good = policy_of(pair[0]), signed(SUBJECT, pair[0])
    for _ in range(3):
        policy.check(SUBJECT, [good], NEW_YEAR)
    policy_of(pair[0], "not-after = 2027-01-01").check(SUBJECT, [good], NEW_YEAR)
    assert len(count) == 1
    other = SUBJECT._replace(digest=bytes(32))
    with pytest.raises(Untrusted):
        policy.check(SUBJECT, [encode(SignatureSet("module", DIGEST, (keys.sign(pair[0], "module", bytes(32)),)))])
    policy.check(other, [signed(other, pair[0])], NEW_YEAR)
    assert len(count) == 3
