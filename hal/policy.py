"""Whether a module's native code may run here, and the user's trust store.

Formats that a native compiler or linker takes in can do anything the process can, so a device only gets them when the
module was compiled on this machine by this user (the compiler records the digest of the module's root), or the caller
says so. Formats that are verified before they run need no trust.

The store is one empty file per digest in `$ORCHESTRION_HOME/trust` (else `$XDG_DATA_HOME/orchestrion/trust`,
`~/.local/share/orchestrion/trust`): creating a file is atomic, so any number of processes may add at once. A
folder that others may write to vouches for nothing and is refused.
"""

import os
import stat
from pathlib import Path

from orchestrion.schema.profiles import PROFILES

from .errors import PolicyRefused

DIGEST_BYTES = 32

NATIVE_FORMATS = frozenset(profile.format for profile in PROFILES.values() if profile.native_code)


def home() -> Path:
    """The folder for what belongs to this user and must last."""
    override = os.environ.get("ORCHESTRION_HOME")
    if override:
        return Path(override)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "orchestrion"


def private_folder(path: Path) -> Path:
    """Make a folder only this user can write to; `PolicyRefused` when one is there that others own or may write to."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_shared(path)
    return path


def refuse_shared(path: Path) -> None:
    state = path.stat()
    if os.name != "posix":
        return
    if state.st_uid != os.getuid() or state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PolicyRefused(
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
        self._file(digest).touch(mode=0o600)

    def __contains__(self, digest: bytes) -> bool:
        file = self._file(digest)
        if not file.exists():
            return False
        refuse_shared(self.folder)
        return True

    def _file(self, digest: bytes) -> Path:
        if len(digest) != DIGEST_BYTES:
            raise ValueError(f"digest of {len(digest)} bytes, expected {DIGEST_BYTES}")
        return self.folder / digest.hex()


def trust(digest: bytes) -> None:
    """For compilers: the module with this root digest was made here, by this user."""
    TrustStore().add(digest)


class Policy:
    """What a device accepts. Every executable that is created passes `check`."""

    __slots__ = ("allow_native_code", "store")

    def __init__(self, allow_native_code: bool = False, store: TrustStore | None = None) -> None:
        self.allow_native_code = allow_native_code
        self.store = TrustStore() if store is None else store

    def check(self, format: str, digest: bytes | None) -> None:
        """`PolicyRefused` unless executables of this format from the module with this root digest may run.

        `digest` is None for code that came from no module.
        """
        if format not in NATIVE_FORMATS or self.allow_native_code:
            return
        if digest is not None and digest in self.store:
            return
        origin = "code from no module" if digest is None else f"module {digest.hex()[:16]}"
        raise PolicyRefused(
            f"{format} is native code and {origin} was not compiled on this machine by this user: "
            "recompile it here, run it with --allow-native-code (allow_native_code=True), or choose another device"
        )
