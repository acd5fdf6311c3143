"""link-executables: merges executables into one with several entries, if the target builds them together.

A driver that compiles source pays a fixed cost per program: PoCL reads the header of all built-in functions each time
(docs/decisions/linked-executables.md). The target says how many entries a program may have. Executables that only
initializers dispatch stay separate: they need not be built if their results are found in the cache. So do library
calls, whose code may be of another format.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.flow.symbols import Names
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import SymbolRef
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region
from orchestrion.compiler.sequencer import hl_seq, ll_seq
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.library_code import calls_library
from orchestrion.compiler.targets.target import target

#: Name of linked executables, followed by a number.
LINKED = "linked"


def run(program: hl_seq.Program) -> None:
    renamed: dict[SymbolRef, SymbolRef] = {}
    groups = _groups(program, target(program.profile).most_entries)
    names = Names.of(program)
    for ordinal, group in enumerate(group for group in groups if len(group) > 1):
        renamed |= _link(group, names.fresh(f"{LINKED}_{ordinal}"))
    for dispatch in _dispatches(program, Func, util.Initializer):
        dispatch.entry = renamed.get(dispatch.entry, dispatch.entry)


def _dispatches(program: hl_seq.Program, *kinds: type[Operation]) -> list[flow.Dispatch]:
    """The dispatches in top-level ops of these classes."""
    tops = [top for top in program.body.block if isinstance(top, kinds)]
    return [op for top in tops for op in top.walk(flow.Dispatch)]


def _groups(program: hl_seq.Program, most: int) -> Iterator[list[ll_seq.Executable]]:
    """Groups of executables to link, without duplicate entry names, in text order."""
    executables = program.body.block.of(ll_seq.Executable)
    executables = [op for op in executables if not any(calls_library(entry) for _, entry in op.entries())]
    called = {dispatch.entry.root for dispatch in _dispatches(program, Func)}
    for served in (False, True):
        group, names = list[ll_seq.Executable](), set[str]()
        for executable in [op for op in executables if (op.sym_name.value in called) == served]:
            own = {entry.sym_name.value for _, entry in executable.entries()}
            if len(names) + len(own) > most or names & own:
                yield group
                group, names = [], set()
            group.append(executable)
            names |= own
        yield group


def _link(group: list[ll_seq.Executable], name: str) -> dict[SymbolRef, SymbolRef]:
    """Replaces a group by one executable; returns the new reference of each entry by its old one."""
    body, renamed = Block(), dict[SymbolRef, SymbolRef]()
    for executable in group:
        renamed |= {ref: SymbolRef(name, ref.nested) for ref, _ in executable.entries()}
        body.take(executable.body.block.ops)
    linked = ll_seq.Executable.build(sym_name=name, body=Region([body]), loc=group[0].loc)
    Builder.before(group[0]).insert(linked)
    for executable in group:
        executable.erase()
    return renamed
