"""What was made once and takes long, kept on disk between processes: what drivers built, what initializers computed.

- A row is found by its key: device, driver version, content digest, whatever else the bytes depend on. It lies in
  `$ORCHESTRION_CACHE/<kind>` (else `$XDG_CACHE_HOME/orchestrion`, `~/.cache/orchestrion`) under the key's SHA-256.
- Rows may be native code: to read one is to run it. Assumed is that nobody but this user writes into the folder: it is
  made with mode 0700, and one that others own or may write to is not used at all.
- `ORCHESTRION_CACHE=off`: nothing is kept, and nothing that was kept is used.
- Only a regular file is a row. A pipe, a device, a folder or a link is a miss, and nothing waits for it.
- A row carries its key and the SHA-256 of its bytes. One that is damaged or cut short is a miss, and is replaced.
- A row is written under another name and moved, so any number of processes may share the folder.
- Above the limit the rows that were not used for longest go. Nothing here fails a program: what cannot be
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
    """The folder for what can be made again; None when nothing shall be kept."""
    override = os.environ.get("ORCHESTRION_CACHE")
    if override == "off":
        return None
    if override:
        return Path(override)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "orchestrion"


class Cache:
    """The rows of one kind. `limit` in bytes holds for the kind's folder."""

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
        """Whether rows are kept at all."""
        return self._folder is not None

    def get(self, *key: str | bytes) -> bytes | None:
        """The bytes put under this key, or None."""
        if self._folder is None:
            return None
        digest = _digest(key)
        path = self._folder / digest.hex()
        try:
            row = self._read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("cache row %s cannot be read: %s", path, error)
            return None
        data = row[len(MAGIC) + 2 * DIGEST :]
        if row[: len(row) - len(data)] != MAGIC + digest + hashlib.sha256(data).digest():
            _log.warning("cache row %s is damaged and not used", path)
            return None
        return data

    def _read(self, path: Path) -> bytes:
        """A row's bytes. `OSError` for whatever is not a regular file, and for a row above the limit."""
        with os.fdopen(open_regular(path, follow=False), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > self._limit:
                raise OSError(errno.EFBIG, f"has {size} bytes, the limit is {self._limit}", str(path))
            row = file.read()
        os.utime(path, follow_symlinks=os.utime not in os.supports_follow_symlinks)
        return row

    def put(self, data: bytes, *key: str | bytes) -> None:
        """Keep bytes under a key, in place of what was there. A row larger than the limit is not kept."""
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
    """Parts are delimited by their lengths, so that no two keys run together."""
    whole = hashlib.sha256()
    for part in key:
        encoded = part.encode() if isinstance(part, str) else part
        whole.update(len(encoded).to_bytes(8, "little") + encoded)
    return whole.digest()
