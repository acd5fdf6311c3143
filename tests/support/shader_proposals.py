"""Forms near the border of the SPIR-V subset, all of which a right checker refuses.

`random_shaders` takes one at an access, at the end of an arm or a body, or as a statement. Most do harm when they run
with hostile values, so that a checker that accepts one is found; the others show that such a form is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from orchestrion.schema.spirv import OP_BY_NAME

if TYPE_CHECKING:
    from random_shaders import Array, Grower

UMIN, SMIN, UMAX = 38, 39, 41
PHI, SELECT, ADD, SUBTRACT, MULTIPLY = 245, 169, 128, 130, 132
DIVIDE, REMAINDER, AND, SHIFT_LEFT = 134, 137, 199, 196
BITCAST, WIDEN, UNREACHABLE, RETURN, ATOMIC_ADD = 124, 113, 255, 253, 234


def _length(grower: Grower, array: Array) -> int:
    return grower.clamp(array.length, value=grower.hostile())


def _longer(grower: Grower, array: Array) -> int:
    """A clamp that was made for another array, or for none."""
    return grower.clamp(grower.pick([other.length for other in grower.arrays]) + array.length)


def _constant(grower: Grower, array: Array) -> int:
    return grower.words.constant("u32", grower.pick((array.length, array.length + 1, 0x80000000, 0xFFFFFFFF)))


def _bare(grower: Grower, array: Array) -> int:
    return grower.hostile()


def _local(grower: Grower, array: Array) -> int:
    return grower.load_input("LocalInvocationIndex")


def _signed_minimum(grower: Grower, array: Array) -> int:
    return grower.extended("u32", SMIN, (grower.hostile(), grower.words.constant("u32", array.length - 1)))


def _maximum(grower: Grower, array: Array) -> int:
    return grower.extended("u32", UMAX, (grower.hostile(), grower.words.constant("u32", array.length - 1)))


def _variable_bound(grower: Grower, array: Array) -> int:
    """A minimum with a value, which at times is a clamp itself."""
    other = grower.clamp(array.length - 1) if grower.random() < 0.5 else grower.hostile()
    return grower.extended("u32", UMIN, (grower.hostile(), other))


def _step(grower: Grower, array: Array) -> int:
    """Arithmetic behind the clamp."""
    clamp = grower.clamp(array.length - 1)
    code = grower.pick((ADD, ADD, SUBTRACT, MULTIPLY, SHIFT_LEFT))
    return grower.make("u32", code, (clamp, grower.words.constant("u32", grower.pick((1, 2, 3)))))


def _mask(grower: Grower, array: Array) -> int:
    operands = (grower.hostile(), grower.words.constant("u32", array.length - 1))
    return grower.make("u32", AND, operands)


def _remainder(grower: Grower, array: Array) -> int:
    return grower.make("u32", REMAINDER, (grower.hostile(), grower.words.constant("u32", array.length)))


def _quotient(grower: Grower, array: Array) -> int:
    """No larger than its dividend, unless the divisor is zero."""
    dividend = grower.words.constant("u32", array.length - 1)
    quotient = grower.make("u32", DIVIDE, (dividend, grower.hostile()))
    return quotient if grower.random() < 0.5 else grower.make("u32", AND, (quotient, grower.hostile()))


def _narrow(grower: Grower, array: Array) -> int:
    """A clamp, and then as many bits as make it negative."""
    kind = "u8" if array.length <= 256 else "u16"
    return grower.make(kind, WIDEN, (grower.clamp(array.length - 1),))


def _narrow_clamp(grower: Grower, array: Array) -> int:
    kind, limit = ("u8", 255) if array.length <= 256 else ("u16", 0xFFFF)
    value = grower.make(kind, WIDEN, (grower.hostile(),))
    return grower.extended(kind, UMIN, (value, grower.words.constant(kind, min(array.length - 1, limit))))


def _wide_clamp(grower: Grower, array: Array) -> int:
    value = grower.make("u64", WIDEN, (grower.hostile(),))
    return grower.extended("u64", UMIN, (value, grower.words.constant("u64", array.length - 1)))


def _signed_type(grower: Grower, array: Array) -> int:
    return grower.make("i32", BITCAST, (grower.clamp(array.length - 1),))


def _signed_clamp(grower: Grower, array: Array) -> int:
    value = grower.make("i32", BITCAST, (grower.hostile(),))
    return grower.extended("i32", SMIN, (value, grower.words.constant("i32", array.length - 1)))


def _select(grower: Grower, array: Array) -> int:
    other = grower.clamp(array.length - 1) if grower.random() < 0.5 else grower.hostile()
    return grower.make("u32", SELECT, (grower.value("bool"), grower.clamp(array.length - 1), other))


def _phi(grower: Grower, array: Array) -> int:
    """A phi of two clamps, or of a clamp and something else."""
    condition, marks = grower.condition(), grower.open()
    yes, no, merge = grower.words.new(), grower.words.new(), grower.words.new()
    grower.code += (3 << 16 | 247, merge, 0, 4 << 16 | 250, condition, yes, no)
    grower.begin(yes)
    first = grower.clamp(array.length - 1)
    grower.code += (2 << 16 | 249, merge)
    grower.close(marks)
    grower.begin(no)
    second = grower.clamp(array.length - 1) if grower.random() < 0.5 else grower.hostile()
    grower.code += (2 << 16 | 249, merge)
    grower.close(marks)
    grower.begin(merge)
    return grower.make("u32", PHI, (first, yes, second, no))


def _null(grower: Grower, array: Array) -> int:
    return grower.words.null("u32")


def _null_bound(grower: Grower, array: Array) -> int:
    return grower.extended("u32", UMIN, (grower.hostile(), grower.words.null("u32")))


def _escaped(grower: Grower, array: Array) -> int:
    """A value of an arm or a function that was left."""
    kind = "clamp" if grower.random() < 0.7 else "u32"
    found = [value for name, value in grower.escaped if name == kind]
    return grower.pick(found) if found else grower.hostile()


def _confused_clamp(grower: Grower, array: Array) -> int:
    """A minimum whose constant has another type."""
    constant = grower.words.constant(grower.pick(("u8", "u64")), min(array.length - 1, 255))
    return grower.extended("u32", UMIN, (grower.hostile(), constant))


def _float_index(grower: Grower, array: Array) -> int:
    return grower.value("f32")


INDICES: dict[str, Callable[[Grower, Array], int]] = {
    "index: clamped to the length": _length,
    "index: clamped for a longer array": _longer,
    "index: a constant out of range": _constant,
    "index: not clamped": _bare,
    "index: a local invocation index": _local,
    "index: signed minimum": _signed_minimum,
    "index: maximum": _maximum,
    "index: minimum with a value": _variable_bound,
    "index: arithmetic behind the clamp": _step,
    "index: masked": _mask,
    "index: remainder": _remainder,
    "index: quotient": _quotient,
    "index: narrowed behind the clamp": _narrow,
    "index: clamped in 8 or 16 bits": _narrow_clamp,
    "index: clamped in 64 bits": _wide_clamp,
    "index: signed behind the clamp": _signed_type,
    "index: signed and clamped": _signed_clamp,
    "index: a select of clamps": _select,
    "index: a phi of clamps": _phi,
    "index: null": _null,
    "index: clamped to null": _null_bound,
    "index: a value from another place": _escaped,
    "index: clamped to a constant of another type": _confused_clamp,
    "index: a float": _float_index,
}

#: forms that need more luck to do harm: taken so many times as often as others
OFTEN = {"index: clamped in 8 or 16 bits": 4, "index: quotient": 4, "index: signed minimum": 2,
         "condition: a value from another place": 3}  # fmt: skip


def _return(grower: Grower) -> None:
    grower.code += (1 << 16 | RETURN,)


def _unreachable(grower: Grower) -> None:
    grower.code += (1 << 16 | UNREACHABLE,)


#: instead of the branch from an arm to its merge block
LEAVES: dict[str, Callable[[Grower], None]] = {
    "arm: ends with a return": _return,
    "arm: ends with OpUnreachable": _unreachable,
}


def _leave(grower: Grower, onward: int, merge: int) -> None:
    grower.code += (2 << 16 | 249, merge)


def _leave_at_times(grower: Grower, onward: int, merge: int) -> None:
    grower.code += (4 << 16 | 250, grower.condition(), merge, onward)


#: instead of the branch from a body to its continue block: (grower, continue block, merge block)
EXITS: dict[str, Callable[[Grower, int, int], None]] = {
    "body: leaves the loop": _leave,
    "body: leaves the loop at times": _leave_at_times,
    "body: ends with a return": lambda grower, onward, merge: _return(grower),
}


def _escaped_operand(grower: Grower) -> None:
    """A sum with a value of an arm, a body or a function that was left."""
    kind, value = grower.pick(grower.escaped) if grower.escaped else ("u32", grower.value("u64"))
    kind = "u32" if kind == "clamp" else kind
    if kind in ("u8", "u16", "u32", "u64"):
        grower.make(kind, ADD, (value, grower.value(kind)))


def _escaped_store(grower: Grower) -> None:
    """A store of such a value."""
    pointer, kind = grower.workgroup_pointer()
    found = [value for name, value in grower.escaped if name == kind]
    grower.store(pointer, grower.pick(found) if found else grower.value("bool"))


def _escaped_condition(grower: Grower) -> None:
    """A selection by such a value."""
    found = [value for name, value in grower.escaped if name == "bool"]
    condition, yes, merge = grower.pick(found) if found else grower.value("u32"), grower.words.new(), grower.words.new()
    grower.code += (3 << 16 | 247, merge, 0, 4 << 16 | 250, condition, yes, merge)
    grower.begin(yes)
    grower.code += (2 << 16 | 249, merge)
    grower.begin(merge)


def _confused_operand(grower: Grower) -> None:
    grower.make("u32", ADD, (grower.value("u32"), grower.value(grower.pick(("u8", "u64", "f32", "bool")))))


def _parameter_beyond(grower: Grower) -> None:
    if not grower.parameters:
        grower.parameters = 1
    member = grower.words.constant("u32", grower.parameters)
    block = grower.words.parameters(grower.parameters)
    grower.make("u32", 61, (grower.chain("PushConstant", "u32", block, member),))


def _parameter_by_value(grower: Grower) -> None:
    if not grower.parameters:
        grower.parameters = 1
    block = grower.words.parameters(grower.parameters)
    grower.make("u32", 61, (grower.chain("PushConstant", "u32", block, grower.value("u32")),))


def _chain_into_input(grower: Grower) -> None:
    variable = grower.words.input("WorkgroupId")
    grower.inputs[variable] = None
    grower.make("u32", 61, (grower.chain("Input", "u32", variable, grower.value("u32")),))


def _two_indices(grower: Grower) -> None:
    array = grower.pick(grower.arrays)
    zero = grower.words.constant("u32", 0)
    pointer = grower.chain("Workgroup", array.kind, array.variable, zero, grower.value("u32"))
    grower.load(array.kind, pointer)


def _other_member(grower: Grower) -> None:
    memory = grower.pick(grower.buffers)
    one = grower.words.constant("u32", 1)
    grower.load(memory.kind, grower.chain("StorageBuffer", memory.kind, memory.variable, one, grower.value("u32")))


def _narrow_buffer_index(grower: Grower) -> None:
    """An index of 8 bits into a buffer, which a loader's clamp of 32 bits would not fit."""
    memory = grower.pick(grower.buffers)
    zero, index = grower.words.constant("u32", 0), grower.value("u8")
    grower.load(memory.kind, grower.chain("StorageBuffer", memory.kind, memory.variable, zero, index))


