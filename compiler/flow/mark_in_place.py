"""mark-in-place: which arguments of a dispatch may give their memory to its result.

Those of which element i is read for element i of the result and for nothing else, and whose elements are as large: the
invocation that writes an element has then read the only one that it overwrites. Where rows are taken one by one, their
reductions may read the argument's row, too: that is done before the row is written. Dispatches of one result only, as
the elements of another would be read later. Whether the memory is free is for the sequencer to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.compiler.ir.attributes import dense_ints
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, BlockArgument, Value
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.stablehlo.ops.contraction import Reduce
from orchestrion.compiler.stablehlo.ops.func import Func

from .dialect import Dispatch, Executable
from .layout import storage_bytes
from .row_bodies import rows_of
from .structure import reads_in_order

if TYPE_CHECKING:
    from orchestrion.compiler.options import Options


def run(module: Module, options: Options) -> None:
    found: dict[str, list[int]] = {}
    for executable in module.block:
        if isinstance(executable, Executable):
            (entry,) = executable.body.block
            assert isinstance(entry, Func)
            found[executable.sym_name.value] = candidates(entry.body.block, is_by_rows(entry))
    for op in module.walk():
        if isinstance(op, Dispatch) and op.get("tied") is None and found[op.entry.root]:
            op.in_place = dense_ints(*found[op.entry.root])


def is_by_rows(entry: Func) -> bool:
    """Whether an entry is of the kind that computes rows one by one."""
    return entry.kind is not None and entry.kind.value == "rows"


def candidates(body: Block, by_rows: bool) -> list[int]:
    """The arguments, by number, that may give their memory to the result of an entry. `by_rows`: it is of that kind."""
    terminator = body.last
    assert terminator is not None
    if len(terminator.operands) != 1:
        return []
    (result,) = terminator.operands
    ops = body.ops[:-1]
    in_order: dict[Value, bool] = {result: True}  # whether all that read a value, read it in the order of the result
    for op in reversed(ops):
        ordered = all(in_order[value] for value in op.results if value in in_order)
        for index, value in enumerate(op.operands):
            by_row = by_rows and isinstance(op, Reduce) and index < len(op.inputs)
            fits = by_row or (ordered and reads_in_order(op, index))
            in_order[value] = fits and in_order.get(value, True)
    found = [a for a in body.arguments if in_order.get(a) and _fits(a, result)]
    return [a.index for a in found if not by_rows or rows_of(ops, [result], [a]) is not None]


def _fits(argument: BlockArgument, result: Value) -> bool:
    given, made = argument.type, result.type
    assert isinstance(given, TensorType) and isinstance(made, TensorType)
    same = given.num_elements == made.num_elements and given.encoding == made.encoding == ""
    return same and storage_bytes(given) == storage_bytes(made)
