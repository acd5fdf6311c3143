"""Code of the reference device: tensor bytecode, verified against what the module says of it, made into closures."""

from collections.abc import Callable

from orchestrion.hal.backend import BackendExecutable, Entry
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.tensor_bytecode import EntryCode
from orchestrion.schema.tensor_encoding import decode

from .program import CompiledEntry, compile_entry


class ReferenceExecutable(BackendExecutable):
    """`entry` gives an entry's steps, made when first asked for."""

    __slots__ = ("_code", "_compiled", "_poll", "entries")

    def __init__(self, payload: memoryview, entries: tuple[Entry, ...], poll: Callable[[], None]) -> None:
        """`poll` is called between steps that take long."""
        self.entries = entries
        self._poll = poll
        self._code = decode(payload).entries
        self._compiled: dict[tuple[int, bool], CompiledEntry] = {}
        if len(self._code) != len(entries):
            raise ModuleError(f"tensor bytecode has {len(self._code)} entries, the module names {len(entries)}")
        for entry, code in zip(entries, self._code, strict=True):
            _match(entry, code)

    def entry(self, ordinal: int, careful: bool) -> CompiledEntry:
        """`careful`: for bindings of which one that is written overlaps another."""
        key = ordinal, careful
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = compile_entry(self._code[ordinal], careful, self._poll)
        return compiled

    def scratch_bytes(self, entry: int) -> int:
        return self.entry(entry, False).scratch_bytes

    def release(self) -> None:
        self._compiled.clear()


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
