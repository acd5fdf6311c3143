"""Converts numbers in text to bytes: the bodies of `dense<..>` and `array<..>`.

The conversion is exact: floats in hex keep every bit, a nested list must have exactly the shape of its type, and a
number must fit its type. Malformed text raises ValueError, OverflowError or struct.error; the parser adds the location.
"""

from __future__ import annotations

import re
import struct
from math import isinf, prod
from typing import Final

from orchestrion.schema.dtypes import FLOAT_FORMATS

from .attributes import ELEMENT_BYTES, FLOAT_CODES, PARTS, STRUCT_CODES
from .types import TensorType

_ITEM: Final = re.compile(r"[-+]?0x[0-9A-Fa-f]+|[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|true|false")
_INTEGER: Final = re.compile(r"([su]?)i([1-9][0-9]{0,7})")
_SPACE: Final = re.compile(r"\s+")
_FLOATS: Final = frozenset({"f32", "f64", *FLOAT_FORMATS})
_TO_BOOL: Final = bytes([0]) + bytes([1]) * 255


def float_bits(text: str, name: str) -> int:
    """The bits of a float that is written in digits or, for `0x..`, as its bits."""
    if name not in _FLOATS:
        raise ValueError("floats of this type are not read")
    width = ELEMENT_BYTES[name]
    if "x" in text:
        bits = int(text, 16)
        if not 0 <= bits < 1 << 8 * width:
            raise ValueError(f"bits do not fit {width} bytes")
        return bits
    if name in FLOAT_FORMATS:
        return FLOAT_FORMATS[name].rounded(_finite(text))
    return int.from_bytes(struct.pack(FLOAT_CODES[name], _finite(text)), "little")


def _finite(text: str) -> float:
    value = float(text)
    if isinf(value):
        raise ValueError(f"{text} is too large")
    return value


def _pack(items: list[str], name: str) -> bytes:
    if name in _FLOATS:
        if name in FLOAT_FORMATS or any("x" in item for item in items):
            width = ELEMENT_BYTES[name]
            return b"".join(float_bits(item, name).to_bytes(width, "little") for item in items)
        return struct.pack(f"<{len(items)}{STRUCT_CODES[name]}", *map(_finite, items))
    code = STRUCT_CODES[name]
    return struct.pack(f"<{len(items)}{code}", *(_element(item, name) for item in items))


def _element(item: str, name: str) -> int:
    if item in ("true", "false"):
        if name != "i1":
            raise ValueError(f"{item} is not of type {name}")
        return item == "true"
    return abs(integer_of(item, name)) if name == "i1" else integer_of(item, name)


def integer_of(text: str, name: str) -> int:
    """The number in `text` as an integer of a type. Without a sign it may also be the bits: `255 : i8` is -1."""
    value = int(text, 16 if "x" in text else 10)
    kind = _INTEGER.fullmatch(name)
    bits = int(kind[2]) if kind is not None else 64
    sign = kind[1] if kind is not None else "s"
    least = 0 if sign == "u" else -(1 << bits - 1)
    most = (1 << bits - 1 if sign == "s" else 1 << bits) - 1
    if not least <= value <= most:
        raise ValueError(f"{name} holds {least} to {most}")
    return value - (1 << bits) if not sign and value >> bits - 1 > 0 else value


def bytes_of_numbers(text: str, name: str) -> bytes:
    """The bytes of `1, 2, 3` in the named element type."""
    if name not in ELEMENT_BYTES:
        raise ValueError(f"unknown element type {name}")
    items = [item.strip() for item in text.split(",")] if text.strip() else []
    for item in items:
        if _ITEM.fullmatch(item) is None:
            raise ValueError(f"{item!r} is not a number")
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
    part, count = name, len(items)
    if name in PARTS:
        if skeleton.count("_") != 2 * skeleton.count("(_,_)"):
            raise ValueError(f"an element of {kind} is written (re, im)")
        part, count, skeleton = PARTS[name], count // 2, skeleton.replace("(_,_)", "_")
    if skeleton == "_":
        data = _pack(items, part)
        return data if kind.num_elements else b""
    if count != prod(kind.shape) or skeleton != _skeleton(kind.static_shape, len(skeleton)):
        raise ValueError(f"the list of {count} elements does not have the shape of {kind}")
    data = _pack(items, part)
    return splat_or_all(data, ELEMENT_BYTES[name])


def _skeleton(shape: tuple[int, ...], longest: int) -> str:
    """The brackets of a nested list: `[[_,_],[_,_]]`, `[[],[]]` for 2x0; empty if it would be longer than `longest`."""
    outer = shape[: shape.index(0)] if 0 in shape else shape
    if prod(outer) > longest:
        return ""
    text = "[]" if 0 in shape else "_"
    for size in reversed(outer):
        text = f"[{','.join([text] * size)}]"
    return text


def splat_or_all(data: bytes, size: int) -> bytes:
    """The first element alone if all elements have equal bits, else all of them."""
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
