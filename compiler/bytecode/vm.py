"""The vm dialect: a module file as IR. Instruction ops derive from the rows of `schema.isa`, one class per row.

Register operands of an instruction are SSA operands and results, branch targets are successors, and all other operands
are properties named as in the row. `assign-registers` assigns a register to each value: `registers`, one per result, in
the assembler's notation (`i0`, `r2`). Block arguments of the entry take the first registers of their banks.

Value types are the VM's: `i32`, `f64`, `!hal.view`.

Only `vm.br` passes arguments to a block, and it moves nothing. Once registers are assigned, each operand is in the
register of its block argument (`blocks` of the function); copies before the branch ensure that. A conditional branch
leads to blocks without arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from orchestrion.compiler.ir.attributes import (
    ArrayAttr,
    DenseArray,
    DictAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRef,
    UnitAttr,
)
from orchestrion.compiler.ir.core import Operation, Trait
from orchestrion.compiler.ir.declare import (
    attr,
    operand,
    operands,
    optional,
    region,
    result,
    results,
    successor,
    successors,
)
from orchestrion.compiler.ir.dialect import Dialect, ops_in
from orchestrion.compiler.ir.types import Attribute, DialectType, FunctionType, Type, scalar
from orchestrion.compiler.sequencer.hl_seq import TargetProgram
from orchestrion.schema.isa import INSTRUCTIONS, Instruction
from orchestrion.schema.isa import Operand as Row
from orchestrion.schema.signature import BUILTIN_REF_TYPES, NUMBER_TYPES

_SYMBOLS: Final = frozenset({Trait.ISOLATED, Trait.SYMBOL, Trait.SYMBOL_TABLE, Trait.NO_TERMINATOR})


def value_type(name: str) -> Type:
    """The IR type of a VM value type: `i32` -> i32, `hal.view` -> !hal.view, `buffer` -> !vm.buffer."""
    if name in NUMBER_TYPES:
        return scalar(name)
    return DialectType(f"vm.{name}" if name in BUILTIN_REF_TYPES else name)


def type_name(type: Type) -> str:
    """The inverse of `value_type`."""
    name = str(type).removeprefix("!")
    bare = name.removeprefix("vm.")
    return bare if bare in BUILTIN_REF_TYPES else name


class Program(TargetProgram):
    """A program of the module file, named as `hl_seq.program`. `features` are required of the device."""

    name = "vm.program"
    features = attr(ArrayAttr)
    body = region()
    traits = _SYMBOLS


class Import(Operation):
    """A function of a native module, or of another module if it has a `function_type` over tensors."""

    name = "vm.import"
    sym_name = attr(StringAttr)
    signature = attr(StringAttr)
    function_type = optional(FunctionType)
    traits = frozenset({Trait.SYMBOL})


class Export(Operation):
    """The exported interface of `function`, named `exported`; the function exists in every program."""

    name = "vm.export"
    exported = attr(StringAttr)
    function = attr(StringAttr)
    arguments = attr(ArrayAttr)
    outputs = attr(ArrayAttr)
    doc = optional(StringAttr)
    trees = optional(StringAttr)


class Constant(Operation):
    """A constant segment of `size` bytes: values at their offsets, zeros between. Or a parameter without values."""

    name = "vm.constant"
    sym_name = attr(StringAttr)
    values = attr(ArrayAttr)
    offsets = attr(DenseArray)
    size = attr(IntegerAttr)
    parameter = optional(DictAttr)
    traits = frozenset({Trait.SYMBOL})


class Executable(Operation):
    """Device code: the payload as text or dense bytes, and its entries. `variants`: other code for the same entries,
    each with its `features`, `shared_memory` and `payload`; a device takes the first that it runs.
    """

    name = "vm.executable"
    sym_name = attr(StringAttr)
    format = attr(StringAttr)
    features = attr(ArrayAttr)
    shared_memory = attr(IntegerAttr)
    entries = attr(ArrayAttr)
    payload = attr(Attribute)
    variants = optional(ArrayAttr)
    traits = frozenset({Trait.SYMBOL})


class Global(Operation):
    """A variable of the program; a mutable one belongs to a context."""

    name = "vm.global"
    sym_name = attr(StringAttr)
    type = attr(Type)
    mutable = optional(UnitAttr)
    traits = frozenset({Trait.SYMBOL})


class Initializer(Operation):
    """Runs a function before any other, once per program or once per context."""

    name = "vm.initializer"
    kind = attr(StringAttr)
    function = attr(SymbolRef)


class Func(Operation):
    """A function.

    Once registers are assigned, `frame` has the number of i32, i64, f32, f64 and ref registers, and `blocks` the
    registers of block arguments, for each block except the entry.
    """

    name = "vm.func"
    sym_name = attr(StringAttr)
    function_type = attr(FunctionType)
    frame = optional(DenseArray)
    blocks = optional(ArrayAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL})


#: Operands of rows whose names conflict with those of an operation -> the field's name.
_RENAMED: Final = {"results": "outputs", "args": "arguments"}
#: Operand kind of the table -> class of the property.
_PROPERTIES: Final[dict[str, type[Attribute]]] = {
    "imm_i32": IntegerAttr,
    "imm_i64": IntegerAttr,
    "imm_f32": FloatAttr,
    "imm_f64": FloatAttr,
    "function": SymbolRef,
    "import": SymbolRef,
    "global": SymbolRef,
    "constant": SymbolRef,
    "text": StringAttr,
}


#: Operand kind of the table -> class of the op that its symbol names.
SYMBOLS: Final[dict[str, type[Operation]]] = {
    "function": Func,
    "import": Import,
    "global": Global,
    "constant": Constant,
}


def field_name(row: Row) -> str:
    """The name of the field for an operand of the table."""
    return _RENAMED.get(row.name, row.name)


def _field(row: Row) -> Any:
    if row.kind == "target":
        return successor()
    if row.kind == "targets":
        return successors()
    if row.kind == "registers":
        return results() if row.result else operands()
    if row.kind in _PROPERTIES:
        return attr(_PROPERTIES[row.kind])
    return result() if row.result else operand()


def _check_branch_arguments(op: Operation) -> Iterator[str]:
    """Check of `vm.br`: its operands have the types of the target's arguments."""
    given, taken = [value.type for value in op.operands], [a.type for a in op.successors[0].arguments]
    if given != taken:
        yield f"passes ({', '.join(map(str, given))}) to a block that takes ({', '.join(map(str, taken))})"


