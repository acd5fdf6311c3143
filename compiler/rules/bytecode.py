"""Rules after the bytecode phase: a module file can hold the IR, registers are in their frames, references
are defined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from orchestrion.compiler.bytecode import vm
from orchestrion.compiler.bytecode.assign_registers import REGISTER_LETTERS
from orchestrion.compiler.bytecode.imports import tensors_of
from orchestrion.compiler.ir.attributes import (
    ArrayAttr,
    DenseArray,
    DenseElements,
    DictAttr,
    IntegerAttr,
    StringAttr,
    SymbolRef,
)
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import BlockArgument, Operation, OpResult, Value
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.ir.types import Attribute, TensorType
from orchestrion.compiler.ir.util import KINDS
from orchestrion.compiler.stablehlo.ops.base import is_known
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.isa import BANKS
from orchestrion.schema.profiles import FEATURES
from orchestrion.schema.signature import bank_of, is_value_type, parse_signature

from .engine import Children, Rules
from .hl_seq import made_for
from .ll_seq import is_binding, is_binding_types, is_source_ops, values_fit

_REGISTER: Final = re.compile(r"([ilfdr])(\d{1,5})\Z")
_INSTRUCTIONS: Final = tuple(vm.OPS.values())


CHILDREN: Final[Children] = {
    Module: (vm.Import, vm.Export, vm.Program),
    vm.Program: (vm.Executable, vm.Constant, vm.Global, vm.Initializer, vm.Func),
    vm.Func: _INSTRUCTIONS,
}


def problems(op: Operation, tables: SymbolTables) -> Iterator[str]:
    match op:
        case vm.Program():
            yield from _program(op)
        case vm.Import():
            yield from _import(op)
        case vm.Export():
            yield from _export(op)
        case vm.Constant():
            yield from values_fit(op.values, op.offsets.ints, op.size.value, op.parameter)
        case vm.Executable():
            yield from _executable(op)
        case vm.Global() if not is_value_type(vm.type_name(op.type)):
            yield f"is of type {op.type}, which the VM does not have"
        case vm.Initializer():
            yield from _initializer(op, tables)
        case vm.Func():
            yield from _func(op)
        case _ if type(op) in _INSTRUCTIONS:
            yield from _instruction(op, tables)


def _program(op: vm.Program) -> Iterator[str]:
    yield from made_for(op.sym_name.value, op.profile, op.machine_name)
    yield from _features(op.features)
    module = op.parent_op
    functions = {func.sym_name.value: func for func in op.body.block.of(vm.Func)}
    for export in module.regions[0].block if module is not None else ():
        if isinstance(export, vm.Export) and export.function.value not in functions:
            yield f"has no function @{export.function.value}, which {export.exported} exports"


def _features(features: ArrayAttr) -> Iterator[str]:
    for item in features:
        if not isinstance(item, StringAttr) or item.value not in FEATURES:
            yield f"no feature is called {item}; features are {', '.join(FEATURES)}"


def _import(op: vm.Import) -> Iterator[str]:
    try:
        parse_signature(op.signature.value)
    except ModuleError as error:
        yield str(error)
        return
    if op.function_type is None:
        return
    types = (*op.function_type.inputs, *op.function_type.results)
    if not all(isinstance(type, TensorType) and is_known(type) and type.is_static for type in types):
        yield f"is a function over {op.function_type}, expected tensors of static shape"
    elif tensors_of(op.function_type).signature != op.signature.value:
        yield f"has signature {op.signature.value}, which does not fit {op.function_type}"


def _export(op: vm.Export) -> Iterator[str]:
    for what, items in (("argument", op.arguments), ("output", op.outputs)):
        for index, item in enumerate(items):
            if not _is_value(item, len(op.arguments) if what == "output" else 0):
                yield f"{what} {index} must have a name and a type, an output perhaps an alias, is {item}"


def _is_value(item: Attribute, aliases: int) -> bool:
    if not isinstance(item, DictAttr) or not set(item.mapping) <= {"name", "type", "alias"}:
        return False
    type, alias = item.get("type"), item.get("alias")
    if not isinstance(item.get("name"), StringAttr) or not isinstance(type, TensorType) or not is_known(type):
        return False
    return alias is None or isinstance(alias, IntegerAttr) and 0 <= alias.value < aliases


def _executable(op: vm.Executable) -> Iterator[str]:
    yield from _features(op.features)
    if not isinstance(op.payload, StringAttr | DenseElements):
        yield "payload must be a string or dense bytes"
    elif isinstance(op.payload, DenseElements) and str(op.payload.type.element) != "ui8":
        yield f"payload of {op.payload.type} must be of ui8"
    if op.shared_memory.value < 0:
        yield f"shared_memory {op.shared_memory.value} is negative"
    for index, item in enumerate(op.entries):
        if not _is_entry(item):
            yield f"entry {index} must have a name, bindings and a workgroup_size, is {item}"


def _is_entry(item: Attribute) -> bool:
    known, noted = {"name", "bindings", "workgroup_size"}, {"source_ops", "binding_types", "parameters"}
    if not isinstance(item, DictAttr) or set(item.mapping) - noted != known:
        return False
    ops, words = item.get("source_ops"), item.get("parameters")
    if ops is not None and not is_source_ops(ops):
        return False
    if words is not None and not (isinstance(words, IntegerAttr) and 0 < words.value < 1 << 16):
        return False
    size, bindings = item.get("workgroup_size"), item.get("bindings")
    if not isinstance(size, DenseArray) or len(size) != 3 or not 0 < min(size.ints) <= max(size.ints) < 1 << 32:
        return False
    if not isinstance(bindings, ArrayAttr) or not all(map(is_binding, bindings)):
        return False
    types = item.get("binding_types")
    if types is not None and not is_binding_types(types, len(bindings), shared=True):
        return False
    return isinstance(item.get("name"), StringAttr)


def _initializer(op: vm.Initializer, tables: SymbolTables) -> Iterator[str]:
    if op.kind.value not in KINDS:
        yield f"kind {op.kind} is not one of {', '.join(KINDS)}"
    if not isinstance(tables.lookup(op, op.function), vm.Func):
        yield f"{op.function} is not a function"


def _func(op: vm.Func) -> Iterator[str]:
    types = op.function_type
    for type in (*types.inputs, *types.results):
        if not is_value_type(vm.type_name(type)):
            yield f"takes or gives {type}, which the VM does not have"
    if not op.body.blocks or tuple(argument.type for argument in op.body.blocks[0].arguments) != types.inputs:
        yield f"its first block does not take {types}"
    if op.frame is None or len(op.frame) != len(BANKS) or not 0 <= min(op.frame.ints) <= max(op.frame.ints) < 1 << 16:
        yield f"frame must be {len(BANKS)} counts of registers"
        return
    taken = [bank_of(vm.type_name(type)) for type in types.inputs if is_value_type(vm.type_name(type))]
    for bank, count in zip(BANKS, op.frame.ints, strict=True):
        if taken.count(bank) > count:
            yield f"takes {taken.count(bank)} arguments of bank {bank}, its frame has {count} registers"
    yield from _blocks(op, op.frame.ints)


def _blocks(op: vm.Func, frame: Sequence[int]) -> Iterator[str]:
    """Each block except the entry has registers for its arguments."""
    blocks = op.body.blocks
    lists = tuple(op.blocks or ())
    if len(lists) != len(blocks) - 1:
        yield f"blocks must have the registers of {len(blocks) - 1} blocks, has {len(lists)}"
        return
    for number, (block, names) in enumerate(zip(blocks[1:], lists, strict=True), 1):
        if not isinstance(names, ArrayAttr) or len(names) != len(block.arguments):
            yield f"block {number} takes {len(block.arguments)} arguments, their registers are {names}"
            continue
        for argument, name in zip(block.arguments, names, strict=True):
            if not _fits(argument, name, frame):
                yield f"register {name} of an argument of block {number} of type {argument.type} is not in the frame"


def _instruction(op: Operation, tables: SymbolTables) -> Iterator[str]:
    func = op.parent_op
    if not isinstance(func, vm.Func) or func.frame is None or len(func.frame) != len(BANKS):
        return
    yield from _registers(op, func.frame.ints)
    if isinstance(op, vm.OPS["br"]):
        for value, argument in zip(op.operands, op.successors[0].arguments, strict=True):
            if _register(value, func) != _register(argument, func):
                given, taken = _register(value, func), _register(argument, func)
                yield f"passes register {given} to argument {argument.index} of its target, whose register is {taken}"
    for spec in vm.row_of(op).operands:
        wanted = vm.SYMBOLS.get(spec.kind)
        ref = op.properties.get(vm.field_name(spec))
        if wanted is not None and ref is not None and not isinstance(_lookup(op, ref, tables), wanted):
            yield f"{ref} is not a {spec.kind}"
        if spec.kind in _BITS and not _is_immediate(ref, _BITS[spec.kind]):
            yield f"{vm.field_name(spec)} {ref} is not an immediate of {_BITS[spec.kind]} bits"


def _lookup(op: Operation, ref: Attribute, tables: SymbolTables) -> Operation | None:
    return tables.lookup(op, ref) if isinstance(ref, SymbolRef) else None


_BITS: Final = {"imm_i32": 32, "imm_i64": 64, "imm_f32": 32, "imm_f64": 64}


def _is_immediate(value: Attribute | None, bits: int) -> bool:
    if isinstance(value, IntegerAttr):
        return -(1 << (bits - 1)) <= value.value < 1 << bits
    return str(getattr(value, "type", "")) == f"f{bits}"


def _registers(op: Operation, frame: Sequence[int]) -> Iterator[str]:
    """Each result has a register of its type's bank, inside the frame."""
    names = op.get_as("registers", ArrayAttr)
    if len(names or ()) != len(op.results):
        yield f"has {len(names or ())} registers for {len(op.results)} results"
        return
    for value, name in zip(op.results, names or (), strict=True):
        if not _fits(value, name, frame):
            yield f"register {name} of a result of type {value.type} is not in the frame {list(frame)}"


