"""The passes that hoist setup out of the run loops, so that requests reuse it.

`hoist-allocations`, `hoist-executables` (and constants) and `hoist-recordings` move an op before the run loop if all
its operands are defined there. Equal executables and constants of several functions are merged. Their arenas are merged
as well, because requests of one instance never overlap.

`hoist-per-shape` moves ops that depend only on the sizes of a request into a `per_shape`, whose results are reused by
later requests with the same sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrion.compiler.flow import util
from orchestrion.compiler.ir.attributes import DimArray
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Block, Operation, Region, Value
from orchestrion.compiler.ir.symbols import SymbolTables
from orchestrion.compiler.options import Options

from . import ll_seq


def allocations(module: Module, options: Options) -> None:
    """The pass `hoist-allocations`."""
    for run_loop in _run_loops(module):
        _hoist(run_loop, (ll_seq.Allocate,))
    for instance in module.walk():
        if isinstance(instance, ll_seq.Instance):
            _share_arena(instance)


def executables(module: Module, options: Options) -> None:
    """The pass `hoist-executables`."""
    for run_loop in _run_loops(module):
        _hoist(run_loop, (ll_seq.CreateExecutable, ll_seq.Constant))
    for instance in module.walk():
        if isinstance(instance, ll_seq.Instance):
            _share_equal(instance)


def recordings(module: Module, options: Options) -> None:
    """The pass `hoist-recordings`."""
    for run_loop in _run_loops(module):
        _hoist(run_loop, (ll_seq.Record,))


def per_shape(module: Module, options: Options) -> None:
    """The pass `hoist-per-shape`."""
    for run_loop in _run_loops(module):
        measures = [op for op in run_loop.body.blocks[0] if isinstance(op, ll_seq.Measure)]
        if measures:
            _per_shape(run_loop, measures)


#: Ops that depend on sizes only.
_OF_SIZES = (util.Assert, util.DimValue, ll_seq.Size, ll_seq.Allocate, ll_seq.Record)


def _per_shape(run_loop: ll_seq.RunLoop, measures: list[ll_seq.Measure]) -> None:
    ops = dict.fromkeys(op for block in run_loop.body.blocks for op in block.ops if isinstance(op, _OF_SIZES))
    body = Block()
    given = [value for op in ops for value in op.results if any(user not in ops for user in _outer(value, run_loop))]
    made = Builder.after(measures[-1]).build(
        ll_seq.PerShape,
        sizes=[op.output for op in measures],
        body=Region([body]),
        outputs=[value.type for value in given],
    )
    for op in ops:
        op.detach()
        body.append(op)
    for value, output in zip(given, made.outputs, strict=True):
        for user, index in list(value.uses):
            if _among(user, body) is None:
                user.set_operand(index, output)
    Builder(body, loc=run_loop.loc).build(ll_seq.Return, values=given)


def _outer(value: Value, run_loop: ll_seq.RunLoop) -> Iterator[Operation]:
    """The ops directly in the run loop that use a value, themselves or in their regions."""
    for user in value.users():
        outer = user
        while outer.parent_op is not run_loop:
            assert outer.parent_op is not None
            outer = outer.parent_op
        yield outer


def _among(op: Operation, block: Block) -> Operation | None:
    """The op of `block` that is `op` or contains it; None if there is none."""
    outer: Operation | None = op
    while outer is not None and outer.parent is not block:
        outer = outer.parent_op
    return outer


def _is_sized(op: Operation, tables: SymbolTables) -> bool:
    """Whether an op depends on the sizes of a request."""
    for inner in op.walk():
        if any(isinstance(value, DimArray) for value in inner.properties.values()):
            return True
        entry = tables.lookup(inner, inner.entry) if isinstance(inner, ll_seq.Dispatch) else None
        if isinstance(entry, ll_seq.Entry) and entry.dims is not None:
            return True
    return False


def _run_loops(module: Module) -> list[ll_seq.RunLoop]:
    return [op for op in module.walk() if isinstance(op, ll_seq.RunLoop)]


def _hoist(run_loop: ll_seq.RunLoop, kinds: tuple[type[Operation], ...]) -> None:
    outer, tables = run_loop.parent, SymbolTables()
    assert outer is not None
    for block in run_loop.body.blocks:
        for op in block.ops:
            if not isinstance(op, kinds) or run_loop.dims is not None and _is_sized(op, tables):
                continue
            if all(value.parent_block is outer for value in values_from_outside(op)):
                op.detach()
                outer.insert_before(op, run_loop)


def values_from_outside(op: Operation) -> Iterator[Value]:
    """Values from outside that an op uses, in its regions as well."""
    inside = {block for inner in op.walk() for region in inner.regions for block in region.blocks}
    for inner in op.walk():
        for value in inner.operands:
            if value.parent_block not in inside:
                yield value


def _share_arena(instance: ll_seq.Instance) -> None:
    """Merges the arenas of all functions that have the same label."""
    arenas = [op for op in instance.body.block if isinstance(op, ll_seq.Allocate) and op.lifetime.value == "transient"]
    shared: dict[str, ll_seq.Allocate] = {}
    for other in arenas:
        first = shared.setdefault(other.label.value, other)
        if first is other:
            continue
        first.size = max(first.size, other.size)
        other.output.replace_by(first.output)
        other.erase()


def _share_equal(instance: ll_seq.Instance) -> None:
    seen: dict[object, Operation] = {}
    for op in instance.body.block.ops:
        if isinstance(op, ll_seq.CreateExecutable | ll_seq.Constant):
            key = op.name, tuple(op.properties.items())
            known = seen.setdefault(key, op)
            if known is not op:
                op.result.replace_by(known.result)
                op.erase()
