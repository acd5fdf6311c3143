"""Whether a module's native code may run here.

Formats that a native compiler or linker takes in can do anything the process can, so a device only gets them when the
module was compiled on this machine by this user (the trust store of `orchestrion.schema.trust` holds its digest), or
the caller says so. Formats that are verified before they run need no trust, where the device confines them: SPIR-V may
compute any index into its buffers, so without robust buffer access it is held to be native code.
"""

from orchestrion.schema.profiles import PROFILES
from orchestrion.schema.trust import SharedFolder, TrustStore

from .errors import PolicyRefused

#: format -> the feature without which a device cannot confine even verified code
CONFINED_BY: dict[str, str] = {"spirv": "robust"}

NATIVE_FORMATS = frozenset(profile.format for profile in PROFILES.values() if profile.native_code)


class Policy:
    """What a device accepts. Every executable that is created passes `check`."""

    __slots__ = ("_store", "_vouched", "allow_native_code")

    def __init__(self, allow_native_code: bool = False, store: TrustStore | None = None) -> None:
        self.allow_native_code = allow_native_code
        self._store = store
        self._vouched: set[bytes | None] = set()  # a program has many executables

    @property
    def store(self) -> TrustStore:
        """The user's own unless another was given. Most devices never need it, and finding its folder takes a while."""
        if self._store is None:
            self._store = TrustStore()
        return self._store

    def trusts(self, digest: bytes | None) -> bool:
        """Whether the caller, or this user's own compiler, vouches for the module with this root digest.

        False for code that came from no module, and when others may write to the store.
        """
        if self.allow_native_code or digest in self._vouched:
            return True
        try:
            known = digest is not None and digest in self.store
        except SharedFolder:
            return False
        if known:
            self._vouched.add(digest)
        return known

    def check(self, format: str, digest: bytes | None, features: frozenset[str]) -> None:
        """`PolicyRefused` unless a device with these features may run this format from the module with this digest.

        `digest` is that of the module's root, None for code that came from no module.
        """
        confinement = CONFINED_BY.get(format)
        unconfined = confinement is not None and confinement not in features
        if self.allow_native_code or not (unconfined or format in NATIVE_FORMATS):
            return
        try:
            if digest is not None and digest in self.store:
                return
        except SharedFolder as error:
            raise PolicyRefused(str(error)) from error
        what = f"{format} is native code"
        if unconfined:
            what = f"the device lacks feature {confinement}, which confines {format},"
        origin = "code from no module" if digest is None else f"module {digest.hex()[:16]}"
        raise PolicyRefused(
            f"{what} and {origin} was not compiled on this machine by this user: "
            "recompile it here, run it with --allow-native-code (allow_native_code=True), or choose another device"
        )
