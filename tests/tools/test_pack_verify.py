"""vm-pack verify: a signed file passes, a file with any changed byte fails, and each reason is one line."""

import random
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from everyday import of_the_day

pytest.importorskip("cryptography")

from packing import Pack, refused
from signed_modules import code_module, detached, keys_file, rebuilt, signed

from orchestrion.schema.assembler import assemble
from orchestrion.schema.container import Attachment, Section, open_bytes, reseal
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.trust import keys, signature_set
from orchestrion.schema.writer import write
from orchestrion.tools.cli import InputError
from orchestrion.tools.packing import verify

MIB = 1 << 20
GOLDEN = Path(__file__).parents[1] / "golden"
#: all kinds of contents in few bytes: code, a constant, a custom segment, a source map, attributes
SMALL = """attribute "model.name" = "small"
attribute "licence" = hex "00ff"
custom "card" = hex "0102030405"
export @f
program @p profile "reference" {
  constant @w : tensor<5xi8> = hex "0102030405"
  func @f () -> i32 { %i0 = i32.const 7 loc "a.py:1" return (%i0) }
  entry @f
}"""


@pytest.fixture(scope="module")
def key() -> keys.PrivateKey:
    return keys.generate("ed25519")


@pytest.fixture
def options(key: keys.PrivateKey, tmp_path: Path) -> Namespace:
    """The command line `verify s.fb --key=a.pub.pem`."""
    (tmp_path / "a.pub.pem").write_bytes(keys.public_pem(key))
    return Namespace(file=str(tmp_path / "s.fb"), key=[str(tmp_path / "a.pub.pem")], policy=None, detached=None)


def found(options: Namespace) -> bool:
    """Whether verify fails with an error that the command turns into one line."""
    try:
        verify.run(options)
    except (ModuleError, InputError) as error:
        assert "\n" not in str(error)
        return True
    return False


def test_every_byte_of_a_small_module(key: keys.PrivateKey, options: Namespace) -> None:
    data = signed(rebuilt(write(assemble(SMALL)), [Attachment("NOTE", b"text")], [Section("notes", b"more")]), key)
    path = Path(options.file)
    path.write_bytes(data)
    assert not found(options)
    missed = []
    for at in range(len(data)):
        for change in (1, 0x80):
            path.write_bytes(data[:at] + bytes([data[at] ^ change]) + data[at + 1 :])
            if not found(options):
                missed.append((at, change))
    assert not missed


def test_every_truncation_and_what_is_appended(key: keys.PrivateKey, options: Namespace) -> None:
    data = signed(rebuilt(code_module(), sections=[Section("notes", b"more")]), key)
    path = Path(options.file)
    for size in range(len(data)):
        path.write_bytes(data[:size])
        assert found(options), size
    for more in (b"\0", b"x", bytes(64), bytes(4096)):
        path.write_bytes(data + more)
        assert found(options), more


def test_random_bytes_of_a_large_module(key: keys.PrivateKey, options: Namespace, pytestconfig: pytest.Config) -> None:
    """Constants with and without digests of pieces in one file, which is changed in place."""
    rows = assemble(SMALL)
    program = rows.programs[0]
    choose = np.random.default_rng(5)
    constants = []
    for number, size in enumerate((4 * MIB + 3, 70_000)):
        data = choose.integers(0, 255, size, np.uint8)
        constants.append(replace(program.constants[0], name=f"w{number}", data=data, dims=(size,)))
    data = signed(write(replace(rows, programs=[replace(program, constants=constants)])), key)
    path = Path(options.file)
    path.write_bytes(data)
    assert not found(options)
    positions = random.Random(5)
    with path.open("r+b", buffering=0) as file:
        for _ in of_the_day(pytestconfig, range(2000), 5):
            at = positions.randrange(len(data))
            file.seek(at)
            file.write(bytes([data[at] ^ positions.randrange(1, 256)]))
            assert found(options), at
            file.seek(at)
            file.write(data[at : at + 1])
    assert not found(options)


def test_damage_behind_checksums_that_fit(key: keys.PrivateKey, options: Namespace) -> None:
    """Changing a byte of the root and updating its checksum makes another module, whose signature is wrong."""
    data = signed(write(assemble(SMALL)), key)
    path = Path(options.file)
    place = data.index(b"small")
    path.write_bytes(reseal(data[:place] + b"SMALL" + data[place + 5 :]))
    with pytest.raises(ModuleError, match="is not trusted: it has the signatures of module"):
        verify.run(options)


@pytest.fixture
def files(key: keys.PrivateKey, tmp_path: Path) -> keys.PrivateKey:
    """`m.fb`, signed with `a.pem` as `s.fb` and `s.sig`, and another key, `b.pem`."""
    other = keys.generate("p256")
    (tmp_path / "m.fb").write_bytes(code_module())
    (tmp_path / "s.fb").write_bytes(signed(code_module(), key))
    (tmp_path / "s.sig").write_bytes(detached(code_module(), key))
    for name, pair in (("a", key), ("b", other)):
        (tmp_path / f"{name}.pem").write_bytes(keys.private_pem(pair))
        (tmp_path / f"{name}.pub.pem").write_bytes(keys.public_pem(pair))
    return other


