"""What each value-making SPIR-V instruction asks of its operands, and how large its result can be.

A rule gets the scope, the instruction's row, its result type and id, and the operands. Operand ids are known to be
values that are visible here. Beside types, the rules keep `Scope.upper`: the largest unsigned value an integer can
have, where it is known, so that indices into memory without robust access can be proved in range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrion.schema.spirv import EXT_BY_CODE, SCOPE_DEVICE, SCOPE_WORKGROUP, SEMANTICS, Op

from .spirv_types import FUNCTION, NUMERIC, STORAGE_BUFFER, STORAGE_NAMES, WORKGROUP, Scope, Type

Operands = list[Any]
Rule = Callable[[Scope, Op, Type, int, Operands], None]


def _shape(type: Type) -> tuple[str, int, int]:
    """What must agree where signedness may differ."""
    return type.base, type.width, type.lanes


def _int(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    if type.base != "int" or any(_shape(scope.values[operand]) != _shape(type) for operand in operands):
        _refuse_operands(scope, type, operands)
    bound = _BOUNDS.get(op.name)
    if bound is not None and type.lanes == 1:
        _note(scope, type, id, bound(scope, type, operands))


def _int32(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    if type.width != 32:
        _refuse_operands(scope, type, operands)
    _int(scope, op, type, id, operands)


def _uint(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    if type.signed or any(scope.values[operand] is not type for operand in operands):
        _refuse_operands(scope, type, operands)
    _int(scope, op, type, id, operands)


def _float(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    if type.base != "float" or any(scope.values[operand] is not type for operand in operands):
        _refuse_operands(scope, type, operands)


def _bool(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    if type.base != "bool" or any(scope.values[operand] is not type for operand in operands):
        _refuse_operands(scope, type, operands)


def _shift(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    base, amount = (scope.values[operand] for operand in operands)
    if type.base != "int" or _shape(base) != _shape(type) or (amount.base, amount.lanes) != ("int", type.lanes):
        _refuse_operands(scope, type, operands)
    bound = _BOUNDS.get(op.name)
    if bound is not None and type.lanes == 1:
        _note(scope, type, id, bound(scope, type, operands))


def _bool_reduce(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    operand = scope.values[operands[0]]
    if (type.base, type.lanes, operand.base) != ("bool", 1, "bool") or operand.lanes < 2:
        _refuse_operands(scope, type, operands)


def _select(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    condition, true, false = (scope.values[operand] for operand in operands)
    if not type.lanes or {true, false} != {type} or (condition.base, condition.lanes) != ("bool", type.lanes):
        _refuse_operands(scope, type, operands)
    if (type.base, type.lanes) == ("int", 1):
        _note(scope, type, id, _largest(scope, operands[1:]))


def _compare(base: str) -> Rule:
    def rule(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
        first = scope.values[operands[0]]
        same = all(_shape(scope.values[operand]) == _shape(first) for operand in operands)
        if not same or first.base != base or (type.base, type.lanes) != ("bool", first.lanes):
            _refuse_operands(scope, type, operands)

    return rule


def _convert(source: str, target: str, signs: tuple[int, ...], resize: bool) -> Rule:
    """From base to base with as many lanes; a `resize` changes the width."""

    def rule(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
        operand = scope.values[operands[0]]
        right = (operand.base, type.base, operand.lanes) == (source, target, type.lanes) and type.signed in signs
        if not right or (resize and operand.width == type.width):
            _refuse_operands(scope, type, operands)
        if target == source == "int" and type.lanes == 1:
            known = scope.upper.get(operands[0])
            negative = op.name == "OpSConvert" and (known is None or known >> operand.width - 1)
            full = (1 << operand.width) - 1
            _note(scope, type, id, None if negative else full if known is None else known)

    return rule


def _bitcast(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    operand = scope.values[operands[0]]
    same = type.width * type.lanes == operand.width * operand.lanes
    if type.base not in NUMERIC or operand.base not in NUMERIC or not same:
        _refuse_operands(scope, type, operands)
    if _shape(type) == _shape(operand) and type.lanes == 1:
        _note(scope, type, id, scope.upper.get(operands[0]))


def _composite_construct(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    if type.lanes < 2 or len(operands) != type.lanes:
        scope.refuse(f"{type} of {len(operands)} parts")
    if any(scope.values[part] is not type.element for part in operands):
        _refuse_operands(scope, type, operands)


def _composite_extract(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    composite, lane = scope.values[operands[0]], operands[1]
    if composite.lanes < 2 or lane >= composite.lanes or type is not composite.element:
        scope.refuse(f"{type} from lane {lane} of {composite}")
    lanes = scope.lane_upper.get(operands[0])
    if lanes is not None:
        _note(scope, type, id, lanes[lane])


def _ext_inst(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    library, code, *rest = operands
    row = EXT_BY_CODE.get(code)
    if library not in scope.imports or row is None:
        scope.refuse(f"instruction {code} of set {library}")
    if len(rest) != row.operands:
        scope.refuse(f"{row.name} with {len(rest)} operands, expected {row.operands}")
    VALUE_RULES[row.rule](scope, op, type, id, rest)
    if (type.base, type.lanes) == ("int", 1) and row.name in _EXT_BOUNDS:
        _note(scope, type, id, _EXT_BOUNDS[row.name](scope, rest))


# memory


def _pointer(scope: Scope, id: int) -> Type:
    """The type a pointer points to."""
    pointer = scope.values[id]
    if pointer.base != "pointer" or pointer.element is None:
        scope.refuse(f"a {pointer} is not a pointer")
    return pointer.element


def _load(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    pointer = operands[0]
    if _pointer(scope, pointer) is not type or not type.lanes:
        scope.refuse(f"{type} from a {scope.values[pointer]}")
    root = scope.roots[pointer]
    if not scope.variables[root].readable:
        scope.refuse("from a variable that is NonReadable")
    if type.lanes == 1:
        _note(scope, type, id, scope.upper.get(pointer))
    elif pointer in scope.lane_upper:
        scope.lane_upper[id] = scope.lane_upper[pointer]


def _written(scope: Scope, pointer: int) -> None:
    """A store or an atomic: into something that may be written."""
    variable = scope.variables[scope.roots[pointer]]
    if variable.storage not in (STORAGE_BUFFER, WORKGROUP, FUNCTION) or not variable.writable:
        scope.refuse(f"into a variable in {STORAGE_NAMES[variable.storage]} that is not to be written")
    assert scope.entry is not None, "instructions stand in functions"
    if variable.storage == STORAGE_BUFFER and scope.entry.entry.bindings[variable.binding][0] == "read":
        scope.refuse(f"into binding {variable.binding}, which entry {scope.entry.name} only reads")


def store(scope: Scope, op: Op, operands: Operands) -> None:
    pointer, value = operands
    content = _pointer(scope, pointer)
    if scope.values[value] is not content or not content.lanes:
        scope.refuse(f"{scope.values[value]} through a {scope.values[pointer]}")
    _written(scope, pointer)


def _access_chain(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    base, *indices = operands
    variable = scope.variables.get(base)
    if variable is None or not indices:
        scope.refuse("not from a variable, or without an index")
    content = variable.content
    for index in indices:
        content = _member(scope, content, index)
    if type.base != "pointer" or type.storage != variable.storage or type.element is not content:
        scope.refuse(f"{type} where {content} in {STORAGE_NAMES[variable.storage]} is reached")
    scope.roots[id] = base
    lanes = scope.lane_upper.get(base)
    if lanes is not None:
        scope.upper[id] = lanes[scope.constants[indices[0]]] if indices[0] in scope.constants else max(lanes)


def _member(scope: Scope, content: Type, index: int) -> Type:
    """One step of an access chain. Access to runtime arrays is robust; any other index must be proved in range."""
    number = scope.values[index]
    if (number.base, number.lanes) != ("int", 1):
        scope.refuse(f"index of type {number}")
    if content.base == "runtime array" and content.element is not None:
        return content.element
    if content.base == "struct":
        member = scope.constants.get(index)
        if member is None or member >= len(content.members):
            scope.refuse(f"member {member} of a struct with {len(content.members)}")
        return content.members[member]
    length = content.length or content.lanes
    if content.element is None or length < 2 and content.base != "array":
        scope.refuse(f"index into a {content}")
    upper = scope.upper.get(index)
    if upper is None or upper >= length:
        scope.refuse(f"index up to {'anything' if upper is None else upper} into {length} elements")
    return content.element


def _array_length(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    variable = scope.variables.get(operands[0])
    if variable is None or variable.storage != STORAGE_BUFFER or operands[1] != 0:
        scope.refuse("not of member 0 of a storage buffer")
    if (type.base, type.width, type.signed, type.lanes) != ("int", 32, 0, 1):
        scope.refuse(f"of type {type}")


def _atomic_target(scope: Scope, type: Type, pointer: int) -> None:
    content = _pointer(scope, pointer)
    if content is not type or (type.base, type.width, type.lanes) != ("int", 32, 1):
        scope.refuse(f"{type} through a {scope.values[pointer]}")
    if scope.values[pointer].storage not in (STORAGE_BUFFER, WORKGROUP):
        scope.refuse(f"on a {scope.values[pointer]}")
    if not scope.variables[scope.roots[pointer]].readable:
        scope.refuse("on a variable that is NonReadable")
    _written(scope, pointer)


def _atomic(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    pointer, where, semantics, value = operands
    _atomic_target(scope, type, pointer)
    scope.constant(where, "scope", (SCOPE_DEVICE, SCOPE_WORKGROUP))
    scope.constant(semantics, "semantics", SEMANTICS)
    if scope.values[value] is not type:
        _refuse_operands(scope, type, [value])


def _atomic_compare(scope: Scope, op: Op, type: Type, id: int, operands: Operands) -> None:
    pointer, where, equal, unequal, value, comparator = operands
    _atomic_target(scope, type, pointer)
    scope.constant(where, "scope", (SCOPE_DEVICE, SCOPE_WORKGROUP))
    scope.constant(equal, "semantics", SEMANTICS)
    scope.constant(unequal, "semantics when unequal", SEMANTICS[:1])
    if scope.values[value] is not type or scope.values[comparator] is not type:
        _refuse_operands(scope, type, [value, comparator])


def control_barrier(scope: Scope, op: Op, operands: Operands) -> None:
    execution, memory, semantics = operands
    scope.constant(execution, "execution scope", (SCOPE_WORKGROUP,))
    scope.constant(memory, "memory scope", (SCOPE_DEVICE, SCOPE_WORKGROUP))
    scope.constant(semantics, "semantics", SEMANTICS)


def memory_barrier(scope: Scope, op: Op, operands: Operands) -> None:
    scope.constant(operands[0], "memory scope", (SCOPE_DEVICE, SCOPE_WORKGROUP))
    scope.constant(operands[1], "semantics", SEMANTICS[1:])


# how large a result can be, None when nothing is known


def _note(scope: Scope, type: Type, id: int, upper: int | None) -> None:
    """Remember a bound; one that the type cannot hold wrapped around, so it says nothing."""
    if upper is not None and upper < 1 << type.width:
        scope.upper[id] = upper


def _known(scope: Scope, type: Type, id: int) -> int:
    return scope.upper.get(id, (1 << type.width) - 1)


def _largest(scope: Scope, ids: Operands) -> int | None:
    bounds = [scope.upper.get(id) for id in ids]
    return None if None in bounds else max(bound for bound in bounds if bound is not None)


def _smallest(scope: Scope, ids: Operands) -> int | None:
    return min((scope.upper[id] for id in ids if id in scope.upper), default=None)


def _all_ones(scope: Scope, type: Type, operands: Operands) -> int:
    return (1 << max(_known(scope, type, operand) for operand in operands).bit_length()) - 1


def _quotient(scope: Scope, type: Type, operands: Operands) -> int:
    return _known(scope, type, operands[0]) // max(1, scope.constants.get(operands[1], 1))


def _remainder(scope: Scope, type: Type, operands: Operands) -> int | None:
    divisor = scope.constants.get(operands[1])
    return min(divisor - 1, _known(scope, type, operands[0])) if divisor else None


def _shifted_right(scope: Scope, type: Type, operands: Operands) -> int | None:
    amount = scope.constants.get(operands[1])
    return None if amount is None or amount >= type.width else _known(scope, type, operands[0]) >> amount


def _shifted_left(scope: Scope, type: Type, operands: Operands) -> int | None:
    amount = scope.constants.get(operands[1])
    return None if amount is None or amount >= type.width else _known(scope, type, operands[0]) << amount


#: instruction -> the bound of its scalar result
_BOUNDS: dict[str, Callable[[Scope, Type, Operands], int | None]] = {
    "OpIAdd": lambda scope, type, args: _known(scope, type, args[0]) + _known(scope, type, args[1]),
    "OpIMul": lambda scope, type, args: _known(scope, type, args[0]) * _known(scope, type, args[1]),
    "OpUDiv": _quotient,
    "OpUMod": _remainder,
    "OpBitwiseAnd": lambda scope, type, args: _smallest(scope, args),
    "OpBitwiseOr": _all_ones,
    "OpBitwiseXor": _all_ones,
    "OpShiftRightLogical": _shifted_right,
    "OpShiftLeftLogical": _shifted_left,
}

#: extended instruction -> the bound of its scalar result
_EXT_BOUNDS: dict[str, Callable[[Scope, Operands], int | None]] = {"UMin": _smallest, "UMax": _largest}


def _refuse_operands(scope: Scope, type: Type, operands: Operands) -> None:
    scope.refuse(f"{type} of {', '.join(str(scope.values[operand]) for operand in operands)}")


#: rules of what makes a value, by the rule's name in the table
VALUE_RULES: dict[str, Rule] = {
    "load": _load,
    "access_chain": _access_chain,
    "array_length": _array_length,
    "composite_construct": _composite_construct,
    "composite_extract": _composite_extract,
    "float_to_uint": _convert("float", "int", (0,), False),
    "float_to_int": _convert("float", "int", (0, 1), False),
    "int_to_float": _convert("int", "float", (0,), False),
    "uint_resize": _convert("int", "int", (0,), True),
    "int_resize": _convert("int", "int", (0, 1), True),
    "float_resize": _convert("float", "float", (0,), True),
    "bitcast": _bitcast,
    "int": _int,
    "int32": _int32,
    "uint": _uint,
    "float": _float,
    "shift": _shift,
    "bool_reduce": _bool_reduce,
    "bool": _bool,
    "select": _select,
    "compare_int": _compare("int"),
    "compare_float": _compare("float"),
    "ext_inst": _ext_inst,
    "atomic": _atomic,
    "atomic_compare": _atomic_compare,
}

#: rules of what only acts
ACTION_RULES: dict[str, Callable[[Scope, Op, Operands], None]] = {
    "store": store,
    "control_barrier": control_barrier,
    "memory_barrier": memory_barrier,
}
