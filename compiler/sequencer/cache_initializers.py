"""Keeps the results of program initializers in the user's cache, so that later loads skip the computation.

An initializer becomes three blocks:

- The first allocates the results and whatever else others need, and asks the cache; `cond_branch ^compute, ^done`.
- `^compute`: whatever only the computation needs; execute; save; `branch ^done`.
- `^done`: return.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrion.compiler.ir import util
from orchestrion.compiler.ir.attributes import IntegerAttr
from orchestrion.compiler.ir.builder import Builder
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.types import I32

from . import ll_seq


def cache_computed_buffers(body: Block) -> list[Block]:
    """Splits the only block of an initializer; returns its blocks."""
    *ops, end = body.ops
    computing = _only_for([op for op in ops if isinstance(op, ll_seq.Execute)], ops)
    made = [op for op in ops if isinstance(op, ll_seq.Allocate) and op.lifetime.value == "constant"]
    kept = [op.output for op in made if op not in computing]  # a buffer that only the computation uses is not cached
    if not kept or not computing:
        return [body]
    compute, done = Block(), Block()
    compute.take([op for op in ops if op in computing])
    done.take([end])
    _load_from_cache(Builder(body, loc=end.loc), kept, compute, done)
    saving = Builder(compute, loc=end.loc)
    for key, buffer in enumerate(kept):
        saving.build(ll_seq.CacheSave, buffer=buffer, key=key)
    saving.build(util.Branch, arguments=[], to=done)
    return [body, compute, done]


def _load_from_cache(builder: Builder, kept: Sequence[Value], compute: Block, done: Block) -> None:
    """Loads all cached buffers; branches to `compute` unless all were found."""
    found: Value | None = None
    for key, buffer in enumerate(kept):
        hit = builder.build(ll_seq.CacheLoad, buffer=buffer, key=key, output=I32).output
        found = hit if found is None else builder.build(util.Add, lhs=found, rhs=hit, out=I32).out
    assert found is not None
    wanted = builder.build(util.Constant, value=IntegerAttr(len(kept), I32), out=I32)
    missing = builder.build(util.CompareLt, lhs=found, rhs=wanted.out, out=I32)
    builder.build(util.CondBranch, condition=missing.out, arguments=[], then=compute, otherwise=done, counts=[0, 0])


def _only_for(wanted: list[Operation], ops: list[Operation]) -> set[Operation]:
    """The ops that only the ops in `wanted` use, with those."""
    found = set(wanted)
    for op in reversed(ops):
        users = [user for result in op.results for user in result.users()]
        if users and not any(found.isdisjoint(user.enclosing()) for user in users):
            found.add(op)
    return found
