"""The rules of a module that the schema's attributes cannot express. Time is linear in the rows.

Each rule is a function of the decoded module, listed in `RULES`; it assumes that every ordinal and range is valid.
"""

from collections import Counter
from collections.abc import Sequence
from math import prod

from .dtypes import BY_CODE
from .errors import ModuleError
from .module import Module
from .rows import NONE, Attribute, AttributeKind, SegmentKind
from .segments import chunk_count

#: the most dimensions of a NumPy array
MAX_RANK = 64
MAX_BYTES = 2**63 - 1
#: value types that are numbers -> their bytes; every other name is a reference
NUMBERS = {"i32": 4, "i64": 8, "f32": 4, "f64": 8}


def _shape_bytes(what: str, number: int, dims: Sequence[int], dtype: int) -> int:
    """Bytes of a tensor. Raises ModuleError for more dimensions or bytes than a device could address."""
    if len(dims) > MAX_RANK:
        raise ModuleError(f"{what}[{number}] has {len(dims)} dimensions, the limit is {MAX_RANK}")
    size = prod(dims) * BY_CODE[dtype].itemsize
    if size > MAX_BYTES:
        raise ModuleError(f"{what}[{number}] has {size} bytes, the limit is {MAX_BYTES}")
    return size


def _dims(module: Module) -> None:
    """Dynamic dimensions have an expression; constants have no dynamic dimensions."""
    dims, count = module.dims, len(module.expressions)
    if not dims or min(dims) >= 0:
        return
    if min(dims) < -count:
        place = next(i for i, dim in enumerate(dims) if dim < -count)
        raise ModuleError(f"dims[{place}]: {dims[place]}; there are {count} expressions for dynamic dimensions")
    for number, row in enumerate(module.constants):
        if any(dim < 0 for dim in dims[row.dims_start : row.dims_end]):
            raise ModuleError(f"constants[{number}] has a dynamic dimension")


def _shapes(module: Module) -> None:
    """Shapes are not too large; a dynamic dimension counts as 1."""
    dims = [dim if dim >= 0 else 1 for dim in module.dims]
    for number, row in enumerate(module.arguments):
        _shape_bytes("arguments", number, dims[row.dims_start : row.dims_end], row.dtype)
    for number, result in enumerate(module.results):
        _shape_bytes("results", number, dims[result.dims_start : result.dims_end], result.dtype)


def _names(module: Module) -> None:
    for what, rows in (("exports", module.exports), ("programs", module.programs)):
        _unique(what, [module.strings[row.name] for row in rows])


def _unique(what: str, names: list[str]) -> None:
    if len(set(names)) != len(names):
        name, count = Counter(names).most_common(1)[0]
        raise ModuleError(f"{count} {what} are called {name!r:.400}")


def _programs(module: Module) -> None:
    for number, row in enumerate(module.programs):
        if not row.devices:
            raise ModuleError(f"programs[{number}] asks for 0 devices")
        entries = row.entries_end - row.entries_start
        if entries != len(module.exports):
            raise ModuleError(f"programs[{number}] has {entries} entries for {len(module.exports)} exports")
        functions = module.functions[row.functions_start : row.functions_end]
        total = sum(function.bytecode_end - function.bytecode_start for function in functions)
        if total > len(module.bytecode):
            raise ModuleError(
                f"programs[{number}]: its functions take {total} bytes, the bytecode has {len(module.bytecode)}"
            )


def _globals(module: Module) -> None:
    for number, row in enumerate(module.globals):
        name = module.strings[module.types[row.type]]
        if row.value >> 8 * NUMBERS.get(name, 0):
            raise ModuleError(f"globals[{number}]: initial value {row.value:#x} does not fit {name}")


def _executables(module: Module) -> None:
    for number, row in enumerate(module.executables):
        entries = row.entries_end - row.entries_start
        for variant in range(row.variants_start, row.variants_end):
            sizes = module.variants[variant]
            count = sizes.workgroup_sizes_end - sizes.workgroup_sizes_start
            if count != entries:
                raise ModuleError(
                    f"variants[{variant}] has {count} workgroup sizes; executables[{number}] has {entries} entries"
                )
    for number, size in enumerate(module.workgroup_sizes):
        if 0 in size:
            raise ModuleError(f"workgroup_sizes[{number}]: {tuple(size)} has no threads")


def _constants(module: Module) -> None:
    for number, row in enumerate(module.constants):
        size = _shape_bytes("constants", number, module.dims[row.dims_start : row.dims_end], row.dtype)
        if size != module.segments[row.segment].size:
            stored = module.segments[row.segment].size
            raise ModuleError(f"constants[{number}] has {size} bytes, segments[{row.segment}] {stored}")


def _segments(module: Module) -> None:
    """A long segment may have a digest per piece; names of custom segments are unique."""
    if module.chunks:
        for number, row in enumerate(module.segments):
            count, wanted = row.chunks_end - row.chunks_start, chunk_count(row.size)
            if count not in (0, wanted):
                raise ModuleError(f"segments[{number}] has {count} chunks for {row.size} bytes, 0 or {wanted} wanted")
    names = [row.name for row in module.segments if row.kind == SegmentKind.Custom]
    if not names:
        return
    if NONE in names:
        raise ModuleError("a custom segment has no name")
    _unique("custom segments", [module.strings[name] for name in names])


def _attributes(module: Module) -> None:
    """Keys of one owner are unique, texts are UTF-8."""
    if module.attributes:
        _owned_attributes(module, module.attributes, "attributes of the module")
    if module.export_attributes:
        for number, export in enumerate(module.exports):
            rows = module.export_attributes[export.attributes_start : export.attributes_end]
            _owned_attributes(module, rows, f"attributes of exports[{number}]")
    if module.program_attributes:
        for number, program in enumerate(module.programs):
            rows = module.program_attributes[program.attributes_start : program.attributes_end]
            _owned_attributes(module, rows, f"attributes of programs[{number}]")


def _owned_attributes(module: Module, rows: Sequence[Attribute], what: str) -> None:
    _unique(what, [module.strings[row.key] for row in rows])
    for row in rows:
        if row.kind == AttributeKind.Text:
            try:
                str(module.attribute_values[row.value_start : row.value_end], "utf-8")
            except UnicodeDecodeError as error:
                key = module.strings[row.key]
                raise ModuleError(f"{what}: the text of {key!r:.100} is not UTF-8: {error.reason}") from None


RULES = (_dims, _shapes, _names, _programs, _globals, _executables, _segments, _constants, _attributes)
