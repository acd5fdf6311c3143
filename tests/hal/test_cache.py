"""The cache on disk: keys, damage, concurrent writers, the limit, folders that cannot be used."""

import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from orchestrion.hal.backend import Bytes
from orchestrion.hal.cache import BLOCK, Cache, checksum, root
from orchestrion.schema.trust.store import TrustStore


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORCHESTRION_CACHE", str(tmp_path))


def only_row(folder: Path) -> Path:
    (row,) = (folder / "k").iterdir()
    return row


def test_rows_by_key() -> None:
    cache = Cache("k")
    assert cache.get("a", "b") is None
    cache.put(b"first", "a", "b")
    cache.put(b"", "ab", b"")
    cache.put(b"second", "a", "b")
    assert Cache("k").get("a", "b") == b"second"
    assert Cache("k").get("ab", b"") == b""
    assert Cache("k").get("ab") is None
    assert Cache("other").get("a", "b") is None


def test_private(tmp_path: Path) -> None:
    Cache("k").put(b"x", "key")
    assert (tmp_path / "k").stat().st_mode & 0o777 == 0o700
    assert only_row(tmp_path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("keep", [0, 3, 8, 40, 72, 73])
def test_truncated(tmp_path: Path, keep: int, caplog: pytest.LogCaptureFixture) -> None:
    """A row cut at any length is a miss, and is replaced."""
    cache = Cache("k")
    cache.put(b"xyz", "key")
    row = only_row(tmp_path)
    row.write_bytes(row.read_bytes()[:keep])
    with caplog.at_level(logging.WARNING):
        assert cache.get("key") is None
    assert "damaged" in caplog.text
    cache.put(b"xyz", "key")
    assert cache.get("key") == b"xyz"


def test_each_flipped_byte(tmp_path: Path) -> None:
    cache = Cache("k")
    cache.put(b"xyz", "key")
    row = only_row(tmp_path)
    good = row.read_bytes()
    for position in range(len(good)):
        row.write_bytes(good[:position] + bytes([good[position] ^ 0x10]) + good[position + 1 :])
        assert cache.get("key") is None


def test_row_of_another_key(tmp_path: Path) -> None:
    """A valid row stored under another key's file name is a miss."""
    cache = Cache("k")
    cache.put(b"one", "1")
    row = only_row(tmp_path)
    cache.put(b"two", "2")
    (other,) = set((tmp_path / "k").iterdir()) - {row}
    row.replace(other)
    assert cache.get("2") is None


def values(cache: Cache, size: int, *key: str) -> bytes | None:
    """The bytes of an entry of values, which are also those that its file begins with."""
    found: list[bytes] = []

    def use(data: Bytes, file: int) -> None:
        assert os.pread(file, size, 0) == data.tobytes()
        found.append(data.tobytes())

    return found[0] if cache.get_values(size, use, *key) else None


@pytest.mark.parametrize("size", [0, 3, BLOCK, 3 * BLOCK + 8, 3 * BLOCK + 13])
def test_values(size: int, tmp_path: Path) -> None:
    """An entry of values is found by its key and its size, and not as code, nor is code found as values."""
    cache, data = Cache("k"), np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert values(cache, size, "key") is None
    cache.put_values(data, "key")
    assert values(Cache("k"), size, "key") == data.tobytes()
    assert values(cache, size + 1, "key") is None and values(cache, size, "other") is None
    assert cache.get("key") is None
    cache.put(data.tobytes(), "key")
    assert values(cache, size, "key") is None


@pytest.mark.parametrize("size", [3, BLOCK + 5])
def test_each_flipped_byte_and_each_length_of_values(size: int, tmp_path: Path) -> None:
    cache = Cache("k")
    cache.put_values(np.random.default_rng(0).integers(0, 256, size, np.uint8), "key")
    row = only_row(tmp_path)
    good = row.read_bytes()
    places = [*range(0, len(good), 1 if size < BLOCK else 97), *range(len(good) - 72, len(good))]
    for position in places:
        row.write_bytes(good[:position] + bytes([good[position] ^ 0x10]) + good[position + 1 :])
        assert values(cache, size, "key") is None
        row.write_bytes(good[:position])
        assert values(cache, size, "key") is None
    row.write_bytes(good)
    assert values(cache, size, "key") == good[:size]


def test_values_of_another_key(tmp_path: Path) -> None:
    cache = Cache("k")
    cache.put_values(np.ones(5, np.uint8), "1")
    row = only_row(tmp_path)
    cache.put_values(np.zeros(5, np.uint8), "2")
    (other,) = set((tmp_path / "k").iterdir()) - {row}
    row.replace(other)
    assert values(cache, 5, "2") is None


def test_a_checksum_sees_lost_and_exchanged_blocks() -> None:
    data = np.random.default_rng(0).integers(0, 256, 4 * BLOCK + 9, np.uint8)
    changed = {"as it was": data.copy(), "lost": data.copy(), "last": data.copy()}
    changed["lost"][BLOCK : 2 * BLOCK] = 0
    changed["exchanged"] = np.concatenate([data[BLOCK : 2 * BLOCK], data[:BLOCK], data[2 * BLOCK :]])
    changed["last"][-1] ^= 1
    changed["longer"] = np.append(data, np.uint8(0))
    same = [name for name, array in changed.items() if checksum(array) == checksum(data)]
    assert same == ["as it was"]


def test_limit(tmp_path: Path) -> None:
    """The rows that were unused for longest are removed first. A row larger than the limit is not stored."""
    cache = Cache("k", limit=600)
    for number in range(4):
        cache.put(bytes(100), str(number))
        for row in (tmp_path / "k").iterdir():
            state = row.stat()
            os.utime(row, (state.st_atime - 10, state.st_mtime - 10))
    assert cache.get("0") is None and cache.get("1") is not None
    cache.put(bytes(100), "4")
    assert [cache.get(str(number)) is not None for number in range(5)] == [False, True, False, True, True]
    cache.put(bytes(1000), "large")
    assert cache.get("large") is None and cache.get("4") is not None


def test_shared_folder_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Cache("k").put(b"x", "key")
    (tmp_path / "k").chmod(0o777)
    with caplog.at_level(logging.WARNING):
        cache = Cache("k")
    assert "may be written by other users" in caplog.text
    assert cache.get("key") is None
    cache.put(b"y", "key")
    (tmp_path / "k").chmod(0o700)
    assert Cache("k").get("key") == b"x"


def test_folder_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    with caplog.at_level(logging.WARNING):
        cache = Cache("k", folder=tmp_path / "file")
    assert "no cache of k" in caplog.text
    cache.put(b"x", "key")
    assert cache.get("key") is None


def test_full_disk(tmp_path: Path) -> None:
    """A row that cannot be written leaves no file, and the program continues."""
    code = """
import resource, signal
from orchestrion.hal.cache import Cache
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
cache = Cache("k")
cache.put(bytes(10_000), "key")
assert cache.get("key") is None
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "cannot be written" in done.stderr
    assert list((tmp_path / "k").iterdir()) == []


def test_leftovers_of_dead_processes(tmp_path: Path) -> None:
    """The temporary file of a row that was never finished is removed after a while; one that is being written stays."""
    cache = Cache("k")
    for name, age in ((".old", 10_000), (".new", 10)):
        path = tmp_path / "k" / name
        path.touch()
        then = time.time() - age
        os.utime(path, (then, then))
    cache.put(b"x", "key")
    assert {path.name for path in (tmp_path / "k").iterdir() if path.name.startswith(".")} == {".new"}


def test_processes_at_once(tmp_path: Path) -> None:
    """Processes that read and write the same rows see complete rows or none."""
    code = """
from orchestrion.hal.cache import Cache
cache = Cache("k", limit=60_000)
for number in range(150):
    key = str(number % 10)
    row = cache.get(key)
    assert row is None or row == key.encode() * 10_000, "torn"
    cache.put(key.encode() * 10_000, key)
"""
    processes = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        _, said = process.communicate()
        assert process.returncode == 0 and said == "", said
    assert sum(row.stat().st_size for row in (tmp_path / "k").iterdir()) <= 60_000


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ORCHESTRION_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert root() == tmp_path / "xdg" / "orchestrion"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert root() == tmp_path / ".cache" / "orchestrion"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "link to a pipe", "socket", "large file"])
def test_what_is_no_row_is_a_miss_and_is_not_waited_for(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache("binaries", limit=1 << 20, folder=tmp_path)
    cache.put(b"data", "key")
    (row,) = (tmp_path / "binaries").iterdir()
    content = row.read_bytes()
    row.unlink()
    match kind:
        case "pipe":
            os.mkfifo(row)
        case "folder":
            row.mkdir()
        case "link":
            (tmp_path / "elsewhere").write_bytes(content)
            row.symlink_to(tmp_path / "elsewhere")
        case "link to a pipe":
            os.mkfifo(tmp_path / "pipe")
            row.symlink_to(tmp_path / "pipe")
        case "socket":
            monkeypatch.chdir(row.parent)
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(row.name)
        case _:  # to read it would end in a MemoryError
            with row.open("wb") as file:
                file.truncate(1 << 40)
    assert cache.get("key") is None
    assert "cannot be read" in caplog.text
    cache.put(b"data", "key")
    assert cache.get("key") == (None if kind == "folder" else b"data")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_trimming_passes_over_what_is_no_row(tmp_path: Path) -> None:
    cache = Cache("binaries", limit=1000, folder=tmp_path)
    folder = tmp_path / "binaries"
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / ".temporary")
    (folder / "folder").mkdir()
    (folder / ".folder").mkdir()
    (folder / "dangling").symlink_to(tmp_path / "nothing")
    for path in (folder / ".temporary", folder / ".folder"):
        os.utime(path, (0, 0))
    for number in range(5):
        cache.put(bytes(400), str(number))
    assert cache.get("4") == bytes(400)
    rows = [path for path in folder.iterdir() if len(path.name) == 64]
    assert sum(path.stat().st_size for path in rows) <= 1000
    assert {path.name for path in folder.iterdir()} - {path.name for path in rows} == {
        "pipe", "folder", ".folder", "dangling",
    }  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_in_the_trust_store_vouches_for_nothing(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trust")
    store.add(bytes(32))
    assert bytes(32) in store
    os.mkfifo(tmp_path / "trust" / (b"\1" * 32).hex())
    (tmp_path / "trust" / (b"\2" * 32).hex()).mkdir()
    for digest in (b"\1" * 32, b"\2" * 32):
        assert digest not in store
        with pytest.raises(OSError, match="is no file"):
            store.add(digest)
