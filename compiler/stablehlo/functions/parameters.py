"""Marks of parameters before they become globals.

Until `take-parameters`, the dictionary of a parameter (`ir/parameters.py`) is the attribute `orchestrion.parameter` of
a constant. Afterwards it is an attribute of an argument, in `arg_attrs` of the functions that use the parameter: no
pass folds or merges arguments. `hoist-parameters` turns them into globals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import DictAttr, dictionaries
from orchestrion.compiler.ir.types import FunctionType, Type
from orchestrion.compiler.stablehlo.ops.func import Func, set_dictionaries

KEY: Final = "orchestrion.parameter"


def attributes_of(func: Func) -> list[DictAttr]:
    """One dictionary for each argument."""
    return dictionaries(func.get("arg_attrs"), len(func.function_type.inputs))


def parameters_of(func: Func) -> Iterator[tuple[int, DictAttr]]:
    """The arguments of a function that are parameters: index and dictionary."""
    for index, attrs in enumerate(attributes_of(func)):
        if isinstance(found := attrs.get(KEY), DictAttr):
            yield index, found


def set_arguments(func: Func, types: Sequence[Type], attrs: Sequence[DictAttr]) -> None:
    """Changes the signature of a function to the arguments that its block already has."""
    func.properties["function_type"] = FunctionType(tuple(types), func.function_type.results)
    set_dictionaries(func, "arg_attrs", attrs)
