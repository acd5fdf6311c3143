"""Converts a module of jaxlib to generic text and the bytes of its large constants.

Files, text and bytes are converted in a child process (`jaxlib_parent.py`, `jaxlib_child.py`): the C++ parsers crash on
deeply nested input, and damaged bytecode may do worse. Live modules of JAX are converted in the process that holds
them. jaxlib registers StableHLO's dialects under private names, so the extra pins its version. This file imports
nothing of the compiler, so that the child starts quickly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

#: Bytes of a constant that the text omits, its body as text if jaxlib gives no bytes, or None if the text contains it.
Constant = memoryview | bytes | str | None

#: Maximum elements of a constant inside the text: `attributes.INLINE_BYTES` of elements of 8 bytes.
MAX_INLINE_ELEMENTS: Final = 8
#: MLIR's placeholder for omitted elements.
_ELIDED: Final = "__elided__"
_PLACE: Final = re.compile(r'loc\("-":([0-9]+):([0-9]+)')


class Converted(NamedTuple):
    """`constants` has one item for each `stablehlo.constant` in the text, in order; empty if the text contains all."""

    text: str
    constants: list[Constant]


class Unreadable(Exception):
    """jaxlib refuses the input. `findings`: (message, line, column); line and column are 0 if no place is stated."""

    def __init__(self, findings: list[tuple[str, int, int]]) -> None:
        super().__init__(findings)
        self.findings = findings


def convert_module(operation: Any) -> Converted:
    """Converts a module to generic text with locations, and its large constants."""
    text = operation.get_asm(
        print_generic_op_form=True, enable_debug_info=True, large_elements_limit=MAX_INLINE_ELEMENTS
    )
    return Converted(text, list(_constants(operation)) if _ELIDED in text else [])


def _constants(operation: Any) -> Iterator[Constant]:
    from jaxlib.mlir import ir

    found: list[Any] = []

    def collect(op: Any) -> Any:
        if op.name == "stablehlo.constant":
            found.append(op)
        return ir.WalkResult.ADVANCE

    operation.walk(collect, ir.WalkOrder.PRE_ORDER)
    known: dict[Any, Constant] = {}  # keyed by value: equal constants are one attribute
    for op in found:
        try:
            value = op.attributes["value"]
        except (KeyError, TypeError):  # jaxlib has no Python object for complex elements
            value = op
        if value not in known:
            short = op.get_asm(print_generic_op_form=True, large_elements_limit=MAX_INLINE_ELEMENTS)
            known[value] = _elements(op) if _ELIDED in short else None
        yield known[value]


def _elements(constant: Any) -> Constant:
    """The bytes of a constant, not copied: they are valid as long as the module lives."""
    if "complex<" not in str(constant.results[0].type):  # jaxlib raises if such an attribute is accessed
        try:
            return memoryview(constant.attributes["value"]).cast("B")
        except (BufferError, TypeError):
            pass  # Python has no buffer of this element type: its text is read below
    text = constant.get_asm(print_generic_op_form=True).partition("value = ")[2]
    start, end = text.find("<") + 1, text.rfind("> : tensor")
    return text[start:end] if 0 < start <= end else None


def read(kind: str, data: str | bytes) -> Any:
    """Parses a module with jaxlib. Raises ImportError without jaxlib, Unreadable if jaxlib refuses the input."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    for dialect in (_stablehlo, _chlo, _sdy):  # JAX writes sharding rules into bytecode even for one device
        dialect.register_dialect(context)
    context.allow_unregistered_dialects = True  # unknown ops are refused by name, all at once
    try:
        return _of_artifact(context, data) if kind == "artifact" else ir.Module.parse(data, context)
    except ir.MLIRError as error:
        raise Unreadable([_finding(found) for found in error.error_diagnostics]) from None
    except ValueError as error:
        raise Unreadable([(f"jaxlib cannot read it: {error}", 0, 0)]) from None


def _of_artifact(context: Any, data: str | bytes) -> Any:
    """Parses with XLA's reader: StableHLO's own refuses the meshes and shardings that JAX adds."""
    from jaxlib._jax import mlir

    said: list[str] = []

    def hear(found: Any) -> bool:
        said.append(found.message)
        return True

    with context:
        handler = context.attach_diagnostic_handler(hear)  # otherwise diagnostics are printed
        try:
            return mlir.deserialize_portable_artifact(data)
        except RuntimeError as error:
            raise Unreadable([(f"jaxlib cannot read the artifact: {'; '.join(said) or error}", 0, 0)]) from None
        finally:
            handler.detach()


def _finding(found: Any) -> tuple[str, int, int]:
    place = _PLACE.match(str(found.location))
    return found.message, int(place[1]) if place else 0, int(place[2]) if place else 0
