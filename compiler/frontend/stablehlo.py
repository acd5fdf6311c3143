"""The StableHLO frontend: turns a source into IR of the phase `input`.

Our own parser reads the generic form. Everything else goes through `jaxlib.mlir`, which prints the generic form with
locations; large constants are left out of the text and accompany it in the same order. jaxlib reads files, text and
bytes in a child process (`jaxlib_parent.py`), and live objects of JAX in this one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.attributes import ELEMENT_BYTES, DenseElements, RawAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.elements import bytes_of_body
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.ir.verifier import check_body

from .captured_constants import copy_constants
from .interface import apply_interface, name_interface
from .platforms import resolve_platform
from .source import Source, SourceContent, read_source

_UNNAMED: Final = re.compile(r'(?<!\\)"-":(?=[0-9]+:[0-9]+)')


def load_module(source: Source | SourceContent) -> Module:
    """The module of a source, in the phase `input`. Raises CompileError."""
    given = source if isinstance(source, SourceContent) else read_source(source)
    module = _parsed(given)
    check_body(module)
    copy_constants(module)
    resolve_platform(module, given.platforms)
    if given.interface is not None:
        apply_interface(module, given.interface)
    name_interface(module)
    return module


def start_reader(given: SourceContent) -> bool:
    """Starts the child process that `load` will need, if any, without waiting for it.

    Returns whether it was started now; the caller may do other work while the child imports jaxlib.
    """
    if given.kind in ("generic", "object"):
        return False
    from . import jaxlib_parent

    return jaxlib_parent.start_child(given)


def _parsed(given: SourceContent) -> Module:
    if given.kind == "generic":
        return parse(given.data, given.name)
    from . import jaxlib_parent, jaxlib_reader

    is_live = given.kind == "object"
    text, constants = (
        jaxlib_reader.convert_module(given.data.operation) if is_live else jaxlib_parent.read_in_child(given)
    )
    quoted = given.name.replace("\\", "\\\\").replace('"', '\\"')
    made = parse(_UNNAMED.sub(lambda _: f'"{quoted}":', text), given.name, keep_elided=True)
    if constants:
        _fill_in(made, constants, given.name)
    return made


def _fill_in(module: Module, constants: Sequence[memoryview | bytes | str | None], name: str) -> None:
    """Puts the bytes of omitted constants into the ops of the module.

    A constant of an unknown element type stays as it is; the legality check refuses it by its type.
    """
    ours = [op for op in module.walk() if op.name == "stablehlo.constant"]
    if len(ours) != len(constants):
        raise CompileError(f"{name}: {len(ours)} constants in the text, {len(constants)} accompany it")
    for op, given in zip(ours, constants, strict=True):
        type = op.results[0].type
        if given is None or not isinstance(op.get("value"), RawAttr) or not isinstance(type, TensorType):
            continue
        if not type.is_static or str(type.element) not in ELEMENT_BYTES:
            continue
        try:
            data = bytes_of_body(given, type) if isinstance(given, str) else given
            op.properties["value"] = DenseElements(type, data)
        except ValueError as error:
            raise CompileError(f"{name}: a constant is not {type}: {error}") from None
