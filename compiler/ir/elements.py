"""Numbers in text to bytes: the bodies of `dense<..>` and `array<..>`.

Exact: floats given in hex keep every bit, a nested list must have exactly the shape of its type, a number must fit its
type. Wrong text raises ValueError, OverflowError or struct.error; the parser adds the place.
"""

from __future__ import annotations

import re
import struct
from math import prod
from typing import Final

from .attributes import _FLOAT_CODES, _STRUCT_CODES, ELEMENT_BYTES, _nest
from .types import TensorType

_ITEM: Final = re.compile(r"[-+]?0x[0-9A-Fa-f]+|[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|true|false")
_SPACE: Final = re.compile(r"\s+")
_FLOAT_BYTES: Final = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
_TO_BOOL: Final = bytes([0]) + bytes([1]) * 255


def float_bits(text: str, name: str) -> int:
    """The bits of a float given in digits or, for `0x..`, as its bits."""
    width = _FLOAT_BYTES.get(name)
    if width is None:
        raise ValueError("floats of this type are not read")
    if "x" in text:
        bits = int(text, 16)
        if not 0 <= bits < 1 << 8 * width:
            raise ValueError(f"bits do not fit {width} bytes")
        return bits
    if name == "bf16":
        bits = int.from_bytes(struct.pack("<f", float(text)), "little")
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return int.from_bytes(struct.pack(_FLOAT_CODES[name], float(text)), "little")


def _pack(items: list[str], name: str) -> bytes:
    code = _STRUCT_CODES[name]
    if name in _FLOAT_CODES:
        if any("x" in item for item in items):
            width = ELEMENT_BYTES[name]
            return b"".join(float_bits(item, name).to_bytes(width, "little") for item in items)
        return struct.pack(f"<{len(items)}{code}", *map(float, items))
    return struct.pack(f"<{len(items)}{code}", *(_integer(item, name) for item in items))


def _integer(item: str, name: str) -> int:
    if item in ("true", "false"):
        if name != "i1":
            raise ValueError(f"{item} is no {name}")
        return item == "true"
    if name == "i1" and item not in ("0", "1", "-1"):
        raise ValueError(f"{item} is no i1")
    return abs(int(item)) if name == "i1" else int(item, 16 if "x" in item else 10)


def bytes_of_numbers(text: str, name: str) -> bytes:
    """`1, 2, 3` to bytes of the named element type."""
    if name not in ELEMENT_BYTES:
        raise ValueError(f"unknown element type {name}")
    items = [item.strip() for item in text.split(",")] if text.strip() else []
    for item in items:
        if _ITEM.fullmatch(item) is None:
            raise ValueError(f"{item!r} is no number")
    return _pack(items, name)


def bytes_of_body(body: str, kind: TensorType) -> bytes:
    """The bytes of `dense<body> : kind`: all elements, or one for a splat."""
    name = str(kind.element)
    body = body.strip()
    if body.startswith('"0x'):
        return _bytes_of_hex(body, kind)
    if not body:
        if kind.num_elements:
            raise ValueError(f"no elements for {kind}")
        return b""
    items = _ITEM.findall(body)
    skeleton = _SPACE.sub("", _ITEM.sub("_", body))
    if skeleton == "_":
        data = _pack(items, name)
        return data if kind.num_elements else b""
    if len(items) != prod(kind.shape) or skeleton != _nest(["_"] * len(items), kind.shape).replace(" ", ""):
        raise ValueError(f"the list of {len(items)} elements has not the shape of {kind}")
    data = _pack(items, name)
    return splat_or_all(data, ELEMENT_BYTES[name])


def splat_or_all(data: bytes, size: int) -> bytes:
    """One element when all are the same bits."""
    uniform = len(data) > size and data[:size] == data[-size:] and data[size:] == data[:-size]
    return data[:size] if uniform else data


def _bytes_of_hex(body: str, kind: TensorType) -> bytes:
    data = bytes.fromhex(body[3:-1])
    size = ELEMENT_BYTES[str(kind.element)]
    if len(data) not in (size, size * kind.num_elements):
        raise ValueError(f"{kind} needs {size * kind.num_elements} bytes or one element, got {len(data)}")
    if str(kind.element) == "i1":
        data = data.translate(_TO_BOOL)
    return splat_or_all(data, size)
