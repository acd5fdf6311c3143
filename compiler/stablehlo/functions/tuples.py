"""flatten-tuples: replaces tuples by their elements wherever ops pass them on, and at function boundaries.

HLO uses tuples where StableHLO has several operands and results, and programs converted from HLO still contain them. An
op that passes tuples on (`_HANDS_ON`) takes and returns the elements instead, nested ones in order. The tuple is taken
apart before the op and rebuilt after it; `expand` then cancels these pairs. Callers of a function pass and get the
elements. Any other op with a tuple is left for the legality check.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, UnregisteredOp, Value
from orchestrion.compiler.ir.rewriter import Pattern, Rewriter, erase_unused
from orchestrion.compiler.ir.types import TupleType, Type, scalar
from orchestrion.compiler.stablehlo.ops.base import rebuilt
from orchestrion.compiler.stablehlo.ops.func import Func, change_signature

TUPLE: Final = "stablehlo.tuple"
ELEMENT: Final = "stablehlo.get_tuple_element"
_HANDS_ON: Final = frozenset(
    {"func.call", "func.return"}
    | {f"stablehlo.{name}" for name in ("case", "custom_call", "if", "optimization_barrier", "return", "while")}
)


def run(module: Module) -> None:
    for op in list(module.walk()):
        for block in op.inner_blocks():
            if _any(block.arguments):
                _flatten_arguments(block)
        if isinstance(op, Func):
            change_signature(op, lambda type: _leaves([type]))
        elif op.name in _HANDS_ON and (_any(op.operands) or _any(op.results)):
            _flatten(op)


def _any(values: Iterable[Value]) -> bool:
    return any(isinstance(value.type, TupleType) for value in values)


def _leaves(types: Iterable[Type]) -> list[Type]:
    """The types, with tuples replaced by the types of their elements, recursively."""
    return [leaf for type in types for leaf in (_leaves(type.elements) if isinstance(type, TupleType) else [type])]


def _flatten_arguments(block: Block) -> None:
    """Makes a block take the elements, and rebuild the tuple at its start."""
    old = list(block.arguments)
    builder = Builder(block, block.first)
    for argument in old:
        parts = [block.add_argument(type, argument.loc) for type in _leaves([argument.type])]
        argument.replace_by(_whole(builder, argument.type, iter(parts)))
    block.erase_arguments(range(len(old)))


def _flatten(op: Operation) -> None:
    before, behind = Builder.before(op), Builder.after(op)
    operands = [part for value in op.operands for part in _parts(before, value)]
    made = before.insert(rebuilt(op, operands, _leaves(result.type for result in op.results)))
    parts = iter(made.results)
    for result in op.results:
        result.replace_by(_whole(behind, result.type, parts))
    op.erase()


def _parts(builder: Builder, value: Value) -> list[Value]:
    """The elements of a tuple, recursively; any other value itself."""
    if not isinstance(value.type, TupleType):
        return [value]
    found = []
    for index, type in enumerate(value.type.elements):
        properties = {"index": IntegerAttr(index, scalar("i32"))}
        taken = builder.insert(UnregisteredOp(ELEMENT, [value], [type], properties))
        found += _parts(builder, taken.results[0])
    return found


def _whole(builder: Builder, type: Type, parts: Iterable[Value]) -> Value:
    """A value of the type, built from the next parts."""
    if not isinstance(type, TupleType):
        return next(iter(parts))
    elements = [_whole(builder, element, parts) for element in type.elements]
    return builder.insert(UnregisteredOp(TUPLE, elements, [type])).results[0]


def _element(op: Operation, rewriter: Rewriter) -> bool:
    """Replaces an element of a tuple by the operand that the tuple was built from."""
    index = op.get_as("index", IntegerAttr)
    maker = op.operands[0].defining_op if len(op.operands) == 1 else None
    if index is None or maker is None or maker is op or maker.name != TUPLE or len(op.results) != 1:
        return False
    if not 0 <= index.value < len(maker.operands) or maker.operands[index.value].type != op.results[0].type:
        return False
    return rewriter.replace(op, [maker.operands[index.value]])


PATTERNS: Final[dict[str, tuple[Pattern, ...]]] = {ELEMENT: (_element,), TUPLE: (erase_unused,)}
