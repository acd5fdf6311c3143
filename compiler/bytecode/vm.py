"""The vm dialect: a module file as IR. Instruction ops derive from the rows of `schema.isa`, one class per row.

An instruction's register operands are SSA operands and results, branch targets are successors, everything else is a
property named as in the row. `assign-registers` gives each value a register (`registers`, one per result, written as
the assembler writes them: `i0`, `r2`); block arguments of the entry take the first of their banks.
Value types are the VM's: `i32`, `f64`, `!hal.view`.

Only `vm.br` gives arguments to a block, and it moves nothing: once registers are assigned, each operand is in the
register of the argument that it becomes (`blocks` of the function), where a copy in front of the branch has put it.
A conditional branch goes to blocks without arguments.
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
from orchestrion.compiler.ir.dialect import Dialect
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
    """All that the module file holds for one target profile and machine, named as `hl_seq.program`; `features` are what
    its device must have.
    """

    name = "vm.program"
    features = attr(ArrayAttr)
    body = region()
    traits = _SYMBOLS


class Import(Operation):
    """A function of a native module; of another module if it has a `function_type`, in tensors."""

    name = "vm.import"
    sym_name = attr(StringAttr)
    signature = attr(StringAttr)
    function_type = optional(FunctionType)
    traits = frozenset({Trait.SYMBOL})


class Export(Operation):
    """What callers see, by the name `exported`; `function` is what runs in every program."""

    name = "vm.export"
    exported = attr(StringAttr)
    function = attr(StringAttr)
    arguments = attr(ArrayAttr)
    outputs = attr(ArrayAttr)
    doc = optional(StringAttr)
    trees = optional(StringAttr)


class Constant(Operation):
    """A constant segment of `size` bytes with each of the values at its offset, zero between. Or a parameter, which has
    no values here.
    """

    name = "vm.constant"
    sym_name = attr(StringAttr)
    values = attr(ArrayAttr)
    offsets = attr(DenseArray)
    size = attr(IntegerAttr)
    parameter = optional(DictAttr)
    traits = frozenset({Trait.SYMBOL})


class Executable(Operation):
    """Device code: the payload as text, or as dense bytes, with its entries."""

    name = "vm.executable"
    sym_name = attr(StringAttr)
    format = attr(StringAttr)
    features = attr(ArrayAttr)
    shared_memory = attr(IntegerAttr)
    entries = attr(ArrayAttr)
    payload = attr(Attribute)
    traits = frozenset({Trait.SYMBOL})


class Global(Operation):
    """A variable of the program; a mutable one belongs to a context."""

    name = "vm.global"
    sym_name = attr(StringAttr)
    type = attr(Type)
    mutable = optional(UnitAttr)
    traits = frozenset({Trait.SYMBOL})


class Initializer(Operation):
    """Runs a function, before any other, once per program or per context."""

    name = "vm.initializer"
    kind = attr(StringAttr)
    function = attr(SymbolRef)


class Func(Operation):
    """A function.

    Once registers are assigned, `frame` counts those of i32, i64, f32, f64 and ref, and `blocks` has those of the
    arguments of each block but the entry.
    """

    name = "vm.func"
    sym_name = attr(StringAttr)
    function_type = attr(FunctionType)
    frame = optional(DenseArray)
    blocks = optional(ArrayAttr)
    body = region()
    traits = frozenset({Trait.ISOLATED, Trait.SYMBOL})


#: operands of rows whose names an operation has already, or that are words of Python
_RENAMED: Final = {"results": "outputs", "args": "arguments"}
#: operand kind of the table -> class of the property
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


#: operand kind of the table -> class of the op that its symbol names
SYMBOLS: Final[dict[str, type[Operation]]] = {
    "function": Func,
    "import": Import,
    "global": Global,
    "constant": Constant,
}


def field_name(row: Row) -> str:
    """The field that an operand of the table becomes."""
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


def _gives(op: Operation) -> Iterator[str]:
    """The check of `vm.br`: it gives what its target takes."""
    given, taken = [value.type for value in op.operands], [a.type for a in op.successors[0].arguments]
    if given != taken:
        yield f"gives ({', '.join(map(str, given))}) to a block that takes ({', '.join(map(str, taken))})"


def _gives_nothing(op: Operation) -> Iterator[str]:
    """The check of other branches."""
    for index, target in enumerate(op.successors):
        if target.arguments:
            yield f"goes to successor {index}, which takes {len(target.arguments)} arguments: only vm.br gives some"


def _class(row: Instruction) -> type[Operation]:
    fields: dict[str, Any] = {field_name(spec): _field(spec) for spec in row.operands}
    if row.name == "br":
        fields |= {"arguments": operands(), "check": _gives}
    elif any(spec.kind in ("target", "targets") for spec in row.operands):
        fields["check"] = _gives_nothing
    traits = frozenset({Trait.TERMINATOR}) if row.terminator else frozenset()
    body = {"__doc__": row.doc, "name": f"vm.{row.name}", "traits": traits, **fields}
    return type(f"Instruction_{row.name.replace('.', '_')}", (Operation,), body)


#: name of the row -> class of its op
OPS: Final[dict[str, type[Operation]]] = {row.name: _class(row) for row in INSTRUCTIONS}


def row_of(op: Operation) -> Instruction:
    """The row of an instruction op."""
    return _ROWS[op.name]


_ROWS: Final = {f"vm.{row.name}": row for row in INSTRUCTIONS}

DIALECT = Dialect("vm", [Program, Import, Export, Constant, Executable, Global, Initializer, Func, *OPS.values()])
