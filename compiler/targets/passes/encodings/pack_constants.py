"""pack-constants: the file of a module holds constants in the layout that the only program with a use for them reads.

Otherwise an initializer would pack them at each load (`materialize-encodings`). A constant stays as it is if the module
has further programs, which read it in other layouts, if something else reads it too, because the file would hold it
twice, or if it lies outside the module. Only targets that pack constants alone take part.
"""

from __future__ import annotations

import numpy as np

from orchestrion.compiler.flow.dialect import HoistableDispatch, SetEncoding
from orchestrion.compiler.flow.hoist_into_initializers import drop_unused_globals
from orchestrion.compiler.flow.layout import Layout, layout_of
from orchestrion.compiler.ir.attributes import DenseElements
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.ir.util import Global, GlobalLoad, GlobalStore, Initializer
from orchestrion.compiler.options import Options
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.base import tensor_of

from .layouts import packs_constants_only


def run(program: hl_seq.Program, options: Options) -> None:
    if options.parameters or not packs_constants_only(program) or not _is_alone(program):
        return
    variables = {op.sym_name.value: op for op in program.body.block.of(Global)}
    readers: dict[str, int] = {}
    for load in program.walk(GlobalLoad):
        readers[load.ref.root] = readers.get(load.ref.root, 0) + sum(1 for _ in load.value.users())
    for region in list(program.walk(HoistableDispatch)):
        found = _packing(region)
        if found is None or readers[found[0].ref.root] != 1:
            continue
        load, layout, store = found
        source, target = variables[load.ref.root], variables[store.ref.root]
        if source.value is None or target.mutable is not None:
            continue
        target.value = packed(source.value, layout)
        store.erase()
        region.erase()
        load.erase()
    drop_unused_globals(program)


def packed(elements: DenseElements, layout: Layout) -> DenseElements:
    """The elements in the order of a layout, padding included: a value of the shape that they have in memory."""
    shape = elements.type.static_shape
    groups = elements.array().transpose([axis for group in layout.axes for axis in group]).reshape(layout.sizes(shape))
    padding = [(0, after - before) for before, after in zip(groups.shape, layout.padded_sizes(shape), strict=True)]
    pieces = np.pad(groups, padding).reshape(layout.pieces(shape)).transpose(layout.order)
    data = np.ascontiguousarray(pieces).reshape(-1).view(np.uint8).data
    return DenseElements(TensorType(layout.physical_shape(shape), elements.type.element), data)


def _is_alone(program: hl_seq.Program) -> bool:
    module = program.parent_op
    return not isinstance(module, Module) or len(hl_seq.programs_of(module)) == 1


def _packing(region: HoistableDispatch) -> tuple[GlobalLoad, Layout, GlobalStore] | None:
    """The load of a global, the layout in which an initializer stores its value to another global, and that store; None
    for any other region.
    """
    if not isinstance(region.parent_op, Initializer) or len(region.outputs) != 1:
        return None
    encoding, *rest = region.body.block.ops
    users = list(region.outputs[0].users())
    if not isinstance(encoding, SetEncoding) or len(rest) != 1 or len(users) != 1:
        return None
    load, layout, store = encoding.source.defining_op, layout_of(tensor_of(encoding.output)), users[0]
    if not isinstance(load, GlobalLoad) or layout is None or not isinstance(store, GlobalStore):
        return None
    return load, layout, store
