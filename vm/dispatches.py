"""Finds the instructions that record dispatches, and the entry that each one dispatches, without running code.

Such an instruction takes the executable and the number of the entry from registers. Their values are followed through
straight-line code, and through globals to which only one executable is ever stored. At a branch target no register is
known. A dispatch whose entry is not known is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.schema.isa import MOVE_BIT, Effect

from .operands import constant, targets, writes
from .verifier import VerifiedFunction, verify

if TYPE_CHECKING:
    from orchestrion.schema.encoding import Decoded
    from orchestrion.schema.module import Module

CREATE, DISPATCH = "hal.executable.create", "hal.recording.dispatch"


class Dispatch(NamedTuple):
    """An instruction that records a dispatch: function and pc. `executable`: the ordinal in the program. `entry`: the
    ordinal in the executable.
    """

    executable: int
    entry: int
    function: int
    pc: int


class _Known(NamedTuple):
    """The known value of a register: an integer, or the ordinal of an executable."""

    value: int
    is_executable: bool


def dispatches(module: Module, program: int) -> list[Dispatch]:
    """The dispatches of a program whose entries are known, in the order of the code. `ModuleError` for unsound code."""
    functions = verify(module, program).functions
    names = [module.strings[row.name] for row in module.imports]
    stored: dict[int, set[_Known | None]] = {}
    for function in functions:
        for decoded, held in _walk(function, names, {}):
            if decoded.row.effect is Effect.STORE:
                register, place = decoded.operands
                stored.setdefault(_int(place), set()).add(held.get(_int(register) & ~MOVE_BIT))
    known = {place: one for place, values in stored.items() if len(values) == 1 and (one := next(iter(values)))}
    return [found for function in functions for found in _dispatches(function, names, known)]


def _dispatches(function: VerifiedFunction, names: list[str], known: dict[int, _Known]) -> Iterator[Dispatch]:
    for decoded, held in _walk(function, names, known):
        if _called(decoded, names) == DISPATCH:
            _, executable, entry = (held.get(register) for register in _registers(decoded)[:3])
            if executable is not None and executable.is_executable and entry is not None and not entry.is_executable:
                yield Dispatch(executable.value, entry.value, function.ordinal, decoded.pc)


def _walk(
    function: VerifiedFunction, names: list[str], known: dict[int, _Known]
) -> Iterator[tuple[Decoded, dict[int, _Known]]]:
    """Each instruction, with the registers whose values are known before it. `known`: by ordinal of a global."""
    labels = {target for decoded in function.decoded for target in targets(decoded)}
    i32 = range(function.counts[0])
    held = {register: _Known(0, False) for register in i32 if register not in function.parameters}
    for decoded in function.decoded:
        if decoded.pc in labels:
            held = {}
        yield decoded, held
        found = _result(decoded, names, known, held)
        for register in writes(decoded):
            held.pop(register, None)
        if found is not None:
            held[writes(decoded)[0]] = found


def _result(decoded: Decoded, names: list[str], known: dict[int, _Known], held: dict[int, _Known]) -> _Known | None:
    """The value of an instruction's only result; None if it is not known."""
    match decoded.row.effect:
        case Effect.CONSTANT:
            value = constant(decoded)
            return _Known(value, False) if isinstance(value, int) else None
        case Effect.COPY:
            return held.get(_int(decoded.operands[0]) & ~MOVE_BIT)
        case Effect.LOAD:
            return known.get(_int(decoded.operands[0]))
        case Effect.NATIVE if _called(decoded, names) == CREATE:
            ordinal = held.get(_registers(decoded)[0])
            return None if ordinal is None else _Known(ordinal.value, True)
        case _:
            return None


def _called(decoded: Decoded, names: list[str]) -> str:
    """The name of the native function that an instruction calls; empty if it calls none."""
    return names[_int(decoded.operands[0])] if decoded.row.effect is Effect.NATIVE else ""


def _registers(decoded: Decoded) -> list[int]:
    """The argument registers of a call."""
    arguments = decoded.operands[1]
    assert isinstance(arguments, tuple)
    return [register & ~MOVE_BIT for register in arguments]


def _int(operand: int | str | tuple[int, ...]) -> int:
    assert isinstance(operand, int)
    return operand
