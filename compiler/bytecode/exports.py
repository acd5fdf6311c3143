"""The exported interface of a function, taken from its attributes: names, types, and which result may alias which
argument.

The name of an argument or result is `orchestrion.name`, else `argN` or `resultN`. `tf.aliasing_output` on an argument
is JAX's attribute: this result may take the argument's storage. The type is `orchestrion.type` if callers see another
type than devices. `orchestrion.trees`, on the first result or argument, is the text of `schema.trees` for the whole
function.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import ArrayAttr, IntegerAttr, StringAttr, dictionaries
from orchestrion.compiler.ir.types import Attribute, Type
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.ops.func import TREES, names_for_callers, result_aliases, types_for_callers

from . import vm


def export_of(function: ll_seq.Function) -> vm.Export:
    """The export row of a function."""
    arguments = _values(function.signature.inputs, function.arg_attrs, "arg")
    outputs = _values(function.signature.results, function.res_attrs, "result")
    for output, argument in result_aliases(function.arg_attrs).items():
        outputs[output]["alias"] = IntegerAttr(argument)
    name = function.sym_name
    doc = function.get_as("orchestrion.doc", StringAttr)
    described = (
        *dictionaries(function.res_attrs, len(outputs))[:1],
        *dictionaries(function.arg_attrs, len(arguments))[:1],
    )
    trees = next((text for one in described if isinstance(text := one.get(TREES), StringAttr)), None)
    return vm.Export.build(
        exported=name, function=name, arguments=arguments, outputs=outputs, doc=doc, trees=trees, loc=function.loc
    )


def _values(types: Sequence[Type], attrs: ArrayAttr | None, otherwise: str) -> list[dict[str, Attribute]]:
    """Name and type of each argument or result."""
    names = names_for_callers(len(types), attrs, otherwise)
    seen = types_for_callers(types, attrs)
    return [{"name": StringAttr(name), "type": type} for name, type in zip(names, seen, strict=True)]
