"""Results kept on disk between processes: what drivers built, and what initializers computed.

- An entry is found by its key: device, driver version, content digest, and everything else that the bytes depend on. It
  lies in `$ORCHESTRION_CACHE/<kind>` (else `$XDG_CACHE_HOME/orchestrion`, else `~/.cache/orchestrion`) under the
  SHA-256 of the key.
- Entries may be native code: reading one means running it. The cache assumes that only this user writes to the folder.
  The folder is created with mode 0700, and is not used if others own it or may write to it.
- `ORCHESTRION_CACHE=off` disables the cache: nothing is stored, and nothing that was stored is used.
- Only a regular file is an entry. A pipe, a device, a folder or a link is a miss, and nothing waits for it.
- An entry carries its key and a check of its bytes. A damaged or truncated entry is a miss, and is replaced. The check
  of code is its SHA-256. That of values, which are data alone and may be large, is `checksum`; it follows the values,
  so that they lie at the start of a file, which a device may map.
- An entry is written under another name and then renamed, so any number of processes may share the folder.
- Above the size limit the least recently used entries are deleted. No failure here fails a program: what cannot be
  written is logged (`orchestrion.hal.cache`) and built again next time.
"""

import errno
import hashlib
import logging
import mmap
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np

from orchestrion.schema.files import open_regular
from orchestrion.schema.trust.store import SharedFolder, private_folder

from .backend import Bytes

MAGIC = b"ORCC\x01\0\0\0"
#: of an entry of values
VALUES_MAGIC = b"ORCC\x02\0\0\0"
DIGEST = 32
#: bytes of an entry beside its data: magic number, digest of the key, check
HEAD = len(MAGIC) + 2 * DIGEST
#: bytes that `checksum` adds up, as words of 8 bytes
BLOCK = 4096
DEFAULT_LIMIT = 256 << 20
#: seconds after which a row that is still being written is taken for one whose process died
ABANDONED = 3600.0

_T = TypeVar("_T")
_log = logging.getLogger("orchestrion.hal.cache")


def root() -> Path | None:
    """The folder of the cache; None if caching is disabled."""
    override = os.environ.get("ORCHESTRION_CACHE")
    if override == "off":
        return None
    if override:
        return Path(override)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "orchestrion"


class Cache:
    """The entries of one kind. `limit` is the most bytes that the folder of the kind may hold."""

    __slots__ = ("_folder", "_limit")

    def __init__(self, kind: str, limit: int = DEFAULT_LIMIT, folder: Path | None = None) -> None:
        self._limit = limit
        self._folder: Path | None = None
        above = root() if folder is None else folder
        if above is None:
            return
        try:
            self._folder = private_folder(above / kind)
        except (OSError, SharedFolder) as error:
            _log.warning("no cache of %s: %s", kind, error)

    @property
    def usable(self) -> bool:
        """Whether anything is stored at all."""
        return self._folder is not None

    def get(self, *key: str | bytes) -> bytes | None:
        """Returns the bytes that `put` stored under this key, or None."""
        return self._get(key, _code)

    def get_values(self, size: int, use: Callable[[Bytes, int], None], *key: str | bytes) -> bool:
        """Calls `use` with the `size` bytes that `put_values` stored under this key, as a read-only array that is valid
        until `use` returns, and with the open file that begins with them. Returns False without such an entry.
        """
        return self._get(key, lambda file, digest: _values(file.fileno(), digest, size, use)) is not None

    def _get(self, key: tuple[str | bytes, ...], read: Callable[[BinaryIO, bytes], _T | None]) -> _T | None:
        """Calls `read` with the open file of an entry and the digest of its key. `read` returns None for a damaged
        entry.
        """
        if self._folder is None:
            return None
        digest = _digest(key)
        path = self._folder / digest.hex()
        try:
            with os.fdopen(open_regular(path, follow=False), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size > self._limit:
                    raise OSError(errno.EFBIG, f"has {size} bytes, the limit is {self._limit}", str(path))
                found = read(file, digest)
            with suppress(OSError):  # a folder that can only be read
                os.utime(path, follow_symlinks=os.utime not in os.supports_follow_symlinks)
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("cache row %s cannot be read: %s", path, error)
            return None
        if found is None:
            _log.warning("cache row %s is damaged and not used", path)
        return found

    def put(self, data: bytes, *key: str | bytes) -> None:
        """Store bytes under a key, in place of an older entry. An entry larger than the limit is not stored."""
        head = MAGIC + _digest(key) + hashlib.sha256(data).digest()
        self._put(key, head, data)

    def put_values(self, data: Bytes, *key: str | bytes) -> None:
        """As `put`, for `get_values`. `data`: a contiguous array of bytes."""
        self._put(key, data.data, VALUES_MAGIC + _digest(key) + checksum(data))

    def _put(self, key: tuple[str | bytes, ...], *parts: bytes | memoryview) -> None:
        if self._folder is None or sum(map(len, parts)) > self._limit:
            return
        path = self._folder / _digest(key).hex()
        try:
            self._write(path, parts)
            self._trim(self._folder)
        except OSError as error:
            _log.warning("cache row %s cannot be written: %s", path, error)

    def _write(self, path: Path, parts: Iterable[bytes | memoryview]) -> None:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(parts)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise

    def _trim(self, folder: Path) -> None:
        rows, total = [], 0
        for entry in os.scandir(folder):
            try:
                state = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # another process trims too
                continue
            if entry.name.startswith(".") and not stat.S_ISDIR(state.st_mode):
                if time.time() - state.st_mtime > ABANDONED:
                    Path(entry.path).unlink(missing_ok=True)
                continue
            if not stat.S_ISREG(state.st_mode):
                continue  # this class did not make it, and it takes no room
            rows.append((state.st_mtime_ns, state.st_size, entry.path))
            total += state.st_size
        for _, size, path in sorted(rows) if total > self._limit else ():
            if total <= self._limit:
                return
            Path(path).unlink(missing_ok=True)
            total -= size


def checksum(data: Bytes) -> bytes:
    """A check against damage, as fast as memory is read: SHA-256 of the size, the sum of the words of each whole block,
    and the bytes behind them. An attacker can make other bytes with the same check. `data` is contiguous.
    """
    whole = data.size - data.size % BLOCK
    sums = data[:whole].view("<u8").reshape(-1, BLOCK // 8).sum(axis=1, dtype="<u8")
    return hashlib.sha256(b"%d," % data.size + sums.tobytes() + data[whole:].tobytes()).digest()


def _code(file: BinaryIO, digest: bytes) -> bytes | None:
    head, data = file.read(HEAD), file.read()
    return data if head == MAGIC + digest + hashlib.sha256(data).digest() else None


def _values(file: int, digest: bytes, size: int, use: Callable[[Bytes, int], None]) -> Bytes | None:
    if os.fstat(file).st_size != size + HEAD:
        return None
    whole = np.frombuffer(mmap.mmap(file, 0, access=mmap.ACCESS_READ), np.uint8)
    data = whole[:size]
    if whole[size:].tobytes() != VALUES_MAGIC + digest + checksum(data):
        return None
    use(data, file)
    return data


def _digest(key: tuple[str | bytes, ...]) -> bytes:
    """SHA-256 of a key. Each part is preceded by its length, so that no two keys collide."""
    whole = hashlib.sha256()
    for part in key:
        encoded = part.encode() if isinstance(part, str) else part
        whole.update(len(encoded).to_bytes(8, "little") + encoded)
    return whole.digest()