def test_what_passes(files: keys.PrivateKey, key: keys.PrivateKey, pack: Pack, tmp_path: Path) -> None:
    keys_file(tmp_path / "keys.toml", key)
    keys_file(tmp_path / "warn.toml", key, before='[policy]\nmode = "warn"')
    for arguments, name in (
        (("s.fb", "--key=a.pub.pem"), "a.pub.pem"),
        (("m.fb", "--key=a.pub.pem", "--detached=s.sig"), "a.pub.pem"),
        (("s.fb", "--policy=keys.toml"), "publisher"),
        (("s.fb", "--policy=warn.toml"), "publisher"),
    ):
        done = pack("verify", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"{arguments[0]}: every byte is intact, signed by {name}\n"


def test_what_is_refused(files: keys.PrivateKey, key: keys.PrivateKey, pack: Pack, tmp_path: Path) -> None:
    """Status 1 and one line for each kind of failure."""
    no_signer = "is not trusted: it is not signed; no accepted signature for code"
    refused(pack("verify", "m.fb", "--key=a.pub.pem"), 1, no_signer)
    unknown = f"key {key.public.short_id} is not in the keys file"
    refused(pack("verify", "s.fb", "--key=b.pub.pem"), 1, unknown)
    refused(pack("verify", "s.fb", "--key=a.pub.pem", "--key=b.pub.pem"), 1, "s.fb is not signed by b.pub.pem")
    for more, before, reason in (
        ("revoked = true", "", "publisher: the key is revoked"),
        ("not-after = 2020-01-01", "", "publisher: the key expired at 2020-01-02 00:00 UTC"),
        ("not-before = 2999-01-01", "", "publisher: the key is not valid before 2999-01-01 00:00 UTC"),
        ('scopes = ["weights"]', "", "no accepted signature for code"),
        ('models = ["m"]', "", "publisher: the key may not sign a module without model.name"),
        ("", "[minimum-version]\nm = 1", "it has no model.name, and the keys file demands versions"),
        ("revoked = true", '[policy]\nmode = "off"', "publisher: the key is revoked"),
        ("revokd = true", "", "keys.toml: key[0]: unknown 'revokd'"),
    ):
        keys_file(tmp_path / "keys.toml", key, more, before)
        refused(pack("verify", "s.fb", "--policy=keys.toml"), 1, reason)
    refused(pack("verify", "s.fb", "--policy=nowhere.toml"), 1, "nowhere.toml")
    refused(pack("verify", "s.fb", "--key=a.pem"), 1, "a.pem: it holds a private key, which must not be given away")
    refused(pack("verify", "nowhere.fb", "--key=a.pub.pem"), 1, "nowhere.fb")
    refused(pack("verify", "s.fb"), 2, "one of the arguments --key --policy is required")
    refused(pack("verify", "s.fb", "--key=a.pub.pem", "--policy=keys.toml"), 2, "not allowed with")


def test_signatures_that_are_wrong(files: keys.PrivateKey, key: keys.PrivateKey, pack: Pack, tmp_path: Path) -> None:
    """A well-formed set whose signature was not made by the key that it names."""
    good = signature_set.decode((tmp_path / "s.sig").read_bytes())
    row = good.signatures[0]
    wrong = row._replace(value=row.value[:-1] + bytes([row.value[-1] ^ 1]))
    (tmp_path / "w.sig").write_bytes(signature_set.encode(good._replace(signatures=(wrong,))))
    refused(pack("verify", "m.fb", "--key=a.pub.pem", "--detached=w.sig"), 1, "a.pub.pem: its signature is wrong")
    as_other = row._replace(key_id=files.public.id)
    (tmp_path / "w.sig").write_bytes(signature_set.encode(good._replace(signatures=(as_other,))))
    refused(pack("verify", "m.fb", "--key=b.pub.pem", "--detached=w.sig"), 1, "b.pub.pem: its signature is wrong")
    (tmp_path / "w.sig").write_bytes(b"ORSG")
    refused(pack("verify", "m.fb", "--key=a.pub.pem", "--detached=w.sig"), 1, "signature set: 4 bytes")


def test_unsigned_parts(files: keys.PrivateKey, key: keys.PrivateKey, pack: Pack, tmp_path: Path) -> None:
    attachments = open_bytes((tmp_path / "s.fb").read_bytes()).attachments
    (tmp_path / "s.fb").write_bytes(rebuilt(code_module(), attachments, [Section("notes", b"more")]))
    refused(pack("verify", "s.fb", "--key=a.pub.pem"), 1, "no accepted signature covers notes")


def test_other_files(files: keys.PrivateKey, key: keys.PrivateKey, pack: Pack, tmp_path: Path) -> None:
    """A safetensors file; every byte of it counts."""
    data = bytes(range(256))
    path = tmp_path / "w.safetensors"
    path.write_bytes(data)
    refused(pack("verify", "w.safetensors", "--key=a.pub.pem"), 1, "is no module, and there is no w.safetensors.sig")
    assert pack("sign", "w.safetensors", "--key=a.pem", "--detached=w.safetensors.sig").returncode == 0
    assert pack("verify", "w.safetensors", "--key=a.pub.pem").stdout == "w.safetensors: signed by a.pub.pem\n"
    keys_file(tmp_path / "keys.toml", key, 'scopes = ["code"]')
    refused(pack("verify", "w.safetensors", "--policy=keys.toml"), 1, "no accepted signature for weights")
    refused(pack("verify", "w.safetensors", "--key=a.pub.pem", "--detached=s.sig"), 1, "has the signatures of one")
    options = Namespace(file=str(path), key=[str(tmp_path / "a.pub.pem")], policy=None, detached=None)
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :])
        assert found(options), at
