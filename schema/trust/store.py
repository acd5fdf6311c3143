"""The user's trust store: the digests of modules that this user compiled on this machine.

The compiler adds its modules; the HAL's policy queries the store before native code runs. A module is identified by the
SHA-256 of its root, which covers every segment.

The store is one empty file per digest in `$ORCHESTRION_HOME/trust` (else `$XDG_DATA_HOME/orchestrion/trust`, else
`~/.local/share/orchestrion/trust`). Creating a file is atomic, so any number of processes may add at once. A folder
that others may write to or replace is refused. Only regular files count.
"""

import errno
import os
import stat
import sys
from pathlib import Path
from typing import NoReturn

DIGEST_BYTES = 32
_UNMAPPED = 65534  #: the owner of files whose user a container does not know, such as root outside
_OTHERS = stat.S_IWGRP | stat.S_IWOTH  #: the mode bits of group and others that allow to write


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
    """Creates a folder, and missing folders above it, that only this user can write to. Raises SharedFolder as
    `refuse_shared`.
    """
    for folder in reversed([one for one in (path, *path.parents) if not one.is_dir()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    refuse_shared(path)
    return path


def refuse_shared(path: Path) -> None:
    """Raises SharedFolder if others own a folder or may write to it, or if they may replace it or a folder above it."""
    state = path.stat()
    if os.name != "posix":
        return
    if state.st_uid != os.getuid() or state.st_mode & _OTHERS:
        _refuse(path, state, "")
    if hasattr(sys, "getandroidapilevel"):  # each application is a user of its own, below folders of the system
        return
    if _refuse_above(path, os.path.abspath(path)):
        _refuse_above(path, os.path.realpath(path))


def _refuse_above(path: Path, place: str) -> bool:
    """Raises SharedFolder if others may replace `place` or a folder above it. Returns whether one is a link."""
    linked = os.path.islink(place)
    while (above := os.path.dirname(place)) != place:
        place, state = above, os.lstat(above)
        if stat.S_ISLNK(state.st_mode):
            linked, state = True, os.stat(above)
        if not _keeps_entries(state):
            _refuse(above, state, f", so they may replace {path}")
    return linked


def _keeps_entries(state: os.stat_result) -> bool:
    """Whether no other user but root can rename the entries of a folder.

    Nobody can rename those of others in a folder with the sticky bit, such as `/tmp`. A group whose number is that of
    the owner has no other members. Root accepts any owner: a container mounts a home folder that root does not own.
    """
    if os.getuid() and state.st_uid not in (0, os.getuid(), _UNMAPPED):
        return False
    others = state.st_mode & (stat.S_IWOTH if state.st_gid == state.st_uid else _OTHERS)
    return not others or bool(state.st_mode & stat.S_ISVTX)


def _refuse(path: str | Path, state: os.stat_result, why: str) -> NoReturn:
    raise SharedFolder(
        f"{path} may be written by other users (owner {state.st_uid}, mode {stat.S_IMODE(state.st_mode):o}){why}: "
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
