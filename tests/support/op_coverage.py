"""docs/coverage.md: what becomes of each op of StableHLO and CHLO, for each element type, on each device.

A cell is a smallest program (`op_rows.py`). jaxlib's verifier says whether the op takes the type; the compiler, whether
it is refused, and why; the reference device runs what is not, and the kernels of the other targets are made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import numpy as np
from op_rows import ROWS

from orchestrion import compiler, vm
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError

#: heading -> element types of one behaviour, as far as it goes; a cell names those that differ
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "i1": ("i1",),
    "i2, i4": ("i2", "i4"),
    "i8 to i64": ("i8", "i16", "i32", "i64"),
    "ui2, ui4": ("ui2", "ui4"),
    "ui8 to ui64": ("ui8", "ui16", "ui32", "ui64"),
    "f4, f6": ("f4E2M1FN", "f6E2M3FN", "f6E3M2FN"),
    "f8": ("f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2", "f8E5M2FNUZ"),
    "f16, bf16": ("f16", "bf16"),
    "f32, f64": ("f32", "f64"),
    "complex": ("complex<f32>", "complex<f64>"),
}
TYPES: Final = tuple(type for types in COLUMNS.values() for type in types)
#: targets -> what a cell says where all of them take the program
ALL: Final = ("reference", "opencl", "spirv")
EVERYWHERE, NOT_TAKEN = "✓", "–"
#: ops that are no program: why
NO_ROWS: Final = {
    "stablehlo.return": "ends the regions of other ops",
    "stablehlo.async_start": "what XLA makes of others; not in the specification",
    "stablehlo.async_done": "what XLA makes of others; not in the specification",
    "stablehlo.uniform_dequantize": "of quantized types ([numerics](numerics.md))",
    "stablehlo.uniform_quantize": "of quantized types ([numerics](numerics.md))",
}
HEAD: Final = """# Ops and element types: what runs

Written by `BLESS=1 pytest tests/docs/test_coverage.py`, which compiles the smallest program for each op and type. For
the first type of each column it compiles for every target and runs the program on the reference device. Rows are the
ops of jaxlib's dialects.

- ✓ is compiled for every device: reference, OpenCL, Vulkan.
- – the verifier of jaxlib does not allow the type for this op, or for the op of StableHLO that it stands for.
- (1) is refused at compile time, for the reason with that number below.

A column stands for all its types. A type that differs from its column is named. Types that devices cannot compute on
are stored as their bits and computed in a wider type ([numerics](numerics.md)). The [README](../README.md) lists other
features of ops, such as the comparators that a sort supports."""


@cache
def _context() -> Any:
    from jax._src.interpreters import mlir

    return mlir.make_ir_context()


def is_taken(text: str) -> bool:
    """Whether the op takes the types, as jaxlib's verifier sees it."""
    from jaxlib.mlir import ir

    try:
        with _context(), ir.Location.unknown():
            return bool(ir.Module.parse(text).operation.verify())
    except ir.MLIRError:
        return False


def refusal(text: str, name: str) -> str | None:
    """Why the compiler refuses a program, whatever the device; None where it does not."""
    try:
        Compilation(targets=ALL).text(text, "stablehlo")
    except CompileError as error:
        return reason(error, name)
    return None


def reason(error: CompileError, name: str) -> str:
    """What is said of the op, or else first, without what differs from type to type."""
    said = [one.message for one in error.diagnostics if one.op == name] or [one.message for one in error.diagnostics]
    text = (said or [str(error)])[0].split(";")[0]
    text = re.sub(r"tensor<\S*>", "a tensor", text)
    text = re.sub(r"^(?:result|operand|argument) \d+ is a tensor: ", "", text)
    if text.startswith("does not take ("):
        return "does not take complex numbers" if "complex" in text else NOT_TAKEN
    return re.sub(r"element type \S+", "element type", text)


def cell(name: str, element: str) -> str:
    """What stands in the table for an op and a type, legality only: `EVERYWHERE`, `NOT_TAKEN` or the reason."""
    row = ROWS[name]
    text = row.text(name, element)
    if row.varies and not is_taken(text):
        return NOT_TAKEN
    return refusal(text, name) or EVERYWHERE


def proven(name: str, element: str) -> str:
    """The same; of the first type of each column also compiled for every target, and run on the reference device."""
    known = cell(name, element)
    if known != EVERYWHERE or element not in [types[0] for types in COLUMNS.values()]:
        return known
    text, able = ROWS[name].text(name, element), []
    try:
        _run(compiler.compile(text, targets=ALL))
    except CompileError:
        for target in ALL:
            try:
                compiler.compile(text, targets=[target])
                able.append(target)
            except CompileError as error:
                known = reason(error, name)
        return f"{', '.join(able)} only: {known}"
    return EVERYWHERE


def _run(module: bytes) -> None:
    """On ones, of whatever type."""
    function = vm.load(module).main
    export = getattr(function, "export", None)  # a function without tensors has none
    function(*[np.ones(value.shape, value.dtype.numpy) for value in export.arguments] if export is not None else [])


def page(find: Callable[[str, str], str]) -> str:
    """The page, with the cells that `find` gives."""
    notes: dict[str, int] = {}
    tables = []
    for dialect, title in (("stablehlo", "StableHLO"), ("chlo", "CHLO")):
        rows = [name for name in sorted(ROWS) if name.startswith(dialect) and ROWS[name].varies]
        lines = [f"| op | {' | '.join(COLUMNS)} |", "| --- |" + " :-: |" * len(COLUMNS)]
        lines += [f"| `{name}` | {' | '.join(_cells(name, find, notes))} |" for name in rows]
        tables.append(f"## {title}\n\n" + "\n".join(lines))
    fixed = [name for name in sorted(ROWS) if not ROWS[name].varies]
    lines = [f"| `{name}` | {_short(find(name, 'f32'), notes)} |" for name in fixed]
    lines += [f"| `{name}` | {what} |" for name, what in NO_ROWS.items()]
    tables.append("## Ops of no element type\n\n| op | |\n| --- | --- |\n" + "\n".join(lines))
    said = "\n".join(f"{number}. {text}" for text, number in notes.items())
    return "\n\n".join([HEAD, *tables, f"## Refused, because\n\n{said}\n"])


def _cells(name: str, find: Callable[[str, str], str], notes: dict[str, int]) -> Iterator[str]:
    for types in COLUMNS.values():
        said: dict[str, list[str]] = {}
        for type in types:
            said.setdefault(_short(find(name, type), notes), []).append(type)
        yield "<br>".join(what if len(said) == 1 else f"{what} {', '.join(of)}" for what, of in said.items())


def _short(said: str, notes: dict[str, int]) -> str:
    """A mark, or the number of a note."""
    return said if said in (EVERYWHERE, NOT_TAKEN) else f"({notes.setdefault(said, len(notes) + 1)})"
