"""Code of the reference device: tensor bytecode, verified against the module's entries and compiled to closures.

An entry of a template (`schema/tensor_template.py`) is a different entry for each set of parameters. It is instantiated
and verified when a dispatch with these parameters is recorded, and a limited number of instances is kept.
"""

from collections.abc import Callable, Sequence
from struct import Struct

from orchestrion.hal.backend import BackendExecutable, Binding, Entry
from orchestrion.hal.errors import InvalidArgument
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.lru_cache import LruCache
from orchestrion.schema.tensor_bytecode import LIBRARY_CALL, Body, EntryCode
from orchestrion.schema.tensor_encoding import decode
from orchestrion.schema.tensor_template import Template, decode_template, is_template

from .program import CompiledEntry, compile_entry

#: the number of tables of buffers for which a recording keeps views
TABLES = 2
#: the most instances of template entries that are kept, and the most bytes of all of them
MAX_TEMPLATE_ENTRIES, MAX_TEMPLATE_BYTES = 64, 16 << 20
#: estimated bytes of memory of an instruction without its constant
INSTRUCTION_BYTES = 500

Words = tuple[int, ...]


class Code:
    """A decoded payload, and its steps, compiled on demand. Executables with the same payload share it."""

    __slots__ = ("__weakref__", "_compiled", "_made", "_made_bytes", "_poll", "entries", "template")

    def __init__(self, payload: memoryview, poll: Callable[[], None]) -> None:
        """`poll` is called between steps that take long."""
        self.template: Template | None = decode_template(payload) if is_template(payload) else None
        self.entries = decode(payload if self.template is None else self.template.payload).entries
        self._poll = poll
        self._compiled: dict[tuple[int, bool], CompiledEntry] = {}
        self._made: LruCache[tuple[int, Words], tuple[EntryCode, dict[bool, CompiledEntry], int]] = LruCache()
        self._made_bytes = 0
        for ordinal, entry in enumerate(self.entries):
            if any(one.row is LIBRARY_CALL for one in entry.instructions):
                self.entry(ordinal, False)  # so a missing function fails the load, not the recording

    def parameters(self, ordinal: int) -> int:
        """The number of parameters that sizes in an entry depend on."""
        return 0 if self.template is None else self.template.entries[ordinal][0]

    def entry(self, ordinal: int, overlapping: bool, words: Words = ()) -> CompiledEntry:
        """Returns the compiled entry. `overlapping`: a written binding overlaps another binding. Raises ModuleError if
        the template is not valid code with these parameters.
        """
        if words:
            return self._of_template(ordinal, overlapping, words)
        key = ordinal, overlapping
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = compile_entry(self.entries[ordinal], overlapping, self._poll)
        return compiled

    def _of_template(self, ordinal: int, overlapping: bool, words: Words) -> CompiledEntry:
        code, compiled, _ = self._instance(ordinal, words)
        if overlapping not in compiled:
            compiled[overlapping] = compile_entry(code, overlapping, self._poll)
        return compiled[overlapping]

    def _instance(self, ordinal: int, words: Words) -> tuple[EntryCode, dict[bool, CompiledEntry], int]:
        """Returns an entry with these parameters, its compiled forms (by `overlapping`), and the bytes of memory that
        it takes.
        """
        key = ordinal, words
        made = self._made.use(key)
        if made is None:
            assert self.template is not None
            code = self.template.entry(ordinal, words)
            made = code, {}, _code_size(code)
            self._made_bytes += made[2]
            while self._made and (len(self._made) >= MAX_TEMPLATE_ENTRIES or self._made_bytes > MAX_TEMPLATE_BYTES):
                self._made_bytes -= self._made.evict()[2]
            self._made[key] = made
        return made

    def own_bytes(self, ordinal: int, words: Words) -> int:
        """Bytes of memory of the code that is instantiated for these parameters; 0 without parameters."""
        return self._instance(ordinal, words)[2] if words else 0

    def check(self, ordinal: int, words: Words, entry: Entry, bindings: Sequence[Binding]) -> None:
        """Compare an entry with these parameters with the module's declaration, and with the bindings' lengths.

        Raises ModuleError if the code has other bindings or accesses them in another way than declared, InvalidArgument
        if a binding is too short.
        """
        code = self._instance(ordinal, words)[0]
        name = f"{entry.name} with parameters {list(words)}"
        _match_bindings(name, entry, code)
        for position, ((_, length), binding) in enumerate(zip(code.accesses, bindings, strict=True)):
            if length > binding.length:
                raise InvalidArgument(
                    f"entry {name}, binding {position}: code touches {length} bytes of {binding.length}"
                )

    def bytes_with(self, ordinal: int, words: Words) -> int:
        """Bytes of code and of expressions that are read to instantiate an entry with these parameters."""
        if self.template is None or not words:
            return 0
        return len(self.template.payload) + sum([len(patch.code) for patch in self.template.entries[ordinal][1]])


