"""Puts constants into the template of a frame, where that means the same, so that calls need not set them again.

- In a function without branches everything runs once, in order: each constant gets a register of its own behind the
  function's, and what reads it until the next write to its old register is pointed there.
- Elsewhere: constants of the first straight line whose register nothing else writes and nothing reads before.
"""

from typing import Any, NamedTuple

from orchestrion.schema.encoding import Decoded, Operand, float_of_bits
from orchestrion.schema.isa import BANKS, MOVE_BIT
from orchestrion.schema.isa import Operand as Spec

from .ops import ENDS

_BRANCHES = frozenset(("br", "br_if", "br_table"))
_ZEROS: dict[str, Any] = {"i32.zero": 0, "i64.zero": 0, "f32.zero": 0.0, "f64.zero": 0.0, "ref.null": None}
_CONSTANTS = frozenset((*_ZEROS, "i32.const", "i64.const", "f32.const", "f64.const"))


class Placed(NamedTuple):
    """What is left to run, the values of further registers, and of registers that the function has."""

    decoded: list[Decoded]
    further: list[Any]
    own: dict[int, Any]


def place_constants(decoded: list[Decoded], parameters: tuple[int, ...], registers: int) -> Placed:
    """`registers`: how many the function has."""
    if any(instruction.row.name in _BRANCHES for instruction in decoded):
        return _in_own_registers(decoded, parameters)
    return _in_further_registers(decoded, registers)


def registers_of(spec: Spec, value: Operand) -> tuple[int, ...]:
    """The registers that an operand names, without move bits."""
    if spec.kind in BANKS and isinstance(value, int):
        return (value & ~MOVE_BIT,)
    if spec.kind == "registers" and isinstance(value, tuple):
        return tuple([register & ~MOVE_BIT for register in value])
    return ()


def _value(decoded: Decoded) -> Any:
    name, first = decoded.row.name, decoded.operands[0]
    if name in _ZEROS:
        return _ZEROS[name]
    return float_of_bits(first, name[:3]) if name.startswith("f") and isinstance(first, int) else first


def _in_further_registers(decoded: list[Decoded], registers: int) -> Placed:
    left: list[Decoded] = []
    further: list[Any] = []
    place: dict[int, int] = {}
    for instruction in decoded:
        row, operands = instruction.row, instruction.operands
        if row.name in _CONSTANTS and registers + len(further) < MOVE_BIT:
            place[operands[-1]] = registers + len(further)  # type: ignore[index]
            further.append(_value(instruction))
            continue
        if place:
            pairs = tuple(zip(row.operands, operands, strict=True))
            operands = tuple([value if spec.result else _renamed(spec, value, place) for spec, value in pairs])
            for spec, value in pairs:
                for register in registers_of(spec, value) if spec.result else ():
                    place.pop(register, None)
            instruction = Decoded(instruction.pc, row, operands)
        left.append(instruction)
    return Placed(left, further, {})


def _renamed(spec: Spec, value: Operand, place: dict[int, int]) -> Operand:
    if isinstance(value, tuple) and spec.kind == "registers":
        return tuple(
            [place.get(register & ~MOVE_BIT, register & ~MOVE_BIT) | register & MOVE_BIT for register in value]
        )
    if isinstance(value, int) and spec.kind in BANKS:
        return place.get(value & ~MOVE_BIT, value & ~MOVE_BIT) | value & MOVE_BIT
    return value


def _in_own_registers(decoded: list[Decoded], parameters: tuple[int, ...]) -> Placed:
    writes = dict.fromkeys(parameters, 1)
    for instruction in decoded:
        for spec, value in zip(instruction.row.operands, instruction.operands, strict=True):
            for register in registers_of(spec, value) if spec.result else ():
                writes[register] = writes.get(register, 0) + 1
    own: dict[int, Any] = {}
    read: set[int] = set()
    left: list[Decoded] = []
    straight = True
    for instruction in decoded:
        row, operands = instruction.row, instruction.operands
        straight = straight and row.name not in ENDS
        target = operands[-1] if straight and row.name in _CONSTANTS else None
        if isinstance(target, int) and writes[target] == 1 and target not in read:
            own[target] = _value(instruction)
            continue
        left.append(instruction)
        for spec, value in zip(row.operands, operands, strict=True) if straight else ():
            read.update(() if spec.result else registers_of(spec, value))
    return Placed(left, [], own)
