"""Code that the programs of a target's levels share.

The program of a further level of a target has the entries of the first level, with other bindings at most. After the
executables phase only the first level holds their code. `Entry.code` of the other ones names its program.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import StringAttr
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Region
from orchestrion.compiler.ir.cse import structure
from orchestrion.compiler.ir.symbols import table_of

from .ll_seq import BINDING, End, Entry, Executable


def counterpart(entry: Entry, program: Operation) -> Entry | None:
    """The entry of the same name in the executable of the same name of another program; None without one."""
    found: Operation | None = program
    for name in (entry.parent_op, entry):
        found = None if found is None or name is None else table_of(found).get(name.symbol or "")
    return found if isinstance(found, Entry) else None


def with_code(entry: Entry) -> Entry | None:
    """The entry that holds the code of an entry: itself, or one in the program that it names; None without one."""
    if entry.code is None:
        return entry
    *_, module = entry.enclosing()
    program = table_of(module).get(entry.code.value)
    found = None if program is None else counterpart(entry, program)
    return found if found is not None and found.code is None else None


def code_of(entry: Entry) -> Block:
    """The block with the code of an entry in a verified module."""
    found = with_code(entry)
    assert found is not None, "the rules of the phase hold the code to be there"
    return found.body.block


def first_with_payload(executable: Executable) -> Executable | None:
    """The executable that has the same code with the same bindings, in the program of the first level; None if this
    one needs a payload of its own.
    """
    found: Operation | None = None
    for _, entry in executable.entries():
        first = with_code(entry)
        if first is None or first is entry or first.shared != entry.shared:
            return None
        found = first.parent_op
    return found if isinstance(found, Executable) else None


def same_body(one: Entry, other: Entry) -> bool:
    """Whether two entries are equal, apart from the bindings that lie in one of the device."""
    return structure(one, "shared") == structure(other, "shared")


def take_code(entry: Entry, first: Entry) -> None:
    """Replaces an entry and its specializations by ones that name the code of `first`, which has been lowered."""
    program = next(op for op in first.enclosing() if op.parent_op is not None and op.parent_op.parent_op is None)
    assert program.symbol is not None
    lowered: Operation = first
    for number in range(1 + len(first.specialized or ())):
        if number:
            assert lowered.next_op is not None, "specializations follow their entry"
            lowered = lowered.next_op
        body = Block([BINDING] * len(entry.bindings))
        body.append(End())
        properties = {name: value for name, value in lowered.properties.items() if name != "shared"}
        if entry.shared is not None:
            properties["shared"] = entry.shared
        properties["code"] = StringAttr(program.symbol)
        made = Entry([], [], properties, lowered.attributes, [Region([body])], loc=lowered.loc)
        Builder.before(entry).insert(made)
    entry.erase()
