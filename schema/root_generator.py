"""Writes `root_generated.py` from `module.fbs`: `python -m orchestrion.schema.root_generator > FILE`.

The generated decoder of valid roots is one function without loops over the schema: it unpacks every vector, compares
every value, and returns None at the first that violates the schema. `structure.py` and `columns.py`, which interpret
the same file at run time, produce the error messages; tests compare both. The reason for generating it is in
`docs/decisions/generated-decoder.md`.
"""

from collections.abc import Iterator

from .columns import kinds_of
from .layout import Column, Layout, Vector, layout
from .rows import NONE
from .versions import KNOWN_FEATURES, MAJOR, MINOR

_HEAD = '''"""Written by `schema/root_generator.py` from `module.fbs`: see there; do not edit."""

from functools import partial
from struct import Struct, unpack_from

from .dtypes import BY_CODE
from .module import Module
from .rows import (
{rows}
)

_u32, _i32, _sizes = Struct("<I").unpack_from, Struct("<i").unpack_from, Struct("<HH").unpack_from
_header = Struct("{header.format.format}").unpack_from
{structs}


def decode(root: memoryview) -> Module | None:
    """The module of a sound root (size prefix included), None for any other; `container` is not set."""
    try:
        return _decode(root)
    except (IndexError, UnicodeDecodeError):
        return None


def _decode(root: memoryview) -> Module | None:
    root_size = len(root)
    if root_size < 20:
        return None
    table = 4 + _u32(root, 4)[0]
    if table & 3 or not 12 <= table <= root_size - 4:
        return None
    vtable = table - _i32(root, table)[0]
    if vtable & 1 or not 12 <= vtable <= root_size - 4:
        return None
    vtable_size, table_size = _sizes(root, vtable)
    if vtable_size & 1 or not 4 <= vtable_size <= root_size - vtable:
        return None
    if not 4 <= table_size <= root_size - table:
        return None
    fields = unpack_from(f"<{{(vtable_size - 4) // 2}}H", root, vtable + 4) + {padding}
    offsets = unpack_from(f"<{{table_size // 4}}I", root, table)
    module = Module()
    place = fields[0]
    if not place or place + {header.format.size} > table_size or (table + place) & {header_mask}:
        return None
    module.header = header = Header._make(_header(root, table + place))
    if header.major != {major} or header.minor > {minor} or header.features & ~{features:#x}:
        return None'''


def generate() -> Iterator[str]:
    """The lines of the file."""
    plan = layout()
    slots = len(plan.vectors) + 1
    vectors = [vector for vector in plan.vectors if vector.row is not None]
    yield _HEAD.format(
        rows="\n".join(f"    {name}," for name in sorted({"Header", *(vector.element for vector in vectors)})),
        header=plan.header,
        header_mask=plan.header.alignment - 1,
        structs="\n".join(map(_struct, vectors)),
        padding=f"(0,) * {slots}",
        major=MAJOR,
        minor=MINOR,
        features=KNOWN_FEATURES,
    )
    for vector in plan.vectors:
        yield from _indented(1, _unpacked(vector))
    yield "    if header.producer >= strings_count:"
    yield "        return None"
    targets = dict.fromkeys(c.attributes["owns"] for v in plan.vectors for c in v.columns if "owns" in c.attributes)
    yield f"    {' = '.join(f'{target}_free' for target in targets)} = 0"
    for vector in plan.vectors:
        yield from _indented(1, _compared(plan, vector))
    for target in targets:
        yield f"    if {target}_free != {target}_count:"
        yield "        return None"
    yield "    return module"


def _indented(depth: int, lines: Iterator[str]) -> Iterator[str]:
    return ("    " * depth + line for line in lines)


def _struct(vector: Vector) -> str:
    rows, make = f'Struct("{vector.format.format}").iter_unpack', f"partial(tuple.__new__, {vector.element})"
    return f"_{vector.name}, _{vector.name}_row = {rows}, {make}"


def _unpacked(vector: Vector) -> Iterator[str]:
    """Unpacks a vector into rows, and their number."""
    name = vector.name
    yield f"place = fields[{vector.slot}]"
    if "required" in vector.columns[0].attributes:
        yield "if not place:"
        yield "    return None"
        yield from _bounds(vector)
    else:
        yield f"{name}, {name}_count = {'root[:0]' if vector.blob else '()'}, 0"
        yield "if place:"
        yield from _indented(1, _bounds(vector))
    yield f"module.{name} = {name}"


