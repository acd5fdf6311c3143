"""limit-reductions: adds assertions to functions whose dynamic loops may exceed a machine's iteration limit.

The number of elements that a reduction or a dot reduces may be dynamic, and so may the number of updates per invocation
of a scatter. Some drivers terminate the loops of an invocation after `Quirks.max_loop_iterations` iterations, so an
invocation can handle only that many (docs/decisions/loop-iterations.md). A workgroup that shares one reduction can
handle as many times more as it has invocations. If the bounds of the symbols do not guarantee the limit, the function
asserts it. Programs for other machines stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from orchestrion.compiler.flow.dialect import Dispatch, Executable
from orchestrion.compiler.flow.scatter import Scatter
from orchestrion.compiler.ir.attributes import DimArray
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Size, bounds, is_dynamic
from orchestrion.compiler.ir.util import Assert
from orchestrion.compiler.kernel.machine import Machine
from orchestrion.compiler.kernel.reduction_limits import lanes_per_reduction, max_dynamic_elements, max_updates
from orchestrion.compiler.sequencer import hl_seq
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.contraction import DotGeneral, Reduce
from orchestrion.compiler.stablehlo.ops.func import Func
from orchestrion.compiler.targets.target import target

#: Kind of limit -> message of the assertion.
MESSAGES: Final = {
    "reductions": "a reduction covers {{0}} elements, {most} are the most on this machine",
    "updates": "a scatter has {{0}} updates, {most} are the most on this machine",
}

#: A size, its maximum, and a key of `MESSAGES`.
Limit = tuple[Size, int, str]


def run(program: hl_seq.Program) -> None:
    machine = target(program.profile).machine(program.machine_name)
    if machine is None:
        return
    limits: dict[str, list[Limit]] = {}
    for executable in program.body.block.of(Executable):
        limits[executable.sym_name.value] = [limit for op in executable.walk() for limit in _limits(op, machine)]
    for func in program.body.block:
        if isinstance(func, Func) and func.dims is not None:
            used = [limit for op in func.walk(Dispatch) for limit in limits[op.entry.root]]
            for length, most, what in dict.fromkeys(used):
                _assert(func, length, most, MESSAGES[what])


def _limits(op: Operation, machine: Machine) -> list[Limit]:
    """The dynamic sizes of an op that may exceed the limits of a machine: reduced elements, or updates of a scatter."""
    if isinstance(op, Scatter):
        updates = tensor_of(op.indices).shape[1]
        return [] if op.is_unique else _beyond(updates, max_updates(machine), "updates")
    most = max_dynamic_elements(machine)
    if isinstance(op, Reduce):
        reductions = tensor_of(op.results[0]).num_elements
        return _beyond(_along(op.inputs[0], op.dimensions.ints), most * lanes_per_reduction(reductions), "reductions")
    if isinstance(op, DotGeneral):
        return _beyond(_along(op.lhs, op.dimensions.lhs_contract), most * _sharing_dot(op), "reductions")
    return []


def _along(value: Value, axes: Sequence[int]) -> Size:
    return prod(tensor_of(value).shape[axis] for axis in axes)


def _sharing_dot(op: DotGeneral) -> int:
    """Number of invocations that share one reduction of a dot; 1 if the dot has both rows and columns."""
    dims, sides = op.dimensions, (op.lhs, op.rhs)
    free = [_along(value, dims.free(tensor_of(value).rank, value is op.lhs)) for value in sides]
    return 1 if 1 not in free else lanes_per_reduction(tensor_of(op.out).num_elements)


def _beyond(count: Size, most: int, what: str) -> list[Limit]:
    return [(count, most, what)] if is_dynamic(count) and bounds(count)[1] > most else []


def _assert(func: Func, length: Size, most: int, said: str) -> None:
    entry = func.entry
    anchor = next((op for op in entry if not isinstance(op, Assert)), None)
    Builder(entry, anchor, func.loc).build(
        Assert,
        predicate="le",
        lhs=DimArray((length,)),
        rhs=DimArray((most,)),
        numbers=DimArray((length,)),
        message=said.format(most=most),
    )
