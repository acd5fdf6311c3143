"""Streams: the loads of a loop that advance by a constant number of elements from one iteration to the next.

Indices of 32 bits may wrap, so LLVM computes the address of each of them in each iteration, and joined iterations need
a register for each address. A stream is a pointer that the loop hands on instead. Loads that are a constant distance
apart share one: their places are in range, so their distance does not wrap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.code.affine import sum_of
from orchestrion.schema.dtypes import DType

from .forms import Forms, has_barrier

_LOADS = k.Load | k.LoadShared | k.LoadLanes | k.LoadSharedLanes


@dataclass(frozen=True)
class Stream:
    """Loads of elements of a type from `memory`. The place of its base in the first iteration is `constant`, plus the
    values of `terms` times their factors, plus `step` times the lower bound. `step`: elements from one iteration to the
    next; `places`: index of a load -> elements behind the base.
    """

    memory: Value
    dtype: DType
    constant: int
    terms: Mapping[Value, int]
    step: int
    places: dict[Value, int]


def streams_of(loop: k.For, ops: Sequence[Operation], forms: Forms) -> list[Stream]:
    """The streams of the loads among the ops of a loop. A term may be the number of a workgroup or of an invocation,
    which code that runs invocations by their place does not compute.
    """
    index, inside = loop.body.block.arguments[0], set(loop.body.block)
    found: dict[object, Stream] = {}
    for op in ops:
        if not isinstance(op, _LOADS) or forms[op.operands[1]].stride != 0:
            continue
        memory, at = op.operands
        terms, constant = sum_of(at)
        bits = k.dtype_of(at).bits
        step = _signed(terms.pop(index, 0), bits)
        if not step or any(term.defining_op in inside for term in terms):
            continue
        dtype = k.dtype_of(op.output)
        key = memory, dtype.name, step, at.type, frozenset(terms.items())
        stream = found.setdefault(key, Stream(memory, dtype, constant, terms, step, {}))
        stream.places[at] = _signed(constant - stream.constant, bits)
    return list(found.values())


def distance_of(store: k.Store) -> int:
    """Elements from the place of a store to its place in the next iteration of the innermost loop with a barrier; 0 if
    there is none, or if that is not known.
    """
    loops = (op for op in store.enclosing() if isinstance(op, k.For) and has_barrier(op))
    loop = next(loops, None)
    step = None if loop is None else k.bits_of(loop.step)
    if loop is None or step is None:
        return 0
    terms = sum_of(store.index).terms
    return _signed(terms.get(loop.body.block.arguments[0], 0) * step, k.dtype_of(store.index).bits)


def _signed(number: int, bits: int) -> int:
    """A number modulo a power of two, as the nearest one to zero."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half
