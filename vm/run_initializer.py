"""Runs an initializer from its verified instructions, without building blocks: an initializer runs only once.

Each instruction becomes an op that runs at once. A native function is called without an op. Only code whose branches
lead forward runs this way, without a call of a VM function and without a suspension. Registers, checks and errors are
the same as in `interpreter.py`.
"""

from collections.abc import Sequence
from typing import Any

from orchestrion.hal.errors import HalError
from orchestrion.schema.encoding import Decoded
from orchestrion.schema.isa import INSTRUCTIONS, Effect

from .call import Call
from .code import Code, without_moves
from .errors import VmError
from .interpreter import located
from .operands import targets
from .ops import ENDS, OPS
from .ops.imports import ArgumentCheck, call_absent, is_present
from .ops.table import CALL, GLOBALS, Registers
from .refs import TYPES

#: opcodes that write an integer immediate to a register
_INTEGER_CONSTANTS = frozenset(
    row.opcode
    for row in INSTRUCTIONS
    if row.effect is Effect.CONSTANT and row.operands[0].kind in ("imm_i32", "imm_i64")
)
_NATIVE, _LINKED, _BRANCH = Effect.NATIVE, Effect.LINKED, Effect.BRANCH


class _Pcs:
    """The place of a forward branch, for `ENDS`, with pcs in the place of blocks."""

    def target(self, pc: int) -> int:
        return pc

    def cost(self, pc: int) -> int:
        return 0


_PCS: Any = _Pcs()


def runs_forward(code: Code) -> bool:
    """Whether `run_initializer` can run the function.

    It can if no instruction runs twice, only the last one returns, and no native function asks which instruction calls
    it.
    """
    decoded = code.decoded
    return (
        not code.link.placed
        and decoded[-1].row.effect is Effect.RETURN
        and (code.fast_verified or all([not one.row.ends_block or _is_forward(one) for one in decoded[:-1]]))
    )


def _is_forward(instruction: Decoded) -> bool:
    """Whether an instruction is a branch whose targets are all behind it."""
    return instruction.row.effect is Effect.BRANCH and min(targets(instruction)) > instruction.pc


def run_initializer(call: Call, code: Code, values: list[Any]) -> None:
    """Run a function without arguments and results for which `runs_forward` holds. `values`: the globals of the
    context.

    Raises `VmError`, with the place of the instruction that failed.
    """
    regs = code.template.copy()
    regs[CALL], regs[GLOBALS] = call, values
    pc, fast_verified = 0, code.fast_verified
    reached: Any = 0
    operands: Any
    moved: Sequence[int] = ()
    try:
        for instruction in code.decoded[:-1]:
            pc, row, operands = instruction
            if pc < reached:
                continue
            if row.effect is _BRANCH:
                reached = ENDS[row.name](_PCS, *operands)(regs)
                continue
            if row.opcode in _INTEGER_CONSTANTS:
                regs[operands[1]] = operands[0]
                continue
            if not fast_verified:
                operands, moved = without_moves(instruction)
            if row.effect is _NATIVE:
                _native(call, code, regs, *operands)
            elif row.effect is _LINKED:
                is_present(code.link.imports[operands[0]], operands[1])(regs)
            else:
                OPS[row.name](*operands)(regs)
            for register in moved:
                regs[register] = None
        if call.pending_batch is not None:
            pc = code.decoded[-1].pc
            raise call.pending_batch.never_executed()
    except (VmError, HalError, MemoryError) as error:
        raise located(error, call, code, pc, regs) from (None if isinstance(error, VmError) else error)


def _native(
    call: Call, code: Code, regs: Registers, ordinal: int, args: tuple[int, ...], results: tuple[int, ...]
) -> None:
    function = code.link.imports[ordinal]
    if function is None:
        call_absent(code.link.names[ordinal])(regs)
        return
    values = [regs[register] for register in args]
    shape = function.signature.shape(len(args))
    assert shape is not None
    for place, wanted in shape.refs:
        if type(values[place]) is not TYPES.get(wanted):
            ArgumentCheck(function, shape.types)(values)
            break
    found = function.function(call, *values)
    if len(results) == 1:
        regs[results[0]] = found
    elif results:
        for register, value in zip(results, found, strict=True):
            regs[register] = value
