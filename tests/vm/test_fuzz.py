"""Hostile bytecode: any bytes are refused by the one module error, or run to a result or a named error under limits."""

import random
import struct
from pathlib import Path
from typing import Any

import pytest
from everyday import of_the_day

from orchestrion.schema.assembler import assemble
from orchestrion.schema.decoder import read_module
from orchestrion.schema.dtypes import BY_NAME as DTYPES
from orchestrion.schema.encoding import encode
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.hal_imports import HAL_IMPORTS
from orchestrion.schema.isa import BANKS, BY_NAME, INSTRUCTIONS, MOVE_BIT, Instruction, Operand
from orchestrion.schema.rows import InitializerKind
from orchestrion.schema.signature import parse_signature
from orchestrion.schema.writer import Constant, Export, Function, Global, Import, Initializer, Module, Program, write
from orchestrion.vm import VmError, load
from orchestrion.vm.scalars import ScalarFunction

LIMITS: dict[str, Any] = {"fuel": 2000, "deadline": 0.2, "memory": 1 << 20, "depth": 50}
#: the type that each ref register mostly holds
REFS = ("any", "buffer", "list<i32>", "list<any>", "hal.buffer", "hal.view", "hal.recording", "hal.fence")
TYPES = ("i32", "i64", "f32", "f64", *REFS)
REGISTERS = (3, 4, 2, 2, len(REFS))
NUMBERS = [0, 1, 2, 3, 4, 7, 16, 31, 64, 255, 1056, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]


def outcome(module: bytes) -> str:
    """What became of a module: how it was refused, or how its exports ended."""
    try:
        program = load(module, **LIMITS)
    except (ModuleError, VmError) as error:
        return type(error).__name__
    seen = []
    for function in program.functions.values():
        assert isinstance(function, ScalarFunction)
        arguments = [None if name not in BANKS else 3 if name[0] == "i" else 1.5 for name in function._code.arguments]
        for _ in range(2):
            try:
                function(*arguments)
                seen.append("result")
            except (ModuleError, VmError) as error:
                seen.append(type(error).__name__)
    context = program.create_context()
    del function, context
    program.close()
    return " ".join(seen)


