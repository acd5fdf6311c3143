"""Where every resource of a function lies, and which commands a call runs, in order.

A place is a range of a *home*: a slot that a call fills (an argument or a result), the arena, or a constant. Transients
get their offsets in the arena from the waves of commands between their first and last use. A barrier stands before a
command that touches what an earlier one since the last barrier wrote, or writes what one read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from orchestrion.compiler.flow import util
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Value

from . import hl_seq
from .arena import Tenant, pack
from .hl_seq import lifetime_of, size_of

#: home of a transient
ARENA: Final = "arena"


@dataclass(frozen=True, slots=True)
class Place:
    """`size` bytes from `offset` in a home: `ARENA`, the name of a constant's global, or the number of a slot."""

    home: str | int
    offset: int
    size: int

    def overlaps(self, other: Place) -> bool:
        if self.home != other.home:
            return False
        return self.offset < other.offset + other.size and other.offset < self.offset + self.size


@dataclass(frozen=True, slots=True)
class Command:
    """What one op of the function does to memory; None stands for a barrier."""

    op: Operation | None
    reads: tuple[Place, ...] = ()
    writes: tuple[Place, ...] = ()


@dataclass(slots=True)
class Plan:
    """`slots[i]` is what a call puts into slot i: ("argument" or "result", its number)."""

    slots: list[tuple[str, int]] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    arena_size: int = 0


def plan(block: Block, constants: Mapping[str, Place]) -> Plan:
    """The plan for the body of a function; `constants` gives the place of each global."""
    return _Planner(block, constants).plan()


class _Planner:
    def __init__(self, block: Block, constants: Mapping[str, Place]) -> None:
        self.block = block
        self.constants = constants
        self.result = Plan()
        self.places: dict[Value, Place] = {}
        self.commands = [op for op in block if isinstance(op, hl_seq.Dispatch | hl_seq.Clone | hl_seq.Splat)]

    def plan(self) -> Plan:
        self._place_slots()
        self._place_constants()
        self._place_transients()
        pending: list[Command] = []
        for op in self.commands:
            reads = tuple(self.places[value] for value in op.operands)
            command = Command(op, reads, tuple(self.places[value] for value in op.results))
            if any(_conflicts(command, earlier) for earlier in pending):
                self.result.commands.append(Command(None))
                pending.clear()
            self.result.commands.append(command)
            pending.append(command)
        return self.result

    def _place_slots(self) -> None:
        """Used arguments, then results, each a slot unless it has no bytes."""
        for op in self.block:
            if isinstance(op, hl_seq.Import) and op.output.uses:
                assert isinstance(op.source, BlockArgument)
                self._slot("argument", op.source.index, op.output)
        terminator = self.block.last
        assert terminator is not None
        for index, value in enumerate(terminator.operands):
            exported = value.defining_op
            assert isinstance(exported, hl_seq.Export)
            self._slot("result", index, exported.source)

    def _slot(self, kind: str, index: int, resource: Value) -> None:
        size = size_of(resource.type)
        if size:
            self.places[resource] = Place(len(self.result.slots), 0, size)
            self.result.slots.append((kind, index))

    def _place_constants(self) -> None:
        for op in self.block:
            if isinstance(op, util.GlobalLoad):
                self.places[op.value] = self.constants[op.ref.root]

    def _waves(self) -> dict[Operation, int]:
        """The wave of each command: a new one starts at a command that reads what the current one makes.

        Time is counted in waves, so that no two commands of a wave are kept apart by memory that both were given.
        """
        wave: dict[Operation, int] = {}
        current = 0
        for op in self.commands:
            if any(
                wave.get(source) == current for source in (v.defining_op for v in op.operands) if source is not None
            ):
                current += 1
            wave[op] = current
        return wave

    def _place_transients(self) -> None:
        step = self._waves()
        values = [r for op in self.commands for r in op.results if lifetime_of(r.type) == "transient"]
        tenants = []
        for value in values:
            first = step[value.owner]
            last = max((step[user] for user in value.users()), default=first)
            tenants.append(Tenant(size_of(value.type), first, last))
        offsets, self.result.arena_size = pack(tenants)
        for value, offset, tenant in zip(values, offsets, tenants, strict=True):
            self.places[value] = Place(ARENA, offset, tenant.size)


def _conflicts(later: Command, earlier: Command) -> bool:
    """Whether the two may not run at the same time."""
    hazards = [(w, p) for w in earlier.writes for p in (*later.reads, *later.writes)]
    hazards += [(r, w) for r in earlier.reads for w in later.writes]
    return any(a.overlaps(b) for a, b in hazards)
