"""What must hold for every program between the phases, whatever fusion and memory planning decided."""

from collections.abc import Callable
from typing import Any

import pytest

from orchestrion.compiler.flow import dialect as flow
from orchestrion.compiler.flow.fusion_reads import HEROES, is_in_place
from orchestrion.compiler.flow.groups import MAX_BINDINGS
from orchestrion.compiler.flow.scatter import changes
from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import DictAttr, IntegerAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.types import TensorType
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.func import Func, Return
from orchestrion.compiler.stablehlo.ops.structural import BroadcastInDim

Phases = Callable[[Any], dict[str, Module]]


@pytest.mark.sampled(every=12)
def test_no_math_outside_executables(graph_case: Any, phases: Phases) -> None:
    allowed = (flow.Dispatch, flow.Splat, flow.Empty, util.GlobalLoad, util.BranchOp, *util.HOST_OPS, Return)
    for func in [op for op in phases(graph_case)["flow"].block if isinstance(op, Func)]:
        assert not [op.name for op in func.body.walk() if not isinstance(op, allowed)]


@pytest.mark.sampled(every=12)
def test_bodies_keep_the_contract(graph_case: Any, phases: Phases) -> None:
    """One hero, results of one size, or updates of it; or rows. No operand without elements, few enough bindings."""
    for executable in [op for op in phases(graph_case)["flow"].block if isinstance(op, flow.Executable)]:
        (func,) = executable.body.block
        assert isinstance(func, Func)
        body = func.body.block
        returned = body.ops[-1].operands
        work = {_work(value) for value in returned}
        results = [value.type for value in returned]
        assert len(body.arguments) + len(results) <= MAX_BINDINGS
        heroes = [op for op in body if isinstance(op, HEROES)]
        folds = {_work(hero.results[0]) for hero in heroes}
        if len(heroes) > 1 or folds and folds != work:
            assert len(folds) == 1 and {op.name for op in heroes} == {"stablehlo.reduce"}
            assert not any(count % rows for count in work for rows in folds)
        else:
            assert len(work) == 1
        for value in (*body.arguments, *(result for op in body for result in op.results)):
            empty = isinstance(value.type, TensorType) and value.type.num_elements == 0
            assert not empty or isinstance(value.defining_op, BroadcastInDim)


def _work(value: Value) -> int:
    """The elements that are computed for a result."""
    update = value.defining_op
    in_place = update is not None and is_in_place(update)
    return tensor_of(changes(update) if in_place else value).num_elements


@pytest.mark.sampled(every=12)
def test_barriers_part_what_conflicts(graph_case: Any, phases: Phases) -> None:
    """Between two barriers nothing is written that another command reads or writes; every range is in its buffer.

    A command may write over one range that it reads, all of it: an argument that gave its memory.
    """
    module = phases(graph_case)["ll_seq"]
    arena = max((op.size for op in module.walk() if isinstance(op, ll_seq.Allocate)), default=0)
    for record in [op for op in module.walk() if isinstance(op, ll_seq.Record)]:
        _check_barriers(record.body.block, module, arena)


def _check_barriers(block: Block, module: Module, arena: int) -> None:
    """The commands of a recording, or of a loop or branch in it, which is ordered with all commands around it."""
    done: list[tuple[object, int, int, bool]] = []
    for op in block:
        if isinstance(op, ll_seq.Barrier):
            done.clear()
            continue
        if isinstance(op, ll_seq.Loop | ll_seq.Branch):
            for region in op.regions:
                _check_barriers(region.block, module, arena)
            done.clear()
            continue
        ranges = list(_ranges(op, module))
        for memory, start, end, writes in ranges:
            for other, first, last, wrote in done:
                apart = memory is not other or end <= first or last <= start
                assert apart or not (writes or wrote), f"{op.name} conflicts at {start}"
            if isinstance(getattr(memory, "defining_op", None), ll_seq.Allocate):
                assert end <= arena
        inside = [(m, s, e) for m, s, e, _ in ranges]
        written = [(m, s, e) for m, s, e, writes in ranges if writes]
        for memory, start, end in written:
            others = [(s, e) for m, s, e in inside if m is memory and s < end and start < e]
            assert set(others) == {(start, end)} and len(others) <= 2  # itself, and the argument it overwrites
        done += ranges


def _ranges(op: Operation, module: Module) -> list[tuple[object, int, int, bool]]:
    """(memory, start, end, writes) of a command."""
    match op:
        case ll_seq.Copy():
            source, target, n = op.source_offset, op.target_offset, op.length
            return [(op.source, source, source + n, False), (op.target, target, target + n, True)]
        case ll_seq.Fill():
            return [(op.target, op.offset, op.offset + op.length, True)]
        case ll_seq.Dispatch():
            entry = next(e for e in module.walk() if isinstance(e, ll_seq.Entry) and e.symbol == op.entry.nested[0])
            found = []
            for memory, start, binding in zip(op.bindings, op.offsets.ints, entry.bindings, strict=True):
                assert isinstance(binding, DictAttr)
                length = binding.get("length")
                assert isinstance(length, IntegerAttr)
                found.append((memory, start, start + length.value, "write" in str(binding.get("access"))))
            return found
        case _:
            return []


@pytest.mark.parametrize(
    ("name", "dispatches"),
    [("simple_mul", 1), ("layer_norm", 1), ("softmax", 1), ("matmul_fused", 1), ("pass_through", 0), ("euclidean", 1)],
)
def test_number_of_dispatches(name: str, dispatches: int, cases: dict[str, Any], phases: Phases) -> None:
    module = phases(cases[name])["flow"]
    assert sum(isinstance(op, flow.Dispatch) for op in module.walk()) == dispatches