def _bounds(vector: Vector) -> Iterator[str]:
    """Checks that the vector that the field at `place` refers to lies inside of the root."""
    yield "if place & 3:"
    yield "    return None"
    yield "start = table + place + offsets[place // 4] + 4"
    yield f"if start & {max(vector.alignment, 4) - 1} or start > root_size:"
    yield "    return None"
    yield f"{vector.name}_count = _u32(root, start - 4)[0]"
    size = vector.format.size
    yield f"end = start + {vector.name}_count{f' * {size}' if size > 1 else ''}"
    yield "if end > root_size:"
    yield "    return None"
    yield from _values(vector)


def _values(vector: Vector) -> Iterator[str]:
    name = vector.name
    if name == "strings":
        yield 'strings = str(root[start:end], "utf-8").split("\\0")'
        yield "strings_count = len(strings)"
    elif vector.row is not None:
        yield f"{name} = list(map(_{name}_row, _{name}(root[start:end])))"
    elif vector.blob:
        yield f"{name} = root[start:end]"
    else:
        yield f'{name} = unpack_from(f"<{{{name}_count}}{vector.format.format[1:]}", root, start)'


def _compared(plan: Layout, vector: Vector) -> Iterator[str]:
    """Compares every value of a vector with its column."""
    if vector.row is None:
        tests = [test.replace("value", f"max({vector.name})") for test in _tests(plan, vector.columns[0], "value")]
        yield from (line for test in tests for line in (f"if {vector.name} and {test}:", "    return None"))
        return
    tests = [test for column in vector.columns for test in _tests(plan, column, column.name)]
    owned = [column for column in vector.columns if "owns" in column.attributes]
    if not tests and not owned:
        return
    yield f"for {', '.join(vector.row._fields)} in {vector.name}:"
    for test in tests:
        yield f"    if {test}:"
        yield "        return None"
    for column in owned:
        yield from _indented(1, _owned(column))
    for local in plan.vectors:
        yield from _indented(1, _local(plan, vector, local))


def _tests(plan: Layout, column: Column, value: str) -> Iterator[str]:
    """The conditions that must not hold for a value."""
    attributes, allowed = column.attributes, plan.allowed(column)
    none = f" and {value} != {NONE:#x}" if "optional" in attributes else ""
    target = attributes.get("index") or ("strings" if "string" in attributes else "")
    if target:
        yield f"{value} >= {target}_count{none}"
    if "kind" in attributes:
        kinds = tuple(map(int, kinds_of(column)))
        wrong = f"!= {kinds[0]}" if len(kinds) == 1 else f"not in {kinds}"
        yield f"{f'{value} != {NONE:#x} and ' if none else ''}{target}[{value}].kind {wrong}"
    if "range" in attributes:
        yield f"not {value}_start <= {value}_end <= {attributes['range']}_count"
    if "dtype" in attributes:
        yield f"{value} not in BY_CODE"
    elif allowed is not None:
        if allowed != frozenset(range(len(allowed))):
            raise ValueError(f"{column.name}: {sorted(allowed)} has gaps; an enum counts from 0")
        yield f"{value} > {max(allowed)}"


def _owned(column: Column) -> Iterator[str]:
    """Checks that a range continues where the previous one ended."""
    start, end, free = f"{column.name}_start", f"{column.name}_end", f"{column.attributes['owns']}_free"
    yield f"if {start} != {free} or {end} < {start}:"
    yield "    return None"
    yield f"{free} = {end}"


def _local(plan: Layout, owner: Vector, vector: Vector) -> Iterator[str]:
    """Checks the columns of a vector that count within a range of the owning row."""
    for column in vector.columns:
        target = column.attributes.get("local")
        if target is None or plan.owner(vector.name)[0] is not owner:
            continue
        own = plan.owner(vector.name)[1].name
        value = f"row.{column.name}" if vector.row is not None else "row"
        none = f" and {value} != {NONE:#x}" if "optional" in column.attributes else ""
        yield f"for row in {vector.name}[{own}_start:{own}_end]:"
        yield f"    if {value} >= {target}_end - {target}_start{none}:"
        yield "        return None"


if __name__ == "__main__":
    print("\n".join(generate()))
