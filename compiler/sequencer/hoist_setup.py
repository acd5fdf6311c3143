"""The passes that move setup out of the run loops: each request finds it made.

`hoist-allocations`, `hoist-executables` (and constants), `hoist-recordings`: an op moves before the run loop when all
that it uses stands there. Equal executables and constants of several functions become one; so do their arenas, as the
requests of one instance never overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.builtin import Module
from orchestrion.compiler.ir.core import Operation, Value

from . import ll_seq

if TYPE_CHECKING:
    from orchestrion.compiler.pipeline import Options


def allocations(module: Module, options: Options) -> None:
    """The pass `hoist-allocations`."""
    for serve in _serves(module):
        _hoist(serve, (ll_seq.Allocate,))
    for instance in module.walk():
        if isinstance(instance, ll_seq.Instance):
            _share_arena(instance)


def executables(module: Module, options: Options) -> None:
    """The pass `hoist-executables`."""
    for serve in _serves(module):
        _hoist(serve, (ll_seq.CreateExecutable, ll_seq.Constant))
    for instance in module.walk():
        if isinstance(instance, ll_seq.Instance):
            _share_equal(instance)


def recordings(module: Module, options: Options) -> None:
    """The pass `hoist-recordings`."""
    for serve in _serves(module):
        _hoist(serve, (ll_seq.Record,))


def _serves(module: Module) -> list[ll_seq.Serve]:
    return [op for op in module.walk() if isinstance(op, ll_seq.Serve)]


def _hoist(serve: ll_seq.Serve, kinds: tuple[type[Operation], ...]) -> None:
    outer = serve.parent
    assert outer is not None
    for block in serve.body.blocks:
        for op in block.ops:
            if isinstance(op, kinds) and all(value.parent_block is outer for value in used(op)):
                op.detach()
                outer.insert_before(op, serve)


def used(op: Operation) -> Iterator[Value]:
    """What an op uses from outside, its regions included."""
    inside = {block for inner in op.walk() for region in inner.regions for block in region.blocks}
    for inner in op.walk():
        for value in inner.operands:
            if value.parent_block not in inside:
                yield value


def _share_arena(instance: ll_seq.Instance) -> None:
    arenas = [op for op in instance.body.block if isinstance(op, ll_seq.Allocate) and op.lifetime.value == "transient"]
    for other in arenas[1:]:
        first = arenas[0]
        first.size = IntegerAttr(max(first.size.value, other.size.value), first.size.type)
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
