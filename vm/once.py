"""Runs an initializer straight from its verified instructions: building blocks pays when code runs again.

Each instruction is made into its op and run at once; a native function is called without an op. Only straight-line code
is taken (no branch, no call of the VM, no suspension). Registers, checks and errors are those of the interpreter.
"""

from collections.abc import Sequence
from typing import Any

from orchestrion.hal.errors import HalError
from orchestrion.schema.isa import INSTRUCTIONS, Effect

from .call import Call
from .code import Code, without_moves
from .errors import VmError
from .interpreter import located
from .ops import OPS
from .ops.imports import Check, absent, present
from .ops.table import CALL, GLOBALS, Registers
from .refs import TYPES

#: rows that write an integer as it stands in the instruction
_INTEGERS = frozenset(
    row.opcode
    for row in INSTRUCTIONS
    if row.effect is Effect.CONSTANT and row.operands[0].kind in ("imm_i32", "imm_i64")
)
_NATIVE, _LINKED = Effect.NATIVE, Effect.LINKED


def straight_line(code: Code) -> bool:
    """Whether `run_once` takes the function: its only end is the return at the end, and nobody asks where it is."""
    decoded = code.decoded
    return (
        not code.link.placed
        and decoded[-1].row.effect is Effect.RETURN
        and (code.plain or not any([row.ends_block for _, row, _ in decoded[:-1]]))
    )


def run_once(call: Call, code: Code, values: list[Any]) -> None:
    """Run a straight-line function without arguments and results; `values` are the globals."""
    regs = code.template.copy()
    regs[CALL], regs[GLOBALS] = call, values
    pc, plain = 0, code.plain
    operands: Any
    moved: Sequence[int] = ()
    try:
        for instruction in code.decoded[:-1]:
            pc, row, operands = instruction
            if row.opcode in _INTEGERS:
                regs[operands[1]] = operands[0]
                continue
            if not plain:
                operands, moved = without_moves(instruction)
            if row.effect is _NATIVE:
                _native(call, code, regs, *operands)
            elif row.effect is _LINKED:
                present(code.link.imports[operands[0]], operands[1])(regs)
            else:
                OPS[row.name](*operands)(regs)
            for register in moved:
                regs[register] = None
        if call.enqueued is not None:
            pc = code.decoded[-1].pc
            raise call.enqueued.forgotten()
    except (VmError, HalError, MemoryError) as error:
        raise located(error, call, code, pc, regs) from (None if isinstance(error, VmError) else error)


def _native(
    call: Call, code: Code, regs: Registers, ordinal: int, args: tuple[int, ...], results: tuple[int, ...]
) -> None:
    function = code.link.imports[ordinal]
    if function is None:
        absent(code.link.names[ordinal])(regs)
        return
    values = [regs[register] for register in args]
    shape = function.signature.shape(len(args))
    assert shape is not None
    for place, wanted in shape.refs:
        if type(values[place]) is not TYPES.get(wanted):
            Check(function, shape.types)(values)
            break
    found = function.function(call, *values)
    if len(results) == 1:
        regs[results[0]] = found
    elif results:
        for register, value in zip(results, found, strict=True):
            regs[register] = value
