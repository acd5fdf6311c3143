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

from .access import ROOT, Path, operand_paths
from .dialect import Dispatch, Executable
from .layout import storage_bytes
from .rows import rows_of

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
    paths: dict[Value, set[Path]] = {result: {ROOT}}
    for op in reversed(ops):
        reached = {path for value in op.results for path in paths.get(value, ())}
        for index, value in enumerate(op.operands):
            if by_rows and isinstance(op, Reduce) and index < len(op.inputs):
                paths.setdefault(value, set()).add(ROOT)
                continue
            for path in reached:
                paths.setdefault(value, set()).add(operand_paths(op, index, path, 1)[0])
    found = [a for a in body.arguments if paths.get(a) == {ROOT} and _fits(a, result)]
    return [a.index for a in found if not by_rows or rows_of(ops, [result], [a]) is not None]


def _fits(argument: BlockArgument, result: Value) -> bool:
    given, made = argument.type, result.type
    assert isinstance(given, TensorType) and isinstance(made, TensorType)
    same = given.num_elements == made.num_elements and given.encoding == made.encoding == ""
    return same and storage_bytes(given) == storage_bytes(made)
