"""The StableHLO frontend: what was read becomes IR of the phase `input`.

The generic form is read by our own parser. Everything else goes through `jaxlib.mlir`, which prints the generic form
with locations; large constants are left out of that text and fetched from memory in the same order. jaxlib registers
StableHLO's dialects by private names, so its version is pinned in the extra.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import ELEMENT_BYTES, ELIDED, INLINE_BYTES, PARTS, DenseElements, RawAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.elements import bytes_of_body
from orchestrion.compiler.ir.locations import FileLoc
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.ir.verifier import check_body

from .captures import copy_constants
from .interface import name_interface
from .source import Read, Source, read

_PLACE: Final = re.compile(r'loc\("-":([0-9]+):([0-9]+)')
_UNNAMED: Final = re.compile(r'(?<!\\)"-":(?=[0-9]+:[0-9]+)')


def load(source: Source) -> Module:
    """The module in a source, in phase `input`. Raises CompileError."""
    given = read(source)
    module = _parsed(given)
    check_body(module)
    copy_constants(module)
    name_interface(module)
    return module


def _parsed(given: Read) -> Module:
    if given.kind == "generic":
        return parse(given.data, given.name)
    if given.kind == "object":
        return _converted(given.data, given.name)
    return _converted(_jaxlib_module(given), given.name)


def _jaxlib_module(given: Read) -> Any:
    """A module of jaxlib from text or bytes."""
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo
    except ImportError as error:
        message = f"needs jaxlib to be read ({error}): pip install 'orchestrion[stablehlo]'"
        raise CompileError(f"{given.name}: {message}; the generic form of MLIR is read without it") from None
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    for dialect in (_stablehlo, _chlo, _sdy):  # JAX writes rules of sharding in bytecode for one device, too
        dialect.register_dialect(context)
    context.allow_unregistered_dialects = True  # what we do not know is refused by name, all of it at once
    try:
        return _of_artifact(context, given) if given.kind == "artifact" else ir.Module.parse(given.data, context)
    except ir.MLIRError as error:
        raise CompileError(_diagnostics(error, given.name)) from None
    except ValueError as error:
        raise CompileError(f"{given.name}: jaxlib cannot read it: {error}") from None


def _of_artifact(context: Any, given: Read) -> Any:
    """By XLA's reader: StableHLO's own refuses the meshes and shardings that JAX puts in."""
    from jaxlib._jax import mlir

    said: list[str] = []

    def hear(found: Any) -> bool:
        said.append(found.message)
        return True

    with context:
        handler = context.attach_diagnostic_handler(hear)  # or they are printed
        try:
            return mlir.deserialize_portable_artifact(given.data)
        except RuntimeError as error:
            reasons = "; ".join(said) or error
            raise CompileError(f"{given.name}: jaxlib cannot read the artifact: {reasons}") from None
        finally:
            handler.detach()


def _diagnostics(error: Any, name: str) -> Iterator[Diagnostic]:
    for found in error.error_diagnostics:
        place = _PLACE.match(str(found.location))
        if place is None:
            yield Diagnostic(f"{name}: {found.message}")
        else:
            yield Diagnostic(found.message, FileLoc(name, int(place[1]), int(place[2])))


def _converted(module: Any, name: str) -> Module:
    """IR of ours from a module of jaxlib, by way of text without large constants."""
    operation = module.operation
    text = operation.get_asm(
        print_generic_op_form=True,
        enable_debug_info=True,
        large_elements_limit=INLINE_BYTES // 8,
    )
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    made = parse(_UNNAMED.sub(lambda _: f'"{quoted}":', text), name, keep_elided=True)
    if ELIDED in text:
        _fetch_elided(made, operation)
    return made


def _fetch_elided(module: Module, operation: Any) -> None:
    """Gives the constants that `get_asm` left out their bytes, which stay where jaxlib has them.

    Elements of a type that nobody knows stay as they are, and are refused by it.
    """
    from jaxlib.mlir import ir

    theirs: list[Any] = []

    def collect(op: Any) -> Any:
        if op.name == "stablehlo.constant":
            theirs.append(op)
        return ir.WalkResult.ADVANCE

    operation.walk(collect, ir.WalkOrder.PRE_ORDER)
    ours = [op for op in module.walk() if op.name == "stablehlo.constant"]
    for op, other in zip(ours, theirs, strict=True):
        type = op.results[0].type
        if not isinstance(op.get("value"), RawAttr) or not isinstance(type, TensorType):
            continue
        if type.is_static and str(type.element) in ELEMENT_BYTES:
            op.properties["value"] = DenseElements(type, _elements(other, type))


def _elements(constant: Any, type: TensorType) -> bytes | memoryview:
    """The bytes of a constant of jaxlib: those of its buffer, or those in its text, where Python has no such buffer."""
    if str(type.element) in PARTS:  # jaxlib cannot even give the attribute
        text = constant.get_asm(print_generic_op_form=True).partition("value = ")[2]
        return bytes_of_body(text[text.index("<") + 1 : text.index("> : tensor")], type)
    attribute = constant.attributes["value"]
    try:
        return memoryview(attribute).cast("B")
    except BufferError:
        text = str(attribute)
        return bytes_of_body(text[text.index("<") + 1 : text.rindex("> : tensor")], type)
