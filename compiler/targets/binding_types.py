"""Notes the tensor type of each binding on an entry, before a target replaces its body.

The type gives the element type, the shape and, by its encoding, the order of elements in memory. A binding of an update
in place holds tensors of one type before and after.
"""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import ArrayAttr
from orchestrion.compiler.ir.core import BlockArgument
from orchestrion.compiler.ir.types import NONE, Type
from orchestrion.compiler.sequencer import ll_seq


def note_binding_types(entry: ll_seq.Entry) -> None:
    """Sets `binding_types` of an entry whose body is not lowered yet. An unused binding has `none`."""
    types: list[Type] = [NONE] * len(entry.bindings)
    for op in entry.body.block:
        if isinstance(op, ll_seq.LoadInput | ll_seq.StoreOutput):
            binding = op.binding
            assert isinstance(binding, BlockArgument), "the rules hold bindings to be arguments"
            types[binding.index] = op.value.type
    entry.binding_types = ArrayAttr(tuple(types))
