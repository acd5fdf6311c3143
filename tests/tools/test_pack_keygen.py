"""vm-pack keygen: two files, the private one readable by its owner only, no secrets printed, no file overwritten."""

import os
import stat
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from packing import Pack, refused

from orchestrion.schema.trust import keys
from orchestrion.schema.trust.signature_set import ED25519, P256


@pytest.mark.parametrize(("type", "algorithm"), [("ed25519", ED25519), ("p256", P256), (None, ED25519)])
def test_a_pair(type: str | None, algorithm: int, pack: Pack, tmp_path: Path) -> None:
    done = pack("keygen", *([f"--type={type}"] if type else []), "-o", "key.pem")
    assert (done.returncode, done.stderr) == (0, "")
    private = keys.read_private((tmp_path / "key.pem").read_bytes())
    public = keys.read_public((tmp_path / "key.pub.pem").read_bytes())
    assert private.public == public and public.algorithm == algorithm
    assert public.short_id in done.stdout
    assert not any(line in done.stdout for line in (tmp_path / "key.pem").read_text().splitlines())


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_the_private_key_is_its_owners(pack: Pack, tmp_path: Path) -> None:
    pack("keygen", "-o", "key.pem")
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key.pem", "key.pub.pem"]


@pytest.mark.parametrize("there", ["key.pem", "key.pub.pem"])
def test_a_key_is_not_replaced(there: str, pack: Pack, tmp_path: Path) -> None:
    (tmp_path / there).write_text("something")
    refused(pack("keygen", "-o", "key.pem"), 1, f"vm-pack: {there}: is there already; --force replaces it")
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert pack("keygen", "-o", "key.pem", "--force").returncode == 0
    assert keys.read_private((tmp_path / "key.pem").read_bytes()).public
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600


def test_what_is_no_file_is_not_replaced(pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "key.pem").mkdir()
    refused(pack("keygen", "-o", "key.pem", "--force"), 1, "key.pem: is there already")
    refused(pack("keygen", "-o", "nowhere/key.pem"), 1, "nowhere/key.pem")
    refused(pack("keygen", "-o", "/dev/stdout", "--force"), 1, "/dev/stdout: is there already")


def test_passwords(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a variable, a file, standard input, or the command line; the last two give the same text."""
    monkeypatch.setenv("SECRET", "open sesame")
    (tmp_path / "secret").write_text("open sesame\nanother line\n")
    sources = ["--password=env:SECRET", "--password=file:secret", "--password", "--password=pass:open sesame"]
    for number, source in enumerate([*sources, "--password=open sesame"]):
        name = f"{number}.pem"
        done = pack("keygen", "-o", name, source, input="open sesame\n")
        assert done.returncode == 0 and "sesame" not in done.stdout + done.stderr
        text = (tmp_path / name).read_bytes()
        assert b"BEGIN ENCRYPTED PRIVATE KEY" in text
        assert keys.read_private(text, b"open sesame").public


@pytest.mark.skipif(os.name != "posix", reason="elsewhere the command line is text")
def test_a_password_may_be_any_bytes(pack: Pack, tmp_path: Path) -> None:
    done = pack("keygen", "-o", "key.pem", "--password=pass:\udcff")
    assert (done.returncode, done.stderr) == (0, "")
    assert keys.read_private((tmp_path / "key.pem").read_bytes(), b"\xff").public


def test_passwords_that_are_refused(pack: Pack, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\n")
    refused(pack("keygen", "-o", "key.pem", "--password", input=""), 1, "the password is empty")
    refused(pack("keygen", "-o", "key.pem", "--password=file:empty"), 1, "the password is empty")
    refused(pack("keygen", "-o", "key.pem", "--password=file:bytes"), 1, "bytes: the password is not text")
    refused(pack("keygen", "-o", "key.pem", "--password=file:nowhere"), 1, "nowhere")
    refused(pack("keygen", "-o", "key.pem", "--password=env:NOWHERE_SET"), 1, "NOWHERE_SET: the variable is not set")
    refused(pack("keygen", "-o", "key.pem", "--password=fd:3"), 2, "--password takes env:NAME, file:PATH or pass:TEXT")
    refused(pack("keygen", "-o", "key.pem", "--type=rsa"), 2, "invalid choice: 'rsa'")
    refused(pack("keygen", "-o", "key.pem", f"--password={'x' * 2000}"), 1, "has 2000 bytes, the limit is 1023")
    refused(pack("keygen"), 2, "-o")
    assert not (tmp_path / "key.pem").exists()
