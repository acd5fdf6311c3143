"""The instruction table: its rows are well formed, their numbers never change, and the page in docs/ is
made from them.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrion.schema.isa import (
    BANKS,
    BY_NAME,
    BY_OPCODE,
    EFFECTS,
    FAMILIES,
    INSTRUCTIONS,
    KINDS,
    Effect,
    Instruction,
)
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
            assert (operand.kind == "ref") == bool(operand.type) or operand.type == "integers", row
            assert not operand.result or operand.kind in (*BANKS, "registers"), row


#: kind of operand -> effects of the rows that have one
_OF_KIND = {
    "target": {Effect.BRANCH},
    "targets": {Effect.BRANCH},
    "function": {Effect.CALL, Effect.CACHED},
    "import": {Effect.NATIVE, Effect.LINKED},
    "global": {Effect.LOAD, Effect.STORE},
}
#: effect -> what such rows have as operands, and no others have alone
_ENDING = {Effect.RETURN: "registers", Effect.FAIL: "text", Effect.SUSPEND: "hal.fence"}
#: effects of rows that compute from numbers and refs alone
_COMPUTING = {Effect.CONSTANT, Effect.NULL, Effect.COPY, Effect.PURE, Effect.TRAP}


def contradictions(row: Instruction) -> Iterator[str]:  # noqa: C901 one case per rule
    """The ways in which a row's effect contradicts its operands or its meaning."""
    kinds = {operand.kind for operand in row.operands}
    reads = [operand for operand in row.operands if operand.kind in BANKS and not operand.result]
    writes = [operand for operand in row.operands if operand.result]
    memory = {operand.type for operand in row.operands if operand.type.startswith(("list<", "buffer"))}
    for kind, effects in _OF_KIND.items():
        if kind in kinds and row.effect not in effects:
            yield f"has a {kind}"
        needed = {name for name, others in _OF_KIND.items() if row.effect in others}
        if needed and not needed & kinds:
            yield f"has no {' or '.join(sorted(needed))}"
    if memory and row.effect not in (Effect.READ, Effect.WRITE):
        yield "has a list or a buffer"
    if row.effect in (Effect.READ, Effect.WRITE) and not memory:
        yield "has no list or buffer"
    if row.effect in (Effect.CONSTANT, Effect.NULL) and (reads or len(writes) != 1):
        yield "reads, or does not write one register"
    if row.effect in (Effect.CONSTANT, Effect.NULL):
        if [operand.kind == "ref" for operand in writes] != [row.effect is Effect.NULL]:
            yield "writes a number where null is meant, or the other way round"
    if row.effect is Effect.COPY and [operand.kind for operand in reads] != [operand.kind for operand in writes]:
        yield "does not write what it reads"
    if row.effect in (Effect.LOAD, Effect.STORE) and bool(writes) != (row.effect is Effect.LOAD):
        yield "loads where it should store, or the other way round"
    if row.effect is Effect.PURE and not writes:
        yield "has no result"
    for effect, only in _ENDING.items():
        if (row.effect is effect) != ({operand.type or operand.kind for operand in row.operands} == {only}):
            yield f"{effect} goes with {only} alone"
    stops = "trap" in row.doc or "end the call" in row.doc
    if row.effect in _COMPUTING and stops != (row.effect is Effect.TRAP):
        yield "traps where it should not, or the other way round"
    if row.doc.startswith(("continue", "end the call", "suspend")) and not row.ends_block:
        yield "moves control"
    if row.terminator and not row.ends_block:
        yield "ends a function inside a block"


def test_effects_say_what_operands_and_meanings_say() -> None:
    assert {row.name: problems for row in INSTRUCTIONS if (problems := list(contradictions(row)))} == {}
    assert set(EFFECTS) == set(Effect) == {row.effect for row in INSTRUCTIONS}


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda row: row.name)
def test_a_wrong_effect_is_found(row: Instruction) -> None:
    """Any wrong effect of any row, except where only the implementation of the row shows it."""
    alike = (
        {Effect.CALL, Effect.CACHED},
        {Effect.READ, Effect.WRITE},
        {Effect.NATIVE, Effect.LINKED},
        {Effect.COPY, Effect.PURE},
        {Effect.CONSTANT, Effect.PURE},
        {Effect.NULL, Effect.PURE},
    )
    alike_here: set[Effect] = set().union({row.effect}, *(group for group in alike if row.effect in group))
    wrong = set(Effect) - alike_here
    missed = [effect for effect in wrong if not list(contradictions(replace(row, effect=effect)))]
    assert missed == []


def test_every_family_has_rows() -> None:
    assert {row.family for row in INSTRUCTIONS} == set(FAMILIES)


def test_page_is_current() -> None:
    assert (ROOT / "docs" / "isa.md").read_text() == "\n".join(page()) + "\n"
