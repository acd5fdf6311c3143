"""Recordings as prepared calls: each step enqueues one kernel, copy or fill on the in-order queue.

Every dispatch has a kernel object of its own, so direct bindings and parameters are set once, while recording. What
depends on the table of slot buffers is set by `bind`, which does nothing when the table is the one before. A queue
in order needs no barriers.
"""

from collections.abc import Callable, Sequence
from functools import partial

import pyopencl as cl

from orchestrion.hal.backend import BackendBuffer, BackendCommandBuffer, BackendExecutable, Binding

from .buffer import OpenCLBuffer, Step, copy_step, fill_step
from .executable import OpenCLExecutable, words

Table = Sequence[BackendBuffer]


class OpenCLCommandBuffer(BackendCommandBuffer):
    __slots__ = ("_binders", "_queue", "_table", "steps")

    def __init__(self, queue: cl.CommandQueue, slots: int) -> None:
        self._queue = queue
        self.steps: list[Step] = []
        #: each sets what depends on the table
        self._binders: list[Callable[[Table], None]] = []
        self._table: Table | None = None

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        assert isinstance(executable, OpenCLExecutable)
        row = executable.entries[entry]
        kernel = executable.kernel(row)
        for position, binding in enumerate(bindings):
            if isinstance(binding.source, int):
                self._binders.append(partial(_set_slot, kernel, position, binding))
            else:
                kernel.set_arg(position, _buffer(binding, ()).argument(binding.offset, binding.length))
        for position, word in enumerate(words(parameters), len(bindings)):
            kernel.set_arg(position, word)
        size = row.workgroup_size
        total = (groups[0] * size[0], groups[1] * size[1], groups[2] * size[2])
        self.steps.append(partial(cl.enqueue_nd_range_kernel, self._queue, kernel, total, size))

    def copy(self, source: Binding, target: Binding) -> None:
        def make(table: Table) -> Step:
            places = (_buffer(source, table), source.offset, _buffer(target, table), target.offset)
            return copy_step(self._queue, *places, source.length)

        self._transfer(make, source, target)

    def fill(self, target: Binding, pattern: bytes) -> None:
        def make(table: Table) -> Step:
            return fill_step(self._queue, _buffer(target, table), target.offset, target.length, pattern)

        self._transfer(make, target)

    def barrier(self) -> None:
        """The queue runs its commands in order."""

    def finish(self) -> None:
        if not self._binders:
            self._table = []

    def bind(self, table: Table) -> None:
        """Make the steps use this table; the same one twice is free. No earlier run goes on enqueuing."""
        if table == self._table:
            return
        self._table = None  # for when a binder fails, and only some of them took the new table
        for binder in self._binders:
            binder(table)
        self._table = table

    def release(self) -> None:
        self.steps.clear()
        self._binders.clear()
        self._table = None

    def _transfer(self, make: Callable[[Table], Step], *bindings: Binding) -> None:
        if not any(isinstance(binding.source, int) for binding in bindings):
            self.steps.append(make(()))
            return
        position = len(self.steps)
        self.steps.append(_unbound)

        def bind(table: Table) -> None:
            self.steps[position] = make(table)

        self._binders.append(bind)


def _buffer(binding: Binding, table: Table) -> OpenCLBuffer:
    buffer = table[binding.source] if isinstance(binding.source, int) else binding.source
    assert isinstance(buffer, OpenCLBuffer)
    return buffer


def _set_slot(kernel: cl.Kernel, position: int, binding: Binding, table: Table) -> None:
    kernel.set_arg(position, _buffer(binding, table).argument(binding.offset, binding.length))


def _unbound() -> None:
    raise AssertionError("a step was run before its slots were bound")
