"""What each value-producing SPIR-V instruction requires of its operands, and what bounds a memory access.

A rule gets the scope, the instruction's row, its result type and id, and the operands. Operand ids are visible values.
An index into workgroup memory is bounded by its last step alone: it is a constant, or the result of `UMin` with a
constant (`Scope.clamped`). No range of any other value is computed, so there is no range analysis that could be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrion.schema.spirv import EXT_BY_CODE, RELAXED, SCOPE_DEVICE, SCOPE_WORKGROUP, WORKGROUP_MEMORY, Op

from .spirv_types import INPUT, NUMERIC, PUSH_CONSTANT, STORAGE_BUFFER, STORAGE_NAMES, WORKGROUP, Scope, Type, Variable

Operands = list[Any]
Rule = Callable[[Scope, Op, Type, int, Operands], None]


def _all_of(base: str) -> Rule:
    """Operands and result are scalars of one type."""

    def rule(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
        if (type.base, type.lanes) != (base, 1) or any(scope.values[operand] is not type for operand in operands):
            _refuse_operands(scope, type, operands)

    return rule


def _clamp(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    """`UMin`. With a constant u32 operand it bounds an index."""
    _all_of("int")(scope, op, type, id, operands)
    bounds = [scope.constants[operand] for operand in operands if operand in scope.constants]
    if type.width == 32 and bounds:
        scope.clamped[id] = min(bounds)


def _shift(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    base, amount = (scope.values[operand] for operand in operands)
    if (type.base, type.lanes) != ("int", 1) or base is not type or (amount.base, amount.lanes) != ("int", 1):
        _refuse_operands(scope, type, operands)


def _select(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    condition, true, false = (scope.values[operand] for operand in operands)
    if type.lanes != 1 or true is not type or false is not type or (condition.base, condition.lanes) != ("bool", 1):
        _refuse_operands(scope, type, operands)


def _compare(base: str) -> Rule:
    def rule(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
        first, second = (scope.values[operand] for operand in operands)
        if first is not second or (first.base, first.lanes) != (base, 1) or (type.base, type.lanes) != ("bool", 1):
            _refuse_operands(scope, type, operands)

    return rule


def _convert(source: str, target: str, resize: bool) -> Rule:
    """A scalar of base `source` to one of base `target`; a `resize` changes the width."""

    def rule(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
        operand = scope.values[operands[0]]
        right = (operand.base, type.base, operand.lanes, type.lanes) == (source, target, 1, 1)
        if not right or (resize and operand.width == type.width):
            _refuse_operands(scope, type, operands)

    return rule


def _bitcast(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    operand = scope.values[operands[0]]
    scalars = type.base in NUMERIC and operand.base in NUMERIC and type.lanes == operand.lanes == 1
    if not scalars or type.width != operand.width or type is operand:
        _refuse_operands(scope, type, operands)


def _composite_construct(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    if type.lanes < 2 or len(operands) != type.lanes:
        scope.refuse(f"{type} of {len(operands)} parts")
    if any(scope.values[part] is not type.element for part in operands):
        _refuse_operands(scope, type, operands)


def _composite_extract(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    composite, lane = scope.values[operands[0]], operands[1]
    if composite.lanes < 2 or lane >= composite.lanes or type is not composite.element:
        scope.refuse(f"{type} from lane {lane} of {composite}")


def _ext_inst(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    library, code, *rest = operands
    row = EXT_BY_CODE.get(code)
    if library not in scope.imports or row is None:
        scope.refuse(f"instruction {code} of set {library}")
    if len(rest) != row.operands:
        scope.refuse(f"{row.name} with {len(rest)} operands, expected {row.operands}")
    VALUE_RULES[row.rule](scope, op, type, id, rest)


# memory


def _pointer(scope: Scope, id: int) -> Type:
    """The type a pointer points to."""
    pointer = scope.values[id]
    if pointer.base != "pointer" or pointer.element is None:
        scope.refuse(f"a {pointer} is not a pointer")
    return pointer.element


def _load(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    if _pointer(scope, operands[0]) is not type or not type.lanes:
        scope.refuse(f"{type} from a {scope.values[operands[0]]}")


def store(scope: Scope, op: Op, operands: Operands) -> None:
    pointer, value = operands
    content = _pointer(scope, pointer)
    if scope.values[value] is not content or not content.lanes:
        scope.refuse(f"{scope.values[value]} through a {scope.values[pointer]}")
    _written(scope, pointer, (STORAGE_BUFFER, WORKGROUP))


def _atomic(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    """An atomic instruction on a u32 of a storage buffer that may be written."""
    pointer, device, semantics, value = operands
    if (type.base, type.lanes, type.width) != ("int", 1, 32) or scope.values[value] is not type:
        scope.refuse(f"{type} of {scope.values[value]}")
    if _pointer(scope, pointer) is not type:
        scope.refuse(f"{type} through a {scope.values[pointer]}")
    scope.constant(device, "scope", SCOPE_DEVICE)
    scope.constant(semantics, "semantics", RELAXED)
    _written(scope, pointer, (STORAGE_BUFFER,))


def _written(scope: Scope, pointer: int, storages: tuple[int, ...]) -> None:
    """Refuses a pointer into a variable that must not be written."""
    variable = scope.variables[scope.roots[pointer]]
    if variable.storage not in storages or not variable.writable:
        scope.refuse(f"into a variable in {STORAGE_NAMES[variable.storage]} that is not to be written")
    assert scope.entry is not None, "instructions stand in functions"
    if variable.storage == STORAGE_BUFFER and scope.entry.entry.bindings[variable.binding][0] == "read":
        scope.refuse(f"into binding {variable.binding}, which entry {scope.entry.name} only reads")


def _access_chain(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    base, *indices = operands
    variable = scope.variables.get(base)
    if variable is None:
        scope.refuse("not from a variable")
    content = _REACHES[variable.storage](scope, variable, indices)
    if type.base != "pointer" or type.storage != variable.storage or type.element is not content:
        scope.refuse(f"{type} where {content} in {STORAGE_NAMES[variable.storage]} is reached")
    scope.roots[id] = base


def _of_buffer(scope: Scope, variable: Variable, indices: Operands) -> Type | None:
    """Member 0, and any index of 32 or 64 bits: the device or the loader bounds it."""
    _count(scope, indices, 2)
    member, index = scope.constants.get(indices[0]), scope.values[indices[1]]
    if member != 0:
        scope.refuse(f"member {member} of a struct with 1")
    if (index.base, index.lanes) != ("int", 1) or index.width not in (32, 64):
        scope.refuse(f"index of type {index}")
    return variable.element


def _of_parameters(scope: Scope, variable: Variable, indices: Operands) -> Type | None:
    _count(scope, indices, 1)
    member, members = scope.constants.get(indices[0]), variable.content.members
    if member is None or member >= len(members):
        scope.refuse(f"member {member} of a struct with {len(members)}")
    return members[member]


def _of_workgroup(scope: Scope, variable: Variable, indices: Operands) -> Type | None:
    """An index that is a clamp or a constant."""
    _count(scope, indices, 1)
    (index,), length = indices, variable.content.length
    bound = scope.clamped.get(index, scope.constants.get(index))
    if bound is None:
        scope.refuse(f"index into {length} elements of workgroup memory is neither a constant nor a UMin with one")
    if bound >= length or scope.values[index].width != 32:
        scope.refuse(f"index of type {scope.values[index]} up to {bound} into {length} elements of workgroup memory")
    return variable.content.element


def _of_input(scope: Scope, variable: Variable, indices: Operands) -> Type | None:
    scope.refuse("into a built-in input, which is loaded whole")


_REACHES: dict[int, Callable[[Scope, Variable, Operands], Type | None]] = {
    INPUT: _of_input,
    WORKGROUP: _of_workgroup,
    PUSH_CONSTANT: _of_parameters,
    STORAGE_BUFFER: _of_buffer,
}


def _count(scope: Scope, indices: Operands, wanted: int) -> None:
    if len(indices) != wanted:
        scope.refuse(f"{len(indices)} indices, expected {wanted}")


def control_barrier(scope: Scope, op: Op, operands: Operands) -> None:
    execution, memory, semantics = operands
    scope.constant(execution, "execution scope", SCOPE_WORKGROUP)
    scope.constant(memory, "memory scope", SCOPE_WORKGROUP)
    scope.constant(semantics, "semantics", WORKGROUP_MEMORY)


def _refuse_operands(scope: Scope, type: Type, operands: Operands) -> None:
    scope.refuse(f"{type} of {', '.join(str(scope.values[operand]) for operand in operands)}")


#: rules of instructions that produce a value, by the rule's name in the table
VALUE_RULES: dict[str, Rule] = {
    "load": _load,
    "access_chain": _access_chain,
    "composite_construct": _composite_construct,
    "composite_extract": _composite_extract,
    "float_to_int": _convert("float", "int", resize=False),
    "int_to_float": _convert("int", "float", resize=False),
    "int_resize": _convert("int", "int", resize=True),
    "float_resize": _convert("float", "float", resize=True),
    "bitcast": _bitcast,
    "int": _all_of("int"),
    "float": _all_of("float"),
    "bool": _all_of("bool"),
    "clamp": _clamp,
    "shift": _shift,
    "select": _select,
    "compare_int": _compare("int"),
    "compare_float": _compare("float"),
    "ext_inst": _ext_inst,
    "atomic": _atomic,
}

#: rules of instructions without a result
ACTION_RULES: dict[str, Callable[[Scope, Op, Operands], None]] = {
    "store": store,
    "control_barrier": control_barrier,
}
