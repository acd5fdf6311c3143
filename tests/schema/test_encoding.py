"""Encoder and decoder are inverse to each other for every row, and other bytes raise `ModuleError`."""

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrion.schema.encoding import (
    Decoded,
    Operand,
    bits_of_float,
    decode,
    encode,
    encode_all,
    float_of_bits,
    size,
)
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.isa import BY_NAME, INSTRUCTIONS, Instruction

HALF, WORD, LONG = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
VALUES: dict[str, st.SearchStrategy[Operand]] = {
    **dict.fromkeys(("i32", "i64", "f32", "f64", "ref"), HALF),
    **dict.fromkeys(("function", "import", "global", "constant", "target", "imm_f32"), WORD),
    "imm_f64": LONG,
    "imm_i32": st.integers(-(2**31), 2**31 - 1),
    "imm_i64": st.integers(-(2**63), 2**63 - 1),
    "targets": st.lists(WORD, max_size=5).map(tuple),
    "registers": st.lists(HALF, max_size=5).map(tuple),
    "text": st.text(max_size=20),
}


def operands_of(row: Instruction) -> st.SearchStrategy[tuple[Operand, ...]]:
    return st.tuples(*[VALUES[operand.kind] for operand in row.operands])


INSTRUCTION = st.sampled_from(INSTRUCTIONS).flatmap(lambda row: st.tuples(st.just(row), operands_of(row)))


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda row: row.name)
@settings(max_examples=5)
@given(data=st.data())
def test_round_trip(row: Instruction, data: st.DataObject) -> None:
    operands = data.draw(operands_of(row))
    code = encode(row, operands)
    assert len(code) == size(row, operands)
    assert len(code) % 2 == 0
    assert decode(code) == [Decoded(0, row, operands)]


@settings(max_examples=50)
@given(
    st.lists(st.sampled_from(INSTRUCTIONS).flatmap(lambda row: st.tuples(st.just(row), operands_of(row))), max_size=8)
)
def test_sequences(instructions: list[tuple[Instruction, tuple[Operand, ...]]]) -> None:
    found = decode(memoryview(encode_all(instructions)))
    assert [(row, operands) for _, row, operands in found] == instructions
    pc = 0
    for instruction in found:
        assert instruction.pc == pc
        pc += size(instruction.row, instruction.operands)


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes(code: bytes) -> None:
    """Any bytes are refused, or are exactly the encoding of what they decode to."""
    try:
        found = decode(code)
    except ModuleError:
        return
    assert encode_all((row, operands) for _, row, operands in found) == code


@settings(max_examples=200)
@given(st.sampled_from(INSTRUCTIONS), st.binary(max_size=40))
def test_any_operands(row: Instruction, rest: bytes) -> None:
    test_any_bytes.hypothesis.inner_test(struct.pack("<H", row.opcode) + rest)


def test_words_are_little_endian() -> None:
    assert encode(BY_NAME["i32.const"], (-2, 3)).hex() == "0001feffffff0300"
    assert encode(BY_NAME["i32.const"], (0xFFFFFFFE, 3)).hex() == "0001feffffff0300"
    assert encode(BY_NAME["call"], (1, (2, 3), (4,))).hex() == "04000100000002000200030001000400"
    assert encode(BY_NAME["br_table"], (5, 1, (2,))).hex() == "03000500010000000100000002000000"
    assert encode(BY_NAME["fail"], ("é!",)).hex() == "07000300c3a92100"


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("i32.add", (0, 1)),
        ("i32.add", (0, 1, 65536)),
        ("i32.add", (0, 1, -1)),
        ("i32.const", (2**32, 0)),
        ("i32.const", (-(2**31) - 1, 0)),
        ("return", (3,)),
        ("return", ((70000,),)),
        ("fail", ("x" * 65536,)),
        ("fail", ("\ud800",)),
        ("br", ("a",)),
    ],
)
def test_what_does_not_fit_is_refused(name: str, operands: tuple[Operand, ...]) -> None:
    with pytest.raises(ValueError, match=name):
        encode(BY_NAME[name], operands)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("00", "f: 1 bytes of bytecode, an even count wanted"),
        ("0000", "f pc 0x0: unknown opcode 0x0000"),
        ("060000000600ff", "f: 7 bytes of bytecode, an even count wanted"),
        ("0600000006000200", "f pc 0x4: the code ends inside return"),
        ("0300000000000000ffffffff", "f pc 0x0: the code ends inside br_table"),
        ("07000100ff00", "f pc 0x0: the text is not UTF-8: invalid start byte"),
        ("070001004161", "f pc 0x0: the padding of the text is 0x61, 0 wanted"),
    ],
)
def test_what_is_no_code_is_refused(code: str, message: str) -> None:
    with pytest.raises(ModuleError) as caught:
        decode(bytes.fromhex(code), "f")
    assert str(caught.value) == message


@given(st.integers(0, 2**32 - 1))
def test_f32_bits(bits: int) -> None:
    value = float_of_bits(bits, "f32")
    assert bits_of_float(value, "f32") == bits
    if not math.isnan(value):
        assert value == struct.unpack("<f", struct.pack("<I", bits))[0]


@given(st.integers(0, 2**64 - 1))
def test_f64_bits(bits: int) -> None:
    assert bits_of_float(float_of_bits(bits, "f64"), "f64") == bits


def test_signalling_nans_keep_their_bits() -> None:
    for bits in (0x7F800001, 0xFF800001, 0x7FBFFFFF, 0xFFFFFFFF):
        assert bits_of_float(float_of_bits(bits, "f32"), "f32") == bits
