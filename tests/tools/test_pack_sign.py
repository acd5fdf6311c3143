"""vm-pack sign: signatures in the module and in separate files, by several keys; damaged files are not signed."""

import hashlib
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from packing import Pack, refused
from signed_modules import code_module, rebuilt

from orchestrion import vm
from orchestrion.schema import container
from orchestrion.schema.container import Attachment, Section, open_bytes
from orchestrion.schema.decoder import decode as decode_module
from orchestrion.schema.trust import keys, signature_set
from orchestrion.schema.trust.signature_set import decode, part
from orchestrion.tools import dump


@pytest.fixture
def files(tmp_path: Path) -> tuple[keys.PrivateKey, keys.PrivateKey]:
    """`m.fb`, and the keys `a.pem` and `b.pem` with their public halves."""
    pair = keys.generate("ed25519"), keys.generate("p256")
    for name, key in zip("ab", pair, strict=True):
        (tmp_path / f"{name}.pem").write_bytes(keys.private_pem(key))
        (tmp_path / f"{name}.pub.pem").write_bytes(keys.public_pem(key))
    (tmp_path / "m.fb").write_bytes(code_module())
    return pair


def test_in_the_file_and_beside_it(files: tuple[keys.PrivateKey, ...], pack: Pack, tmp_path: Path) -> None:
    done = pack("sign", "m.fb", "--key=a.pem", "--key=b.pem", "-o", "s.fb", "--detached=s.sig")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    before, after = open_bytes((tmp_path / "m.fb").read_bytes()), open_bytes((tmp_path / "s.fb").read_bytes())
    assert after.digest == before.digest and bytes(after.root) == bytes(before.root)
    (attachment,) = after.attachments
    assert attachment.tag == "SIGN" and bytes(attachment.data) == (tmp_path / "s.sig").read_bytes()
    found = decode(attachment.data)
    assert (found.kind, found.digest) == ("module", before.digest)
    assert {row.key_id for row in found.signatures} == {key.public.id for key in files}
    for row in found.signatures:
        key = next(key for key in files if key.public.id == row.key_id)
        assert keys.is_valid(key.public, "module", before.digest, row) and row.parts == ()
    assert vm.load(tmp_path / "s.fb").f() == 7
    assert list(dump.listing(dump.describe(decode_module(after))))[-1] == (
        f"attachment SIGN: {len(attachment.data)} bytes, by "
        f"{', '.join(row.key_id.hex()[:16] for row in found.signatures)}, not verified"
    )


def test_signers_one_after_the_other(files: tuple[keys.PrivateKey, ...], pack: Pack, tmp_path: Path) -> None:
    """Also in place. Signing again replaces only the signer's own signature."""
    (tmp_path / "s.fb").write_bytes(code_module())
    for key in ("a", "b", "a"):
        assert pack("sign", "s.fb", f"--key={key}.pem", "-o", "s.fb").returncode == 0
        assert pack("sign", "m.fb", f"--key={key}.pem", "--detached=m.sig").returncode == 0
    pack("sign", "m.fb", "--key=b.pem", "--key=a.pem", "-o", "both.fb")
    if keys.sign(files[1], "module", bytes(32)) == keys.sign(files[1], "module", bytes(32)):
        assert (tmp_path / "s.fb").read_bytes() == (tmp_path / "both.fb").read_bytes()
    for data in (open_bytes((tmp_path / "s.fb").read_bytes()).attachments[0].data, (tmp_path / "m.sig").read_bytes()):
        assert len(decode(data).signatures) == 2


def test_other_parts_are_signed_and_stay(files: tuple[keys.PrivateKey, ...], pack: Pack, tmp_path: Path) -> None:
    note, notes = Attachment("NOTE", b"text", 0), Section("notes", b"more text")
    (tmp_path / "m.fb").write_bytes(rebuilt(code_module(), [note], [notes]))
    assert pack("sign", "m.fb", "--key=a.pem", "-o", "s.fb").returncode == 0
    file = open_bytes((tmp_path / "s.fb").read_bytes())
    assert [row.tag for row in file.attachments] == ["NOTE", "SIGN"] and bytes(file.sections[0].data) == b"more text"
    (row,) = decode(file.attachments[1].data).signatures
    assert row.parts == (
        part("attachment", "NOTE", 0, memoryview(b"text")),
        part("section", "notes", 0, memoryview(b"more text")),
    )


