"""Changes of one place in a generated function, near the border of what the verifier accepts.

Some of what comes out is right by another rule and passes; a right verifier refuses the rest. `EDITS` is the table.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mutate_bytecode import Line
from mutate_numbers import Impossible
from passing_modules import Made

from orchestrion.schema.encoding import size
from orchestrion.schema.isa import BANKS, BY_NAME, INSTRUCTIONS, MOVE_BIT

_KINDS = {row.opcode: tuple(operand.kind for operand in row.operands) for row in INSTRUCTIONS}
_ORDINALS = ("function", "import", "global", "constant")


def edited(choose: random.Random, made: Made) -> Made:
    """`Impossible` where the function has no such place."""
    return EDITS[choose.choice([*EDITS])](choose, replace(made, counts=list(made.counts), lines=list(made.lines)))


def _places(made: Made, fits: Callable[[str], bool]) -> list[tuple[int, int]]:
    """(line, operand) of the operands of some kinds."""
    return [
        (at, place)
        for at, (row, _) in enumerate(made.lines)
        for place, kind in enumerate(_KINDS[row.opcode])
        if fits(kind)
    ]


def _change(choose: random.Random, made: Made, fits: Callable[[str], bool], how: Callable[[Any], Any]) -> Made:
    places = _places(made, fits)
    if not places:
        raise Impossible
    at, place = choose.choice(places)
    row, operands = made.lines[at]
    made.lines[at] = row, (*operands[:place], how(operands[place]), *operands[place + 1 :])
    return made


def _one_register(choose: random.Random, made: Made, how: Callable[[int], int]) -> Made:
    def change(old: Any) -> Any:
        if isinstance(old, int):
            return how(old)
        if not old:
            raise Impossible
        at = choose.randrange(len(old))
        return (*old[:at], how(old[at]), *old[at + 1 :])

    return _change(choose, made, lambda kind: kind in BANKS or kind == "registers", change)


def register_beside(choose: random.Random, made: Made) -> Made:
    """The register one further, or one at the edge of a bank, or just behind the last."""
    edges = [sum(made.counts[:bank]) for bank in range(6)]

    def how(old: int) -> int:
        ordinal = old & ~MOVE_BIT
        found = choose.choice((ordinal + 1, ordinal - 1, *[edge + by for edge in edges for by in (-1, 0)], edges[-1]))
        return max(0, found) | old & MOVE_BIT

    return _one_register(choose, made, how)


def register_behind(choose: random.Random, made: Made) -> Made:
    return _one_register(choose, made, lambda old: sum(made.counts) | old & MOVE_BIT)


def other_ref(choose: random.Random, made: Made) -> Made:
    """A ref of another type."""
    first = sum(made.counts[:4])
    return _one_register(choose, made, lambda old: first + choose.randrange(made.counts[4]) | old & MOVE_BIT)


def move_bit(choose: random.Random, made: Made) -> Made:
    return _one_register(choose, made, lambda old: old ^ MOVE_BIT)


def target_inside(choose: random.Random, made: Made) -> Made:
    """A branch into an instruction, in front of the code's end, or behind it."""
    pcs = [0]
    for row, operands in made.lines:
        pcs.append(pcs[-1] + size(row, operands))
    inside = [pc + 2 for pc in pcs[:-1] if pc + 2 not in pcs and pc + 2 >= len(made.lines)]

    def change(old: Any) -> Any:
        to = choose.choice((*inside[-8:], pcs[-1], pcs[-1] + 2, pcs[-1] - 1))
        return to if isinstance(old, int) else (*old[:-1], to)

    return _change(choose, made, lambda kind: kind in ("target", "targets"), change)


def ordinal_beside(choose: random.Random, made: Made) -> Made:
    there = {kind for row, _ in made.lines for kind in _KINDS[row.opcode] if kind in _ORDINALS}
    if not there:
        raise Impossible
    wanted = choose.choice(sorted(there))
    return _change(
        choose, made, lambda kind: kind == wanted, lambda old: max(0, old + choose.choice((-1, 1, 1, 2, 100)))
    )


def like_row(choose: random.Random, made: Made) -> Made:
    """Another row with as many operands of as many bytes: another bank, another list."""
    at = choose.randrange(len(made.lines))
    row, operands = made.lines[at]
    like = [one for one in INSTRUCTIONS if one is not row and _form(one.opcode) == _form(row.opcode)]
    if not like:
        raise Impossible
    made.lines[at] = choose.choice(like), operands
    return made


def _form(opcode: int) -> tuple[str, ...]:
    return tuple("register" if kind in BANKS else kind for kind in _KINDS[opcode])


def fewer_operands(choose: random.Random, made: Made) -> Made:
    """A call or return with one register less, or one more."""

    def change(old: Any) -> Any:
        return (*old, choose.randrange(sum(made.counts))) if not old or choose.random() < 0.5 else old[:-1]

    return _change(choose, made, lambda kind: kind == "registers", change)


def without_line(choose: random.Random, made: Made) -> Made:
    """Without an instruction, the last one more often than others; branches go where they went."""
    return without(made, len(made.lines) - 1 if choose.random() < 0.4 else choose.randrange(len(made.lines)))


def without(made: Made, at: int) -> Made:
    """In place: without that line."""
    del made.lines[at]
    made.lines[:] = [_moved(line, at) for line in made.lines]
    return made


def _moved(line: Line, gone: int) -> Line:
    row, operands = line
    fresh = list(operands)
    for place, spec in enumerate(row.operands):
        if spec.kind == "target":
            fresh[place] = operands[place] - (operands[place] > gone)
        elif spec.kind == "targets":
            fresh[place] = tuple(number - (number > gone) for number in operands[place])
    return row, tuple(fresh)


def end_replaced(choose: random.Random, made: Made) -> Made:
    """The last instruction is none that ends a function."""
    if not made.counts[0]:
        raise Impossible
    made.lines[-1] = BY_NAME["i32.zero"], (0,)
    return made


def fewer_registers(choose: random.Random, made: Made) -> Made:
    bank = choose.randrange(5)
    made.counts[bank] = max(0, made.counts[bank] + choose.choice((-1, -1, 1)))
    return made


def other_signature(choose: random.Random, made: Made) -> Made:
    """The function says something else of itself than its callers and its returns do."""
    types = ("i32", "i64", "f32", "f64", "buffer", "hal.buffer", "list<i32>", "any")
    if choose.random() < 0.5 and made.results:
        at = choose.randrange(len(made.results))
        return replace(made, results=(*made.results[:at], choose.choice(types), *made.results[at + 1 :]))
    if not made.arguments:
        raise Impossible
    at = choose.randrange(len(made.arguments))
    return replace(made, arguments=(*made.arguments[:at], choose.choice(types), *made.arguments[at + 1 :]))


EDITS: dict[str, Callable[[random.Random, Made], Made]] = {
    one.__name__: one
    for one in (
        register_beside,
        register_behind,
        other_ref,
        move_bit,
        target_inside,
        ordinal_beside,
        like_row,
        fewer_operands,
        without_line,
        end_replaced,
        fewer_registers,
        other_signature,
    )
}
