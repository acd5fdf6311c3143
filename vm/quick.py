"""The short proof that straight code is sound: one pass that decodes, collects what must hold, and compares it at once.

Most functions of most modules (run functions, initializers) are constants, loads and stores of globals, calls of native
functions and a return. For those, all that has to hold is that each register is of its bank and that each ref read
fits what is written to its register. `prove` gives the instructions of such a function, or None: because an instruction
is of another kind, a ref is moved, or something is wrong. What is wrong, and everything else, is up to `verifier.py`,
whose rules these are; tests hold the two against each other.
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

#: what a row is here: all operands registers; an immediate and a register; and those that are looked at by themselves
_REGISTERS, _CONSTANT, _NATIVE, _LOAD, _STORE, _NULL, _RETURN = range(7)
_KINDS = {
    Effect.NATIVE: _NATIVE,
    Effect.NULL: _NULL,
    Effect.RETURN: _RETURN,
    Effect.LOAD: _LOAD,
    Effect.STORE: _STORE,
}
#: effects of rows that are sound when their registers are of the right banks
_BY_BANKS = (Effect.CONSTANT, Effect.COPY, Effect.PURE, Effect.TRAP)
_REF = BANKS.index("ref")


class Site(Protocol):
    """What a function may refer to, see `verifier.py`."""

    globals: list[tuple[str, bool]]

    def call_shape(self, ordinal: int, arguments: int) -> tuple[Shape, Shape]:
        """Of arguments and results of a call with so many arguments. `LookupError` or `ModuleError` if none can be."""


class Proof(NamedTuple):
    """`stores`: (pc, global) of each store."""

    decoded: list[Decoded]
    stores: list[tuple[int, int]]


class _Row(NamedTuple):
    """A row that is taken: sizes and reader as in `READERS`, kind, banks of its registers."""

    row: Instruction
    width: int
    unpack: Callable[..., tuple[Any, ...]] | None
    kind: int
    banks: tuple[int, ...]


def _kind(row: Instruction) -> int | None:
    """None: the row is left to `verifier.py`."""
    if row.effect in _KINDS:
        return _KINDS[row.effect]
    kinds = [operand.kind for operand in row.operands]
    if row.effect not in _BY_BANKS or "ref" in kinds:
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
    site: Site,
    counts: Sequence[int],
    arguments: Sequence[tuple[int, str]],
    results: Shape,
    code: memoryview,
) -> Proof | None:
    """`arguments`: register and type of each that is a ref. One loop with few calls, since loading waits for it."""
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
            row, width, unpack, kind, own = _ROWS[halves[at]]
            after = at + width
            operands: tuple[Any, ...] = halves[at + 1 : after] if unpack is None else unpack(code, 2 * at + 2)
            if kind == _CONSTANT:
                registers.append(operands[1])
                wanted += own
            elif kind == _NATIVE:
                middle = after + halves[after] + 1
                last = middle + halves[middle] + 1
                args, given = halves[after + 1 : middle], halves[middle + 1 : last]
                taken, made = site.call_shape(operands[0], len(args))
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
                wanted += own
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
                _global(site, kind, operands, own[0], types, reads)
                registers.append(operands[kind == _LOAD])
                wanted += own
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
    pass


def _write(types: dict[int, str], register: int, name: str) -> None:
    if types.setdefault(register, name) != name:
        types[register] = ANY


def _global(
    site: Site, kind: int, operands: tuple[int, ...], bank: int, types: dict[int, str], reads: list[tuple[int, str]]
) -> None:
    """A load or store of a global of that bank; refs noted."""
    name = site.globals[operands[kind == _STORE]][0]
    if bank_of(name) != BANKS[bank]:
        raise _Unproven
    if bank == _REF and kind == _LOAD:
        _write(types, operands[1], name)
    elif bank == _REF:
        reads.append((operands[0], name))
