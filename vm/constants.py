"""Puts constants into the template of a frame, where that means the same, so that calls need not set them again.

- In a function without branches everything runs once, in order: each constant gets a register of its own behind the
  function's, and what reads it until the next write to its old register is pointed there.
- A null is no constant: to write one over a reference lets that go.
- Elsewhere: constants of the first straight line whose register nothing else writes and nothing reads before.
"""

from typing import Any, NamedTuple

from orchestrion.schema.encoding import Decoded, Operand
from orchestrion.schema.isa import MOVE_BIT, Effect

from .operands import SHAPES, Shape, constant, reads, writes


class Placed(NamedTuple):
    """What is left to run, the values of further registers, and of registers that the function has."""

    decoded: list[Decoded]
    further: list[Any]
    own: dict[int, Any]


def place_constants(decoded: list[Decoded], parameters: tuple[int, ...], registers: int) -> Placed:
    """`registers`: how many the function has."""
    if any(instruction.row.effect is Effect.BRANCH for instruction in decoded):
        return _in_own_registers(decoded, parameters)
    return _in_further_registers(decoded, registers)


def _in_further_registers(decoded: list[Decoded], registers: int) -> Placed:
    left: list[Decoded] = []
    further: list[Any] = []
    moved_to: dict[int, int] = {}
    for instruction in decoded:
        row, operands = instruction.row, instruction.operands
        if row.effect is Effect.CONSTANT and registers + len(further) < MOVE_BIT:
            moved_to[operands[-1]] = registers + len(further)  # type: ignore[index]
            further.append(constant(instruction))
            continue
        if moved_to:
            instruction = Decoded(instruction.pc, row, _renamed(SHAPES[row.opcode], operands, moved_to))
            for register in writes(instruction):
                moved_to.pop(register, None)
        left.append(instruction)
    return Placed(left, further, {})


def _renamed(shape: Shape, operands: tuple[Operand, ...], moved_to: dict[int, int]) -> tuple[Operand, ...]:
    """The operands with what is read from a constant's old register read from its new one."""
    changed: list[Any] = list(operands)
    for place in shape.reads:
        register = changed[place]
        if (register & ~MOVE_BIT) in moved_to:
            changed[place] = moved_to[register & ~MOVE_BIT] | register & MOVE_BIT
    for place in shape.counted_reads:
        changed[place] = tuple([moved_to.get(at & ~MOVE_BIT, at & ~MOVE_BIT) | at & MOVE_BIT for at in changed[place]])
    return tuple(changed)


def _in_own_registers(decoded: list[Decoded], parameters: tuple[int, ...]) -> Placed:
    times = dict.fromkeys(parameters, 1)
    for instruction in decoded:
        for register in writes(instruction):
            times[register] = times.get(register, 0) + 1
    own: dict[int, Any] = {}
    read: set[int] = set()
    left: list[Decoded] = []
    is_straight = True
    for instruction in decoded:
        is_straight = is_straight and not instruction.row.ends_block
        target = instruction.operands[-1] if is_straight and instruction.row.effect is Effect.CONSTANT else None
        if isinstance(target, int) and times[target] == 1 and target not in read:
            own[target] = constant(instruction)
            continue
        left.append(instruction)
        if is_straight:
            read.update(reads(instruction))
    return Placed(left, [], own)
