"""The entries of a program by name. The same computation has the same name on every device.

The target decides how entries are combined into executables (docs/decisions/linked-executables.md), so executables of
different programs cannot be matched by name. An entry specialised for small sizes is named after the general entry,
with `UP_TO` and a number, and `_columns` if the number limits columns (docs/decisions/few-and-many.md); both compute
the same.
"""

import re
from collections import Counter
from collections.abc import Collection

from orchestrion.schema.module import Module
from orchestrion.schema.rows import UP_TO

#: (number of an executable in its program, number of an entry in the executable)
Ordinals = tuple[int, int]


def entries_by_name(module: Module, program: int) -> dict[str, Ordinals]:
    """The entries of a program by name. Names that occur twice, which only hand-written text has, are left out."""
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
    """The name of the computation of an entry: for a specialised one, the name of the general entry."""
    other, _, size = name.rpartition(UP_TO)
    return other if re.fullmatch("[0-9]+(_columns)?", size) and other in entries else name


def specialized(name: str, entries: Collection[str]) -> set[str]:
    """The entries that are specialised versions of this one for small sizes."""
    return {other for other in entries if other != name and called(other, entries) == name}
