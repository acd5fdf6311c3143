"""Links the program of an open file for a device, and caches modules that are loaded again and again.

Decoding and verifying depend only on a module's root, and so does its code once it is linked with the module `hal`. All
of that is cached under the SHA-256 of the root, which `container.py` compares with the bytes of the root whenever a
file is opened. What belongs to a file is not cached (its directory, its segments, which of them were verified), and
nothing of a device is cached but the program that was chosen for it last.

Most modules are loaded once. A module is cached from its second load on, within the limits below.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from orchestrion.hal.backend import DeviceInfo
from orchestrion.hal.fork import new_lock
from orchestrion.schema.container import Container
from orchestrion.schema.decoder import decode, decode_again
from orchestrion.schema.lru_cache import LruCache
from orchestrion.schema.module import Module

from .build_failures import failures_of
from .hal_module import HalModule
from .linker import LinkedProgram, ProgramCode, link
from .native import Functions
from .selection import choose_program
from .verifier import verify

#: called with a decoded module before its code is verified; raises to refuse the module
ModuleCheck = Callable[[Module], None]

#: the default of `failed`
_NOTHING: Final[Mapping[int, str]] = {}
#: modules in the cache, and bytes of all their roots together; the cached objects take some thirty times that
MAX_MODULES, MAX_BYTES = 32, 1 << 20
#: digests that are remembered of modules that were loaded once
_MAX_SEEN = 256


class _CachedModule:
    """A module without its file: its rows, and the code of the programs that were loaded.

    `last_choice`: the device for which a program was chosen last, from a file with all segments, and the ordinal of
    that program.
    """

    __slots__ = ("last_choice", "module", "programs", "size")

    def __init__(self, module: Module, size: int) -> None:
        self.module = module
        self.size = size
        self.programs: dict[int, ProgramCode] = {}
        self.last_choice: tuple[DeviceInfo, int] | None = None


class Loader:
    """Links programs and caches their modules. Any thread may call it."""

    def __init__(self, max_modules: int = MAX_MODULES, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._modules: LruCache[bytes, _CachedModule] = LruCache()  #: by digest
        self._bytes = 0  #: of the roots of `_modules`
        self._max_modules = max_modules
        self._seen: LruCache[bytes, bool] = LruCache()  #: digests of modules that were loaded once
        self._lock = new_lock()
        self._hal = HalModule()

    def __len__(self) -> int:
        return len(self._modules)

    def link(
        self,
        file: Container,
        info: DeviceInfo,
        natives: Sequence[Functions],
        check: ModuleCheck | None = None,
        decoded: Module | None = None,
        failed: Mapping[int, str] = _NOTHING,
    ) -> LinkedProgram:
        """The program of a file that a device gets. Raises what `decode`, `choose_program`, `verify` and `link` raise.

        Code that calls functions of `natives` is not cached. `check` may refuse the module before code is verified.
        `decoded`: the result of `decode` for the file, if the caller has it. `failed`: ordinals of programs that the
        driver does not build, and why.
        """
        cached = self._find(file)
        module = decoded or self._decode(file, cached)
        if check is not None:
            check(module)
        ordinal = _choose(module, cached, info, failed)
        if natives:
            return link(module, ordinal, verify(module, ordinal), (self._hal, *natives))
        code = None if cached is None else cached.programs.get(ordinal)
        if code is not None:
            return LinkedProgram(module, ordinal, code)
        linked = link(module, ordinal, verify(module, ordinal), (self._hal,))
        self._add(file, _CachedModule(module, len(file.root)), ordinal, linked.code)
        return linked

    def decode(self, file: Container) -> Module:
        """The module of a file. Raises what `decode` raises."""
        return self._decode(file, self._find(file))

    def _decode(self, file: Container, cached: _CachedModule | None) -> Module:
        return decode(file) if cached is None else decode_again(cached.module, file)

    def link_profiled(
        self,
        file: Container,
        info: DeviceInfo,
        natives: Sequence[Functions],
        check: ModuleCheck | None = None,
        failed: Mapping[int, str] = _NOTHING,
    ) -> LinkedProgram:
        """As `link`, where `natives` are all native modules, `hal` included. The code is not cached."""
        cached = self._find(file)
        module = self._decode(file, cached)
        if check is not None:
            check(module)
        ordinal = _choose(module, cached, info, failed)
        return link(module, ordinal, verify(module, ordinal), natives)

    def _find(self, file: Container) -> _CachedModule | None:
        with self._lock:
            return self._modules.use(file.digest)

    def _add(self, file: Container, found: _CachedModule, ordinal: int, code: ProgramCode) -> None:
        """Cache the code of a program, and its module if that is not cached."""
        digest = file.digest
        if found.size > self._max_bytes:
            return
        with self._lock:
            cached = self._modules.use(digest)
            if cached is None and self._seen.pop(digest, None) is None:
                self._seen.put(digest, True, _MAX_SEEN)
                return
            if cached is None:
                self._bytes += found.size
                cached = _CachedModule(found.module.without_file(), found.size)
                evicted = self._modules.put(digest, cached, self._max_modules)
                self._bytes -= sum([module.size for _, module in evicted])
            cached.programs[ordinal] = code
            while self._bytes > self._max_bytes:
                self._bytes -= self._modules.evict().size


def _choose(
    module: Module, cached: _CachedModule | None, info: DeviceInfo, failed: Mapping[int, str] = _NOTHING
) -> int:
    """The ordinal of the program that the device gets. Of a file with all segments it is always the same one, unless
    the driver fails to build it.
    """
    if cached is None or not module.container.complete or failed or failures_of(module, info).programs:
        return choose_program(module, info, failed)
    last = cached.last_choice  # read once: another thread may load the module for another device
    if last is None or last[0] is not info:
        last = cached.last_choice = info, choose_program(module, info)
    return last[1]
