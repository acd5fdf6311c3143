"""The verifying decoder of the module's root: every byte sequence gives a `Module` or raises ModuleError.

It checks three things: the FlatBuffers structure, each column against the schema's attributes, and the rules between
tables that attributes cannot express (`rules.py`). The first two are one function generated from the schema
(`root_generated.py`), which accepts or rejects a root; `structure.py` finds the reason of a rejection. Time and memory
are linear in the size of the root. A segment is read only by `Module.segment`.
"""

import os
import struct
from typing import NoReturn

from . import container
from .container import Container
from .errors import ModuleError
from .module import Module
from .root_generated import decode as decode_sound
from .rows import SegmentKind
from .rules import NUMBERS, RULES


def open_module(path: str | os.PathLike[str]) -> Module:
    """Maps and decodes a file. Raises OSError if it cannot be read, ModuleError if it is not a valid module."""
    return decode(container.open_file(path))


def read_module(data: bytes | bytearray | memoryview) -> Module:
    """Decodes a file in memory. The bytes must not change while the module lives."""
    return decode(container.open_bytes(data))


def decode(file: Container) -> Module:
    """Decodes and verifies a container's root, and compares its segments with the directory."""
    return _in(file, decode_root(file.root))


def decode_again(module: Module, file: Container) -> Module:
    """Returns the module for another file whose root has the same digest as that of `module`."""
    return _in(file, module.without_file())


def _in(file: Container, module: Module) -> Module:
    if len(module.segments) != len(file.spans):
        raise ModuleError(f"the root has {len(module.segments)} segments, the directory {len(file.spans)}")
    for (offset, size), row in zip(file.spans, module.segments, strict=True):
        if offset and (size != row.size or row.kind == SegmentKind.Parameter):
            _refuse_span(module, file, offset)
    module.container = file
    if not file.complete:
        file.complete = not any(map(module.missing, range(len(file.spans))))
    return module


def _refuse_span(module: Module, file: Container, offset: int) -> NoReturn:
    ordinal, size = next((at, size) for at, (start, size) in enumerate(file.spans) if start == offset)
    expected = module.segments[ordinal].size
    if size != expected:
        raise ModuleError(f"segment {ordinal} has {size} bytes in the directory, {expected} in the root", offset)
    raise ModuleError(f"segment {ordinal} is a parameter, whose bytes are never in the file", offset)


def decode_root(root: memoryview) -> Module:
    """Decodes and verifies size prefix and root. The module has no `container` yet."""
    module = decode_sound(root)
    if module is None:
        module = _explained(root)
    for rule in RULES:
        rule(module)
    return module


def _explained(root: memoryview) -> Module:
    """Decodes slowly, to raise the error. Imported here because valid modules do not need it."""
    from . import structure

    return structure.decode(root)


def initial_value(type_name: str, bits: int) -> int | float | None:
    """The initial value of a global of this type; None for a reference, which is initially null."""
    if type_name not in NUMBERS:
        return None
    value: int | float = struct.unpack(NUMBER_FORMATS[type_name], bits.to_bytes(NUMBERS[type_name], "little"))[0]
    return value


NUMBER_FORMATS = {"i32": "<i", "i64": "<q", "f32": "<f", "f64": "<d"}
