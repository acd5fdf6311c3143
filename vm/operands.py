"""The operands of instructions: which registers an instruction reads and writes, its branch targets, and its constant.

The places of register operands are computed once per row of the instruction table. Everything that walks over code at
load time uses them.
"""

from typing import Any, NamedTuple

from orchestrion.schema.encoding import Decoded, float_of_bits
from orchestrion.schema.isa import BANKS, INSTRUCTIONS, MOVE_BIT, Effect, Instruction


class RegisterPlaces(NamedTuple):
    """The places of an instruction's register operands. A counted operand holds any number of registers."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    counted_reads: tuple[int, ...]
    counted_writes: tuple[int, ...]
    refs: tuple[int, ...]  #: the places of `reads` that are refs, which may have a move bit


def _places(row: Instruction) -> RegisterPlaces:
    places: dict[tuple[bool, bool], list[int]] = {(a, b): [] for a in (False, True) for b in (False, True)}
    refs = []
    for place, spec in enumerate(row.operands):
        if spec.kind in BANKS or spec.kind == "registers":
            places[spec.kind == "registers", spec.result].append(place)
        if spec.kind == "ref" and not spec.result:
            refs.append(place)
    single_reads, single_writes = places[False, False], places[False, True]
    return RegisterPlaces(
        tuple(single_reads), tuple(single_writes), tuple(places[True, False]), tuple(places[True, True]), tuple(refs)
    )


#: by opcode
PLACES: dict[int, RegisterPlaces] = {row.opcode: _places(row) for row in INSTRUCTIONS}


def _immediate_bank(row: Instruction) -> str:
    """The bank of a constant's immediate; empty for a constant of zero, which has no immediate."""
    kind = row.operands[0].kind
    return kind.removeprefix("imm_") if kind.startswith("imm_") else ""


#: by the opcodes of constants
_IMMEDIATE_BANKS = {row.opcode: _immediate_bank(row) for row in INSTRUCTIONS if row.effect is Effect.CONSTANT}


def constant(decoded: Decoded) -> int | float:
    """The number that an instruction with the effect `CONSTANT` writes to its last operand."""
    row, (first, *_) = decoded.row, decoded.operands
    bank = _IMMEDIATE_BANKS[row.opcode]
    assert isinstance(first, int)
    if not bank:
        return 0.0 if row.operands[0].kind in ("f32", "f64") else 0
    return first if bank in ("i32", "i64") else float_of_bits(first, bank)


def reads(decoded: Decoded) -> list[int]:
    """The registers that an instruction reads, without move bits."""
    places, operands = PLACES[decoded.row.opcode], decoded.operands
    found = [operands[place] & ~MOVE_BIT for place in places.reads]  # type: ignore[operator]
    for place in places.counted_reads:
        found += [register & ~MOVE_BIT for register in operands[place]]  # type: ignore[union-attr, operator]
    return found


def writes(decoded: Decoded) -> list[int]:
    """The registers that an instruction writes."""
    places, operands = PLACES[decoded.row.opcode], decoded.operands
    found = [operands[place] for place in places.writes]
    for place in places.counted_writes:
        found += operands[place]  # type: ignore[arg-type]
    return found  # type: ignore[return-value]


def targets(decoded: Decoded) -> list[int]:
    """The pcs of an instruction's branch targets; empty if it is no branch."""
    found: list[int] = []
    operand: Any
    if decoded.row.effect is Effect.BRANCH:
        for spec, operand in zip(decoded.row.operands, decoded.operands, strict=True):
            if spec.kind == "target":
                found.append(operand)
            elif spec.kind == "targets":
                found += operand
    return found
