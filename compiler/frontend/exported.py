"""What `jax.export.Exported.serialize` writes: a FlatBuffer, whose table has the program as a portable artifact."""

from __future__ import annotations

import struct
from typing import Final

MLIR_MAGIC: Final = b"ML\xefR"
#: where the vtable of an `Exported` has `mlir_module_serialized` (jax/_src/export/serialization.fbs, all versions)
_MODULE: Final = 30


def artifact_in(data: bytes) -> bytes | None:
    """The artifact; None where the data is no such file."""
    if MLIR_MAGIC not in data:
        return None
    from flatbuffers import encode, packer  # text needs neither this nor NumPy
    from flatbuffers.table import Table

    try:
        root = Table(data, encode.Get(packer.uoffset, data, 0))
        field = root.Offset(_MODULE)
        start, length = root.Vector(field), root.VectorLen(field)
    except (struct.error, TypeError):  # an offset points behind the end, or before the beginning
        return None
    found = data[start : start + length]
    return found if field and found.startswith(MLIR_MAGIC) else None