class Generator:
    """Random functions that the verifier mostly takes: operands fit their kinds, and most refs their types."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.imports = [Import(row.name, row.signature) for row in HAL_IMPORTS.values()]
        self.signatures = [[self.random.choice(TYPES) for _ in range(self.random.randrange(3))] for _ in range(2)] + [
            []
        ]

    def module(self) -> bytes:
        pick = self.random
        functions = [self.function(f"f{at}", types) for at, types in enumerate(self.signatures)]
        rows = [Global(f"g{bank}", "any" if bank == "ref" else bank, True) for bank in BANKS]
        initializers = [Initializer(2, InitializerKind.Context)] if pick.random() < 0.3 else []
        constant = Constant("c", bytes(range(16)), DTYPES["i8"], (16,))
        program = Program("p", "reference", functions, [0, 1], rows, initializers, constants=[constant])
        return write(Module([program], [Export("a"), Export("b")], self.imports))

    def function(self, name: str, types: list[str]) -> Function:
        pick = self.random
        instructions = [pick.choice(INSTRUCTIONS) for _ in range(pick.randrange(5, 20))]
        instructions += [BY_NAME["call_import"]] * pick.randrange(4)
        pick.shuffle(instructions)
        starts = [0]
        code = b""
        state = pick.getstate()
        for _ in range(3):  # sizes do not change, so after the first round targets are known
            pick.setstate(state)
            parts, found, pc = [], [], 0
            for row in instructions:
                found.append(pc)
                parts.append(self.instruction(row, starts))
                pc += len(parts[-1])
            starts = found
            code = b"".join(parts)
        code += bytes.fromhex("06000000") * max(1, (sum(REGISTERS) - len(code) // 2) // 2)
        return Function(name, code, types, [], REGISTERS)

    def instruction(self, row: Instruction, starts: list[int]) -> bytes:
        pick = self.random
        if row.name == "call_import":
            ordinal = pick.randrange(len(self.imports))
            signature = parse_signature(self.imports[ordinal].signature)
            types = signature.arguments + signature.repeated * pick.randrange(4)
            args = tuple(self.register(name, True) for name in types)
            return encode(row, (ordinal, args, tuple(self.register(name, False) for name in signature.results)))
        if row.name in ("call", "call.cached"):
            ordinal = pick.randrange(3)
            return encode(row, (ordinal, tuple(self.register(name, True) for name in self.signatures[ordinal]), ()))
        if row.name == "return":
            return encode(row, ((),))
        if row.name.startswith("global."):
            bank = row.name.rpartition(".")[2]
            register = self.register("any" if bank == "ref" else bank, "store" in row.name)
            place = BANKS.index(bank)
            return encode(row, (register, place) if "store" in row.name else (place, register))
        return encode(row, tuple(self.operand(spec, starts) for spec in row.operands))

    def register(self, type_name: str, reads: bool) -> int:
        pick = self.random
        if type_name in BANKS:
            place = BANKS.index(type_name)
            return sum(REGISTERS[:place]) + pick.randrange(REGISTERS[place])
        exact = REFS.index(type_name if type_name in REFS and pick.random() < 0.95 else pick.choice(REFS))
        moved = MOVE_BIT if reads and pick.random() < 0.1 else 0
        return sum(REGISTERS[:4]) + exact | moved

    def operand(self, spec: Operand, starts: list[int]) -> Any:
        pick, kind = self.random, spec.kind
        if kind in BANKS:
            return self.register(spec.type or kind, not spec.result)
        if kind == "target":
            return pick.choice(starts)
        if kind == "targets":
            return (pick.choice(starts), pick.choice(starts))
        if kind == "text":
            return "message {0}"
        if kind == "registers":
            return tuple(self.register(bank, False) for bank in pick.choices(("i32", "i64", "i64", "f32"), k=2))
        if kind.startswith("imm_"):
            bits = int(kind[5:])
            value = pick.choice(NUMBERS) & (1 << bits) - 1
            return value if kind[4] == "f" else value - (1 << bits) if value >> bits - 1 else value
        return 0


def test_random_functions(pytestconfig: pytest.Config) -> None:
    outcomes: dict[str, int] = {}
    seeds = of_the_day(pytestconfig, range(1500), 3)
    count = len(seeds)
    for seed in seeds:
        found = outcome(Generator(seed).module())
        outcomes[found.split(" ")[0]] = outcomes.get(found.split(" ")[0], 0) + 1
    # the generator must reach beyond the verifier, and what is refused must not be everything
    assert outcomes["ModuleError"] < count * 2 // 3, outcomes
    assert outcomes["result"] > count // 150 and outcomes["Trap"] > count // 75, outcomes
    assert outcomes["FuelExhausted"] > count // 300, outcomes


SOURCES = sorted((Path(__file__).parent / "programs").glob("*.asm"))


def mutants(seed: int, code: bytes) -> bytes:
    pick = random.Random(seed)
    changed = bytearray(code)
    for _ in range(pick.choice((1, 1, 1, 2, 4))):
        at = pick.randrange(0, len(changed), 2)
        kind = pick.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << pick.randrange(8)
        elif kind == 1:
            struct.pack_into("<H", changed, at, pick.choice(INSTRUCTIONS).opcode)
        elif kind == 2:
            struct.pack_into("<H", changed, at, pick.randrange(8) | pick.choice((0, 0, MOVE_BIT)))
        elif kind == 3:
            other = pick.randrange(0, len(changed), 2)
            changed[at : at + 2] = changed[other : other + 2]
        else:
            del changed[at : at + 2]
    return bytes(changed)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_mutants_of_real_programs(path: Path) -> None:
    """Damage to one function at a time of the self-checking programs, with control flow, calls and lists."""
    rows = assemble(path.read_text())
    original = rows.programs[0]
    pick = random.Random(path.stem)
    accepted = 0
    for seed in range(150):
        at = pick.randrange(len(original.functions))
        victim = original.functions[at]
        code = mutants(seed, victim.bytecode)
        functions = list(original.functions)
        functions[at] = Function(victim.name, code, victim.arguments, victim.results, victim.registers)
        entry = at if not victim.arguments and not victim.results else 0
        changed = Program("p", "reference", functions, [entry], original.globals, constants=original.constants)
        module = write(Module([changed], [Export("a")], rows.imports))
        accepted += outcome(module) not in ("ModuleError", "UnresolvedImport")
    assert accepted > 5 or any(row.name.startswith("test.") for row in rows.imports)


def test_any_bytes_as_code() -> None:
    pick = random.Random(7)
    for _ in range(2000):
        code = pick.randbytes(2 * pick.randrange(20)) + bytes.fromhex("06000000")
        module = write(Module([Program("p", "reference", [Function("f", code, (), (), (2, 2, 1, 1, 2))], [])]))
        try:
            load(module, **LIMITS).close()
        except ModuleError:
            pass
    read_module(module)
