"""group-by-barrier: groups independent dispatches, so that fewer barriers are needed.

Each block is sorted into waves: a wave depends on earlier waves only. Grouping extends lifetimes, so a block keeps its
original order if the waves save no barrier, or if a large arena would grow by more than a quarter.
"""

from __future__ import annotations

from typing import Final

from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import SymbolRef
from orchestrion.compiler.ir.core import Block, Operation
from orchestrion.compiler.stablehlo.ops.func import Func

from . import hl_seq
from .arena import Tenant, peak_bytes
from .lifetimes import COMMANDS, Lifetimes, overwritten

#: An arena of at most SMALL bytes may grow freely; a larger one to at most GROWTH percent.
SMALL: Final = 1 << 20
GROWTH: Final = 125


def run(program: hl_seq.Program) -> None:
    for op in program.body.block:
        if isinstance(op, Func | util.Initializer):
            _group(op.body.blocks)


def _group(blocks: list[Block]) -> None:
    for block in blocks:
        *before, terminator = block.ops
        order = sorted(before, key=_waves(before).__getitem__)
        if order == before:
            continue
        waves, arena = _cost(blocks)
        block.take(order, terminator)
        fewer, larger = _cost(blocks)
        if fewer >= waves or larger > max(SMALL, arena * GROWTH // 100):
            block.take(before, terminator)


def _waves(ops: list[Operation]) -> dict[Operation, int]:
    """Wave of each op: after the ops that it reads, and after earlier readers of memory that it writes."""
    wave: dict[Operation, int] = {}
    stored: dict[SymbolRef, int] = {}  # variable -> the last wave that stores to it
    loads: dict[SymbolRef, list[util.GlobalLoad]] = {}
    for op in ops:
        needed = [source for source in (value.defining_op for value in op.operands) if source in wave]
        needed += [user for value in overwritten(op) for user in value.users() if user in wave]
        least = 0
        if isinstance(op, util.GlobalStore | util.GlobalLoad):  # loads and stores of one variable keep their order
            least = stored.get(op.ref, 0)
        if isinstance(op, util.GlobalStore):
            before = loads.get(op.ref, [])
            needed += [user for load in before for user in (load, *load.value.users()) if user in wave]
        last = max((wave[source] for source in needed if source is not None), default=0)
        wave[op] = max(last, least) + isinstance(op, COMMANDS)
        if isinstance(op, util.GlobalStore):
            stored[op.ref] = max(least, wave[op])
        elif isinstance(op, util.GlobalLoad):
            loads.setdefault(op.ref, []).append(op)
    return wave


def _cost(blocks: list[Block]) -> tuple[int, int]:
    """Number of waves, and the peak of live bytes, in the present order."""
    lifetimes = Lifetimes(blocks)
    transient = [v for v in lifetimes.of if hl_seq.lifetime_of(v.type) == "transient" and hl_seq.size_of(v.type) != 0]
    return lifetimes.waves, peak_bytes([Tenant(hl_seq.size_of(value.type), lifetimes.of[value]) for value in transient])
