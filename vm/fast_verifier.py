"""Verifies straight-line functions in one pass, several times faster than `verifier.py`.

Most functions of most modules (run functions, initializers) are constants, loads and stores of globals, calls of native
functions and a return. Such a function is sound if each register is in the bank that its operand names, and if each
ref that is read has the type that was written to its register. `prove` decodes a function and collects its registers
and types, then compares them all at once.

`prove` gives None if an instruction is of another kind, if a ref is moved, or if something is wrong. Then `verifier.py`
verifies the function and says what is wrong. Both follow the same rules, and tests compare them.
"""

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from orchestrion.schema.encoding import READERS, Decoded
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.isa import BANKS, INSTRUCTIONS, Effect, Instruction
from orchestrion.schema.signature import Shape, bank_of

from .reftypes import ANY

#: how the operands of an instruction are verified: all are registers; an immediate and a register; or by a rule of the
#: effect
_REGISTERS, _CONSTANT, _NATIVE, _LOAD, _STORE, _NULL, _RETURN = range(7)
_KINDS = {
    Effect.NATIVE: _NATIVE,
    Effect.NULL: _NULL,
    Effect.RETURN: _RETURN,
    Effect.LOAD: _LOAD,
    Effect.STORE: _STORE,
}
#: effects whose instructions are sound if their registers are in the right banks
_SOUND_BY_BANKS = (Effect.CONSTANT, Effect.COPY, Effect.PURE, Effect.TRAP)
_REF = BANKS.index("ref")


class Scope(Protocol):
    """The globals and imports that a function may refer to. See `verifier.py`."""

    globals: list[tuple[str, bool]]

    def call_shape(self, ordinal: int, arguments: int) -> tuple[Shape, Shape]:
        """The shapes of the arguments and of the results of a call of import `ordinal` with `arguments` arguments.

        Raises `LookupError` or `ModuleError` if the import cannot be called that way.
        """


class Proof(NamedTuple):
    """A function that is sound: its instructions, and (pc, global) of each store to a global."""

    decoded: list[Decoded]
    stores: list[tuple[int, int]]


class _Row(NamedTuple):
    """An instruction that `prove` accepts: width and reader as in `READERS`, rule, banks of its registers."""

    row: Instruction
    width: int
    unpack: Callable[..., tuple[Any, ...]] | None
    kind: int
    banks: tuple[int, ...]


def _kind(row: Instruction) -> int | None:
    """The rule for an instruction; None if `verifier.py` verifies it."""
    if row.effect in _KINDS:
        return _KINDS[row.effect]
    kinds = [operand.kind for operand in row.operands]
    if row.effect not in _SOUND_BY_BANKS or "ref" in kinds:
        return None
    if all(kind in BANKS for kind in kinds):
        return _REGISTERS
    return _CONSTANT if len(kinds) == 2 and kinds[0].startswith("imm_") and kinds[1] in BANKS else None


def _row(row: Instruction, kind: int) -> _Row:
    _, width, unpack, _ = READERS[row.opcode]
    banks = tuple(BANKS.index(operand.kind) for operand in row.operands if operand.kind in BANKS)
    return _Row(row, width, unpack, kind, banks)


_ROWS = {row.opcode: _row(row, kind) for row in INSTRUCTIONS if (kind := _kind(row)) is not None}
_decoded = partial(tuple.__new__, Decoded)


def prove(  # noqa: C901 loading waits for it: one loop with few calls
    scope: Scope,
    counts: Sequence[int],
    arguments: Sequence[tuple[int, str]],
    results: Shape,
    code: memoryview,
) -> Proof | None:
    """Verify a function. None if it is not sound, or if only `verifier.py` can tell.

    `counts`: registers per bank. `arguments`: register and type of each argument that is a ref. `results`: the shape of
    the results. `code`: the bytes of the function.
    """
    count = len(code) // 2
    if count * 2 != len(code):
        return None
    i32, i64, f32, f64, ref = counts
    banks = [0] * i32 + [1] * i64 + [2] * f32 + [3] * f64 + [4] * ref
    found: list[tuple[int, Instruction, tuple[Any, ...]]] = []
    registers: list[int] = []
    wanted: list[int] = []
    types: dict[int, str] = {}
    reads: list[tuple[int, str]] = []
    stores: list[tuple[int, int]] = []
    for register, name in arguments:
        _write(types, register, name)
    halves = struct.unpack(f"<{count}H", code)
    at, kind = 0, _NULL
    try:
        while at < count:
            row, width, unpack, kind, row_banks = _ROWS[halves[at]]
            after = at + width
            operands: tuple[Any, ...] = halves[at + 1 : after] if unpack is None else unpack(code, 2 * at + 2)
            if kind == _CONSTANT:
                registers.append(operands[1])
                wanted += row_banks
            elif kind == _NATIVE:
                middle = after + halves[after] + 1
                last = middle + halves[middle] + 1
                args, given = halves[after + 1 : middle], halves[middle + 1 : last]
                taken, made = scope.call_shape(operands[0], len(args))
                registers += args
                wanted += taken.banks
                for place, name in taken.refs:
                    reads.append((args[place], name))
                if len(given) != len(made.banks):
                    return None
                registers += given
                wanted += made.banks
                for place, name in made.refs:
                    _write(types, given[place], name)
                operands += args, given
                after = last
            elif kind == _REGISTERS or kind == _NULL:
                registers += operands
                wanted += row_banks
            elif kind == _RETURN:
                last = after + halves[after] + 1
                values = halves[after + 1 : last]
                if len(values) != len(results.banks) or last != count:
                    return None
                registers += values
                wanted += results.banks
                for place, name in results.refs:
                    reads.append((values[place], name))
                operands = (values,)
                after = last
            else:
                _global(scope, kind, operands, row_banks[0], types, reads)
                registers.append(operands[kind == _LOAD])
                wanted += row_banks
                if kind == _STORE:
                    stores.append((2 * at, operands[1]))
            found.append((2 * at, row, operands))
            at = after
        if at != count or kind != _RETURN or list(map(banks.__getitem__, registers)) != wanted:
            return None
    except (LookupError, struct.error, ModuleError, _Unproven):
        return None
    for register, name in reads:
        have = types.get(register, ANY)
        if have != name and have != ANY and name != ANY:
            return None
    return Proof(list(map(_decoded, found)), stores)


class _Unproven(Exception):
    """The function is not sound, or `verifier.py` has to tell."""


def _write(types: dict[int, str], register: int, name: str) -> None:
    if types.setdefault(register, name) != name:
        types[register] = ANY


def _global(
    scope: Scope, kind: int, operands: tuple[int, ...], bank: int, types: dict[int, str], reads: list[tuple[int, str]]
) -> None:
    """A load or store of a global of that bank; refs noted."""
    name = scope.globals[operands[kind == _STORE]][0]
    if bank_of(name) != BANKS[bank]:
        raise _Unproven
    if bank == _REF and kind == _LOAD:
        _write(types, operands[1], name)
    elif bank == _REF:
        reads.append((operands[0], name))
