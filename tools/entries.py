"""The entries of a program by name: what a dispatch computes is called the same on every device.

How entries are put together into executables is the target's (docs/decisions/linked-executables.md), so an executable's
name says nothing to the program of another device.
"""

from collections import Counter

from orchestrion.schema.module import Module

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
