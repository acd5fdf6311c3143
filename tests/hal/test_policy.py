"""Native code runs only where it is trusted, and concurrent processes can use the trust store."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrion.hal.errors import PolicyRefused
from orchestrion.hal.null.driver import INFO
from orchestrion.hal.policy import Policy
from orchestrion.schema.profiles import FORMATS
from orchestrion.schema.trust.store import SharedFolder, TrustStore, _keeps_entries, home

HERE, ELSEWHERE = bytes(range(32)), bytes(32)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrustStore:
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    return TrustStore()


CONFINED = {"spirv", "tensor-bytecode"}


@pytest.mark.parametrize("format", [*FORMATS, "cpu-image", "ptx", ""])
def test_formats(store: TrustStore, format: str) -> None:
    """Every format needs trust, even an unknown one, except those declared as confined."""
    policy = Policy(store=store)
    store.add(HERE)
    policy.check(format, HERE, INFO)
    if format in CONFINED:
        policy.check(format, ELSEWHERE, INFO)
        policy.check(format, None, INFO)
        return
    for digest in (ELSEWHERE, None):
        with pytest.raises(PolicyRefused, match="recompile it here, .*--allow-native-code.*, or choose another device"):
            policy.check(format, digest, INFO)
    Policy(allow_native_code=True, store=store).check(format, ELSEWHERE, INFO)


def test_what_is_declared_confined() -> None:
    assert {row.name for row in FORMATS.values() if row.confined} == CONFINED


def test_a_driver_must_verify_what_is_confined(store: TrustStore) -> None:
    """A format's declaration alone does not allow untrusted code: the driver must also verify it."""
    policy, careless = Policy(store=store), replace(INFO, verified_formats=frozenset({"opencl-c"}))
    with pytest.raises(PolicyRefused, match="spirv is native code on device null, whose driver does not say that it"):
        policy.check("spirv", ELSEWHERE, careless)
    with pytest.raises(PolicyRefused, match="opencl-c is native code and module"):  # nor does the driver's word alone
        policy.check("opencl-c", ELSEWHERE, careless)
    store.add(ELSEWHERE)
    policy.check("spirv", ELSEWHERE, careless)


def test_a_signature_lets_native_code_run_and_no_more(store: TrustStore) -> None:
    """The limits stay those of untrusted modules, and other modules stay refused."""
    policy = Policy(store=store)
    signed = policy.with_signed(HERE)
    signed.check("opencl-c", HERE, INFO)
    assert not signed.trusts(HERE) and signed.builds_here(HERE) and not signed.builds_here(ELSEWHERE)
    for refusing, digest in ((signed, ELSEWHERE), (signed, None), (policy, HERE)):
        with pytest.raises(PolicyRefused):
            refusing.check("opencl-c", digest, INFO)
    both = signed.with_signed(ELSEWHERE)
    both.check("opencl-c", HERE, INFO)
    both.check("opencl-c", ELSEWHERE, INFO)


def test_whom_a_policy_trusts(store: TrustStore) -> None:
    policy = Policy(store=store)
    store.add(HERE)
    assert policy.trusts(HERE) and not policy.trusts(ELSEWHERE) and not policy.trusts(None)
    everybody = Policy(allow_native_code=True, store=store)
    assert everybody.trusts(ELSEWHERE) and everybody.trusts(None)
    store.folder.chmod(0o777)
    assert not policy.trusts(HERE)


def test_without_a_home_nobody_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("ORCHESTRION_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert not Policy().trusts(HERE)
    with pytest.raises(PolicyRefused, match="opencl-c is native code"):
        Policy().check("opencl-c", HERE, INFO)
    Policy().check("spirv", HERE, INFO)


def test_where_the_store_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ORCHESTRION_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert home() == tmp_path / "orchestrion"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home() == tmp_path / ".local" / "share" / "orchestrion"


def test_trust_lasts(store: TrustStore) -> None:
    assert HERE not in store
    store.add(HERE)
    store.add(HERE)
    assert HERE in TrustStore() and ELSEWHERE not in TrustStore()


def test_digest_length(store: TrustStore) -> None:
    with pytest.raises(ValueError, match="digest of 3 bytes, expected 32"):
        store.add(b"abc")


def test_shared_folder_vouches_for_nothing(store: TrustStore) -> None:
    """If others may write to the folder, anybody could have put the digest there."""
    store.add(HERE)
    store.folder.chmod(0o777)
    with pytest.raises(SharedFolder, match="may be written by other users .*mode 777"):
        store.add(ELSEWHERE)
    with pytest.raises(PolicyRefused, match="may be written by other users"):
        Policy(store=store).check("opencl-c", HERE, INFO)


@pytest.mark.parametrize("planted", [False, True])
def test_a_store_below_a_shared_folder_vouches_for_nothing(tmp_path: Path, planted: bool) -> None:
    """Others may replace the store by a link to a folder of this user with files of theirs, such as a clone."""
    shared, clone = tmp_path / "shared", tmp_path / "clone"
    shared.mkdir()
    store = TrustStore(shared / "trust")
    if planted:
        clone.mkdir(mode=0o700)
        (clone / HERE.hex()).touch()
        store.folder.symlink_to(clone)
    else:
        store.add(HERE)
    assert HERE in store
    shared.chmod(0o777)
    with pytest.raises(SharedFolder, match=f"{shared} may be written .*mode 777.*so they may replace {store.folder}"):
        store.add(ELSEWHERE)
    assert not Policy(store=store).trusts(HERE)
    shared.chmod(0o1777)  # in a folder like /tmp they may not
    assert HERE in store


@pytest.mark.parametrize(
    ("owner", "group", "mode", "kept"),
    [
        (1000, 1000, 0o755, True),
        (1000, 1000, 0o775, True),  # a group of its own
        (1000, 100, 0o775, False),
        (1000, 1000, 0o777, False),
        (0, 0, 0o1777, True),
        (0, 0, 0o755, True),
        (1001, 1001, 0o755, False),
        (65534, 65534, 0o755, True),
    ],
)
def test_folders_whose_entries_others_may_replace(
    owner: int, group: int, mode: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert _keeps_entries(os.stat_result((mode, 0, 0, 0, owner, group, 0, 0, 0, 0))) is kept


def test_folders_above_the_store_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        TrustStore(tmp_path / "home" / "data" / "trust").add(HERE)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "home", tmp_path / "home" / "data")] == [0o700] * 2


def test_processes_at_once(store: TrustStore) -> None:
    code = """
import sys
from orchestrion.schema.trust.store import TrustStore
for number in range(100):
    TrustStore().add(bytes([int(sys.argv[1]) if number % 2 else 0, number]) + bytes(30))
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, str(which)]) for which in (1, 2, 3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(list(store.folder.iterdir())) == 50 + 3 * 50
