"""Errors of the compiler, by whose fault they are.

`CompileError`: the caller's program cannot be compiled as it is; it holds every diagnostic, not only the first.
`ParseError` is a `CompileError` for text that is not IR, with file, line and column. `InternalError`: a fault of the
compiler, a pass left invalid IR; users should report it. A bad program makes `compile()` raise nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrion.compiler.ir.locations import UNKNOWN, FileLoc, Location, source_text
from orchestrion.schema.printable import printable_text


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong: the message, its location, and the name of the op, or ""."""

    message: str
    loc: Location = UNKNOWN
    op: str = ""

    def __str__(self) -> str:
        place = source_text(self.loc)
        return ": ".join(part for part in (place, self.op, self.message) if part)


class CompileError(Exception):
    """The program cannot be compiled; `diagnostics` has every reason, in program order."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | str) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (
            (Diagnostic(diagnostics),) if isinstance(diagnostics, str) else tuple(diagnostics)
        )
        super().__init__(printable_text("\n".join(map(str, self.diagnostics))))


class TargetsError(CompileError):
    """Some targets cannot compile the program. `refusals`: profile name -> its diagnostics."""

    def __init__(self, refusals: Mapping[str, Iterable[Diagnostic]]) -> None:
        self.refusals = {name: tuple(dict.fromkeys(found)) for name, found in refusals.items()}
        super().__init__(dict.fromkeys(one for found in self.refusals.values() for one in found))


class TargetWarning(UserWarning):
    """Some default targets cannot compile the program; the module has no programs for them."""


class ScheduleWarning(UserWarning):
    """A file of schedules has some for bodies that the program does not have."""


class ArgumentTypeError(CompileError, TypeError):
    """An argument of `compile` has the wrong type, or JAX raises TypeError when it traces the function."""


class ArgumentValueError(CompileError, ValueError):
    """An option of `compile` is unknown or in conflict, or JAX cannot trace the function for another reason."""


class ParseError(CompileError):
    """Text that is not IR. `line` and `column` count from 1."""

    def __init__(self, message: str, file: str, line: int, column: int) -> None:
        super().__init__([Diagnostic(message, FileLoc(file, line, column))])
        self.file, self.line, self.column = file, line, column


class InternalError(Exception):
    """A fault of the compiler: a pass left IR that breaks a rule."""

    def __init__(self, made_by: str, diagnostics: Iterable[Diagnostic]) -> None:
        self.made_by = made_by
        self.diagnostics = tuple(diagnostics)
        found = "\n".join(map(str, self.diagnostics))
        super().__init__(f"a fault of the compiler, please report it: {made_by} left IR that breaks a rule\n{found}")
