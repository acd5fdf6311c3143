"""assign-registers: every value gets a register of its bank, by linear scan.

A register is free again after the last use of its value, for a value of the same type (so that the VM's verifier knows
what each ref register holds); the lowest free one is taken. Arguments take the first of their banks, as the calling
convention wants. A frame above the VM's limit is an error of the program: it is too large.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import ArrayAttr, StringAttr, dense_ints
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.schema.isa import BANKS, MAX_REGISTERS
from orchestrion.schema.signature import bank_of

from .vm import Func, type_name

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options

#: bank -> the letter of its registers in text
LETTERS: Final[dict[str, str]] = dict(zip(BANKS, "ilfdr", strict=True))


def run(module: Module, options: Options) -> None:
    for func in module.walk():
        if isinstance(func, Func):
            _assign(func)


class _Frame:
    """The registers of one function."""

    def __init__(self) -> None:
        self.free: dict[str, list[int]] = {}
        self.counts: dict[str, int] = dict.fromkeys(BANKS, 0)
        self.of: dict[Value, int] = {}

    def take(self, value: Value) -> str:
        name = type_name(value.type)
        bank = bank_of(name)
        if self.free.get(name):
            number = heapq.heappop(self.free[name])
        else:
            number = self.counts[bank]
            self.counts[bank] += 1
        self.of[value] = number
        return f"{LETTERS[bank]}{number}"

    def release(self, value: Value) -> None:
        heapq.heappush(self.free.setdefault(type_name(value.type), []), self.of[value])


def _assign(func: Func) -> None:
    block = func.body.block
    frame = _Frame()
    last: dict[Value, Operation] = {value: op for op in block for value in op.operands}
    for argument in block.arguments:
        frame.take(argument)
    for op in block:
        if op.results:
            op.attributes["registers"] = ArrayAttr(tuple(StringAttr(frame.take(result)) for result in op.results))
        for value in (*dict.fromkeys(op.operands), *op.results):
            if last.get(value, op) is op:
                frame.release(value)
    if sum(frame.counts.values()) > MAX_REGISTERS:
        needed = f"needs {sum(frame.counts.values())} registers, a function has at most {MAX_REGISTERS}"
        raise CompileError([Diagnostic(needed, func.loc, f"{func.sym_name.value}")])
    func.frame = dense_ints(*frame.counts.values())
