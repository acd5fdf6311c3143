"""The effect of each instruction on the registers of an analysed function, as far as the page needs it.

Numbers, references and the functions of the module `hal` are tracked. The results of other instructions are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from orchestrion.schema.encoding import Decoded
from orchestrion.schema.isa import MOVE_BIT
from orchestrion.vm.operands import writes

from . import commands
from .values import (
    BufferRef,
    ExecutableRef,
    Expression,
    Null,
    Quantity,
    RecordingRef,
    Value,
    ViewRef,
    join,
    number,
    quantity_of,
)

if TYPE_CHECKING:
    from orchestrion.vm.verifier import VerifiedFunction

    from .facts import Block
    from .walk import Walk

#: instruction of i32 or i64, without the bank -> operation of `values.OPERATIONS`
_ARITHMETIC: Final = {
    "add": "add",
    "add_checked": "add",
    "sub": "subtract",
    "sub_checked": "subtract",
    "mul": "multiply",
    "mul_checked": "multiply",
    "div_s": "divide",
    "div_u": "divide",
    "rem_s": "remainder",
    "rem_u": "remainder",
    "lt_s": "less",
    "le_s": "at_most",
    "eq": "equal",
}
#: the same for instructions whose operands are swapped
_SWAPPED: Final = {"gt_s": "less", "ge_s": "at_most"}
#: instructions whose result equals the first operand
_COPIES: Final = frozenset(("i32.copy", "i64.copy", "ref.copy", "i32.wrap_i64", "i64.extend_i32_s", "i64.extend_i32_u"))


class Frame:
    """The registers in a block of a function. A missing register is unknown."""

    __slots__ = ("block", "code", "registers", "walk", "words")

    def __init__(self, walk: Walk, code: VerifiedFunction, block: Block, registers: dict[int, Value]) -> None:
        self.walk = walk
        self.code = code
        self.block = block
        self.registers = registers
        self.words: dict[RecordingRef, tuple[Quantity | None, ...]] = {}  #: parameters of the next dispatch
        block.events.clear()
        block.commands.clear()

    def get(self, register: int) -> Value:
        return self.registers.get(register & ~MOVE_BIT)

    def set(self, register: int, value: Value) -> None:
        if value is None:
            self.registers.pop(register, None)
        else:
            self.registers[register] = value


def step(frame: Frame, decoded: Decoded) -> None:
    """Applies one instruction."""
    name = decoded.row.name
    results: Sequence[Value] = ()
    if name in _COPIES:
        results = [frame.get(_int(decoded.operands[0]))]
    elif name in _OTHERS:
        results = _OTHERS[name](frame, decoded)
    else:
        bank, _, operation = name.partition(".")
        if bank in ("i32", "i64"):
            results = [_integer(frame, operation, decoded)]
    written = writes(decoded)
    for at, register in enumerate(written):
        frame.set(register, results[at] if at < len(results) else None)


def _integer(frame: Frame, operation: str, decoded: Decoded) -> Value:
    if operation in ("const", "zero"):
        return number(_int(decoded.operands[0]) if operation == "const" else 0)
    if operation == "select":
        return _select(frame, decoded)[0]
    if operation not in _ARITHMETIC and operation not in _SWAPPED:
        return None
    a, b = (quantity_of(frame.get(_int(operand))) for operand in decoded.operands[:2])
    if a is None or b is None:
        return None
    swapped = operation in _SWAPPED
    name, pair = (_SWAPPED[operation], (b, a)) if swapped else (_ARITHMETIC[operation], (a, b))
    return number(frame.walk.expressions.operation(name, *pair))


def _select(frame: Frame, decoded: Decoded) -> list[Value]:
    condition, a, b = (frame.get(_int(operand)) for operand in decoded.operands[:3])
    numbers = [quantity_of(value) for value in (condition, a, b)]
    known = [value for value in numbers if value is not None]
    if len(known) == len(numbers) and any(isinstance(value, Expression) for value in known):
        return [number(frame.walk.expressions.operation("select", *known))]
    if isinstance(numbers[0], int):
        return [a if numbers[0] else b]
    return [join(a, b)]


def _load(frame: Frame, decoded: Decoded) -> list[Value]:
    """Assumes that a global which is stored to somewhere is initialised."""
    value = frame.walk.before.globals.get(_int(decoded.operands[0]), frozenset((Null(),)))
    if value is not None and len(value) > 1:
        value -= {Null()}
    return [value]


def _store(frame: Frame, decoded: Decoded) -> list[Value]:
    register, place = decoded.operands
    frame.walk.after.store(_int(place), frame.get(_int(register)))
    return []


def _call(frame: Frame, decoded: Decoded) -> Sequence[Value]:
    callee = _int(decoded.operands[0])
    arguments = [frame.get(register) for register in _registers(decoded)]
    frame.walk.after.call(callee, arguments)
    commands.called(frame, decoded.pc, frame.walk.functions[callee].name, arguments)
    return frame.walk.before.results.get(callee, ())


def _return(frame: Frame, decoded: Decoded) -> list[Value]:
    values = decoded.operands[0]
    assert isinstance(values, tuple)
    frame.walk.after.give(frame.code.ordinal, [frame.get(register) for register in values])
    return []


def _call_import(frame: Frame, decoded: Decoded) -> Sequence[Value]:
    name = frame.walk.imports[_int(decoded.operands[0])]
    arguments = [frame.get(register) for register in _registers(decoded)]
    if name in commands.RECORDED:
        commands.RECORDED[name](frame, decoded.pc, arguments)
        return []
    if name in _HAL:
        return _HAL[name](frame, decoded.pc, arguments)
    if not name.startswith("hal."):
        commands.called(frame, decoded.pc, name, arguments)
    return []


def _constant(frame: Frame, pc: int, arguments: Sequence[Value]) -> list[Value]:
    """The buffer is the entire constant; bound ranges are shifted by the offset, which is currently always 0."""
    ordinal, offset, length = map(quantity_of, arguments)
    walk = frame.walk
    rows = walk.module.constants[walk.program.constants_start : walk.program.constants_end]
    if not isinstance(ordinal, int) or not 0 <= ordinal < len(rows):
        return []
    key = ("constant", ordinal, offset, length)
    row = walk.buffer(key, "constant", walk.module.strings[rows[ordinal].name], length)
    return [frozenset((BufferRef(row),))]


def _allocate(frame: Frame, pc: int, arguments: Sequence[Value]) -> list[Value]:
    size = quantity_of(arguments[0])
    row = frame.walk.buffer(("allocation", frame.code.ordinal, pc), "allocation", "arena", None)
    frame.walk.buffers[row].size = size
    return [frozenset((BufferRef(row),))]


def _same_view(frame: Frame, pc: int, arguments: Sequence[Value]) -> list[Value]:
    return [arguments[0]]


def _storage(frame: Frame, pc: int, arguments: Sequence[Value]) -> list[Value]:
    rows = commands.buffers_of(arguments[0])
    return [None if rows is None else frozenset(BufferRef(row) for row in rows)]


def _view(frame: Frame, pc: int, arguments: Sequence[Value]) -> list[Value]:
    rows = commands.buffers_of(arguments[0])
    return [None if rows is None else frozenset(ViewRef(row) for row in rows)]


def _dim(frame: Frame, pc: int, arguments: Sequence[Value]) -> list[Value]:
    view, axis = arguments[0], quantity_of(arguments[1])
    atom = next(iter(view)) if view is not None and len(view) == 1 else None
    if not isinstance(atom, ViewRef) or atom.argument < 0 or not isinstance(axis, int):
        return []
    dims = frame.walk.dims(atom.argument)
    return [number(dims[axis])] if 0 <= axis < len(dims) else []


def _executable(frame: Frame, pc: int, arguments: Sequence[Value]) -> list[Value]:
    ordinal = quantity_of(arguments[0])
    return [frozenset((ExecutableRef(ordinal),))] if isinstance(ordinal, int) else []


def _recording(frame: Frame, pc: int, arguments: Sequence[Value]) -> list[Value]:
    return [frozenset((RecordingRef(frame.code.ordinal, pc),))]


def _registers(decoded: Decoded) -> tuple[int, ...]:
    found = decoded.operands[1]
    assert isinstance(found, tuple)
    return found


def _int(operand: int | str | tuple[int, ...]) -> int:
    assert isinstance(operand, int)
    return operand


_OTHERS: Final[dict[str, Callable[[Frame, Decoded], Sequence[Value]]]] = {
    "ref.null": lambda frame, decoded: [frozenset((Null(),))],
    "ref.select": _select,
    "global.load.ref": _load,
    "global.store.ref": _store,
    "call": _call,
    "call.cached": _call,
    "call_import": _call_import,
    "return": _return,
}
#: function of `hal` with a result -> function that determines the result
_HAL: Final[dict[str, Callable[[Frame, int, Sequence[Value]], list[Value]]]] = {
    "hal.constant": _constant,
    "hal.allocate": _allocate,
    "hal.view.check": _storage,
    "hal.view.destination": _same_view,
    "hal.view.buffer": _storage,
    "hal.view.create": _view,
    "hal.view.dim": _dim,
    "hal.executable.create": _executable,
    "hal.recording.create": _recording,
    "hal.recording.create_control_flow": _recording,
}
