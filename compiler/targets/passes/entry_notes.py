"""What an entry notes before a target replaces its body: the ops of the source that it computes, and its tensor types.

The main op comes first: the hero, or else the last op before the stores, which also gives the location of the entry.
The others follow in the order of the program, each name once. Constants are left out, because they are part of the ops
that read them. A reduction includes its reducer, as in `stablehlo.reduce(maximum)`, and a library call its function, as
in `stablehlo.custom_call(blas.gemm)`.
"""

from __future__ import annotations

from orchestrion.compiler.flow.dialect import UnsetEncoding
from orchestrion.compiler.flow.fusion_reads import HEROES
from orchestrion.compiler.ir.attributes import ArrayAttr, StringAttr
from orchestrion.compiler.ir.core import BlockArgument, Operation
from orchestrion.compiler.ir.types import NONE, Type
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.compiler.stablehlo.ops.structural import Constant

_FRAME = (ll_seq.LoadInput, ll_seq.StoreOutput, ll_seq.End, UnsetEncoding, Constant)


def name_source_ops(entry: ll_seq.Entry) -> None:
    """Sets `source_ops` of an entry whose body is not lowered yet."""
    ops = [op for op in _computed(entry) if not isinstance(op, _FRAME)]
    if not ops:
        return
    main = next((op for op in ops if isinstance(op, HEROES)), ops[-1])
    names = dict.fromkeys(_name(op) for op in (main, *ops))
    entry.source_ops = ArrayAttr(tuple(StringAttr(name) for name in names))


def _computed(entry: ll_seq.Entry) -> list[Operation]:
    """The ops of the body, or of all parts of a loop."""
    parts = list(entry.walk(ll_seq.Part))
    return [op for part in parts for op in part.body.block] if parts else list(entry.body.block)


def _name(op: Operation) -> str:
    if isinstance(op, CustomCall):
        return f"{op.name}({op.function})"
    inner = [inside.name for region in op.regions for block in region.blocks for inside in list(block)[:-1]]
    return f"{op.name}({inner[0].rpartition('.')[2]})" if len(inner) == 1 else op.name


def note_binding_types(entry: ll_seq.Entry) -> None:
    """Sets `binding_types` of an entry whose body is not lowered yet. An unused binding has `none`."""
    if isinstance(entry.body.block.first, ll_seq.Loop):
        return  # it has them already
    types: list[Type] = [NONE] * len(entry.bindings)
    for op in entry.body.block:
        if isinstance(op, ll_seq.LoadInput | ll_seq.StoreOutput):
            binding = op.binding
            assert isinstance(binding, BlockArgument), "the rules hold bindings to be arguments"
            types[binding.index] = op.value.type
    entry.binding_types = ArrayAttr(tuple(types))
