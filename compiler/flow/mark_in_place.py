"""mark-in-place: marks the arguments of a dispatch whose memory its result may use.

An argument qualifies if result element i reads its element i and no other, and the elements have the same size: an
invocation has read the only element that it overwrites. In a kernel by rows, reductions may also read the row of the
argument, because they run before the row is written. Only dispatches with one result qualify, because elements for a
second result would be read later. The sequencer decides whether the memory is free.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, BlockArgument, Operation, Value
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.func import Func

from .dialect import Dispatch, Executable
from .layout import storage_bytes
from .row_bodies import rows_of
from .structure import reads_in_order


def run(module: Module) -> None:
    """Marks the arguments of all dispatches."""
    found: dict[str, list[int]] = {}
    for executable in module.block.of(Executable):
        entry = executable.entry
        found[executable.sym_name.value] = candidates(entry.body.block, is_by_rows(entry))
    for op in module.walk():
        if isinstance(op, Dispatch) and op.get("tied") is None and found[op.entry.root]:
            op.in_place = dense_ints(*found[op.entry.root])


def is_by_rows(entry: Func) -> bool:
    """Whether an entry computes its results row by row."""
    return entry.kind is not None and entry.kind.value == "rows"


def candidates(body: Block, by_rows: bool) -> list[int]:
    """Numbers of the arguments whose memory the result may use. `by_rows`: the entry computes row by row."""
    if len(body.end.operands) != 1:
        return []
    (result,) = body.end.operands
    ops = body.ops[:-1]
    in_order = values_in_order(ops, [result], by_rows)
    found = [a for a in body.arguments if in_order.get(a) and _fits(a, result)]
    return [a.index for a in found if not by_rows or rows_of(ops, [result], [a]) is not None]


def values_in_order(ops: Sequence[Operation], results: Sequence[Value], by_rows: bool = False) -> dict[Value, bool]:
    """Value -> whether all ops that read it, read it in the order of the results."""
    in_order = dict.fromkeys(results, True)
    for op in reversed(ops):
        ordered = all(in_order[value] for value in op.results if value in in_order)
        for index, value in enumerate(op.operands):
            by_row = by_rows and isinstance(op, Reduce) and index < len(op.inputs)
            fits = by_row or (ordered and reads_in_order(op, index))
            in_order[value] = fits and in_order.get(value, True)
    return in_order


def _fits(argument: BlockArgument, result: Value) -> bool:
    given, made = argument.type, result.type
    assert isinstance(given, TensorType) and isinstance(made, TensorType)
    same = given.num_elements == made.num_elements and given.encoding == made.encoding == ""
    return same and storage_bytes(given) == storage_bytes(made)
