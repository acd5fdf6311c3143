"""Mutators of VM bytecode, instruction by instruction: branch targets follow when code moves."""

import random
from dataclasses import replace
from typing import Any

from mutate_numbers import Impossible, damaged, signed, unsigned
from mutate_rows import Modules, in_function

from orchestrion.schema import writer
from orchestrion.schema.encoding import decode, encode, size
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.isa import BANKS, INSTRUCTIONS, MOVE_BIT, Instruction
from orchestrion.schema.signature import bank_of, parse_signature

#: instruction and operands; a branch target is the number of an instruction
Line = tuple[Instruction, tuple[Any, ...]]

_SHAPE = {row.opcode: tuple(operand.kind for operand in row.operands) for row in INSTRUCTIONS}
_LIKE: dict[tuple[str, ...], list[Instruction]] = {}
for _row in INSTRUCTIONS:
    _LIKE.setdefault(_SHAPE[_row.opcode], []).append(_row)


def read(function: writer.Function) -> list[Line]:
    try:
        decoded = decode(function.bytecode)
    except ModuleError:
        raise Impossible from None
    number = {one.pc: at for at, one in enumerate(decoded)}
    lines: list[Line] = []
    for one in decoded:
        operands = list(one.operands)
        for place, spec in enumerate(one.row.operands):
            if spec.kind == "target":
                operands[place] = number.get(operands[place], 0)  # type: ignore[arg-type]
            elif spec.kind == "targets":
                operands[place] = tuple(number.get(pc, 0) for pc in operands[place])  # type: ignore[union-attr]
        lines.append((one.row, tuple(operands)))
    return lines


def write(lines: list[Line]) -> bytes:
    pcs, pc = [], 0
    try:
        for row, operands in lines:
            pcs.append(pc)
            pc += size(row, operands)
        return b"".join(encode(row, _with_pcs(row, operands, pcs)) for row, operands in lines)
    except (ValueError, TypeError):
        raise Impossible from None


def _with_pcs(row: Instruction, operands: tuple[Any, ...], pcs: list[int]) -> list[Any]:
    """A number that no instruction has is taken for a pc."""
    found = list(operands)
    for place, spec in enumerate(row.operands):
        if spec.kind == "target":
            found[place] = pcs[found[place]] if found[place] < len(pcs) else found[place]
        elif spec.kind == "targets":
            found[place] = tuple(pcs[number] if number < len(pcs) else number for number in found[place])
    return found


class _Site:
    """What instructions of a function may refer to."""

    def __init__(self, choose: random.Random, module: writer.Module, program: writer.Program, row: writer.Function):
        self.choose = choose
        self.module = module
        self.program = program
        self.row = row
        self.bases = [sum(row.registers[:bank]) for bank in range(len(BANKS))]
        self.total = sum(row.registers)
        self.lines = 1

    def register(self, bank: str, reads: bool) -> int:
        choose, place = self.choose, BANKS.index(bank)
        count = self.row.registers[place]
        if not count or choose.random() < 0.02:
            return unsigned(choose, 16, self.total)
        moved = MOVE_BIT if bank == "ref" and reads and choose.random() < 0.2 else 0
        return self.bases[place] + choose.randrange(count) | moved

    def operand(self, row: Instruction, place: int) -> Any:
        choose, spec = self.choose, row.operands[place]
        if spec.kind in BANKS:
            return self.register(spec.kind, not spec.result)
        match spec.kind:
            case "imm_i32" | "imm_i64":
                return signed(choose, int(spec.kind[-2:]))
            case "imm_f32" | "imm_f64":
                return unsigned(choose, int(spec.kind[-2:]))
            case "target":
                return choose.randrange(self.lines) if choose.random() < 0.97 else unsigned(choose, 32)
            case "targets":
                return tuple(choose.randrange(self.lines) for _ in range(choose.randrange(4)))
            case "text":
                return choose.choice(("", "a", "what?", "\N{SNOWMAN}"))
            case "registers":
                return tuple(self.register(choose.choice(BANKS), False) for _ in range(choose.randrange(4)))
        counts = {
            "function": len(self.program.functions),
            "import": len(self.module.imports),
            "global": len(self.program.globals),
            "constant": len(self.program.constants),
        }
        return choose.randrange(counts[spec.kind] + (choose.random() < 0.05) or 1)

    def typed(self, types: tuple[str, ...], reads: bool) -> tuple[int, ...]:
        return tuple(self.register(bank_of(name), reads) for name in types)

    def line(self, row: Instruction) -> Line:
        """A new instruction, calls with operands of the right types."""
        operands = [self.operand(row, place) for place in range(len(row.operands))]
        try:
            if row.name in ("call", "call.cached"):
                callee = self.program.functions[operands[0]]
                operands[1:] = [self.typed(tuple(callee.arguments), True), self.typed(tuple(callee.results), False)]
            elif row.name == "call_import":
                signature = parse_signature(self.module.imports[operands[0]].signature)
                types = signature.arguments + signature.repeated * self.choose.randrange(4)
                operands[1:] = [self.typed(types, True), self.typed(signature.results, False)]
            elif row.name == "return":
                operands = [self.typed(tuple(self.row.results), True)]
        except (IndexError, ModuleError):
            pass
        return row, tuple(operands)


