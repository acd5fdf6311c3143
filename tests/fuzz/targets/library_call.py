"""Attributes of a library call are read or ShapeError (struct's error where bytes end); those that pass the check are
written to the bytes they were read from.
"""

import struct

from fuzzing import check

from orchestrion.schema import library_call
from orchestrion.schema.tensor_shapes import ShapeError

POOL = tuple(bytes([kind.tag]) for kind in library_call.KINDS) + (b"\1\0\0\0a", b"\1\0\0\0b", b"\0\0\0\0")


def seeds():
    values = (True, -5, 0.25, "text", (1, 2**62), (0.5, float("inf")), (True, False), ())
    yield library_call.attributes_bytes(tuple((f"a{at}", value) for at, value in enumerate(values)))
    for at, value in enumerate(values):
        yield library_call.attributes_bytes(((f"a{at}", value),))
    yield library_call.attributes_bytes(())


def one_input(data: bytes) -> None:
    try:
        found, end = library_call.read_attributes(data, 0)
        library_call.check_attributes(found)
    except (ShapeError, struct.error):
        return
    check(end <= len(data), f"{end} of {len(data)} bytes are read")
    if not any(value == () for _, value in found):  # an empty list is one of ints
        check(library_call.attributes_bytes(found) == data[:end], f"{found!r:.200} is written otherwise")
