"""Decides whether a module's code may run here, and whether the module is trusted.

- Code is *confined* if it cannot reach outside of its bindings. Both the package that declares the format
  (`schema.profiles.Format.confined`) and the driver, which verifies the format (`DeviceInfo.verified_formats`), must
  say so. Confined code needs no trust.
- All other code is native code, including code of an undeclared format: it can do whatever the process can do.
- A module is *signed* for native code if the caller's trust policy accepts its signers for that. Its native code may
  run, and its code is built in this process, because native code can do anything here anyway. It is not trusted for
  that alone: a signature says who made a module, not how long its initializers take.
- A module is *trusted* if this user compiled it on this machine (the trust store of `schema.trust.store` holds the
  digest of its root), or if the caller trusts everything. Native code needs a trusted or signed module. Default limits
  apply only to modules that are not trusted.
"""

from orchestrion.schema.errors import PluginError
from orchestrion.schema.profiles import find_format, is_confined
from orchestrion.schema.trust.store import SharedFolder, TrustStore

from .backend import DeviceInfo
from .errors import PolicyRefused


class Policy:
    """What a device accepts. `check` is called for every executable that is created."""

    __slots__ = ("_signed", "_store", "allow_native_code")

    def __init__(
        self, allow_native_code: bool = False, store: TrustStore | None = None, signed: frozenset[bytes] = frozenset()
    ) -> None:
        """`signed`: the root digests of modules that are signed for native code."""
        self.allow_native_code = allow_native_code
        self._store = store
        self._signed = signed

    @property
    def store(self) -> TrustStore:
        """The given trust store, otherwise the user's own. Locating its folder is slow, so it happens on first use."""
        if self._store is None:
            self._store = TrustStore()
        return self._store

    def with_signed(self, digest: bytes) -> "Policy":
        """Returns the same policy, which also allows the module's native code."""
        return Policy(self.allow_native_code, self._store, self._signed | {digest})

    def builds_here(self, digest: bytes | None) -> bool:
        """Whether code of the module is built in this process without a limit."""
        return digest in self._signed or self.trusts(digest)

    def trusts(self, digest: bytes | None) -> bool:
        """Whether the module with this root digest is trusted. None stands for code from no module.

        False if the store cannot be read, or if others may write to it.
        """
        if self.allow_native_code:
            return True
        try:
            return self._is_stored(digest)
        except SharedFolder:
            return False

    def check(self, format: str, digest: bytes | None, info: DeviceInfo) -> None:
        """Raises PolicyRefused unless code in this format, from the module with this root digest, may run on a device
        with this `info`.
        """
        if self.allow_native_code or format in info.verified_formats and is_confined(format) or digest in self._signed:
            return
        try:
            if self._is_stored(digest):
                return
        except SharedFolder as error:
            raise PolicyRefused(str(error)) from error
        origin = "code from no module" if digest is None else f"module {digest.hex()[:16]}"
        raise PolicyRefused(
            f"{_why_native(format, info)} and {origin} was not compiled on this machine by this user: "
            "recompile it here, run it with --allow-native-code (allow_native_code=True), or choose another device"
        )

    def refusal(self, format: str, digest: bytes | None, info: DeviceInfo) -> str:
        """Why `check` refuses code in this format; empty if it does not."""
        try:
            self.check(format, digest, info)
        except PolicyRefused as error:
            return str(error)
        return ""

    def standing(self, digest: bytes | None) -> str:
        """Whether the module with this root digest is trusted, and why, as a sentence."""
        if self.allow_native_code:
            return "trusted: the caller trusts every module"
        try:
            found = self._is_stored(digest)
        except SharedFolder as error:
            return f"not trusted: {error}"
        return (
            "trusted: compiled on this machine by this user"
            if found
            else "not trusted: not compiled on this machine by this user"
        )

    def _is_stored(self, digest: bytes | None) -> bool:
        """Whether the trust store holds the digest. Raises SharedFolder if others may write to the store."""
        try:
            return digest is not None and digest in self.store
        except (OSError, RuntimeError):  # the store cannot be read, or this user has no state folder to look for it in
            return False


def _why_native(format: str, info: DeviceInfo) -> str:
    """Why code in a format is native code on a device, as the beginning of a sentence."""
    try:
        row = find_format(format)
    except PluginError as error:
        return f"{format} is native code, as its declaration cannot be used ({error}),"
    if row is None:
        return f"{format} is native code, as no installed package declares the format,"
    if row.confined:
        return f"{format} is native code on device {info.id}, whose driver does not say that it verifies the format,"
    return f"{format} is native code"
