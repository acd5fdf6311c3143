"""What goes wrong in the compiler, by whose fault.

`CompileError` is the caller's: the program cannot be compiled as it is. It holds every diagnostic, not the first only.
`ParseError` is a `CompileError` of text that is not IR; it knows file, line and column. `InternalError` is ours: a pass
broke the IR, and whoever sees it should report it. Nothing else leaves `compile()` for a bad program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrion.compiler.ir.locations import UNKNOWN, FileLoc, Location, source_text


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong: where, in which op (its name, or empty), what."""

    message: str
    loc: Location = UNKNOWN
    op: str = ""

    def __str__(self) -> str:
        place = source_text(self.loc)
        return ": ".join(part for part in (place, self.op, self.message) if part)


class CompileError(Exception):
    """The program cannot be compiled; `diagnostics` says each reason, in the order of the program."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | str) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = (
            (Diagnostic(diagnostics),) if isinstance(diagnostics, str) else tuple(diagnostics)
        )
        super().__init__("\n".join(map(str, self.diagnostics)))


class TargetsError(CompileError):
    """Some targets cannot compile the program. `refusals`: the diagnostics of each by the name of its profile."""

    def __init__(self, refusals: Mapping[str, Iterable[Diagnostic]]) -> None:
        self.refusals = {name: tuple(dict.fromkeys(found)) for name, found in refusals.items()}
        super().__init__(dict.fromkeys(one for found in self.refusals.values() for one in found))


class TargetWarning(UserWarning):
    """A module has no program for some of the default targets, which cannot compile the program."""


class ScheduleWarning(UserWarning):
    """A file of schedules has some for bodies that the program does not have."""


class ArgumentTypeError(CompileError, TypeError):
    """An argument of `compile` of the wrong type, or a function that JAX cannot trace for that reason."""


class ArgumentValueError(CompileError, ValueError):
    """An option of `compile` that is unknown or does not fit the others, or a function that JAX cannot trace so."""


class ParseError(CompileError):
    """Text that is not IR. `line` and `column` count from 1."""

    def __init__(self, message: str, file: str, line: int, column: int) -> None:
        super().__init__([Diagnostic(message, FileLoc(file, line, column))])
        self.file, self.line, self.column = file, line, column


class InternalError(Exception):
    """The compiler itself is wrong: a pass left IR that breaks a rule."""

    def __init__(self, made_by: str, diagnostics: Iterable[Diagnostic]) -> None:
        self.made_by = made_by
        self.diagnostics = tuple(diagnostics)
        found = "\n".join(map(str, self.diagnostics))
        super().__init__(f"a fault of the compiler, please report it: {made_by} left IR that breaks a rule\n{found}")
