"""The judge of placement reports: every op of the source has its place in every program, or its end, and what the
report names is in the module.

It counts the ops of the source itself, in the IR that the frontend gives, and reads names from the module's file.
"""

from collections.abc import Sequence
from typing import Any

from orchestrion import compiler
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.placement import KINDS, Report
from orchestrion.schema.container import open_bytes
from orchestrion.schema.decoder import decode
from orchestrion.schema.module import Module

#: executable and entry
Name = tuple[str, str]


def compiled(source: Any, targets: Sequence[str] | None = None, **options: Any) -> tuple[Report, bytes]:
    """The report of a compilation, which makes the same module as one without, and is complete."""
    report = Report()
    blob = compiler.compile(source, targets=targets, report=report, **options)
    assert blob == compiler.compile(source, targets=targets, **options)
    check(report, decode(open_bytes(blob)))
    check_ops(report, source)
    return report, blob


def entries_of(module: Module) -> dict[str, dict[Name, tuple[str, ...]]]:
    """program -> its entries, and the ops of the source that the module says each computes."""
    found: dict[str, dict[Name, tuple[str, ...]]] = {}
    for number, program in enumerate(module.programs):
        entries = found.setdefault(module.strings[program.name], {})
        for ordinal, row in enumerate(module.executables[program.executables_start : program.executables_end]):
            for index, entry in enumerate(module.executable_entries[row.entries_start : row.entries_end]):
                name = module.strings[row.name], module.strings[entry.name]
                entries[name] = module.source_ops(number, ordinal, index)
    return found


def check_ops(report: Report, source: Any) -> None:
    """Each op of each function has one row, in the order of the program."""
    module = Compilation(targets=("reference",)).module(source, "input")
    ops = [op.name for op in module.walk() if op.name not in ("builtin.module", "func.func")]
    assert [row.op.partition("(")[0] for row in report.ops] == ops
    assert [row.number for row in report.ops] == list(range(len(ops)))


def check(report: Report, module: Module) -> None:
    """Every op has a place in each program or an end, and not both; every entry of the module has ops."""
    entries = entries_of(module)
    assert [program.name for program in report.programs] == list(entries)
    used: dict[str, set[Name]] = {name: set() for name in entries}
    for row in report.ops:
        assert bool(row.places) != bool(row.end), row
        assert not row.places or {place.program for place in row.places} == set(entries), row
        assert all(0 <= other < len(report.ops) and other != row.number for other in row.stands_for), row
        assert row.parent is None or row.parent < row.number
        for place in row.places:
            assert place.kind in KINDS
            if place.executable:
                used[place.program].add((place.executable, place.entry))
    for program in report.programs:
        rows = {(entry.executable, entry.entry): entry for entry in program.entries}
        assert rows.keys() == entries[program.name].keys()
        specialized = {name for name, entry in rows.items() if entry.calls}
        assert used[program.name] == rows.keys() - specialized, program.name


def places(report: Report, op: str, program: str = "reference") -> list[list[str]]:
    """Where a program has each op of a name, in words."""
    rows = [row for row in report.ops if row.op == op]
    return [[place.what for place in row.places if place.program == program] for row in rows]


def ends(report: Report, op: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(row.end, row.stands_for) for row in report.ops if row.op == op]
