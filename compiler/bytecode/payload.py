"""Converts payloads of executables to attributes: source code to a string, anything else to bytes."""

from __future__ import annotations

from orchestrion.compiler.ir.attributes import DenseElements, StringAttr
from orchestrion.compiler.ir.types import Attribute, tensor
from orchestrion.schema.profiles import find_format


def payload_attribute(data: bytes, format: str) -> Attribute:
    """The attribute for a payload of an executable format."""
    row = find_format(format)
    if row is not None and row.text:
        return StringAttr(data.decode())
    return DenseElements(tensor((len(data),), "ui8"), data)


def payload_bytes(payload: Attribute) -> bytes | memoryview:
    """The inverse of `payload_attribute`."""
    if isinstance(payload, StringAttr):
        return payload.value.encode("utf-8", "surrogateescape")
    assert isinstance(payload, DenseElements), payload
    if payload.is_splat:
        return bytes(payload.data) * payload.type.num_elements
    return payload.data
