"""Templates: filling in parameters gives valid code, and anything else is refused."""

import random
import struct

import pytest

from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.tensor_bytecode import EntryCode
from orchestrion.schema.tensor_encoding import decode, encode
from orchestrion.schema.tensor_shapes import TensorType
from orchestrion.schema.tensor_template import (
    SymbolicNumber,
    decode_template,
    encode_template,
    is_template,
    number,
    operation,
    parameter,
)

F32, I32 = BY_NAME["f32"], BY_NAME["i32"]


def code(rows: int, half: int) -> EntryCode:
    """Every other row of a tensor of `rows` by 3, and the number of those rows."""
    entry = EntryCode(3)
    (x,) = entry.emit("load_input", (), 0, TensorType(F32, (rows, 3)))
    (part,) = entry.emit("slice", (x,), (0, 0), (rows, 3), (2, 1))
    entry.emit("store_output", (part,), 1)
    (count,) = entry.emit("number", (), TensorType(I32, ()), (half,))
    entry.emit("store_output", (count,), 2)
    return entry


def template() -> bytes:
    rows = parameter(0)
    half = operation("floordiv", operation("add", rows, number(1)), number(2))
    return encode_template([code(SymbolicNumber(1, rows), SymbolicNumber(1, half))], [1])


@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
def test_parameters_make_static_code(rows: int) -> None:
    assert is_template(template())
    made = decode_template(template()).entry(0, (rows,))
    assert encode([made]) == encode([code(rows, (rows + 1) // 2)])
    assert made.accesses == (("read", 12 * rows), ("write", (rows + 1) // 2 * 12), ("write", 4))


def test_the_payload_is_that_of_the_least_sizes() -> None:
    found = decode_template(template())
    assert found.payload == encode([code(1, 1)])
    assert len(decode(found.payload).entries) == len(found.entries) == 1


def test_what_parameters_make_is_verified() -> None:
    wrong = encode_template([code(SymbolicNumber(2, operation("add", parameter(0), number(-5))), 1)], [1])
    with pytest.raises(ModuleError, match="negative dimension"):
        decode_template(wrong).entry(0, (1,))
    divided = encode_template([code(SymbolicNumber(2, operation("floordiv", number(4), parameter(0))), 1)], [1])
    with pytest.raises(ModuleError, match="4 divided by 0"):
        decode_template(divided).entry(0, (0,))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (b"", "gives 0 numbers"),
        (parameter(1), "parameter 1 of 1"),
        (parameter(0) + parameter(0), "gives 2 numbers"),
        (b"\x02", "expression byte 0x2 with 0 numbers"),
        (b"\x09", "expression byte 0x9"),
        (b"\x00\x01", "an expression of 2 bytes"),
    ],
)
def test_expressions_that_are_none(expression: bytes, message: str) -> None:
    with pytest.raises(ModuleError, match=message):
        decode_template(encode_template([code(SymbolicNumber(1, expression), 1)], [1]))


def test_parameters_cannot_make_entries_vanish() -> None:
    """One entry would become a constant that contains the bytes of the other."""
    i8 = BY_NAME["i8"]
    first = EntryCode(0)
    first.emit("constant", (), TensorType(i8, (3,)), b"abc")
    payload = encode([first, EntryCode(0)])
    at = payload.index(struct.pack("<qQ", 3, 3))
    changes = [(8, -1), (at, 6), (at + 8, 6)]  # the count of entries, the constant's size and its bytes
    rows = b""
    for place, by in changes:
        (old,) = struct.unpack_from("<q", payload, place)
        code = operation("add", number(old), operation("multiply", parameter(0), number(by)))
        rows += struct.pack("<QH", place, len(code)) + code
    entries = struct.pack("<HI", 0, 0) + struct.pack("<HI", 1, len(changes)) + rows
    found = decode_template(struct.pack("<4sHHI", b"OTBT", 1, 0, 2) + entries + payload)
    assert found.entry(1, (0,)).accesses == ()
    with pytest.raises(ModuleError, match="make 1 entries of 2"):
        found.entry(1, (1,))


def test_other_bytes_are_refused_or_code() -> None:
    whole, chance = template(), random.Random(5)
    for length in range(len(whole)):
        with pytest.raises(ModuleError):
            decode_template(whole[:length])
    for _ in range(400):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        try:
            decode_template(data).entry(0, (3,))
        except (ModuleError, IndexError) as error:
            assert not isinstance(error, IndexError) or not decode_template(data).entries
