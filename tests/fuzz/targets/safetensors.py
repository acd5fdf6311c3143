"""A file is a sound safetensors file or ModuleError: tensors cover its data, each with the bytes that its type and
shape say; what is accepted is written again to a file that holds the same; the package of that name accepts it too.
"""

import json
import random
import struct
from math import prod

import numpy as np
from fuzzing import check, tokens_mutated

from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.safetensors import DTYPES, Values, open_bytes, pieces

MAX_BYTES = 8192
POOL = (
    b'"dtype"',
    b'"shape"',
    b'"data_offsets"',
    b'"__metadata__"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'""',
    b"\\u0000",
)
_WORDS = [
    *DTYPES,
    "F4",
    *'[]{},:" ',
    "dtype",
    "shape",
    "data_offsets",
    "__metadata__",
    "a",
] + "0 1 4 8 -1 1e3 1.0 true null NaN 18446744073709551616 \\ud800".split()


def seeds():
    for count in (0, 1, 2, 7):
        for name in ("f32", "bf16", "i1", "complex<f32>"):
            dtype = BY_NAME[name]
            rows = {f"layer.{at}/w['x']": Values(dtype, (at, 2), bytes(2 * at * dtype.itemsize)) for at in range(count)}
            yield b"".join(pieces(rows, {"format": "np", "alpha": "8"} if count == 2 else None))
    header = {"a": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]}}
    text = json.dumps(header).encode()
    yield struct.pack("<Q", len(text)) + text + b"1"


def mutate(choose: random.Random, data: bytes) -> bytes:
    """The header's words, with its size fitting again; or the data behind it."""
    size = min(int.from_bytes(data[:8], "little"), max(len(data) - 8, 0))
    header, rest = data[8 : 8 + size].decode(errors="ignore").rstrip(), data[8 + size :]
    kind = choose.randrange(4)
    if kind == 0:
        rest = rest[: choose.randrange(len(rest) + 1)] + bytes(choose.randrange(3))
    else:
        tokens = _tokens(header)
        header = "".join(tokens_mutated(choose, tokens, _WORDS))
    text = header.encode(errors="ignore")
    if kind == 3:
        text += b" " * choose.randrange(9)
    return struct.pack("<Q", len(text)) + text + rest


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    for character in text:
        if found and character.isalnum() and found[-1][-1].isalnum():
            found[-1] += character
        else:
            found.append(character)
    return found


def one_input(data: bytes) -> None:
    try:
        file = open_bytes(data)
    except ModuleError as error:
        check("\n" not in str(error), f"more than a line: {error}")
        return
    start = 8 + int.from_bytes(data[:8], "little")
    free = start
    for name, tensor in file.tensors.items():
        check(tensor.start == free, f"{name!r} does not follow what is before it")
        free = tensor.end
        size = prod(tensor.dims) * tensor.dtype.itemsize
        check(tensor.end - tensor.start == size, f"{name!r} has not the bytes of its type")
        check(bytes(file.bytes_of(name)) == data[tensor.start : tensor.end], f"{name!r} has other bytes")
    check(free == len(data), "bytes are of no tensor")
    rows = {name: Values(row.dtype, row.dims, file.bytes_of(name)) for name, row in file.tensors.items()}
    again = open_bytes(b"".join(pieces(rows, file.metadata)))
    check(again.metadata == file.metadata and again.tensors.keys() == file.tensors.keys(), "written as something else")
    for name in rows:
        check(bytes(again.bytes_of(name)) == bytes(file.bytes_of(name)), f"{name!r} is written as other bytes")
    _compare_with_the_package(data, rows)


def _compare_with_the_package(data: bytes, rows: dict[str, Values]) -> None:
    """The package is laxer: what we accept, it accepts, and finds the same."""
    try:
        import safetensors
    except ImportError:
        return
    found = dict(safetensors.deserialize(data))
    check(found.keys() == rows.keys(), "the package finds other tensors")
    for name, row in rows.items():
        check(tuple(found[name]["shape"]) == row.dims, f"the package finds another shape of {name!r}")
        check(np.array_equal(found[name]["data"], bytearray(row.data)), f"the package finds other bytes of {name!r}")
