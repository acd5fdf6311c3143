"""Whether a module's code may run here, and whether the module is trusted.

- A format is *confined* if verified code in it cannot reach outside its bindings, on any device that runs the format
  (`native_code` of its profile is False). Confined code needs no trust.
- Every other format is native code, also one that no profile declares: it can do whatever the process can.
- A module is *signed* for native code if the caller's trust policy says that its signers answer for that: then its
  native code may run, and its code is built in this process, as whoever may run native code here can do anything.
  It is not trusted for that alone: a signature says who made a module, not how long its initializers take.
- A module is *trusted* if it was compiled on this machine by this user (the trust store of `schema.trust.store`
  holds the digest of its root), or if the caller trusts everything. Native code needs a trusted or a signed module, and
  only modules that are not trusted have limits by default.
"""

from collections.abc import Iterable

from orchestrion.schema.profiles import PROFILES, Profile
from orchestrion.schema.trust.store import SharedFolder, TrustStore

from .errors import PolicyRefused


def confined_formats(profiles: Iterable[Profile]) -> frozenset[str]:
    """The formats of verified, confined code. One that any profile says is native code is not among them."""
    rows = list(profiles)
    return frozenset(row.format for row in rows) - frozenset(row.format for row in rows if row.native_code)


CONFINED_FORMATS = confined_formats(PROFILES.values())


class Policy:
    """What a device accepts. Every executable that is created passes `check`."""

    __slots__ = ("_signed", "_store", "allow_native_code")

    def __init__(
        self, allow_native_code: bool = False, store: TrustStore | None = None, signed: frozenset[bytes] = frozenset()
    ) -> None:
        """`signed`: the digests of modules that are signed for native code."""
        self.allow_native_code = allow_native_code
        self._store = store
        self._signed = signed

    @property
    def store(self) -> TrustStore:
        """The user's own unless another was given. Finding its folder takes a while, so it is found when needed."""
        if self._store is None:
            self._store = TrustStore()
        return self._store

    def with_signed(self, digest: bytes) -> "Policy":
        """The same policy, which lets the module's native code run as well."""
        return Policy(self.allow_native_code, self._store, self._signed | {digest})

    def builds_here(self, digest: bytes | None) -> bool:
        """Whether code of the module is built in this process, without a limit."""
        return digest in self._signed or self.trusts(digest)

    def trusts(self, digest: bytes | None) -> bool:
        """Whether the module with this digest of its root is trusted; None stands for code from no module.

        False where the store cannot be read, or where others may write to it.
        """
        if self.allow_native_code:
            return True
        try:
            return self._vouched(digest)
        except SharedFolder:
            return False

    def check(self, format: str, digest: bytes | None) -> None:
        """`PolicyRefused` unless code in this format from the module with this digest of its root may run."""
        if self.allow_native_code or format in CONFINED_FORMATS or digest in self._signed:
            return
        try:
            if self._vouched(digest):
                return
        except SharedFolder as error:
            raise PolicyRefused(str(error)) from error
        origin = "code from no module" if digest is None else f"module {digest.hex()[:16]}"
        raise PolicyRefused(
            f"{format} is native code and {origin} was not compiled on this machine by this user: "
            "recompile it here, run it with --allow-native-code (allow_native_code=True), or choose another device"
        )

    def refusal(self, format: str, digest: bytes | None) -> str:
        """Why `check` refuses code in this format; empty where it does not."""
        try:
            self.check(format, digest)
        except PolicyRefused as error:
            return str(error)
        return ""

    def standing(self, digest: bytes | None) -> str:
        """Whether and why the module with this digest of its root is trusted, in words."""
        if self.allow_native_code:
            return "trusted: the caller trusts every module"
        try:
            found = self._vouched(digest)
        except SharedFolder as error:
            return f"not trusted: {error}"
        return (
            "trusted: compiled on this machine by this user"
            if found
            else "not trusted: not compiled on this machine by this user"
        )

    def _vouched(self, digest: bytes | None) -> bool:
        """Whether the trust store holds the digest. `SharedFolder` when others may write to the store."""
        try:
            return digest is not None and digest in self.store
        except (OSError, RuntimeError):  # the store cannot be read, or this user has no state folder to look for it in
            return False
