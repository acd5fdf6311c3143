"""pack-arena: turns the transient allocations of a function into ranges of one allocation, and so for initializers.

If the arena would exceed `Options.max_allocation` bytes, there are several. Allocations state their lifetimes;
`arena.py` computes the offsets.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import IntegerAttr, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation
from orchestrion.compiler.ir.dims import Size, is_dynamic
from orchestrion.compiler.options import Options

from . import hl_seq, ll_seq
from .arena import Tenant, pack_arenas
from .positions import union
from .share_bindings import allocation_limit


def run(program: hl_seq.Program, options: Options) -> None:
    most = allocation_limit(program, options)
    for op in list(program.walk()):
        match op:
            case ll_seq.RunLoop():
                _pack(op.body.blocks[0], "arena", most)
            case ll_seq.Instance():
                _pack(op.body.block, "setup", most)


def _pack(block: Block, label: str, max_bytes: int) -> None:
    """Packs the allocations of a block that state a lifetime."""
    tenants: list[tuple[ll_seq.Allocate, Tenant]] = []
    for op in block:
        if isinstance(op, ll_seq.Allocate) and op.live is not None:
            tenants.append((op, Tenant(op.size, union(zip(op.live.ints[::2], op.live.ints[1::2], strict=True)))))
    if not tenants:
        return
    first = tenants[0][0]
    places, sizes = pack_arenas([tenant for _, tenant in tenants], max_bytes)
    front = Builder.before(first)
    labels = [label, *(f"{label}_{part}" for part in range(1, len(sizes)))]
    arenas = [
        front.build(ll_seq.Allocate, label=name, size=size, lifetime=first.lifetime, output=ll_seq.BUFFER)
        for name, size in zip(labels, sizes, strict=True)
    ]
    for (old, _), (part, offset) in zip(tenants, places, strict=True):
        for user, index in old.output.uses:
            _shift_offset(user, index, offset)
        old.output.replace_by(arenas[part].output)
        old.erase()


def _shift_offset(op: Operation, index: int, by: Size) -> None:
    """Adds `by` bytes to the offset of a command or a read into operand `index`, which is memory."""
    match op:
        case ll_seq.Dispatch():
            offsets = list(op.offsets.sizes)
            offsets[index - 1] += by
            op.offsets = dense_ints(*offsets)
        case ll_seq.Copy() if index == 0:
            op.source_offset += by
        case ll_seq.Copy():
            op.target_offset += by
        case ll_seq.Fill():
            op.offset += by
        case ll_seq.Read() | ll_seq.Loop() | ll_seq.Branch():
            assert not is_dynamic(by), "predicates are of static size, which goes first"
            op.offset = IntegerAttr(op.offset.value + by, op.offset.type)
        case _:
            raise AssertionError(f"{op.name} does not use memory at an offset")
