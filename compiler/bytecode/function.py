"""Encodes one `vm.func` as its row of the module file: instructions, frame, and source locations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from orchestrion.compiler.ir.attributes import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRef
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.locations import source_text
from orchestrion.compiler.ir.types import Attribute
from orchestrion.schema import encoding, writer
from orchestrion.schema.isa import BANKS
from orchestrion.schema.signature import bank_of

from .assign_registers import REGISTER_LETTERS
from .vm import Func, field_name, row_of, type_name

#: Operand kind -> symbol name -> ordinal.
Ordinals = Mapping[str, Mapping[str, int]]


def function_row(func: Func, ordinals: Ordinals) -> writer.Function:
    """The row of a function with assigned registers."""
    assert func.frame is not None, f"{func.sym_name} has no registers"
    i32, i64, f32, f64, ref = counts = func.frame.ints
    encoder = _Encoder(func, counts, ordinals)
    type = func.function_type
    return writer.Function(
        name=func.sym_name.value,
        bytecode=encoder.code(),
        arguments=[type_name(t) for t in type.inputs],
        results=[type_name(t) for t in type.results],
        registers=(i32, i64, f32, f64, ref),
        locations=encoder.locations(),
    )


class _Encoder:
    """Encodes in two passes: first the offset of every instruction, then the bytes."""

    def __init__(self, func: Func, counts: tuple[int, ...], ordinals: Ordinals) -> None:
        self.ordinals = ordinals
        self.ops: list[Operation] = [op for block in func.body.blocks for op in block]
        starts = accumulate(counts, initial=0)
        self.base = {REGISTER_LETTERS[bank]: start for bank, start in zip(BANKS, starts, strict=False)}
        self.registers: dict[Value, int] = {}
        self._arguments(func.body.blocks[0])
        for block, names in zip(func.body.blocks[1:], func.blocks or (), strict=True):
            assert isinstance(names, ArrayAttr)
            self._named(block.arguments, names)
        for op in self.ops:
            self._named(op.results, op.get_as("registers", ArrayAttr) or ())
        self.pcs = list(accumulate((self._size(op) for op in self.ops), initial=0))
        place = dict(zip(self.ops, self.pcs, strict=False))
        self.targets = {block: place[block.first] for block in func.body.blocks if block.first is not None}

    def _arguments(self, block: Block) -> None:
        taken: dict[str, int] = dict.fromkeys(BANKS, 0)
        for argument in block.arguments:
            bank = bank_of(type_name(argument.type))
            self.registers[argument] = self.base[REGISTER_LETTERS[bank]] + taken[bank]
            taken[bank] += 1

    def _named(self, values: Sequence[Value], names: Iterable[Attribute]) -> None:
        for value, name in zip(values, names, strict=True):
            assert isinstance(name, StringAttr)
            self.registers[value] = self.base[name.value[0]] + int(name.value[1:])

    def code(self) -> bytes:
        return encoding.encode_all((row_of(op), self._operands(op)) for op in self.ops)

    def locations(self) -> list[tuple[int, str]]:
        """(offset, location) pairs, only where the location changes."""
        found: list[tuple[int, str]] = []
        for op, pc in zip(self.ops, self.pcs, strict=False):
            # a module can hold no NULs and no invalid UTF-8, which names of files may contain
            text = source_text(op.loc).replace("\0", "?").encode("utf-8", "replace").decode()
            if text != (found[-1][1] if found else ""):
                found.append((pc, text))
        return found

    def _size(self, op: Operation) -> int:
        self.targets = dict.fromkeys(op.successors, 0)
        return encoding.size(row_of(op), self._operands(op))

    def _operands(self, op: Operation) -> list[encoding.Operand]:
        reads, writes, targets = iter(op.operands), iter(op.results), iter(op.successors)
        found: list[encoding.Operand] = []
        for spec in row_of(op).operands:
            match spec.kind:
                case "registers":
                    found.append(tuple(self.registers[value] for value in (writes if spec.result else reads)))
                case "target":
                    found.append(self.targets[next(targets)])
                case "targets":
                    found.append(tuple(self.targets[block] for block in targets))
                case kind if kind in (*BANKS, "ref"):
                    found.append(self.registers[next(writes if spec.result else reads)])
                case kind:
                    found.append(self._property(op, field_name(spec), kind))
        return found

    def _property(self, op: Operation, name: str, kind: str) -> int | str:
        value = op.properties[name]
        match value:
            case IntegerAttr():
                return value.value
            case FloatAttr():
                return value.bits
            case StringAttr():
                return value.value
            case SymbolRef():
                return self.ordinals[kind][value.root]
            case _:
                raise AssertionError(f"{op.name}: {name} is {value}")
