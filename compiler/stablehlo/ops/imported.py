"""Functions of other modules: `func.func private @encoder.encode(tensor<4xf32>) -> tensor<8xf32>`, without a body.

The name before the first dot is that of the module, the rest is that of its export. A call of such a function stays a
call; whoever loads the module provides the other module (`docs/module-imports.md`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from orchestrion.compiler.ir.types import FunctionType, TensorType
from orchestrion.schema.dtypes import COMPUTED
from orchestrion.schema.imported import NATIVE_MODULES

from .base import is_supported
from .func import Func

_NAME: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_$-]*)\.([A-Za-z_$][A-Za-z0-9_$.-]*)")


def import_problems(declaration: Func) -> Iterator[str]:
    """Why a function without a body cannot be imported from another module."""
    name = declaration.symbol or ""
    found = _NAME.fullmatch(name)
    if found is None:
        yield "has no body: a function of another module is declared private, with a name like @module.function"
        return
    if declaration.is_public:
        yield "has no body and is public: a function of another module is declared private"
    if found[1] in NATIVE_MODULES:
        yield f"is declared in {found[1]}, which is a module of the runtime; a module of that name cannot be imported"
    signature = declaration.properties.get("function_type")
    if not isinstance(signature, FunctionType):
        return  # the verifier reports it
    if not signature.results:
        yield "has no results: a function of another module is imported for its results"
    for what, types in (("argument", signature.inputs), ("result", signature.results)):
        for index, type in enumerate(types):
            if not isinstance(type, TensorType) or not is_supported(type):
                names = ", ".join(map(str, COMPUTED))
                yield f"{what} {index} is {type}: element types of imported functions are {names}"
            elif not type.is_static or not type.num_elements:
                yield f"{what} {index} is {type}: tensors of imported functions have known sizes of at least 1"
