"""Analyses the code of a program without running it: the commands it records, and where its functions run them.

It is an abstract interpretation: each instruction is applied to what the registers may hold (`values.py`). Where
branches merge, a register may hold the value of either; a loop is repeated until nothing changes. Functions are
repeated until the values that they pass to each other, by calls and globals, stay the same. Both have bounds, after
which values are unknown: bad code takes no more time than good code, and is shown with less detail.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from orchestrion.schema.encoding import Decoded
from orchestrion.vm.verifier import VerifiedFunction, verify

from .facts import Block, Buffer, Command, Function, Summary, joined
from .instructions import Frame, step
from .values import BufferRef, Expressions, Null, Number, Quantity, RecordingRef, Value, ViewRef, join

if TYPE_CHECKING:
    from orchestrion.schema.module import Module

#: the most visits of a block of code, per function
MAX_VISITS: Final = 12
#: the most registers that are passed from block to block, per function
MAX_FORWARDED_REGISTERS: Final = 2_000_000
#: the most iterations over all functions
MAX_ITERATIONS: Final = 12


class Walk:
    """The analysis of one program. `functions` are in the order of the module; `recordings` hold their commands in
    order of the code.

    Raises ModuleError for invalid code.
    """

    def __init__(self, module: Module, ordinal: int) -> None:
        self.module = module
        self.ordinal = ordinal
        self.program = module.programs[ordinal]
        self.imports = [module.strings[row.name] for row in module.imports]
        self.expressions = Expressions()
        self.buffers: list[Buffer] = []
        self._buffers: dict[object, int] = {}
        self.places: dict[int, int] = {}  #: buffer of an argument or result -> its position in the export
        self.exports = self._exports()  #: function -> the first export that it implements
        self.code: list[VerifiedFunction] = verify(module, ordinal).functions
        self.before = Summary()  #: the summary of the previous iteration
        self.after = Summary()
        self.functions = [Function(row.ordinal, row.name, _blocks(row.decoded)) for row in self.code]
        self._iterate_to_fixpoint()
        self._number_allocations()
        self.recordings: dict[RecordingRef, list[Command]] = {}
        for function in self.functions:
            for block in function.blocks:
                for recording, command in block.commands:
                    self.recordings.setdefault(recording, []).append(command)

    def buffer(self, key: object, kind: str, name: str, size: Quantity | None) -> int:
        """The row of the buffer that `key` creates. If it was created with different sizes, its size is unknown."""
        row = self._buffers.setdefault(key, len(self.buffers))
        if row == len(self.buffers):
            self.buffers.append(Buffer(kind, name, size))
        elif self.buffers[row].size != size:
            self.buffers[row].size = None
        return row

    def dims(self, argument: int) -> list[Quantity]:
        """The dimensions of an argument, which is numbered within the module."""
        module, row = self.module, self.module.arguments[argument]
        found = module.dims[row.dims_start : row.dims_end]
        return [
            self.expressions.dimension(module.strings[module.expressions[-1 - dim]]) if dim < 0 else dim
            for dim in found
        ]

    def _exports(self) -> dict[int, int]:
        row = self.program
        entries = self.module.entries[row.entries_start : row.entries_end]
        return {function: export for export, function in reversed(list(enumerate(entries)))}

    def _iterate_to_fixpoint(self) -> None:
        for _ in range(MAX_ITERATIONS):
            self._round()
            if self.after == self.before:
                return
            self.before, self.after = self.after, Summary()
        nothing: Summary = Summary()
        nothing.globals = dict.fromkeys(self.before.globals)
        nothing.parameters = {key: (None,) * len(values) for key, values in self.before.parameters.items()}
        nothing.results = {key: (None,) * len(values) for key, values in self.before.results.items()}
        self.before = nothing
        self._round()

    def _round(self) -> None:
        for buffer in self.buffers:
            if buffer.kind == "allocation":
                buffer.size = 0
        for code, function in zip(self.code, self.functions, strict=True):
            self._follow(code, function)
        for place, value in self.after.globals.items():
            self._name(self.module.strings[self.module.globals[self.program.globals_start + place].name], value)

    def _name(self, name: str, value: Value) -> None:
        """Names an allocation after the global that keeps it."""
        for atom in value or ():
            if isinstance(atom, BufferRef) and self.buffers[atom.row].kind == "allocation":
                self.buffers[atom.row].name = name

    def _number_allocations(self) -> None:
        """Distinguishes allocations of one name, such as those that no global keeps: `arena`, `arena 2`, `arena 3`."""
        seen: dict[str, int] = {}
        for buffer in self.buffers:
            if buffer.kind == "allocation":
                seen[buffer.name] = count = seen.get(buffer.name, 0) + 1
                buffer.name += f" {count}" if count > 1 else ""

    def _follow(self, code: VerifiedFunction, function: Function) -> None:
        """Visits each block with what its registers may hold, until nothing changes."""
        states: dict[int, dict[int, Value]] = {0: self._entry(code)}
        visits = [0] * len(function.blocks)
        todo, waiting, handed = [0], {0}, 0
        while todo:
            at = heappop(todo)
            waiting.remove(at)
            visits[at] += 1
            frame = Frame(self, code, function.blocks[at], dict(states[at]))
            for decoded in code.decoded[frame.block.first : frame.block.end]:
                step(frame, decoded)
            handed += len(frame.registers) * len(frame.block.next)
            known = frame.registers if handed < MAX_FORWARDED_REGISTERS else {}
            for target in frame.block.next:
                merged = _merged(states.get(target), known if visits[target] < MAX_VISITS else {})
                if target not in states or merged != states[target]:
                    states[target] = merged
                    if target not in waiting:
                        waiting.add(target)
                        heappush(todo, target)

    def _entry(self, code: VerifiedFunction) -> dict[int, Value]:
        numbers = sum(code.counts[:4])
        registers: dict[int, Value] = dict.fromkeys(range(numbers), frozenset((Number(0),)))
        registers |= dict.fromkeys(range(numbers, sum(code.counts)), frozenset((Null(),)))
        given = self.before.parameters.get(code.ordinal)
        if code.ordinal in self.exports:
            given = joined(given, list(self._views(self.exports[code.ordinal], len(code.parameters))))
        for at, register in enumerate(code.parameters):
            registers[register] = None if given is None else given[at]
        return {register: value for register, value in registers.items() if value is not None}

    def _views(self, ordinal: int, count: int) -> Iterator[Value]:
        """The arguments of an export: views of arguments, then of destinations. Other exports take unknown values."""
        module, row = self.module, self.module.exports[ordinal]
        kinds = [("argument", at, module.arguments[at].name) for at in range(row.arguments_start, row.arguments_end)]
        kinds += [("result", at, module.results[at].name) for at in range(row.results_start, row.results_end)]
        if len(kinds) != count:
            yield from [None] * count
            return
        for kind, at, name in kinds:
            first = row.arguments_start if kind == "argument" else row.results_start
            buffer = self.buffer((kind, at), kind, module.strings[name] or f"{kind} {at - first}", None)
            self.places[buffer] = at - first
            yield frozenset((ViewRef(buffer, at if kind == "argument" else -1),))


def _merged(a: dict[int, Value] | None, b: dict[int, Value]) -> dict[int, Value]:
    if a is None:
        return dict(b)
    found = {register: join(value, b[register]) for register, value in a.items() if register in b}
    return {register: value for register, value in found.items() if value is not None}


def _blocks(decoded: list[Decoded]) -> list[Block]:
    """Splits code into blocks: at the first instruction, at each target of a branch, and after each branch."""
    at = {row.pc: index for index, row in enumerate(decoded)}
    starts = {0} | {at[target] for row in decoded for target in targets(row)}
    starts |= {index + 1 for index, row in enumerate(decoded) if row.row.terminator and index + 1 < len(decoded)}
    ordered = sorted(starts)
    number = {start: place for place, start in enumerate(ordered)}
    blocks = []
    for first, end in zip(ordered, [*ordered[1:], len(decoded)], strict=True):
        last = decoded[end - 1]
        following = [number[at[target]] for target in targets(last)]
        if not last.row.terminator:
            following.append(number[end])
        blocks.append(Block(first, end, tuple(dict.fromkeys(following))))
    return blocks


def targets(decoded: Decoded) -> list[int]:
    """The branch targets of an instruction."""
    found: list[int] = []
    for spec, operand in zip(decoded.row.operands, decoded.operands, strict=True):
        if spec.kind == "target" and isinstance(operand, int):
            found.append(operand)
        elif spec.kind == "targets" and isinstance(operand, tuple):
            found += operand
    return found
