"""pack-arena: turns the transient allocations of a function into ranges of one allocation, and so for initializers.

If the arena would exceed `Options.max_allocation` bytes, there are several. Allocations state their lifetimes;
`arena.py` computes the offsets.
"""

from __future__ import annotations

from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block
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
            ll_seq.shift_offset(user, index, offset)
        old.output.replace_by(arenas[part].output)
        old.erase()
