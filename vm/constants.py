"""Moves constants from a function's code to the template of its frame, so that calls need not write them.

- In a function without branches, each instruction runs once, in order. Each constant gets a new register behind those
  of the function. Instructions that read the old register, up to the next write to it, read the new one instead.
- In a function with branches, only constants of the straight-line code at its start are moved. Their registers are not
  written by another instruction and not read before.
- A null is not moved: an instruction that writes null drops a reference.
"""

from typing import Any, NamedTuple

from orchestrion.schema.encoding import Decoded, Operand
from orchestrion.schema.isa import MOVE_BIT, Effect

from .operands import PLACES, RegisterPlaces, constant, reads, writes


class HoistedConstants(NamedTuple):
    """The instructions that remain, the values of new registers behind those of the function, and the initial values of
    the function's registers.
    """

    decoded: list[Decoded]
    new: list[Any]
    existing: dict[int, Any]


def hoist_constants(decoded: list[Decoded], parameters: tuple[int, ...], registers: int) -> HoistedConstants:
    """Move constants out of a function's instructions. `registers`: the number of registers that the function has."""
    if any(instruction.row.effect is Effect.BRANCH for instruction in decoded):
        return _to_existing_registers(decoded, parameters)
    return _to_new_registers(decoded, registers)


def _to_new_registers(decoded: list[Decoded], registers: int) -> HoistedConstants:
    left: list[Decoded] = []
    new: list[Any] = []
    moved_to: dict[int, int] = {}
    for instruction in decoded:
        row, operands = instruction.row, instruction.operands
        if row.effect is Effect.CONSTANT and registers + len(new) < MOVE_BIT:
            moved_to[operands[-1]] = registers + len(new)  # type: ignore[index]
            new.append(constant(instruction))
            continue
        if moved_to:
            instruction = Decoded(instruction.pc, row, _renamed(PLACES[row.opcode], operands, moved_to))
            for register in writes(instruction):
                moved_to.pop(register, None)
        left.append(instruction)
    return HoistedConstants(left, new, {})


def _renamed(places: RegisterPlaces, operands: tuple[Operand, ...], moved_to: dict[int, int]) -> tuple[Operand, ...]:
    """The operands, where a constant is read from its new register. `moved_to`: old register -> new register."""
    changed: list[Any] = list(operands)
    for place in places.reads:
        register = changed[place]
        if (register & ~MOVE_BIT) in moved_to:
            changed[place] = moved_to[register & ~MOVE_BIT] | register & MOVE_BIT
    for place in places.counted_reads:
        changed[place] = tuple([moved_to.get(at & ~MOVE_BIT, at & ~MOVE_BIT) | at & MOVE_BIT for at in changed[place]])
    return tuple(changed)


def _to_existing_registers(decoded: list[Decoded], parameters: tuple[int, ...]) -> HoistedConstants:
    write_counts = dict.fromkeys(parameters, 1)
    for instruction in decoded:
        for register in writes(instruction):
            write_counts[register] = write_counts.get(register, 0) + 1
    existing: dict[int, Any] = {}
    read: set[int] = set()
    left: list[Decoded] = []
    is_straight = True
    for instruction in decoded:
        is_straight = is_straight and not instruction.row.ends_block
        target = instruction.operands[-1] if is_straight and instruction.row.effect is Effect.CONSTANT else None
        if isinstance(target, int) and write_counts[target] == 1 and target not in read:
            existing[target] = constant(instruction)
            continue
        left.append(instruction)
        if is_straight:
            read.update(reads(instruction))
    return HoistedConstants(left, [], existing)
