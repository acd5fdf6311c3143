"""Loops whose iterations the invocations of a workgroup share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from orchestrion.compiler.ir.core import Value

from .builder import KernelBuilder


@contextmanager
def each(b: KernelBuilder, lanes: int, outer: Value, inner: int) -> Iterator[tuple[Value, Value]]:
    """Loops over the elements of an array of `outer` by `inner` elements, of which this invocation of `lanes` takes
    some: the numbers of their row and column, as words. Elements are taken twice if invocations do not divide rows.
    """
    zero, size = b.const(0, "ui32"), b.const(inner, "ui32")
    if lanes >= inner and lanes % inner:
        loop = b.begin_loop(zero, outer, b.const(1, "ui32"), ())
        yield loop.index, b.op("minimum", b.local_id(), b.const(inner - 1, "ui32"))
    elif lanes >= inner:
        first, step = b.op("unchecked_divide", b.local_id(), size), b.const(lanes // inner, "ui32")
        loop = b.begin_loop(first, outer, step, ())
        yield loop.index, b.op("unchecked_remainder", b.local_id(), size)
    else:
        loop = b.begin_loop(zero, outer, b.const(1, "ui32"), ())
        columns = b.begin_loop(zero, size, b.const(lanes, "ui32"), ())
        column = columns.index
        column = b.op("minimum", column, b.const(inner - lanes, "ui32")) if inner % lanes else column
        yield loop.index, b.op("add", column, b.local_id())
        b.end_loop(columns, ())
    b.end_loop(loop, ())
