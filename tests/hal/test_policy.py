"""Native code runs only where it is trusted; the store holds under concurrent processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrion.hal.errors import PolicyRefused
from orchestrion.hal.policy import NATIVE_FORMATS, Policy
from orchestrion.schema.profiles import FEATURES, PROFILES
from orchestrion.schema.trust import SharedFolder, TrustStore, home

HERE, ELSEWHERE = bytes(range(32)), bytes(32)
ALL = frozenset(FEATURES)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrustStore:
    monkeypatch.setenv("ORCHESTRION_HOME", str(tmp_path / "home"))
    return TrustStore()


@pytest.mark.parametrize("format", sorted({profile.format for profile in PROFILES.values()}))
def test_formats(store: TrustStore, format: str) -> None:
    """A format that a native compiler takes in needs trust, one that is verified and confined does not."""
    policy = Policy(store=store)
    store.add(HERE)
    policy.check(format, HERE, ALL)
    if format not in NATIVE_FORMATS:
        policy.check(format, ELSEWHERE, ALL)
        policy.check(format, None, ALL)
        return
    for digest in (ELSEWHERE, None):
        with pytest.raises(PolicyRefused, match="recompile it here, .*--allow-native-code.*, or choose another device"):
            policy.check(format, digest, ALL)
    Policy(allow_native_code=True, store=store).check(format, ELSEWHERE, ALL)


def test_opencl_c_is_native() -> None:
    assert "opencl-c" in NATIVE_FORMATS and "spirv" not in NATIVE_FORMATS and "tensor-bytecode" not in NATIVE_FORMATS


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
    """Where others may write, anybody could have put the digest there."""
    store.add(HERE)
    store.folder.chmod(0o777)
    with pytest.raises(SharedFolder, match="may be written by other users .*mode 777"):
        store.add(ELSEWHERE)
    with pytest.raises(PolicyRefused, match="may be written by other users"):
        Policy(store=store).check("opencl-c", HERE, ALL)


def test_processes_at_once(store: TrustStore) -> None:
    code = """
import sys
from orchestrion.schema.trust import TrustStore
for number in range(100):
    TrustStore().add(bytes([int(sys.argv[1]) if number % 2 else 0, number]) + bytes(30))
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, str(which)]) for which in (1, 2, 3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(list(store.folder.iterdir())) == 50 + 3 * 50
