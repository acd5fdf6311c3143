"""Links a verified program with native functions. The result is ready to run and shared by all contexts and threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol

from orchestrion.schema.decoder import initial_value
from orchestrion.schema.module import Module
from orchestrion.schema.parameters import parameters_of
from orchestrion.schema.rows import InitializerKind, Program

from .code import Code, Link
from .exports import read_exports
from .load_limits import declared_by
from .native import Functions, NativeModule, resolve
from .release_order import release_order
from .selection import Choice
from .verifier import VerifiedProgram

_SETUP = int(InitializerKind.Program)


class ProgramCode:
    """The part of a linked program that all loads share. It refers to neither file nor device. Only its caches change.

    `chosen`: a cache of the variant that was chosen last for each executable, by its ordinal. `calls_other_natives`:
    whether the program calls native modules other than `hal`. `declared`: the limits that the module declares.
    `parameters`: the parameters that the program needs.
    """

    __slots__ = (
        "_release_order",
        "chosen",
        "codes",
        "context_initializers",
        "declared",
        "entries",
        "exports",
        "calls_other_natives",
        "globals",
        "parameters",
        "program_initializers",
    )

    def __init__(self, module: Module, row: Program, link: Link) -> None:
        codes = link.codes
        self.calls_other_natives = any([f is not None and not f.name.startswith("hal.") for f in link.imports])
        self.codes = codes
        self.globals = [
            initial_value(module.strings[module.types[at.type]], at.value)
            for at in module.globals[row.globals_start : row.globals_end]
        ]
        initializers = module.initializers[row.initializers_start : row.initializers_end]
        self.program_initializers = [codes[at.function] for at in initializers if at.kind == _SETUP]
        self.context_initializers = [codes[at.function] for at in initializers if at.kind != _SETUP]
        self.entries = [codes[at] for at in module.entries[row.entries_start : row.entries_end]]
        self.exports = read_exports(module)
        self.declared = declared_by(module)
        self.parameters = parameters_of(module, row)
        self.chosen: dict[int, Choice] = {}
        self._release_order: tuple[int, ...] | None = None

    def release_order(self) -> tuple[int, ...]:
        """The ordinals of the globals, in the order in which a closed context releases them."""
        if self._release_order is None:
            initializers = (*self.program_initializers, *self.context_initializers)
            self._release_order = release_order(initializers, self.codes, len(self.globals))
        return self._release_order

    def __del__(self) -> None:
        """Break the reference cycles between functions, which nobody can call any more."""
        if hasattr(self, "codes"):
            self.codes.clear()


class ParameterValues:
    """The bytes of a program's parameters, by segment. Immutable. Keeps the files mapped that hold them."""

    __slots__ = ("_digest", "_names", "by_segment")

    def __init__(self, by_segment: Mapping[int, memoryview], names: Sequence[str]) -> None:
        self.by_segment = by_segment
        self._names = names  #: in the order of `by_segment`
        self._digest = b""

    def digest(self) -> bytes:
        """SHA-256 of all names and values, with adapters applied; empty without parameters. The first call reads all
        values.
        """
        if not self._digest and self.by_segment:
            whole = sha256()
            for name, data in zip(self._names, self.by_segment.values(), strict=True):
                whole.update(sha256(name.encode()).digest() + sha256(data).digest())
            self._digest = whole.digest()
        return self._digest


_NO_VALUES = ParameterValues({}, ())


class Imported(Protocol):
    """A module whose functions the program calls. See `imported_modules.py`."""

    def leave(self, caller: Any) -> None:
        """Release what serves `caller`, a context of the program that is closed."""

    def close(self) -> None:
        """Release everything: the program is closed."""


class LinkedProgram:
    """One program of a module in a file. Immutable once it runs: `parameters`, `imported` and `lazy` are set before."""

    __slots__ = (
        "code",
        "codes",
        "context_initializers",
        "entries",
        "exports",
        "globals",
        "imported",
        "lazy",
        "module",
        "ordinal",
        "parameters",
        "program_initializers",
        "row",
    )

    def __init__(self, module: Module, ordinal: int, code: ProgramCode) -> None:
        self.module = module
        self.ordinal = ordinal
        self.row: Program = module.programs[ordinal]
        self.code = code
        self.codes: list[Code] = code.codes
        self.globals = code.globals
        self.program_initializers = code.program_initializers
        self.context_initializers = code.context_initializers
        self.entries = code.entries
        self.exports = code.exports
        self.parameters = _NO_VALUES
        self.imported: Sequence[Imported] = ()  #: modules whose functions the program calls
        self.lazy = False  #: whether device code is built at its first use

    def constant(self, ordinal: int) -> memoryview:
        """The bytes of a constant or parameter, without copying or reading them. `ModuleError` if the file lacks the
        segment.
        """
        row = self.module.constants[self.row.constants_start + ordinal]
        value = self.parameters.by_segment.get(row.segment)
        return self.module.segment(row.segment, verify=False) if value is None else value

    def verify_constant(self, ordinal: int, start: int, end: int) -> None:
        """Verify bytes `start` to `end` of a constant before they are used. `ModuleError` if they are damaged.

        Does nothing without a trust policy, and for parameters, which were verified when they were bound.
        """
        guard = self.module.guard
        if guard is None:
            return
        segment = self.module.constants[self.row.constants_start + ordinal].segment
        if segment not in self.parameters.by_segment:
            guard.verify(segment, start, end)

    def location(self, function: int, pc: int) -> str | None:
        """The source location of an instruction; None if the module does not say."""
        return self.module.location(self.ordinal, function, pc)


def link(module: Module, ordinal: int, verified: VerifiedProgram, natives: Sequence[Functions]) -> LinkedProgram:
    """Link program `ordinal` of a module with native functions. `UnresolvedImport` lists the missing imports."""
    names = [module.strings[row.name] for row in module.imports]
    shared = Link(
        names,
        resolve(verified.imports, natives),
        any([isinstance(module, NativeModule) and module.placed for module in natives]),
    )
    shared.codes = [Code(shared, *function) for function in verified.functions]
    return LinkedProgram(module, ordinal, ProgramCode(module, module.programs[ordinal], shared))