def _confused_load(grower: Grower) -> None:
    """A load of another type than the pointer's."""
    pointer, kind = grower.workgroup_pointer()
    grower.load("u64" if kind != "u64" else "u32", pointer)


def _confused_pointer(grower: Grower) -> None:
    """A pointer to another type than the array holds."""
    array = grower.pick(grower.arrays)
    kind = "u64" if array.kind != "u64" else "u32"
    index = grower.clamp(array.length - 1)
    grower.store(grower.chain("Workgroup", kind, array.variable, index), grower.value(kind))


def _atomic(grower: Grower) -> None:
    pointer, kind = grower.workgroup_pointer()
    one, zero = grower.words.constant("u32", 2), grower.words.constant("u32", 0)
    grower.make(kind, ATOMIC_ADD, (pointer, one, zero, grower.value(kind)))


def _store_to_parameters(grower: Grower) -> None:
    if not grower.parameters:
        grower.parameters = 1
    block = grower.words.parameters(grower.parameters)
    zero = grower.words.constant("u32", 0)
    grower.store(grower.chain("PushConstant", "u32", block, zero), grower.value("u32"))


def _diverging_phi(grower: Grower) -> None:
    """A barrier under a phi of two uniform values by a condition that varies."""
    index = grower.load_input("LocalInvocationIndex")
    first = grower.make("bool", OP_BY_NAME["OpULessThan"].code, (index, grower.words.constant("u32", 1)))
    yes, no, merge = grower.words.new(), grower.words.new(), grower.words.new()
    grower.code += (3 << 16 | 247, merge, 0, 4 << 16 | 250, first, yes, no)
    for label in (yes, no):
        grower.begin(label)
        grower.code += (2 << 16 | 249, merge)
    grower.begin(merge)
    values = (grower.words.constant("bool", 1), yes, grower.words.constant("bool", 0), no)
    _barrier_under(grower, grower.make("bool", PHI, values))


