"""Registers over random control flow: the bytecode computes what the SSA form says, and its text the same bytes.

A function has blocks with arguments, branches forward and back, values used in blocks that theirs dominates. It is run
by the VM and by the few lines here that know no registers.
"""

import operator
import random
from collections.abc import Sequence

import pytest

from orchestrion.compiler import Compilation
from orchestrion.compiler.bytecode import assign_registers, vm
from orchestrion.compiler.bytecode.moves import sequential_copies
from orchestrion.compiler.bytecode.serialize import module_rows
from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.dominance import immediate_dominators
from orchestrion.compiler.ir.printer import print_module
from orchestrion.compiler.ir.types import FunctionType, Type, scalar
from orchestrion.compiler.ir.verifier import check_own
from orchestrion.schema.decoder import read_module
from orchestrion.schema.writer import write
from orchestrion.vm.context import Context
from orchestrion.vm.limits import Limits
from orchestrion.vm.linker import link
from orchestrion.vm.verifier import verify

TYPES = (scalar("i32"), scalar("i64"))
OPERATIONS = {"add": operator.add, "sub": operator.sub, "xor": operator.xor, "mul": operator.mul}
ARGUMENTS = (7, -3, 12)
#: blocks that a run may take; a program that takes more is not one of the tests
PATIENCE = 400


class _Program:
    """A random function of three numbers that gives three."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        count = self.random.randint(1, 9)
        ends = [self._end(number, count) for number in range(count)]
        chosen = {target for kind, targets in ends if kind != "br" for target in targets}
        self.blocks = [Block([TYPES[0]] * 3)]
        for number in range(1, count):
            arguments = 0 if number in chosen else self.random.randint(0, 4)
            self.blocks.append(Block([self.random.choice(TYPES) for _ in range(arguments)]))
        self.region = Region(self.blocks)
        for block, (kind, targets) in zip(self.blocks, ends, strict=True):
            block.append(vm.OPS[kind]((), (), successors=[self.blocks[target] for target in targets]))
        self.dominators = immediate_dominators(self.region)
        for block in [block for block in self.blocks if block in self.dominators]:
            self._body(block)
        for block in [block for block in self.blocks if block in self.dominators]:
            self._operands(block)
        for block in [block for block in self.blocks if block not in self.dominators]:
            self.region.blocks.remove(block)

    def _end(self, number: int, count: int) -> tuple[str, list[int]]:
        kind = self.random.choice(["br", "br", "br_if", "br_if", "br_table", "return"]) if count > 1 else "return"
        many = {"br": 1, "br_if": 2, "br_table": 4, "return": 0}[kind]
        return kind, [self.random.randrange(1, count) for _ in range(many)]

    def _body(self, block: Block) -> None:
        assert block.last is not None
        builder = Builder.before(block.last)
        for type in TYPES:
            builder.build(vm.OPS[f"{type}.const"], value=IntegerAttr(self.random.randint(-9, 9), type), d=type)
        for _ in range(self.random.randint(0, 6)):
            type = self.random.choice(TYPES)
            row = f"{type}.{self.random.choice(list(OPERATIONS))}"
            builder.build(vm.OPS[row], a=self._value(block, type), b=self._value(block, type), d=type)

    def _operands(self, block: Block) -> None:
        assert block.last is not None
        match block.last.name:
            case "vm.br":
                types: Sequence[Type] = [argument.type for argument in block.last.successors[0].arguments]
            case "vm.return":
                types = [TYPES[0]] * 3
            case _:
                types = [TYPES[0]]
        block.last.set_operands([self._value(block, type) for type in types])

    def _value(self, block: Block, type: Type) -> Value:
        """One that may be used at the end of the block."""
        found: list[Value] = []
        while True:
            found += [*block.arguments, *(result for op in block for result in op.results)]
            if self.dominators[block] is block:
                break
            block = self.dominators[block]
        return self.random.choice([value for value in found if value.type == type])

    def module(self) -> Module:
        body = FunctionType((TYPES[0],) * 3, (TYPES[0],) * 3)
        program = vm.Program.build(sym_name="reference", features=[], body=Region([Block()]))
        program.regions[0].block.append(vm.Func.build(sym_name="f", function_type=body, body=self.region))
        module = Module.build(body=Region([Block()]))
        module.block.append(program)
        return module

    def result(self) -> tuple[int, ...] | None:
        """What the function gives, by the SSA form; None when it takes too long."""
        values: dict[Value, int] = dict(zip(self.blocks[0].arguments, ARGUMENTS, strict=True))
        block = self.blocks[0]
        for _ in range(PATIENCE):
            for op in block:
                if op.results:
                    values[op.result] = _compute(op, values)
            assert block.last is not None
            given = [values[value] for value in block.last.operands]
            targets = block.last.successors
            match block.last.name:
                case "vm.return":
                    return tuple(given)
                case "vm.br":
                    block = targets[0]
                    values.update(zip(block.arguments, given, strict=True))
                case "vm.br_if":
                    block = targets[0] if given[0] else targets[1]
                case _:
                    block = targets[1 + given[0]] if 0 <= given[0] < len(targets) - 1 else targets[0]
        return None


def _compute(op: Operation, values: dict[Value, int]) -> int:
    row = op.name.removeprefix("vm.").partition(".")
    if row[2] == "const":
        value = op.properties["value"]
        assert isinstance(value, IntegerAttr)
        return value.value
    half = 1 << (31 if row[0] == "i32" else 63)
    a, b = (values[operand] for operand in op.operands)
    return (OPERATIONS[row[2]](a, b) + half) % (2 * half) - half


def _run(module: Module) -> tuple[int, ...]:
    data = write(module_rows(module))
    text = print_module(module)
    assert write(Compilation(start="bytecode").rows(text.encode())) == data
    decoded = read_module(data)
    linked = link(decoded, 0, verify(decoded, 0), ())
    context = Context(linked, Limits(fuel=100_000))
    return context.invoke(linked.codes[0], ARGUMENTS)


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_random_control_flow(start: int) -> None:
    ran = 0
    for seed in range(start, start + 50):
        program = _Program(seed)
        want = program.result()
        module = program.module()
        check_own(module, "the test")
        assign_registers.run(module)
        check_own(module, f"assign-registers, seed {seed}")
        if want is not None:
            assert _run(module) == want, f"seed {seed}"
            ran += 1
    assert ran > 15


def test_parallel_copies() -> None:
    """All permutations and fans of five places, in place."""
    for seed in range(2000):
        chance = random.Random(seed)
        targets = chance.sample(range(5), chance.randint(0, 5))
        moves = [(chance.randrange(5), target) for target in targets]
        places = {place: f"v{place}" for place in range(5)}
        want = places | {target: places[source] for source, target in moves}
        for source, target in sequential_copies(moves, lambda place: 9):
            places[target] = places[source]
        assert {place: value for place, value in places.items() if place != 9} == want, moves
