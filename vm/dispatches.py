"""Where a program's code dispatches each entry: found in its instructions, without running them.

An instruction that records a dispatch takes the executable and the number of the entry from registers. What these hold
is followed through straight lines of code, and through globals to which one executable only is ever stored. Behind a
branch target nothing is known. A dispatch whose entry is not known is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from orchestrion.schema.isa import MOVE_BIT, Effect

from .operands import constant, writes
from .verifier import VerifiedFunction, verify

if TYPE_CHECKING:
    from orchestrion.schema.encoding import Decoded
    from orchestrion.schema.module import Module

CREATE, DISPATCH = "hal.executable.create", "hal.recording.dispatch"


class Dispatch(NamedTuple):
    """An instruction that records a dispatch. `executable` counts within the program, `entry` within that."""

    executable: int
    entry: int
    function: int
    pc: int


class _Held(NamedTuple):
    """What is known of a register: an integer, or the number of an executable."""

    value: int
    is_executable: bool


def dispatches(module: Module, program: int) -> list[Dispatch]:
    """All that are known, in the order of the code. `ModuleError` for code that is not sound."""
    functions = verify(module, program).functions
    names = [module.strings[row.name] for row in module.imports]
    stored: dict[int, set[_Held | None]] = {}
    for function in functions:
        for decoded, held in _walk(function, names, {}):
            if decoded.row.effect is Effect.STORE:
                register, place = decoded.operands
                stored.setdefault(_int(place), set()).add(held.get(_int(register) & ~MOVE_BIT))
    known = {place: one for place, values in stored.items() if len(values) == 1 and (one := next(iter(values)))}
    return [found for function in functions for found in _dispatches(function, names, known)]


def _dispatches(function: VerifiedFunction, names: list[str], known: dict[int, _Held]) -> Iterator[Dispatch]:
    for decoded, held in _walk(function, names, known):
        if _called(decoded, names) == DISPATCH:
            _, executable, entry = (held.get(register) for register in _registers(decoded)[:3])
            if executable is not None and executable.is_executable and entry is not None and not entry.is_executable:
                yield Dispatch(executable.value, entry.value, function.ordinal, decoded.pc)


def _walk(
    function: VerifiedFunction, names: list[str], known: dict[int, _Held]
) -> Iterator[tuple[Decoded, dict[int, _Held]]]:
    """Each instruction with what is known of registers in front of it. `known`: of globals."""
    targets = {target for decoded in function.decoded for target in _targets(decoded)}
    i32 = range(function.counts[0])
    held = {register: _Held(0, False) for register in i32 if register not in function.parameters}
    for decoded in function.decoded:
        if decoded.pc in targets:
            held = {}
        yield decoded, held
        found = _result(decoded, names, known, held)
        for register in writes(decoded):
            held.pop(register, None)
        if found is not None:
            held[writes(decoded)[0]] = found


def _result(decoded: Decoded, names: list[str], known: dict[int, _Held], held: dict[int, _Held]) -> _Held | None:
    """What the only result of an instruction is, where that is known."""
    match decoded.row.effect:
        case Effect.CONSTANT:
            value = constant(decoded)
            return _Held(value, False) if isinstance(value, int) else None
        case Effect.COPY:
            return held.get(_int(decoded.operands[0]) & ~MOVE_BIT)
        case Effect.LOAD:
            return known.get(_int(decoded.operands[0]))
        case Effect.NATIVE if _called(decoded, names) == CREATE:
            ordinal = held.get(_registers(decoded)[0])
            return None if ordinal is None else _Held(ordinal.value, True)
        case _:
            return None


def _called(decoded: Decoded, names: list[str]) -> str:
    return names[_int(decoded.operands[0])] if decoded.row.effect is Effect.NATIVE else ""


def _registers(decoded: Decoded) -> list[int]:
    """The arguments of a call."""
    arguments = decoded.operands[1]
    assert isinstance(arguments, tuple)
    return [register & ~MOVE_BIT for register in arguments]


def _targets(decoded: Decoded) -> Iterator[int]:
    for spec, operand in zip(decoded.row.operands, decoded.operands, strict=True):
        if spec.kind == "target":
            yield _int(operand)
        elif spec.kind == "targets":
            assert isinstance(operand, tuple)
            yield from operand


def _int(operand: int | str | tuple[int, ...]) -> int:
    assert isinstance(operand, int)
    return operand
