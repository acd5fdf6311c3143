"""A verified program joined with native functions: code ready to run, the same for all contexts and threads."""

from collections.abc import Sequence

from orchestrion.schema.decoder import initial_value
from orchestrion.schema.module import Module
from orchestrion.schema.rows import InitializerKind, Program

from .code import Code, Link
from .native import NativeModule, resolve
from .verifier import VerifiedProgram

_SETUP = int(InitializerKind.Program)


class LinkedProgram:
    """One program of a module. Never changed once made."""

    __slots__ = (
        "_link",
        "codes",
        "context_initializers",
        "entries",
        "globals",
        "module",
        "ordinal",
        "program_initializers",
        "row",
    )

    def __init__(self, module: Module, ordinal: int, link: Link) -> None:
        codes = link.codes
        self._link = link
        self.module = module
        self.ordinal = ordinal
        self.row: Program = module.programs[ordinal]
        row = self.row
        self.codes = codes
        self.globals = [
            initial_value(module.strings[module.types[at.type]], at.value)
            for at in module.globals[row.globals_start : row.globals_end]
        ]
        initializers = module.initializers[row.initializers_start : row.initializers_end]
        self.program_initializers = [codes[at.function] for at in initializers if at.kind == _SETUP]
        self.context_initializers = [codes[at.function] for at in initializers if at.kind != _SETUP]
        self.entries = [codes[at] for at in module.entries[row.entries_start : row.entries_end]]

    def __del__(self) -> None:
        """Functions know each other, in circles; nobody can call them any more."""
        if hasattr(self, "_link"):
            self._link.codes.clear()

    def constant(self, ordinal: int) -> memoryview:
        """The bytes of a constant, neither copied nor read. `ModuleError` when its segment is not in the file."""
        row = self.module.constants[self.row.constants_start + ordinal]
        return self.module.segment(row.segment, verify=False)

    def location(self, function: int, pc: int) -> str | None:
        return self.module.location(self.ordinal, function, pc)


def link(module: Module, ordinal: int, verified: VerifiedProgram, natives: Sequence[NativeModule]) -> LinkedProgram:
    """Resolve the imports that the program names. `UnresolvedImport` lists what is missing."""
    names = [module.strings[row.name] for row in module.imports]
    joint = Link(names, resolve(verified.imports, natives))
    joint.codes = [Code(joint, *function) for function in verified.functions]
    return LinkedProgram(module, ordinal, joint)
