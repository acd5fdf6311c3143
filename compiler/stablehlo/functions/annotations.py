"""drop-annotations: removes attributes and ops that only a partitioner or another runtime reads.

The frontend's names, the marks of parameters, and the attributes by which a result may take an argument's storage stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrion.compiler.ir.attributes import ArrayAttr, DictAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.types import Attribute
from orchestrion.compiler.stablehlo.ops.func import ALIAS, NAME, TREES, Func, set_dictionaries

from .parameters import KEY

#: Attributes that later phases read.
KEPT: Final = frozenset({NAME, "orchestrion.doc", TREES, KEY, ALIAS, "jax.buffer_donor"})

#: Module ops that only a partitioner reads.
MESHES: Final = frozenset({"sdy.mesh"})


def run(module: Module) -> None:
    for op in module.block:
        if op.name in MESHES:
            op.erase()
    for op in module.walk():
        op.attributes = _kept(op.attributes)
        if isinstance(op, Func):
            for key in ("arg_attrs", "res_attrs"):
                given = op.get_as(key, ArrayAttr) or ()
                set_dictionaries(op, key, [DictAttr.of(_kept(x.mapping)) for x in given if isinstance(x, DictAttr)])


def _kept(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {key: value for key, value in attributes.items() if key in KEPT}
