"""The user's trust store: the digests of modules that were compiled here, by this user.

The compiler records what it made, the HAL's policy asks before native code runs. A module is named by the SHA-256 of
its root, which covers every segment.

The store is one empty file per digest in `$ORCHESTRION_HOME/trust` (else `$XDG_DATA_HOME/orchestrion/trust`,
`~/.local/share/orchestrion/trust`): creating a file is atomic, so any number of processes may add at once. A
folder that others may write to vouches for nothing and is refused. What is not a regular file vouches for nothing.
"""

import errno
import os
import stat
from pathlib import Path

DIGEST_BYTES = 32


class SharedFolder(Exception):
    """A folder that must be this user's alone may be written to by others."""


def home() -> Path:
    """The folder for what belongs to this user and must last."""
    override = os.environ.get("ORCHESTRION_HOME")
    if override:
        return Path(override)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "orchestrion"


def private_folder(path: Path) -> Path:
    """Make a folder only this user can write to; `SharedFolder` when one is there that others own or may write to."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_shared(path)
    return path


def refuse_shared(path: Path) -> None:
    state = path.stat()
    if os.name != "posix":
        return
    if state.st_uid != os.getuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise SharedFolder(
            f"{path} may be written by other users (owner {state.st_uid}, mode {stat.S_IMODE(state.st_mode):o}): "
            "make it yours alone, or set another folder"
        )


class TrustStore:
    """The digests of modules compiled here. `folder` is the default of the user unless given."""

    __slots__ = ("folder",)

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = home() / "trust" if folder is None else folder

    def add(self, digest: bytes) -> None:
        """Trust a module by the SHA-256 of its root. May be called by many processes at once."""
        private_folder(self.folder)
        self._file(digest).touch(mode=0o600)  # opens nothing that exists: it sets the time of a pipe, and does not wait
        if digest not in self:
            raise OSError(errno.EEXIST, "is no file", str(self._file(digest)))

    def __contains__(self, digest: bytes) -> bool:
        file = self._file(digest)
        try:
            if not stat.S_ISREG(file.lstat().st_mode):
                return False
        except OSError:
            return False
        refuse_shared(self.folder)
        return True

    def _file(self, digest: bytes) -> Path:
        if len(digest) != DIGEST_BYTES:
            raise ValueError(f"digest of {len(digest)} bytes, expected {DIGEST_BYTES}")
        return self.folder / digest.hex()
