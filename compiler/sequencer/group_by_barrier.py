"""group-by-barrier: dispatches that do not need each other stand together, so that fewer barriers part them.

Ops are put in waves: a wave holds what needs only earlier waves. That keeps values alive longer, so the order of the
program stays where the waves save no barrier, or where a large arena would grow by more than a quarter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrion.compiler.flow import util
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation
from orchestrion.compiler.stablehlo.func import Func

from . import hl_seq
from .plan import Place, plan

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options

#: an arena of so many bytes is small; a larger one may grow to so many hundredths
SMALL: Final = 1 << 20
GROWTH: Final = 125


def run(module: Module, options: Options) -> None:
    for program in module.block:
        if isinstance(program, hl_seq.Program):
            for func in program.body.block:
                if isinstance(func, Func):
                    _group(func.body.block)


def _group(block: Block) -> None:
    *before, terminator = block.ops
    barriers, arena = _cost(block)
    wave: dict[Operation, int] = {}
    for op in before:
        sources = [value.defining_op for value in op.operands]
        needed = max((wave[source] for source in sources if source is not None), default=0)
        wave[op] = needed + isinstance(op, hl_seq.Dispatch | hl_seq.Clone | hl_seq.Splat)
    _reorder(block, sorted(before, key=lambda op: wave[op]), terminator)
    fewer, larger = _cost(block)
    if fewer >= barriers or larger > max(SMALL, arena * GROWTH // 100):
        _reorder(block, before, terminator)


def _reorder(block: Block, ops: list[Operation], terminator: Operation) -> None:
    for op in ops:
        op.detach()
        block.insert_before(op, terminator)


def _cost(block: Block) -> tuple[int, int]:
    """Barriers, and bytes of the arena, of the order as it is."""
    loads = [op for op in block if isinstance(op, util.GlobalLoad)]
    places = {op.ref.root: Place(op.ref.root, 0, hl_seq.size_of(op.value.type)) for op in loads}
    found = plan(block, places)
    return sum(command.op is None for command in found.commands), found.arena_size
