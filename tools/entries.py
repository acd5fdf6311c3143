"""The entries of a program by name: what a dispatch computes is called the same on every device.

How entries are put together into executables is the target's (docs/decisions/linked-executables.md), so an executable's
name says nothing to the program of another device. An entry for few of something has the name of the one that it stands
in for and `FEW` behind (docs/decisions/few-and-many.md): both compute one thing.
"""

from collections import Counter
from collections.abc import Collection

from orchestrion.schema.module import Module
from orchestrion.schema.rows import FEW

#: an executable of a program, an entry of it
Ordinals = tuple[int, int]


def entries_by_name(module: Module, program: int) -> dict[str, Ordinals]:
    """Where the entries of a program are; those whose name another one has, as texts by hand may say, are left out."""
    row = module.programs[program]
    found: dict[str, Ordinals] = {}
    count: Counter[str] = Counter()
    for ordinal, executable in enumerate(module.executables[row.executables_start : row.executables_end]):
        for number, entry in enumerate(module.executable_entries[executable.entries_start : executable.entries_end]):
            name = module.strings[entry.name]
            found[name] = ordinal, number
            count[name] += 1
    return {name: place for name, place in found.items() if count[name] == 1}


def called(name: str, entries: Collection[str]) -> str:
    """What an entry computes, by name: of one for few, the name of the other."""
    other = name.removesuffix(FEW)
    return other if other in entries else name


def of_few(name: str) -> str:
    """The name that an entry for few has, beside one of that name. It is right for all sizes."""
    return name + FEW
