"""From an open file to a linked program for a device; what was worked out about a module serves its next load.

Decoding and verifying are functions of a module's root alone, and so is its code once it is linked with the `hal`
module. All of that is kept under the root's SHA-256, which `container.py` compares with the root's bytes whenever a
file is opened. What belongs to a file (its directory, its segments and which of them were verified) is never kept, nor
is anything of a device. What was decoded from a mapped root, which somebody may have written to after its digest was
compared, does not serve a load that has a copy of the root. Most modules are loaded once, so one is kept from its
second load on; those used last are kept, within the limits below.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from orchestrion.hal.backend import DeviceInfo
from orchestrion.hal.fork import new_lock
from orchestrion.schema.container import Container
from orchestrion.schema.decoder import decode, decode_again
from orchestrion.schema.module import Module

from .hal_module import HalModule
from .linker import LinkedProgram, ProgramCode, link
from .native import Functions
from .selection import choose_program
from .verifier import verify

Check = Callable[[Module], None]

#: modules kept, and bytes of all their roots together; what is kept takes some thirty times that
MOST_MODULES, MOST_BYTES = 32, 1 << 20
#: digests of modules loaded once that are remembered
_MOST_SEEN = 256


class _Known:
    """A module that was seen: its rows, the code of the programs that were asked for, and which one it was last.

    `last`: for which device, of a file from which no segment was taken out. `fixed`: whether the rows are those of a
    root that nobody can have changed between its digest and its decoding (`_is_fixed`).
    """

    __slots__ = ("fixed", "last", "module", "programs", "size")

    def __init__(self, module: Module, size: int, fixed: bool) -> None:
        self.module = module
        self.size = size
        self.fixed = fixed
        self.programs: dict[int, ProgramCode] = {}
        self.last: tuple[DeviceInfo, int] | None = None


def _is_fixed(file: Container) -> bool:
    """Whether the root cannot change any more: not while it lies in a mapped file, which others may write to."""
    return isinstance(file.root.obj, bytes)


class Loader:
    """Links programs, and remembers."""

    def __init__(self, most_modules: int = MOST_MODULES, most_bytes: int = MOST_BYTES) -> None:
        self._most_modules = most_modules
        self._most_bytes = most_bytes
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._bytes = 0
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._lock = new_lock()
        self._hal = HalModule()

    def __len__(self) -> int:
        return len(self._known)

    def link(
        self, file: Container, info: DeviceInfo, natives: Sequence[Functions], check: Check | None = None
    ) -> LinkedProgram:
        """The program of a file that a device gets. Raises what `decode`, `choose_program`, `verify` and `link` do.

        Code that calls `natives` is theirs, and not kept. `check` may refuse the module before any code is verified.
        """
        known = self._find(file)
        module = decode(file) if known is None else decode_again(known.module, file)
        if check is not None:
            check(module)
        ordinal = _choose(module, known, info)
        if natives:
            return link(module, ordinal, verify(module, ordinal), (self._hal, *natives))
        code = None if known is None else known.programs.get(ordinal)
        if code is not None:
            return LinkedProgram(module, ordinal, code)
        linked = link(module, ordinal, verify(module, ordinal), (self._hal,))
        fixed = _is_fixed(file) if known is None else known.fixed
        self._keep(file, _Known(module, len(file.root), fixed), ordinal, linked.code)
        return linked

    def link_profiled(
        self, file: Container, info: DeviceInfo, natives: Sequence[Functions], check: Check | None = None
    ) -> LinkedProgram:
        """As `link`, with `natives` for all modules, `hal` included; nothing is kept."""
        known = self._find(file)
        module = decode(file) if known is None else decode_again(known.module, file)
        if check is not None:
            check(module)
        ordinal = _choose(module, known, info)
        return link(module, ordinal, verify(module, ordinal), natives)

    def _find(self, file: Container) -> _Known | None:
        with self._lock:
            known = self._known.get(file.digest)
            if known is None or (not known.fixed and _is_fixed(file)):
                return None
            self._known.move_to_end(file.digest)
            return known

    def _keep(self, file: Container, found: _Known, ordinal: int, code: ProgramCode) -> None:
        """Keep the code of a program, and the module if it is not kept yet; rather one that is fixed."""
        digest = file.digest
        if found.size > self._most_bytes:
            return
        with self._lock:
            known = self._known.get(digest)
            if known is None and digest not in self._seen:
                self._seen[digest] = None
                if len(self._seen) > _MOST_SEEN:
                    self._seen.popitem(last=False)
                return
            if known is None:
                del self._seen[digest]
                self._bytes += found.size
            elif known.fixed and not found.fixed:
                return
            if known is None or known.fixed != found.fixed:
                known = self._known[digest] = _Known(found.module.without_file(), found.size, found.fixed)
            known.programs[ordinal] = code
            while self._known and (self._bytes > self._most_bytes or len(self._known) > self._most_modules):
                _, last = self._known.popitem(last=False)
                self._bytes -= last.size


def _choose(module: Module, known: _Known | None, info: DeviceInfo) -> int:
    """The program that the device gets of the file: of whole files always the same one."""
    if known is None or not module.container.complete:
        return choose_program(module, info)
    last = known.last  # read once: another thread may load the module for another device
    if last is None or last[0] is not info:
        last = known.last = info, choose_program(module, info)
    return last[1]
