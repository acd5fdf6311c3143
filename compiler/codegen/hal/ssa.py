"""A function of the bytecode as values: static single assignment over the blocks that can be reached.

- Each write of a register is a value of its own. A block that several blocks lead to has a `Phi` for each register that
  it reads. Copies disappear, and equal constants are one value.
- Instructions whose operands are constants are computed (`integers.py`). A branch on a constant is no branch.
- Generated code keeps no derived constants between loads: `hal.cache.load` finds none, and `hal.cache.save` is no op.
- The bytecode was verified before (`vm/verifier.py`): registers, types, targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from orchestrion.schema.encoding import Decoded, decode
from orchestrion.schema.isa import BANKS, MOVE_BIT, Effect, Instruction, Operand
from orchestrion.schema.module import Module
from orchestrion.schema.rows import Function as FunctionRow
from orchestrion.schema.rows import Program

from .integers import INTEGERS

#: effects of ops that are dropped if nobody uses their results
_DROPPABLE: Final = frozenset({Effect.PURE, Effect.LOAD})


@dataclass(eq=False, slots=True)
class Value:
    """A value of a register bank. `block`: where it is made; None for constants and parameters."""

    bank: str
    block: Block | None = None


@dataclass(eq=False, slots=True)
class Constant(Value):
    """A number, or null."""

    number: int | None = None


@dataclass(eq=False, slots=True)
class Parameter(Value):
    """A parameter of the function; `place` counts all of them."""

    place: int = 0


@dataclass(eq=False, slots=True)
class Phi(Value):
    """The value that a block gets from the block that ran before."""

    sources: dict[Block, Value] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Result(Value):
    """Result `place` of an op."""

    op: Op = field(init=False)
    place: int = 0


@dataclass(eq=False)
class Op:
    """An instruction. `operands`: values, tuples of values, ordinals and texts in the order of the row; results, and
    targets, are left out. `callee`: the name of an imported function.
    """

    row: Instruction
    pc: int
    block: Block
    operands: list[Any]
    results: list[Result] = field(default_factory=list)
    callee: str = ""

    @property
    def name(self) -> str:
        """The imported function of a call, else the instruction."""
        return self.callee or self.row.name

    def values(self) -> Iterator[Value]:
        """All operands that are values."""
        for operand in self.operands:
            yield from [operand] if isinstance(operand, Value) else operand if isinstance(operand, tuple) else ()

    def arguments(self) -> tuple[Value, ...]:
        """The arguments of a call."""
        found: tuple[Value, ...] = self.operands[1]
        return found


@dataclass(eq=False)
class Block:
    """Instructions from `start` on. `after`: blocks that may run next, in the order of the terminator's targets;
    `before`: blocks that may have run.
    """

    start: int
    code: list[Decoded] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    phis: list[Phi] = field(default_factory=list)
    after: list[Block] = field(default_factory=list)
    before: list[Block] = field(default_factory=list)

    @property
    def ends(self) -> Op | None:
        """The terminator; None if control runs into the next block."""
        return self.ops[-1] if self.ops and self.ops[-1].row.terminator else None


@dataclass(eq=False)
class Function:
    """A function. `blocks` are in reverse postorder, the entry first. `types`: of the parameters."""

    name: str
    ordinal: int
    types: tuple[str, ...]
    results: tuple[str, ...]
    parameters: list[Parameter]
    blocks: list[Block]

    def ops(self) -> Iterator[Op]:
        for block in self.blocks:
            yield from block.ops

    @cached_property
    def uses(self) -> dict[Value, list[tuple[Block, Op | None]]]:
        """For each value the places that use it: a block and an op, or a block at whose end a phi takes it."""
        found: dict[Value, list[tuple[Block, Op | None]]] = {}
        for block in self.blocks:
            for op in block.ops:
                for value in op.values():
                    found.setdefault(value, []).append((block, op))
            for phi in block.phis:
                for source, value in phi.sources.items():
                    found.setdefault(value, []).append((source, None))
        return found


def read_function(module: Module, program: Program, ordinal: int) -> Function:
    """The function with an ordinal in a program. Raises ModuleError if its code is damaged."""
    row = module.functions[program.functions_start + ordinal]
    return _Reader(module, row, ordinal).read()


def type_names(module: Module, start: int, end: int) -> tuple[str, ...]:
    """The names of a range of value types."""
    return tuple([module.strings[module.types[at]] for at in module.value_types[start:end]])


def _registers(specs: Sequence[Operand], operands: Sequence[Any], result: bool) -> Iterator[int]:
    """The registers that an instruction reads, or writes."""
    for spec, operand in zip(specs, operands, strict=True):
        if spec.result is result and spec.kind in BANKS:
            yield operand & ~MOVE_BIT
        elif spec.result is result and spec.kind == "registers":
            yield from [register & ~MOVE_BIT for register in operand]


class _Reader:
    def __init__(self, module: Module, row: FunctionRow, ordinal: int) -> None:
        self.module, self.row, self.ordinal = module, row, ordinal
        self.name = module.strings[row.name]
        self.types = type_names(module, row.arguments_start, row.arguments_end)
        self.banks = [bank for bank, count in zip(BANKS, row[-len(BANKS) :], strict=True) for _ in range(count)]
        self.constants: dict[tuple[str, int | None], Constant] = {}
        self.replaced: dict[Value, Value] = {}

    def read(self) -> Function:
        blocks = self._blocks()
        parameters, first = self._parameters()
        live = _live(blocks)
        ends: dict[Block, dict[int, Value]] = {}
        joins: dict[Block, dict[int, Phi]] = {}
        for block in blocks:
            registers = first.copy()
            if block.before:
                joins[block] = (
                    {at: Phi(self.banks[at], block) for at in sorted(live[block])} if block.before[1:] else {}
                )
                block.phis = [*joins[block].values()]
                registers = {**ends.get(block.before[0], first), **joins[block]}
            ends[block] = registers
            self._run(block, registers)
        for block, phis in joins.items():
            for at, phi in phis.items():
                phi.sources = {source: ends[source][at] for source in block.before}
        self._simplify(blocks)
        results = type_names(self.module, self.row.results_start, self.row.results_end)
        return Function(self.name, self.ordinal, self.types, results, parameters, blocks)

    def _parameters(self) -> tuple[list[Parameter], dict[int, Value]]:
        """The parameters, and the values of all registers at the start."""
        registers: dict[int, Value] = {
            at: self._constant(bank, None if bank == "ref" else 0) for at, bank in enumerate(self.banks)
        }
        parameters, used = [], dict.fromkeys(BANKS, 0)
        for place, type in enumerate(self.types):
            bank = type if type in BANKS else "ref"
            parameters.append(Parameter(bank, None, place))
            registers[self.banks.index(bank) + used[bank]] = parameters[-1]
            used[bank] += 1
        return parameters, registers

    def _constant(self, bank: str, number: int | None) -> Constant:
        return self.constants.setdefault((bank, number), Constant(bank, None, number))

    def _blocks(self) -> list[Block]:
        """The blocks that can be reached, in reverse postorder."""
        code = decode(self.module.bytecode[self.row.bytecode_start : self.row.bytecode_end], f"function {self.name}")
        starts = {0}
        for decoded, following in zip(code, [*code[1:], None], strict=True):
            starts.update(_targets(decoded))
            if decoded.row.terminator and following is not None:
                starts.add(following.pc)
        blocks: dict[int, Block] = {}
        for decoded in code:
            if decoded.pc in starts:
                block = blocks[decoded.pc] = Block(decoded.pc)
            block.code.append(decoded)
        order: list[Block] = []
        self._visit(blocks, blocks[0], order, set())
        if any(blocks[0] in block.after for block in order):  # a loop from the start: the start gets a block of its own
            order.append(Block(-1, after=[blocks[0]]))
        for block in reversed(order):
            for target in dict.fromkeys(block.after):
                target.before.append(block)
        return order[::-1]

    def _visit(self, blocks: dict[int, Block], block: Block, order: list[Block], seen: set[int]) -> None:
        """Append a block behind all that are reached from it."""
        seen.add(block.start)
        block.after = [blocks[at] for at in self._known_targets(block, blocks)]
        for target in reversed(block.after):
            if target.start not in seen:
                self._visit(blocks, target, order, seen)
        order.append(block)

    def _known_targets(self, block: Block, blocks: dict[int, Block]) -> list[int]:
        """The starts of the blocks that may run next. A block that runs into the next one has no branch."""
        last = block.code[-1]
        if not last.row.terminator:
            return [min(at for at in blocks if at > block.start)]
        targets = _targets(last)
        if last.row.name != "br_if":
            return targets
        scratch = Block(block.start, block.code)
        unknown = {at: Value(bank) for at, bank in enumerate(self.banks)}
        self._run(scratch, unknown)
        condition = scratch.ops[-1].operands[0]
        return [targets[0 if condition.number else 1]] if isinstance(condition, Constant) else targets

    def _run(self, block: Block, registers: dict[int, Value]) -> None:
        """Append the ops of a block, and write their results into `registers`."""
        for decoded in block.code:
            specs = decoded.row.operands
            raw: tuple[Any, ...] = decoded.operands
            written = [*_registers(specs, decoded.operands, True)]
            known = self._known(decoded, registers)
            if known is not None:
                registers[written[0]] = known
                continue
            operands = [
                registers[operand & ~MOVE_BIT] if spec.kind in BANKS
                else tuple([registers[at & ~MOVE_BIT] for at in operand]) if spec.kind == "registers"
                else operand
                for spec, operand in zip(specs, raw, strict=True)
                if not spec.result and spec.kind not in ("target", "targets")
            ]  # fmt: skip
            op = Op(decoded.row, decoded.pc, block, operands)
            if decoded.row.effect is Effect.NATIVE:
                op.callee = self._callee(operands[0])
                if op.callee == "hal.cache.save":
                    continue
            for place, at in enumerate(written):
                result = Result(self.banks[at], block, place)
                result.op = op
                op.results.append(result)
                registers[at] = result
            block.ops.append(op)

    def _known(self, decoded: Decoded, registers: dict[int, Value]) -> Value | None:
        """The result of an instruction that needs no op: a constant or a copy."""
        row = decoded.row
        operands: tuple[Any, ...] = decoded.operands
        bank = row.operands[-1].kind if row.operands else ""
        match row.effect:
            case Effect.CONSTANT if bank in ("i32", "i64"):
                return self._constant(bank, operands[0] if len(operands) > 1 else 0)
            case Effect.NULL:
                return self._constant("ref", None)
            case Effect.COPY:
                return registers[operands[0] & ~MOVE_BIT]
            case Effect.NATIVE:
                return self._constant("i32", 0) if self._callee(operands[0]) == "hal.cache.load" else None
            case Effect.LINKED:  # whether an optional import is there: generated code has none
                return self._constant("i32", 0)
        integer = INTEGERS.get(row.name)
        if integer is None:
            return None
        numbers = [registers[at] for at in _registers(row.operands, operands, False)]
        if not all([isinstance(value, Constant) for value in numbers]):
            return None
        number = integer.evaluate([value.number for value in numbers])  # type: ignore[attr-defined]
        return None if number is None else self._constant(bank, number)

    def _callee(self, ordinal: Any) -> str:
        name: str = self.module.strings[self.module.imports[ordinal].name]
        return name

    def _simplify(self, blocks: list[Block]) -> None:
        """Replace each phi whose sources are one value by this value."""
        changed = True
        while changed:
            changed = False
            for block in blocks:
                for phi in [*block.phis]:
                    sources = {self._final(value) for value in phi.sources.values()} - {phi}
                    if len(sources) == 1:
                        self.replaced[phi] = sources.pop()
                        block.phis.remove(phi)
                        changed = True
        for block in blocks:
            for phi in block.phis:
                phi.sources = {source: self._final(value) for source, value in phi.sources.items()}
            for op in block.ops:
                op.operands = [
                    self._final(operand) if isinstance(operand, Value)
                    else tuple(map(self._final, operand)) if isinstance(operand, tuple)
                    else operand
                    for operand in op.operands
                ]  # fmt: skip

    def _final(self, value: Value) -> Value:
        while value in self.replaced:
            value = self.replaced[value]
        return value


def _targets(decoded: Decoded) -> list[int]:
    """The targets of an instruction. Those of `br_table` in the order of the table, the default last."""
    found: list[Any] = []
    for spec, operand in zip(decoded.row.operands, decoded.operands, strict=True):
        if spec.kind == "target":
            found.append(operand)
        elif spec.kind == "targets":
            found = [*operand, *found]  # type: ignore[misc]
    return found


def _live(blocks: list[Block]) -> dict[Block, set[int]]:
    """The registers that each block, or a later one, reads before it writes them."""
    reads: dict[Block, set[int]] = {}
    writes: dict[Block, set[int]] = {}
    for block in blocks:
        reads[block], writes[block] = set(), set()
        for decoded in block.code:
            read = _registers(decoded.row.operands, decoded.operands, False)
            reads[block] |= set(read) - writes[block]
            writes[block] |= set(_registers(decoded.row.operands, decoded.operands, True))
    live = {block: set(reads[block]) for block in blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            found = reads[block].union(*[live[target] for target in block.after]) - (writes[block] - reads[block])
            if found != live[block]:
                live[block], changed = found, True
    return live


def drop_unused(function: Function) -> None:
    """Drop ops and phis that nothing needs."""
    needed: set[Value] = set()
    work: list[Value] = [value for op in function.ops() if not _is_droppable(op) for value in op.values()]
    while work:
        value = work.pop()
        if value in needed:
            continue
        needed.add(value)
        if isinstance(value, Phi):
            work += value.sources.values()
        elif isinstance(value, Result):
            work += value.op.values()
    for block in function.blocks:
        block.phis = [phi for phi in block.phis if phi in needed]
        block.ops = [op for op in block.ops if not _is_droppable(op) or needed.intersection(op.results)]


def _is_droppable(op: Op) -> bool:
    return op.row.effect in _DROPPABLE or op.row.name in INTEGERS or op.callee == "hal.view.dim"
