"""A source map is decoded or ModuleError; it answers every question, and is encoded to a map with the same rows."""

import random
import struct

from fuzzing import check

from orchestrion.schema import sourcemap
from orchestrion.schema.errors import ModuleError


def seeds():
    rows = [
        (0, 0, "a.mlir:1:2"),
        (0, 8, "b"),
        (2, 4, "a.mlir:1:2"),
        (sourcemap.OPS, 0, "add mul"),
        (sourcemap.BINDINGS, 1, "x; none"),
    ]
    for count in range(len(rows) + 1):
        yield sourcemap.encode(rows[:count])


def mutate(choose: random.Random, data: bytes) -> bytes:
    """A number of a row."""
    words = bytearray(data)
    if len(words) >= 20:
        at = 8 + 4 * choose.randrange((len(words) - 8) // 4)
        struct.pack_into("<I", words, at, choose.choice((0, 1, 2, 5, sourcemap.OPS, sourcemap.BINDINGS, 2**32 - 1)))
    return bytes(words)


def repair(data: bytes) -> bytes:
    """With a number of bytes of text that fits, as many rows as it says or as there can be."""
    if len(data) < 8:
        return data
    count = min(int.from_bytes(data[:4], "little"), (len(data) - 8) // 12)
    return struct.pack("<II", count, len(data) - 8 - 12 * count) + data[8:]


def one_input(data: bytes) -> None:
    try:
        found = sourcemap.decode(memoryview(data))
    except ModuleError:
        return
    for function, pc, text in found.rows:
        check(found.find(function, pc) == found.texts[text], "a row is not found")
        check(found.find(function, pc + 1) is not None, "behind a row, no row")
        found.source_ops(function - sourcemap.OPS, pc)
        found.binding_types(function - sourcemap.BINDINGS, pc)
    rows = [(function, pc, found.texts[text]) for function, pc, text in found.rows]
    again = sourcemap.decode(memoryview(sourcemap.encode(rows)))
    check([(function, pc, again.texts[text]) for function, pc, text in again.rows] == rows, "other rows when encoded")
