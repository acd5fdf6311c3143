"""Names of arguments and results: what the user wrote in Python becomes `orchestrion.name` of the public functions.

JAX puts an argument's name into its location and a result's path into `jax.result_info`. A name that is there already
(IR printed by us) stays; a name given twice in one list is no name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import ArrayAttr, DictAttr, StringAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.locations import UNKNOWN, NameLoc
from orchestrion.compiler.ir.types import FunctionType

NAME: Final = "orchestrion.name"


def name_interface(module: Module) -> None:
    """Names what the public functions take and give, as far as the frontend knows."""
    for op in module.regions[0].walk() if module.regions else ():
        if op.name != "func.func":
            continue
        for key in ("arg_attrs", "res_attrs"):
            if not any(isinstance(item, DictAttr) and item.items for item in op.get_as(key, ArrayAttr) or ()):
                op.properties.pop(key, None)  # lists of nothing, which some printers leave out
        visibility = op.get_as("sym_visibility", StringAttr)
        if visibility is None or visibility.value == "public":
            _name_function(op)


def _name_function(func: Operation) -> None:
    signature = func.get_as("function_type", FunctionType)
    if signature is None or not func.regions or not func.regions[0].blocks:
        return
    arguments = [_of_location(value) for value in func.regions[0].blocks[0].arguments]
    _add(func, "arg_attrs", len(signature.inputs), arguments)
    infos = _dictionaries(func, "res_attrs", len(signature.results))
    _add(func, "res_attrs", len(signature.results), [_of_result(info) for info in infos])


def _of_location(value: Value) -> str:
    loc = value.loc
    return loc.name if isinstance(loc, NameLoc) and loc.child is UNKNOWN else ""


def _of_result(info: DictAttr) -> str:
    name = info.get("jax.result_info")
    return name.value if isinstance(name, StringAttr) else ""


def _dictionaries(func: Operation, key: str, count: int) -> list[DictAttr]:
    given = func.get_as(key, ArrayAttr)
    items = list(given) if given is not None else []
    found = [item for item in items if isinstance(item, DictAttr)]
    return found if len(found) == count else [DictAttr(())] * count


def _add(func: Operation, key: str, count: int, names: Sequence[str]) -> None:
    given = func.get_as(key, ArrayAttr)
    if len(names) != count or given is not None and len(given) != count:
        return
    often = Counter(names)
    items = _dictionaries(func, key, count)
    named = [
        item if item.get(NAME) is not None or not name or often[name] > 1 else _with(item, name)
        for item, name in zip(items, names, strict=True)
    ]
    if named != items:
        func.properties[key] = ArrayAttr(tuple(named))


def _with(item: DictAttr, name: str) -> DictAttr:
    return DictAttr.of({**item.mapping, NAME: StringAttr(name)})