class ReferenceExecutable(BackendExecutable):
    """Code that matches the module's entries. `entry` returns the compiled form of one, as `Code.entry`."""

    __slots__ = ("_bytes_with", "_own_bytes", "check", "entries", "entry")

    def __init__(self, code: Code, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self.entry = code.entry
        self.check = code.check
        self._bytes_with, self._own_bytes = code.bytes_with, code.own_bytes
        if len(code.entries) != len(entries):
            raise ModuleError(f"tensor bytecode has {len(code.entries)} entries, the module names {len(entries)}")
        for ordinal, (entry, one) in enumerate(zip(entries, code.entries, strict=True)):
            _match(entry, one, code.parameters(ordinal))

    def scratch_bytes(self, entry: int, parameters: bytes) -> int:
        return self.entry(entry, False, words_of(parameters)).scratch_bytes

    def held_bytes(self, entry: int, parameters: bytes) -> int:
        words = words_of(parameters)
        return TABLES * self.entry(entry, False, words).held_bytes + self._own_bytes(entry, words)

    def code_bytes(self, entry: int, parameters: bytes) -> int:
        return self._bytes_with(entry, words_of(parameters))

    def release(self) -> None:
        del self.entry, self.check, self._bytes_with, self._own_bytes


def _code_size(code: EntryCode) -> int:
    """Estimated bytes of memory of an entry's instructions and constants."""
    size = 0
    for instruction in code.instructions:
        size += INSTRUCTION_BYTES
        for attribute in instruction.attributes:
            if isinstance(attribute, bytes):
                size += len(attribute)
            elif isinstance(attribute, Body):
                size += INSTRUCTION_BYTES * len(attribute.instructions)
    return size


def words_of(parameters: bytes) -> Words:
    """The parameters as unsigned 32-bit numbers."""
    return Struct(f"<{len(parameters) // 4}I").unpack(parameters)


def _match(entry: Entry, code: EntryCode, parameters: int) -> None:
    if entry.parameter_words != parameters:
        raise ModuleError(f"entry {entry.name}: {entry.parameter_words} parameter words, its code takes {parameters}")
    _match_bindings(entry.name, entry, code)
    for position, ((_, length), (_, least)) in enumerate(zip(code.accesses, entry.bindings, strict=True)):
        if length > least and not parameters:  # with parameters, `Code.check` compares the lengths of each dispatch
            raise ModuleError(f"entry {entry.name}, binding {position}: code touches {length} bytes of {least}")


def _match_bindings(name: str, entry: Entry, code: EntryCode) -> None:
    """Raises ModuleError unless the code has the declared number of bindings, and uses each as declared."""
    if code.bindings != len(entry.bindings):
        raise ModuleError(f"entry {name}: code for {code.bindings} bindings, the module says {len(entry.bindings)}")
    for position, ((access, length), (allowed, _)) in enumerate(zip(code.accesses, entry.bindings, strict=True)):
        if length and access != allowed and allowed != "readwrite":
            raise ModuleError(f"entry {name}, binding {position}: code is {access}, the module says {allowed}")