def _check_no_arguments(op: Operation) -> Iterator[str]:
    """Check of other branches: their targets have no arguments."""
    for index, target in enumerate(op.successors):
        if target.arguments:
            count = len(target.arguments)
            yield f"branches to successor {index}, which takes {count} arguments: only vm.br passes arguments"


def _class(row: Instruction) -> type[Operation]:
    fields: dict[str, Any] = {field_name(spec): _field(spec) for spec in row.operands}
    if row.name == "br":
        fields |= {"arguments": operands(), "check": _check_branch_arguments}
    elif any(spec.kind in ("target", "targets") for spec in row.operands):
        fields["check"] = _check_no_arguments
    traits = frozenset({Trait.TERMINATOR}) if row.terminator else frozenset()
    body = {"__doc__": row.doc, "name": f"vm.{row.name}", "traits": traits, **fields}
    return type(f"Instruction_{row.name.replace('.', '_')}", (Operation,), body)


#: Name of the row -> class of its op.
OPS: Final[dict[str, type[Operation]]] = {row.name: _class(row) for row in INSTRUCTIONS}


def row_of(op: Operation) -> Instruction:
    return _ROWS[op.name]


_ROWS: Final = {f"vm.{row.name}": row for row in INSTRUCTIONS}

DIALECT = Dialect("vm", [*ops_in(globals()), *OPS.values()])
