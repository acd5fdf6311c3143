"""Parts of loops of products whose sums leave one register for the columns: the order of their ops is fixed.

With 16 registers, a part of four rows and two vectors of columns has eight sums. That is as many as a processor adds to
while one addition lasts, so each delay of an addition is lost. Three rows and four vectors of columns have twelve sums
and fewer loads per product, but need every register: those of the sums, of three elements of rows, and of one vector of
columns. LLVM moves loads and products, and stores what has no register then. Assembly without instructions, which
takes the sums and may write memory, keeps them in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import ceildiv
from orchestrion.compiler.kernel import dialect as k

from .accesses import Accesses
from .levels import Level
from .loop_parts import Part, needed
from .scalars import suffix, type_of

#: columns of a part, which are vectors of the IR, and fewest rows of the largest part that are worth the order
COLUMNS, FEWEST_ROWS = 2, 3
#: most iterations that are joined: LLVM finds no registers for more
MOST_JOINED_IN_ORDER = 4


def ordered_parts_of(loop: k.For, parts: Sequence[Part], level: Level) -> list[Part]:
    """The parts of a loop that is divided for a level. Columns, which are vectors of the IR, have parts with a fixed
    order by pairs, if all are elements of memory, fill registers, and have the same rows, enough of them.
    """
    if len(parts) < 2 or not level.fused:
        return list(parts)
    adds, groups = list[k.MultiplyAdd](), dict[Value, list[int]]()
    for number, value in enumerate(k.yielded(loop.body.block)):
        one = value.defining_op
        if not isinstance(one, k.MultiplyAdd) or one.z is not loop.body.block.arguments[1 + number]:
            return list(parts)
        adds.append(one)
        groups.setdefault(one.y, []).append(number)
    item = k.dtype_of(adds[0].output).itemsize
    each, rest = divmod(k.length_of(adds[0].output) * item, 4 * level.lanes)
    most = (level.registers - 1) // (COLUMNS * each + 1)
    rows = [[adds[number].x for number in numbers] for numbers in groups.values()]
    count = ceildiv(len(rows[0]), max(most, 1))
    if len(rows) % COLUMNS or any(others != rows[0] for others in rows) or not all(map(_is_column, groups)):
        return list(parts)
    if rest or item < 4 or ceildiv(len(rows[0]), count) < FEWEST_ROWS:
        return list(parts)
    found = list[Part]()
    ends = [ceildiv(len(rows[0]) * part, count) for part in range(count + 1)]
    numbered = list(groups.values())
    for pair in (numbered[at : at + COLUMNS] for at in range(0, len(numbered), COLUMNS)):
        for start, end in pairwise(ends):
            some = [number for numbers in pair for number in numbers[start:end]]
            found.append(Part(some, needed(loop, [adds[at].output for at in some]), adds=True, ordered=True))
    return found


def _is_column(value: Value) -> bool:
    """Whether a vector is elements of memory, and is used for nothing but products."""
    users = (isinstance(user, k.MultiplyAdd) and user.y is value and user.x is not value for user, _ in value.uses)
    return isinstance(value.defining_op, k.LoadLanes | k.LoadSharedLanes) and all(users)


def add_by_columns(body: Accesses, ops: Sequence[Operation], run: Callable[[Sequence[Operation]], None]) -> None:
    """The ops of an iteration of an ordered part: elements of rows first, then one register of columns after the other
    with all products of it. `run`: renders ops in their order.
    """
    code, level = body.code, body.level
    assert level is not None, "loops that are divided have a level"
    groups: dict[Value, list[k.MultiplyAdd]] = {}
    for op in ops:
        if isinstance(op, k.MultiplyAdd):
            groups.setdefault(op.y, []).append(op)
    loads = {y.defining_op for y in groups}
    run([op for op in ops if not isinstance(op, k.MultiplyAdd) and op not in loads])
    code.keep_order()
    for y, adds in groups.items():
        load, dtype, length = y.defining_op, k.dtype_of(y), k.length_of(y)
        assert load is not None, "columns of ordered parts are elements of memory"
        memory, index = load.operands
        element, wide = type_of(dtype), body.type(y)
        lanes = 4 * level.lanes // dtype.itemsize
        type, address = f"<{lanes} x {element}>", body.address(memory, index, element)
        halves: list[list[str]] = [[] for _ in adds]
        for first in range(0, length, lanes):
            place = code.set(f"getelementptr inbounds {element}, ptr {address}, i64 {first}")
            column, sums = code.set(f"load {type}, ptr {place}, align {dtype.itemsize}"), list[str]()
            for op in adds:
                x, z = (code.shuffle(wide, body.scalar(value), range(first, first + lanes)) for value in (op.x, op.z))
                name = f"llvm.fma.{suffix(dtype, lanes)}"
                sums.append(code.set(f"call {type} @{name}({type} {x}, {type} {column}, {type} {z})"))
            for parts, sum in zip(halves, code.held(type, sums, in_order=True), strict=True):
                parts.append(sum)
        for op, parts in zip(adds, halves, strict=True):
            body.names[op.output] = code.together(type, parts, lanes)
