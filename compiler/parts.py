"""The parts of a module: copies of the program for kinds of target, in the phases `stablehlo` and `flow`.

These phases keep one copy of the program for all targets. If a program calls LAPACK, which some targets do and others
replace by loops, the pass `split-by-libraries` turns it into modules inside the module, its *parts*. Passes then run on
each part as on a module, until `form-programs` builds each target's program from the part that it can run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation

from .profiles import known_profile

if TYPE_CHECKING:
    from .options import Options

#: What targets make of calls of LAPACK that the compiler could write as loops -> symbol of the part of these targets.
#: `large`: calls for large matrices, loops for others.
PARTS: Final[dict[str, str]] = {
    "calls": "with_libraries",
    "large": "with_large_calls",
    "loops": "without_libraries",
}


def parts_of(module: Module) -> list[Module]:
    """The parts of a module that is split; empty for any other."""
    return module.block.of(Module)


def part_for(module: Module, target: str) -> Module:
    """The module from which a target's program is made: its part, or the module itself if that is not split. Without
    large matrices, targets that call LAPACK for these have the part with loops.
    """
    parts = {part.symbol: part for part in parts_of(module)}
    return parts.get(PARTS[lapack_calls(target)]) or parts.get(PARTS["loops"]) or module


def lapack_calls(target: str) -> str:
    """What a target makes of calls of LAPACK: a key of `PARTS`."""
    profile = known_profile(target)
    if not profile.library_calls:
        return "loops"
    return "large" if profile.library_format else "calls"


def kinds_of(options: Options) -> set[str]:
    """What the targets of a compilation make of calls of LAPACK."""
    return {"loops"} if options.lapack == "loops" else set(map(lapack_calls, options.targets))


def common_lapack_calls(options: Options) -> str:
    """What becomes of calls of LAPACK in the program that all targets share: a call that one of them keeps stays."""
    kinds = kinds_of(options)
    if kinds == {"loops"}:
        return "loops"
    return "calls" if "calls" in kinds else "large"


def lapack_calls_of_part(module: Module) -> str:
    """What the targets of a part make of calls of LAPACK; `calls` for a module that is no part."""
    kinds = {name: kind for kind, name in PARTS.items()}
    return "calls" if module.parent is None else kinds.get(module.symbol or "", "calls")


def problems(op: Operation) -> Iterator[str]:
    """Messages about the modules in a module."""
    if not isinstance(op, Module):
        return
    names = [f"@{part.symbol}" for part in parts_of(op)]
    wanted = [f"@{name}" for name in PARTS.values() if f"@{name}" in names]
    if op.parent is not None and names:
        yield "is a part and contains modules"
    elif names and (names != wanted or len(names) < 2):
        yield f"holds modules {', '.join(names)}; parts are two or more of @{', @'.join(PARTS.values())}, in this order"
    elif names and len(op.block.ops) != len(names):
        yield "contains parts and other ops"