def _fits(value: Value, name: Attribute, frame: Sequence[int]) -> bool:
    match = _REGISTER.match(name.value) if isinstance(name, StringAttr) else None
    bank = _bank(value)
    if match is None or bank is None:
        return False
    return match[1] == REGISTER_LETTERS[bank] and int(match[2]) < frame[BANKS.index(bank)]


def _register(value: Value, func: vm.Func) -> str | None:
    """The name of a value's register; None if the text does not state it."""
    names: Attribute | None
    if isinstance(value, OpResult):
        index, names = value.index, value.owner.get_as("registers", ArrayAttr)
    else:
        assert isinstance(value, BlockArgument)
        index, number, bank = value.index, func.body.blocks.index(value.block) - 1, _bank(value)
        if number < 0 and bank is not None:
            return f"{REGISTER_LETTERS[bank]}{[_bank(before) for before in value.block.arguments[:index]].count(bank)}"
        names = func.blocks.items[number] if func.blocks is not None and number < len(func.blocks) else None
    if not isinstance(names, ArrayAttr) or index >= len(names):
        return None
    name = names.items[index]
    return name.value if isinstance(name, StringAttr) else None


def _bank(value: Value) -> str | None:
    name = vm.type_name(value.type)
    return bank_of(name) if is_value_type(name) else None


RULES: Final = Rules(CHILDREN, problems)