def instructions(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    """Instructions of one function replaced, changed in an operand, removed, doubled, swapped, inserted."""

    def change(program: writer.Program, row: writer.Function) -> writer.Function:
        lines = read(row)
        if not lines:
            raise Impossible
        site = _Site(choose, module, program, row)
        for _ in range(choose.choice((1, 1, 1, 2, 4))):
            site.lines = len(lines)
            _edit(choose, site, lines)
        return replace(row, bytecode=write(lines), locations=())

    return in_function(choose, module, change)


def _edit(choose: random.Random, site: _Site, lines: list[Line]) -> None:
    at = choose.randrange(len(lines))
    row, operands = lines[at]
    match choose.randrange(8):
        case 0:
            lines[at] = choose.choice(_LIKE[_SHAPE[row.opcode]]), operands
        case 1 | 2 | 3:
            if operands:
                lines[at] = row, _other_operand(choose, site, row, operands)
        case 4:
            if len(lines) > 1:
                del lines[at]
        case 5:
            lines.insert(choose.randrange(len(lines)), lines[at])
        case 6:
            other = choose.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines.insert(at, site.line(choose.choice(INSTRUCTIONS)))


def _other_operand(choose: random.Random, site: _Site, row: Instruction, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    place = choose.randrange(len(operands))
    old = operands[place]
    if isinstance(old, tuple) and old and choose.random() < 0.8:
        inner = choose.randrange(len(old))
        new: Any = list(old)
        if row.operands[place].kind == "targets":
            new[inner] = choose.randrange(site.lines)
        else:
            banks = [bank for bank, base in zip(BANKS, site.bases, strict=True) if base <= old[inner] & ~MOVE_BIT]
            new[inner] = site.register(banks[-1], True)
        new = tuple(new)
    elif isinstance(old, int) and not isinstance(old, bool) and row.operands[place].kind.startswith("imm_"):
        bits = int(row.operands[place].kind[-2:])
        new = signed(choose, bits, old) if "imm_i" in row.operands[place].kind else unsigned(choose, bits, old)
    else:
        new = site.operand(row, place)
    return (*operands[:place], new, *operands[place + 1 :])


def splice(choose: random.Random, module: writer.Module, others: Modules) -> writer.Module:
    """A piece of another function, of this module or another, put into one."""
    donors = [
        row for other in (module, choose.choice(others)) for program in other.programs for row in program.functions
    ]

    def change(program: writer.Program, row: writer.Function) -> writer.Function:
        lines, taken = read(row), read(choose.choice(donors))
        if not taken:
            raise Impossible
        start = choose.randrange(len(taken))
        piece = taken[start : start + choose.randrange(1, 6)]
        at = choose.randrange(len(lines) + 1)
        return replace(row, bytecode=write(lines[:at] + piece + lines[at:]), locations=())

    return in_function(choose, module, change)


def raw(choose: random.Random, module: writer.Module, _: Modules) -> writer.Module:
    """Bytes of code, whatever they are, or code cut off."""

    def change(program: writer.Program, row: writer.Function) -> writer.Function:
        code = row.bytecode
        if choose.random() < 0.3:
            return replace(row, bytecode=code[: choose.randrange(len(code) + 1)], locations=())
        return replace(row, bytecode=damaged(choose, code), locations=())

    return in_function(choose, module, change)
