"""What the operands of an instruction are: where its registers stand, and which number a constant writes.

The places are worked out once per row, for whoever walks over code at load time.
"""

from typing import NamedTuple

from orchestrion.schema.encoding import Decoded, float_of_bits
from orchestrion.schema.isa import BANKS, INSTRUCTIONS, MOVE_BIT, Effect, Instruction


class Shape(NamedTuple):
    """Places of operands. Counted operands hold any number of registers."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    counted_reads: tuple[int, ...]
    counted_writes: tuple[int, ...]
    refs: tuple[int, ...]  #: those of `reads` that are refs and may be moved


def _shape(row: Instruction) -> Shape:
    places: dict[tuple[bool, bool], list[int]] = {(a, b): [] for a in (False, True) for b in (False, True)}
    refs = []
    for place, spec in enumerate(row.operands):
        if spec.kind in BANKS or spec.kind == "registers":
            places[spec.kind == "registers", spec.result].append(place)
        if spec.kind == "ref" and not spec.result:
            refs.append(place)
    single_reads, single_writes = places[False, False], places[False, True]
    return Shape(
        tuple(single_reads), tuple(single_writes), tuple(places[True, False]), tuple(places[True, True]), tuple(refs)
    )


SHAPES: dict[int, Shape] = {row.opcode: _shape(row) for row in INSTRUCTIONS}


def _immediate(row: Instruction) -> str:
    """The bank of the number that a constant holds; empty for one that writes zero, which holds none."""
    kind = row.operands[0].kind
    return kind.removeprefix("imm_") if kind.startswith("imm_") else ""


_IMMEDIATES = {row.opcode: _immediate(row) for row in INSTRUCTIONS if row.effect is Effect.CONSTANT}


def constant(decoded: Decoded) -> int | float:
    """The number that an instruction with the effect `CONSTANT` writes, to its last operand."""
    row, (first, *_) = decoded.row, decoded.operands
    bank = _IMMEDIATES[row.opcode]
    assert isinstance(first, int)
    if not bank:
        return 0.0 if row.operands[0].kind in ("f32", "f64") else 0
    return first if bank in ("i32", "i64") else float_of_bits(first, bank)


def reads(decoded: Decoded) -> list[int]:
    """The registers that an instruction reads, without move bits."""
    shape, operands = SHAPES[decoded.row.opcode], decoded.operands
    found = [operands[place] & ~MOVE_BIT for place in shape.reads]  # type: ignore[operator]
    for place in shape.counted_reads:
        found += [register & ~MOVE_BIT for register in operands[place]]  # type: ignore[union-attr, operator]
    return found


def writes(decoded: Decoded) -> list[int]:
    """The registers that an instruction writes."""
    shape, operands = SHAPES[decoded.row.opcode], decoded.operands
    found = [operands[place] for place in shape.writes]
    for place in shape.counted_writes:
        found += operands[place]  # type: ignore[arg-type]
    return found  # type: ignore[return-value]