def _barrier_under(grower: Grower, condition: int) -> None:
    yes, merge = grower.words.new(), grower.words.new()
    grower.code += (3 << 16 | 247, merge, 0, 4 << 16 | 250, condition, yes, merge)
    grower.begin(yes)
    divergent, grower.divergent = grower.divergent, 0
    grower.barrier()
    grower.divergent = divergent
    grower.code += (2 << 16 | 249, merge)
    grower.begin(merge)


def _diverging_condition(grower: Grower) -> None:
    index = grower.load_input("LocalInvocationIndex")
    code = grower.pick((OP_BY_NAME["OpULessThan"].code, OP_BY_NAME["OpIEqual"].code))
    _barrier_under(grower, grower.make("bool", code, (index, grower.words.constant("u32", 1))))


def _loaded_condition(grower: Grower) -> None:
    """A barrier under a comparison of what was loaded from workgroup memory or a buffer."""
    grower.pick((grower.load_workgroup, grower.load_buffer))()
    code = OP_BY_NAME["OpULessThan"].code
    _barrier_under(grower, grower.make("bool", code, (grower.value("u32"), grower.value("u32"))))


def _barrier_behind_loop(grower: Grower) -> None:
    """A barrier under the counter of a loop that invocations leave after different numbers of turns."""
    words = grower.words
    header, body, onward, merge = words.new(), words.new(), words.new(), words.new()
    bound = grower.load_input("LocalInvocationIndex")
    zero, one, before = words.constant("u32", 0), words.constant("u32", 1), grower.label
    grower.code += (2 << 16 | 249, header)
    grower.begin(header)
    slot = grower.phi("u32", zero, before, onward)
    counter = grower.code[slot - 3]
    condition = grower.make("bool", OP_BY_NAME["OpULessThan"].code, (counter, bound))
    grower.code += (4 << 16 | 246, merge, onward, 0, 4 << 16 | 250, condition, body, merge)
    grower.begin(body)
    grower.code += (2 << 16 | 249, onward)
    grower.begin(onward)
    marks = grower.open()
    grower.code[slot] = grower.make("u32", ADD, (counter, one))
    grower.close(marks)
    grower.code += (2 << 16 | 249, header)
    grower.begin(merge)
    _barrier_under(grower, grower.make("bool", OP_BY_NAME["OpIEqual"].code, (counter, zero)))


#: statements: each as often as the others
STATEMENTS: dict[str, Callable[[Grower], None]] = {
    "operand: a value from another place": _escaped_operand,
    "store: a value from another place": _escaped_store,
    "condition: a value from another place": _escaped_condition,
    "operand: of another type": _confused_operand,
    "parameters: a member beyond": _parameter_beyond,
    "parameters: a member by value": _parameter_by_value,
    "parameters: a store": _store_to_parameters,
    "input: an access chain": _chain_into_input,
    "chain: two indices": _two_indices,
    "chain: another member": _other_member,
    "chain: an index of 8 bits into a buffer": _narrow_buffer_index,
    "chain: a pointer to another type": _confused_pointer,
    "load: of another type": _confused_load,
    "atomic": _atomic,
    "barrier: under a phi of a divergent selection": _diverging_phi,
    "barrier: under a divergent condition": _diverging_condition,
    "barrier: under a loaded condition": _loaded_condition,
    "barrier: behind a divergent loop": _barrier_behind_loop,
}
