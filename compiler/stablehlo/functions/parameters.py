"""Marks of parameters before they become globals.

Until `take-parameters`, the dictionary of a parameter (`ir/parameters.py`) is the attribute `orchestrion.parameter` of
a constant. Afterwards it is an attribute of an argument, in `arg_attrs` of the functions that use the parameter: no
pass folds or merges arguments. `hoist-parameters` turns them into globals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import ArrayAttr, DictAttr
from orchestrion.compiler.ir.types import Attribute, FunctionType, Type
from orchestrion.compiler.stablehlo.ops.func import Func

KEY: Final = "orchestrion.parameter"


def attributes_of(func: Func) -> Sequence[Attribute]:
    """One dictionary for each argument."""
    count = len(func.function_type.inputs)
    given = func.get_as("arg_attrs", ArrayAttr)
    return list(given) if given is not None and len(given) == count else [DictAttr(())] * count


def parameters_of(func: Func) -> Iterator[tuple[int, DictAttr]]:
    """The arguments of a function that are parameters: index and dictionary."""
    for index, attrs in enumerate(attributes_of(func)):
        found = attrs.get(KEY) if isinstance(attrs, DictAttr) else None
        if isinstance(found, DictAttr):
            yield index, found


def set_arguments(func: Func, types: Sequence[Type], attrs: Sequence[Attribute]) -> None:
    """Changes the signature of a function to the arguments that its block already has."""
    func.properties["function_type"] = FunctionType(tuple(types), func.function_type.results)
    func.properties.pop("arg_attrs", None)
    if any(isinstance(item, DictAttr) and item.items for item in attrs):
        func.properties["arg_attrs"] = ArrayAttr(tuple(attrs))
