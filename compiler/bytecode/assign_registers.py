"""assign-registers: assigns a register of its bank to every value, by linear scan over the intervals of `liveness.py`.

A register is free after the last use of its value, for a value of the same type, so that the VM's verifier knows the
type in each ref register. A branch operand and its block argument get the same register if that is free; otherwise the
lowest free register is taken. The remaining moves are copies before the branch. Function arguments take the first
registers of their banks, as the calling convention requires. Raises CompileError for a program whose frame exceeds the
VM's limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final

from orchestrion.compiler.errors import CompileError, Diagnostic
from orchestrion.compiler.ir.attributes import ArrayAttr, StringAttr, dense_ints
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.schema.isa import BANKS, MAX_REGISTERS
from orchestrion.schema.signature import bank_of

from .liveness import Interval, intervals
from .moves import sequential_copies
from .vm import OPS, Func, type_name

#: Bank -> the letter of its registers in text.
REGISTER_LETTERS: Final[dict[str, str]] = dict(zip(BANKS, "ilfdr", strict=True))

#: Name of the type of all values that the register holds, and its number in the bank.
Register = tuple[str, int]


def run(module: Module) -> None:
    for func in module.walk(Func):
        _assign(func)


def _assign(func: Func) -> None:
    blocks = func.body.blocks
    branches = [block.last for block in blocks if isinstance(block.last, OPS["br"])]
    frame = _Frame()
    frame.scan(intervals(func.body), _companions(branches))
    for block in blocks:
        for op in block:
            if op.results:
                op.attributes["registers"] = frame.names(op.results)
    for branch in branches:
        _move(frame, branch)
    if len(blocks) > 1:
        func.blocks = ArrayAttr(tuple(frame.names(block.arguments) for block in blocks[1:]))
    needed = sum(frame.counts.values())
    if needed > MAX_REGISTERS:
        message = f"needs {needed} registers, a function has at most {MAX_REGISTERS}"
        raise CompileError([Diagnostic(message, func.loc, f"{func.sym_name.value}")])
    func.frame = dense_ints(*frame.counts.values())


def _companions(branches: Sequence[Operation]) -> dict[Value, list[Value]]:
    """value -> the values that should share its register: branch operands and their block arguments."""
    found: dict[Value, list[Value]] = {}
    for branch in branches:
        for value, argument in zip(branch.operands, branch.successors[0].arguments, strict=True):
            found.setdefault(value, []).append(argument)
            found.setdefault(argument, []).append(value)
    return found


class _Frame:
    """The registers of one function."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(BANKS, 0)
        self.of: dict[Value, Register] = {}
        self._free: dict[str, set[Register]] = {}
        #: the same as the heaps, including registers that were taken meanwhile
        self._lowest: dict[str, list[Register]] = {}
        self._spares: dict[str, Register] = {}

    def scan(self, spans: dict[Value, Interval], companions: dict[Value, list[Value]]) -> None:
        """Assigns registers position by position. Values that begin at a position precede those that end there, so that
        an op never writes a register that it reads.
        """
        ending = sorted(spans, key=lambda value: spans[value].last, reverse=True)
        for value in sorted(spans, key=lambda value: spans[value].first):
            while spans[ending[-1]].last < spans[value].first:
                register = self.of[ending.pop()]
                self._free.setdefault(register[0], set()).add(register)
                heappush(self._lowest.setdefault(register[0], []), register)
            self._take(value, companions.get(value, ()))

    def _take(self, value: Value, companions: Sequence[Value]) -> None:
        name = type_name(value.type)
        free = self._free.get(name)
        if not free:
            self.of[value] = self._new(name)
            return
        wished = [self.of[other] for other in companions if self.of.get(other) in free]
        self.of[value] = wished[0] if wished else self._lowest_of(name, free)
        free.remove(self.of[value])

    def _lowest_of(self, name: str, free: set[Register]) -> Register:
        heap = self._lowest[name]
        while heap[0] not in free:
            heappop(heap)
        return heap[0]

    def spare(self, register: Register) -> Register:
        """A register for the same type that holds no value."""
        name = register[0]
        if name not in self._spares:
            self._spares[name] = self._new(name)
        return self._spares[name]

    def names(self, values: Sequence[Value]) -> ArrayAttr:
        return ArrayAttr(tuple(_text(self.of[value]) for value in values))

    def _new(self, name: str) -> Register:
        bank = bank_of(name)
        self.counts[bank] += 1
        return name, self.counts[bank] - 1


def _text(register: Register) -> StringAttr:
    name, number = register
    return StringAttr(f"{REGISTER_LETTERS[bank_of(name)]}{number}")


def _move(frame: _Frame, branch: Operation) -> None:
    """Copies branch operands into the registers of the target's arguments."""
    wanted = [frame.of[argument] for argument in branch.successors[0].arguments]
    holds = {frame.of[value]: value for value in branch.operands}
    moves = list(zip([frame.of[value] for value in branch.operands], wanted, strict=True))
    builder = Builder.before(branch)
    for source, target in sequential_copies(moves, frame.spare):
        value = holds[source]
        copy = builder.build(OPS[f"{bank_of(source[0])}.copy"], a=value, d=value.type)
        copy.attributes["registers"] = ArrayAttr((_text(target),))
        holds[target] = copy.result
    branch.set_operands([holds[register] for register in wanted])
