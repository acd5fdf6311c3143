"""The entries of a program by name: what a dispatch computes is called the same on every device.

How entries are put together into executables is the target's (docs/decisions/linked-executables.md), so an executable's
name says nothing to the program of another device. An entry for small sizes has the name of the one that it stands in
for, `UP_TO` and a number, and `_columns` where these are few (docs/decisions/few-and-many.md): both compute one thing.
"""

import re
from collections import Counter
from collections.abc import Collection

from orchestrion.schema.module import Module
from orchestrion.schema.rows import UP_TO

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
    """What an entry computes, by name: of one for small sizes, the name of the other."""
    other, _, size = name.rpartition(UP_TO)
    return other if re.fullmatch("[0-9]+(_columns)?", size) and other in entries else name


def specialized(name: str, entries: Collection[str]) -> set[str]:
    """The entries that stand in for that one where sizes are small; it may be wrong there."""
    return {other for other in entries if other != name and called(other, entries) == name}
