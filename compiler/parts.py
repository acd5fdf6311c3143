"""The parts of a module: copies of the program for two kinds of target, in the phases `stablehlo` and `flow`.

These phases keep one copy of the program for all targets. If a program calls LAPACK and only some targets do that, the
pass `split-by-libraries` turns it into two modules inside the module, its *parts*. Passes then run on each
part as on a module, until `form-programs` builds each target's program from the part that it can run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .ir.builtin import Module
from .ir.core import Operation
from .profiles import known_profile

#: Whether the targets of a part call LAPACK -> symbol of the part.
PARTS: Final[dict[bool, str]] = {True: "with_libraries", False: "without_libraries"}


def parts_of(module: Module) -> list[Module]:
    """The parts of a module that is split; empty for any other."""
    return [op for op in module.block if isinstance(op, Module)]


def part_for(module: Module, target: str) -> Module:
    """The module from which a target's program is made: its part, or the module itself if that is not split."""
    wanted = PARTS[calls_lapack(target)]
    return next((part for part in parts_of(module) if part.symbol == wanted), module)


def calls_lapack(target: str) -> bool:
    """Whether a target calls the functions of LAPACK that the compiler could also write as loops."""
    profile = known_profile(target)
    return profile.library_calls and not profile.library_format


def is_part_without_libraries(module: Module) -> bool:
    """Whether the module is the part for targets without library functions."""
    return module.parent is not None and module.symbol == PARTS[False]


def problems(op: Operation) -> Iterator[str]:
    """Messages about the modules in a module."""
    if not isinstance(op, Module):
        return
    names = [f"@{part.symbol}" for part in parts_of(op)]
    wanted = [f"@{name}" for name in PARTS.values()]
    if op.parent is not None and names:
        yield "is a part and contains modules"
    elif names and names != wanted:
        yield f"holds modules {', '.join(names)}; parts are {' and '.join(wanted)}"
    elif names and len(op.block.ops) != len(names):
        yield "contains parts and other ops"