def test_a_thinned_module_is_signed(files: tuple[keys.PrivateKey, ...], pack: Pack, tmp_path: Path) -> None:
    whole = Path(__file__).parents[1] / "golden" / "v1.0-simple_mul.fb"
    (tmp_path / "m.fb").write_bytes(rebuilt(whole.read_bytes(), without=[0]))
    assert pack("sign", "m.fb", "--key=a.pem", "-o", "s.fb").returncode == 0
    file = open_bytes((tmp_path / "s.fb").read_bytes())
    assert file.spans[0] == (0, 0) and not file.complete
    done = pack("verify", "s.fb", "--key=a.pub.pem")
    assert f"every byte is intact, 1 of {len(file.spans)} segments taken out, signed by a.pub.pem" in done.stdout


def test_files_that_are_no_modules(files: tuple[keys.PrivateKey, ...], pack: Pack, tmp_path: Path) -> None:
    data = b"any bytes" * 1000
    for name, more, kind in (("w.safetensors", (), "params"), ("x", ("--kind=adapter",), "adapter")):
        (tmp_path / name).write_bytes(data)
        assert pack("sign", name, "--key=a.pem", f"--detached={name}.sig", *more).returncode == 0
        found = decode((tmp_path / f"{name}.sig").read_bytes())
        assert (found.kind, found.digest) == (kind, hashlib.sha256(data).digest())
        assert f"{name}: signed by a.pub.pem" in pack("verify", name, "--key=a.pub.pem").stdout
    refused(pack("sign", "x", "--key=a.pem", "--detached=x.sig"), 2, "its name does not say what it is: --kind=KIND")
    refused(pack("sign", "x", "--key=a.pem", "-o", "y"), 2, "x is no module and can hold no signature: --detached=F")
    refused(pack("sign", "m.fb", "--key=a.pem", "-o", "y", "--kind=delta"), 2, "--kind=delta: m.fb is a module")


def test_passwords(files: tuple[keys.PrivateKey, ...], pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_bytes(keys.private_pem(files[0], b"open sesame"))
    assert pack("sign", "m.fb", "--key=c.pem", "-o", "s.fb", "--password", input="open sesame\n").returncode == 0
    both = pack("sign", "m.fb", "--key=c.pem", "--key=b.pem", "-o", "s.fb", "--password=pass:open sesame")
    assert both.returncode == 0
    refused(pack("sign", "m.fb", "--key=c.pem", "-o", "s.fb"), 1, "c.pem: it has a password: --password")
    wrong = pack("sign", "m.fb", "--key=c.pem", "-o", "s.fb", "--password=pass:guess")
    refused(wrong, 1, "c.pem: it is not a private key in PEM or the password is wrong")
    assert "guess" not in wrong.stderr


def test_refusals_leave_nothing(files: tuple[keys.PrivateKey, ...], pack: Pack, tmp_path: Path) -> None:
    """One line that states the reason, and no file."""
    (tmp_path / "text").write_text("text that is long enough")
    refused(pack("sign", "m.fb", "--key=a.pem"), 2, "sign needs -o S.fb or --detached=F")
    refused(pack("sign", "m.fb", "-o", "s.fb"), 2, "--key")
    refused(pack("sign", "m.fb", "--key=a.pub.pem", "-o", "s.fb"), 1, "a.pub.pem: it is not a private key in PEM")
    refused(pack("sign", "m.fb", "--key=nowhere.pem", "-o", "s.fb"), 1, "nowhere.pem")
    refused(pack("sign", "nowhere.fb", "--key=a.pem", "-o", "s.fb"), 1, "nowhere.fb")
    refused(pack("sign", "m.fb", "--key=a.pem", "--detached=text"), 1, "signature set: 24 bytes")
    assert not (tmp_path / "s.fb").exists() and (tmp_path / "text").read_text() == "text that is long enough"


def test_a_damaged_module_is_not_signed(files: tuple[keys.PrivateKey, ...], pack: Pack, tmp_path: Path) -> None:
    data = bytearray((Path(__file__).parents[1] / "golden" / "v1.0-mlp.fb").read_bytes())
    offset = max(at for at, _ in open_bytes(bytes(data)).spans)
    data[offset] ^= 1
    (tmp_path / "m.fb").write_bytes(data)
    refused(pack("sign", "m.fb", "--key=a.pem", "-o", "s.fb"), 1, "is damaged: its digest differs")
    assert not (tmp_path / "s.fb").exists()


def test_a_damaged_signature_is_not_kept(files: tuple[keys.PrivateKey, ...], pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "m.fb").write_bytes(rebuilt(code_module(), [container.Attachment("SIGN", b"no signatures")]))
    refused(pack("sign", "m.fb", "--key=a.pem", "-o", "s.fb"), 1, "signature set: 13 bytes")
    assert signature_set.MAGIC not in (tmp_path / "m.fb").read_bytes()
