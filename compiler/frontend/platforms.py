"""Reduces programs for several platforms to the code for one of them.

`jax.export.export(f, platforms=("cpu", "tpu"))` adds an argument, the index of the platform that the program runs on,
and a `case` over it wherever the platforms differ. This module replaces the index by a constant: that of `cpu` if the
program is for it, else 0. A constant is an op of StableHLO that every device runs, whereas code for other platforms
calls their libraries. Each `case` over the constant is replaced by its branch, so that nothing of the other branches is
checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from orchestrion.compiler.ir.attributes import ArrayAttr, DenseElements, DictAttr, StringAttr
from orchestrion.compiler.ir.builder import Builder, inline_block
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.types import FunctionType, TensorType
from orchestrion.compiler.stablehlo.ops.func import Func

#: JAX's attribute of the argument.
_KEY: Final = "jax.global_constant"
_PLATFORM_INDEX: Final = "_platform_index"
#: The platform whose ops and library calls modules may contain.
PLATFORM: Final = "cpu"


def resolve_platform(module: Module, platforms: Sequence[str]) -> None:
    """Removes the argument from public functions; private functions keep it, unused. `platforms`: those of the program,
    in order; empty if unknown.
    """
    functions = module.regions[0].walk(Func) if module.regions else ()
    places = {func: place for func in functions if (place := _place(func)) is not None}
    if not places:
        return
    from orchestrion.compiler.stablehlo.functions.calls import CallGraph  # few programs need it

    index = platforms.index(PLATFORM) if PLATFORM in platforms else 0
    known: dict[Value, int] = {}
    for func, place in places.items():
        _fix(func, place, index, known)
        if func.is_public:
            _erase(func, place)
    graph = CallGraph(module)
    for func in reversed(graph.callees_first()[0]):  # callers first: they know the values that they pass
        if func not in places and not func.is_public and len(func.body.blocks) == 1:
            calls = [op for op in module.walk() if op.name == "func.call" and graph.target(op) is func]
            for place in range(len(func.entry.arguments)):
                passed = {known.get(call.operands[place]) for call in calls if place < len(call.operands)}
                if len(passed) == 1 and (value := passed.pop()) is not None:
                    _fix(func, place, value, known)
        for block in func.inner_blocks():
            _choose(block, known)


def _place(func: Operation) -> int | None:
    """The index of the platform argument; None if the function has none."""
    attrs = func.get_as("arg_attrs", ArrayAttr) or ()
    for place, item in enumerate(attrs):
        if isinstance(item, DictAttr) and item.get(_KEY) == StringAttr(_PLATFORM_INDEX):
            return place if _has_argument(func, place) else None
    return None


def _has_argument(func: Operation, place: int) -> bool:
    if len(func.regions) != 1 or len(func.regions[0].blocks) != 1 or func.get_as("function_type", FunctionType) is None:
        return False
    arguments = func.regions[0].block.arguments
    return place < len(arguments) and _is_number(arguments[place])


def _fix(func: Operation, place: int, index: int, known: dict[Value, int]) -> None:
    """Replaces an argument by a constant in its function."""
    from orchestrion.compiler.stablehlo.ops.structural import Constant

    block = func.regions[0].block
    argument = block.arguments[place]
    type = argument.type
    if not isinstance(type, TensorType) or not _is_number(argument):
        return
    data = index.to_bytes(4 if str(type.element) == "i32" else 8, "little")
    made = Builder(block, block.first).build(Constant, value=DenseElements(type, data), out=type)
    argument.replace_by(made.result)
    known[made.result] = index


def _erase(func: Operation, place: int) -> None:
    func.regions[0].block.erase_arguments([place])
    signature = func.get_as("function_type", FunctionType)
    attrs = func.get_as("arg_attrs", ArrayAttr)
    assert signature is not None and attrs is not None
    inputs = [type for number, type in enumerate(signature.inputs) if number != place]
    func.properties["function_type"] = FunctionType(tuple(inputs), signature.results)
    func.properties["arg_attrs"] = ArrayAttr(tuple(item for number, item in enumerate(attrs) if number != place))


def _choose(block: Block, known: dict[Value, int]) -> None:
    """Replaces each `case` over a known number by its branch."""
    op = block.first
    while op is not None:
        following = op.next_op
        if op.name == "stablehlo.case" and _is_whole(op) and op.operands[0] in known:
            index, last = known[op.operands[0]], len(op.regions) - 1
            following = _put_in_place(op, op.regions[index if 0 <= index < last else last])
        elif op.name in ("stablehlo.constant", "stablehlo.convert") and [*map(_is_number, op.results)] == [True]:
            _note(op, known)
        else:
            for inner in op.inner_blocks():
                _choose(inner, known)
        op = following


def _is_whole(op: Operation) -> bool:
    """Whether the op is well formed: nothing is verified yet."""
    if len(op.operands) != 1 or not op.regions:
        return False
    for region in op.regions:
        if len(region.blocks) != 1 or region.block.arguments:
            return False
        last = region.block.last
        if last is None or last.name != "stablehlo.return" or len(last.operands) != len(op.results):
            return False
    return True


def _put_in_place(op: Operation, region: Region) -> Operation | None:
    """Replaces an op by the ops of one of its regions. Returns the next op to visit."""
    before, block = op.prev_op, op.parent
    assert block is not None
    op.replace_by(inline_block(region.block, (), Builder.before(op).insert))
    return block.first if before is None else before.next_op


def _is_number(value: Value) -> bool:
    """Whether a value is an integer scalar."""
    return str(value.type) in ("tensor<i32>", "tensor<i64>")


def _note(op: Operation, known: dict[Value, int]) -> None:
    """Records the result of a constant, or of a conversion of a known number."""
    value = op.get_as("value", DenseElements)
    if value is not None:
        known[op.results[0]] = int(value.scalars()[0])
    elif len(op.operands) == 1 and op.operands[0] in known:
        known[op.results[0]] = known[op.operands[0]]
