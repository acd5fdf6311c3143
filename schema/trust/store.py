"""The user's trust store: the digests of modules that this user compiled on this machine.

The compiler adds its modules; the HAL's policy queries the store before native code runs. A module is identified by the
SHA-256 of its root, which covers every segment.

The store is one empty file per digest in `$ORCHESTRION_HOME/trust` (else `$XDG_DATA_HOME/orchestrion/trust`, else
`~/.local/share/orchestrion/trust`). Creating a file is atomic, so any number of processes may add at once. A folder
that others may write to is refused. Only regular files count.
"""

import errno
import os
import stat
from pathlib import Path

DIGEST_BYTES = 32


class SharedFolder(Exception):
    """Others may write to a folder that must belong to this user alone."""


def home() -> Path:
    """The folder for this user's persistent data."""
    override = os.environ.get("ORCHESTRION_HOME")
    if override:
        return Path(override)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "orchestrion"


def private_folder(path: Path) -> Path:
    """Creates a folder that only this user can write to. Raises SharedFolder if it exists and others own it or may
    write to it.
    """
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
    """The digests of modules compiled here. `folder` is the user's default unless given."""

    __slots__ = ("folder",)

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = home() / "trust" if folder is None else folder

    def add(self, digest: bytes) -> None:
        """Trust a module by the SHA-256 of its root. Many processes may call this at once."""
        private_folder(self.folder)
        self._file(digest).touch(mode=0o600)  # does not open an existing file, so a pipe does not block it
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
