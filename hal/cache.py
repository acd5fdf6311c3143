"""Results kept on disk between processes: what drivers built, and what initializers computed.

- An entry is found by its key: device, driver version, content digest, and everything else that the bytes depend on. It
  lies in `$ORCHESTRION_CACHE/<kind>` (else `$XDG_CACHE_HOME/orchestrion`, else `~/.cache/orchestrion`) under the
  SHA-256 of the key.
- Entries may be native code: reading one means running it. The cache assumes that only this user writes to the folder.
  The folder is created with mode 0700, and is not used if others own it or may write to it.
- `ORCHESTRION_CACHE=off` disables the cache: nothing is stored, and nothing that was stored is used.
- Only a regular file is an entry. A pipe, a device, a folder or a link is a miss, and nothing waits for it.
- An entry carries its key and the SHA-256 of its bytes. A damaged or truncated entry is a miss, and is replaced.
- An entry is written under another name and then renamed, so any number of processes may share the folder.
- Above the size limit the least recently used entries are deleted. No failure here fails a program: what cannot be
  written is logged (`orchestrion.hal.cache`) and built again next time.
"""

import errno
import hashlib
import logging
import os
import stat
import tempfile
import time
from pathlib import Path

from orchestrion.schema.files import open_regular
from orchestrion.schema.trust.store import SharedFolder, private_folder

MAGIC = b"ORCC\x01\0\0\0"
DIGEST = 32
DEFAULT_LIMIT = 256 << 20
#: seconds after which a row that is still being written is taken for one whose process died
ABANDONED = 3600.0

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
        """Returns the bytes stored under this key, or None."""
        if self._folder is None:
            return None
        digest = _digest(key)
        path = self._folder / digest.hex()
        try:
            head, data = self._read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("cache row %s cannot be read: %s", path, error)
            return None
        if head != MAGIC + digest + hashlib.sha256(data).digest():
            _log.warning("cache row %s is damaged and not used", path)
            return None
        return data

    def _read(self, path: Path) -> tuple[bytes, bytes]:
        """Returns what stands in front of an entry's data, and the data. Raises OSError if the path is not a regular
        file, or the entry is above the limit.
        """
        with os.fdopen(open_regular(path, follow=False), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > self._limit:
                raise OSError(errno.EFBIG, f"has {size} bytes, the limit is {self._limit}", str(path))
            head, data = file.read(len(MAGIC) + 2 * DIGEST), file.read()
        os.utime(path, follow_symlinks=os.utime not in os.supports_follow_symlinks)
        return head, data

    def put(self, data: bytes, *key: str | bytes) -> None:
        """Store bytes under a key, in place of an older entry. An entry larger than the limit is not stored."""
        digest = _digest(key)
        row = MAGIC + digest + hashlib.sha256(data).digest() + data
        if self._folder is None or len(row) > self._limit:
            return
        try:
            self._write(self._folder / digest.hex(), row)
            self._trim(self._folder)
        except OSError as error:
            _log.warning("cache row %s cannot be written: %s", self._folder / digest.hex(), error)

    def _write(self, path: Path, row: bytes) -> None:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(row)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise

    def _trim(self, folder: Path) -> None:
        rows = []
        for path in folder.iterdir():
            try:
                state = path.lstat()
            except FileNotFoundError:  # another process trims too
                continue
            if path.name.startswith(".") and not stat.S_ISDIR(state.st_mode):
                if time.time() - state.st_mtime > ABANDONED:
                    path.unlink(missing_ok=True)
                continue
            if not stat.S_ISREG(state.st_mode):
                continue  # this class did not make it, and it takes no room
            rows.append((state.st_mtime_ns, state.st_size, path))
        excess = sum(size for _, size, _ in rows) - self._limit
        for _, size, path in sorted(rows):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def _digest(key: tuple[str | bytes, ...]) -> bytes:
    """SHA-256 of a key. Each part is preceded by its length, so that no two keys collide."""
    whole = hashlib.sha256()
    for part in key:
        encoded = part.encode() if isinstance(part, str) else part
        whole.update(len(encoded).to_bytes(8, "little") + encoded)
    return whole.digest()
