"""Code of the reference device: tensor bytecode, verified against what the module says of it, made into closures."""

from collections.abc import Callable

from orchestrion.hal.backend import BackendExecutable, Entry
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.tensor_bytecode import LIBRARY_CALL, EntryCode
from orchestrion.schema.tensor_encoding import decode

from .program import CompiledEntry, compile_entry

#: tables of buffers for which a recording keeps views
TABLES = 2


class Code:
    """A payload, decoded, and its steps, made when first asked for. Executables with the same payload share it."""

    __slots__ = ("__weakref__", "_compiled", "_poll", "entries")

    def __init__(self, payload: memoryview, poll: Callable[[], None]) -> None:
        """`poll` is called between steps that take long."""
        self.entries = decode(payload).entries
        self._poll = poll
        self._compiled: dict[tuple[int, bool], CompiledEntry] = {}
        for ordinal, entry in enumerate(self.entries):
            if any(one.row is LIBRARY_CALL for one in entry.instructions):
                self.entry(ordinal, False)  # a function that is not there is missed now, not when something is recorded

    def entry(self, ordinal: int, careful: bool) -> CompiledEntry:
        """`careful`: for bindings of which one that is written overlaps another."""
        key = ordinal, careful
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = compile_entry(self.entries[ordinal], careful, self._poll)
        return compiled


class ReferenceExecutable(BackendExecutable):
    """Code that fits what the module says of its entries. `entry` gives the steps of one, as `Code.entry`."""

    __slots__ = ("entries", "entry")

    def __init__(self, code: Code, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self.entry = code.entry
        if len(code.entries) != len(entries):
            raise ModuleError(f"tensor bytecode has {len(code.entries)} entries, the module names {len(entries)}")
        for entry, one in zip(entries, code.entries, strict=True):
            _match(entry, one)

    def scratch_bytes(self, entry: int) -> int:
        return self.entry(entry, False).scratch_bytes

    def held_bytes(self, entry: int) -> int:
        return TABLES * self.entry(entry, False).held_bytes

    def release(self) -> None:
        del self.entry


def _match(entry: Entry, code: EntryCode) -> None:
    if code.bindings != len(entry.bindings):
        raise ModuleError(
            f"entry {entry.name}: code for {code.bindings} bindings, the module says {len(entry.bindings)}"
        )
    if entry.parameter_words:
        raise ModuleError(f"entry {entry.name}: {entry.parameter_words} parameter words, tensor bytecode takes none")
    for position, ((access, length), (allowed, least)) in enumerate(zip(code.accesses, entry.bindings, strict=True)):
        if length > least:
            raise ModuleError(f"entry {entry.name}, binding {position}: code touches {length} bytes of {least}")
        if length and access != allowed and allowed != "readwrite":
            raise ModuleError(f"entry {entry.name}, binding {position}: code is {access}, the module says {allowed}")
