"""The instruction table: its rows are well formed, numbered for ever, and the page in docs/ is written from them."""

from pathlib import Path

from orchestrion.schema.isa import BANKS, BY_NAME, BY_OPCODE, FAMILIES, INSTRUCTIONS, KINDS
from orchestrion.schema.isa_page import page

ROOT = Path(__file__).parents[2]

#: A row that was released keeps its number for ever: a handful of each range stands for all.
NUMBERS = {
    "br": 0x0001,
    "import.present": 0x000A,
    "i32.const": 0x0100,
    "f64.select": 0x0133,
    "ref.eq": 0x0144,
    "i32.add": 0x0200,
    "i64.extend32_s": 0x029F,
    "f32.add": 0x0300,
    "f64.ge": 0x0393,
    "f64.reinterpret_i64": 0x0420,
    "global.store.ref": 0x0541,
    "list.ref.set": 0x0644,
    "buffer.compare": 0x0717,
}


def test_rows_are_unique_and_in_order() -> None:
    opcodes = [row.opcode for row in INSTRUCTIONS]
    assert opcodes == sorted(set(opcodes))
    assert len(BY_OPCODE) == len(BY_NAME) == len(INSTRUCTIONS)
    assert 0 not in BY_OPCODE and max(opcodes) < 0x10000


def test_numbers_stay() -> None:
    assert {name: BY_NAME[name].opcode for name in NUMBERS} == NUMBERS


def test_rows_are_well_formed() -> None:
    for row in INSTRUCTIONS:
        assert row.family in FAMILIES, row
        assert row.doc, row
        names = [operand.name for operand in row.operands]
        assert len(set(names)) == len(names), row
        widths = [KINDS[operand.kind] for operand in row.operands]
        assert widths == sorted(widths, key=lambda width: width is None), row
        for operand in row.operands:
            assert (operand.kind == "ref") == bool(operand.type), row
            assert not operand.result or operand.kind in (*BANKS, "registers"), row


def test_every_family_has_rows() -> None:
    assert {row.family for row in INSTRUCTIONS} == set(FAMILIES)


def test_page_is_current() -> None:
    assert (ROOT / "docs" / "isa.md").read_text() == "\n".join(page()) + "\n"
