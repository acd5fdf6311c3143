"""The exported interface of a function, taken from its attributes: names, types, and which result may alias which
argument.

The name of an argument or result is `orchestrion.name`, else `argN` or `resultN`. `tf.aliasing_output` on an argument
is JAX's attribute: this result may take the argument's storage. The type is `orchestrion.type` if callers see another
type than devices. `orchestrion.trees`, on the first result or argument, is the text of `schema.trees` for the whole
function.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import ArrayAttr, DictAttr, IntegerAttr, StringAttr
from orchestrion.compiler.ir.types import Attribute, Type
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.ops.func import NAME, TREES, result_aliases, types_for_callers

from . import vm


def export_of(function: ll_seq.Function) -> vm.Export:
    """The export row of a function."""
    inputs = types_for_callers(function.signature.inputs, function.arg_attrs)
    results = types_for_callers(function.signature.results, function.res_attrs)
    taken, given = _attrs(function.arg_attrs, len(inputs)), _attrs(function.res_attrs, len(results))
    arguments, outputs = _values(inputs, taken, "arg"), _values(results, given, "result")
    for output, argument in result_aliases(function.arg_attrs).items():
        outputs[output]["alias"] = IntegerAttr(argument)
    name = function.sym_name
    doc = function.get_as("orchestrion.doc", StringAttr)
    trees = next((text for one in (*given[:1], *taken[:1]) if isinstance(text := one.get(TREES), StringAttr)), None)
    return vm.Export.build(
        exported=name, function=name, arguments=arguments, outputs=outputs, doc=doc, trees=trees, loc=function.loc
    )


def _attrs(given: ArrayAttr | None, count: int) -> list[DictAttr]:
    """One dictionary per argument or result; empty ones if the function has none."""
    if given is None:
        return [DictAttr(())] * count
    return [item for item in given if isinstance(item, DictAttr)]


def _values(types: Sequence[Type], attrs: Sequence[DictAttr], otherwise: str) -> list[dict[str, Attribute]]:
    """Name and type of each argument or result. `otherwise`: the beginning of the names of those without one."""
    given = [item.get(NAME) for item in attrs]
    names = [one if isinstance(one, StringAttr) else StringAttr(f"{otherwise}{n}") for n, one in enumerate(given)]
    return [{"name": name, "type": type} for name, type in zip(names, types, strict=True)]
