"""What is recorded, and the two ways to run it again: a list of prepared calls, or an OpenCL command buffer.

- A command gives the call that enqueues it, or puts itself into a command buffer. What it is bound to directly is set
  once either way; what stands in slots comes from a table of buffers.
- `EnqueueList` has a call per command. Another table changes the calls that take slots, and of those what differs.
- `Recorded` has one call for all commands, for one table. Some drivers read a kernel's arguments only when the command
  buffer is submitted, so each has kernel objects of its own for the dispatches that take slots.
- The queue runs in order, so there are no barriers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

from orchestrion.hal.backend import BackendBuffer, Binding

from .api import Api, P, Sizes
from .buffer import OpenCLBuffer
from .failures import check

if TYPE_CHECKING:
    from .executable import Kernel, OpenCLExecutable

Table = Sequence[BackendBuffer]
#: enqueues something, and gives OpenCL's code
Step = Callable[[], int]

NO_EVENTS = (0, None, None)
NO_SYNC_POINTS = (0, None, None, None)


class Command(Protocol):
    #: whether it depends on the table
    slots: bool

    def enqueue(self, queue: int, table: Table) -> Step:
        """The call that enqueues this for the table. It replaces the one given before."""

    def record(self, commands: int, table: Table) -> Kernel | None:
        """Put this into a command buffer; with a kernel that is nobody else's, which its owner releases."""

    def release(self) -> None: ...


class Dispatch:
    """A launch."""

    __slots__ = ("_bindings", "_calls", "_entry", "_executable", "_kernel", "_local", "_parameters", "_total", "slots")

    def __init__(
        self,
        api: Api,
        executable: OpenCLExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        self._calls = api.calls
        self._executable = executable
        self._entry = executable.entries[entry]
        self._bindings = bindings
        self._parameters = parameters
        size = self._entry.workgroup_size
        self._local = Sizes(*size)
        self._total = Sizes(*(count * items for count, items in zip(groups, size, strict=True)))
        self._kernel: Kernel | None = None
        self.slots = takes_slots(*bindings)

    def enqueue(self, queue: int, table: Table) -> Step:
        size = (3, None, self._total, self._local)
        return partial(self._calls.clEnqueueNDRangeKernel, P(queue), P(self._own(table).handle), *size, *NO_EVENTS)

    def record(self, commands: int, table: Table) -> Kernel | None:
        kernel = self._bound(self._make(), table) if self.slots else self._own(table)
        size = (3, None, self._total, self._local)
        code = self._calls.clCommandNDRangeKernelKHR(commands, None, None, kernel.handle, *size, *NO_SYNC_POINTS)
        check(code, f"recording {self._entry.name}")
        return kernel if self.slots else None

    def release(self) -> None:
        if self._kernel is not None:
            self._kernel.release()
            self._kernel = None

    def _own(self, table: Table) -> Kernel:
        """The kernel of this dispatch, with the arguments of the table."""
        if self._kernel is None:
            self._kernel = self._make()
        return self._bound(self._kernel, table)

    def _make(self) -> Kernel:
        kernel = self._executable.kernel(self._entry)
        kernel.set_words(len(self._bindings), self._parameters)
        return kernel

    def _bound(self, kernel: Kernel, table: Table) -> Kernel:
        for position, binding in enumerate(self._bindings):
            kernel.set_buffer(position, resolve(binding, table), binding.offset, binding.length)
        return kernel


class Copy:
    __slots__ = ("_calls", "_prefix", "_source", "_target", "slots")

    def __init__(self, api: Api, source: Binding, target: Binding) -> None:
        self._calls = api.calls
        self._prefix = api.transfer_prefix
        self._source, self._target = source, target
        self.slots = takes_slots(source, target)

    def _arguments(self, table: Table) -> tuple[int, ...]:
        source, target = self._source, self._target
        objects = [resolve(binding, table).memory_object().int_ptr for binding in (source, target)]
        return (*objects, source.offset, target.offset, source.length)

    def enqueue(self, queue: int, table: Table) -> Step:
        source, target, taken, given, length = self._arguments(table)
        if source == target and taken == given:
            return _nothing
        return partial(self._calls.clEnqueueCopyBuffer, queue, source, target, taken, given, length, *NO_EVENTS)

    def record(self, commands: int, table: Table) -> None:
        source, target, taken, given, length = self._arguments(table)
        if source == target and taken == given:
            return
        arguments = (*self._prefix, source, target, taken, given, length)
        code = self._calls.clCommandCopyBufferKHR(commands, *arguments, *NO_SYNC_POINTS)
        check(code, f"recording a copy of {self._source.length} bytes")

    def release(self) -> None:
        """It has nothing of its own."""


def _nothing() -> int:
    """Enqueues a copy of a range onto itself, which OpenCL does not take."""
    return 0


class Fill:
    __slots__ = ("_calls", "_pattern", "_prefix", "_target", "slots")

    def __init__(self, api: Api, target: Binding, pattern: bytes) -> None:
        self._calls = api.calls
        self._prefix = api.transfer_prefix
        self._target = target
        self._pattern = ctypes.create_string_buffer(pattern, len(pattern))
        self.slots = takes_slots(target)

    def _arguments(self, table: Table) -> tuple[object, ...]:
        where, pattern = self._target, self._pattern
        target = resolve(where, table).memory_object().int_ptr
        return target, pattern, len(pattern), where.offset, where.length

    def enqueue(self, queue: int, table: Table) -> Step:
        return partial(self._calls.clEnqueueFillBuffer, queue, *self._arguments(table), *NO_EVENTS)

    def record(self, commands: int, table: Table) -> None:
        code = self._calls.clCommandFillBufferKHR(commands, *self._prefix, *self._arguments(table), *NO_SYNC_POINTS)
        check(code, f"recording a fill of {self._target.length} bytes")

    def release(self) -> None:
        """It has nothing of its own."""


def takes_slots(*bindings: Binding) -> bool:
    return any(isinstance(binding.source, int) for binding in bindings)


def resolve(binding: Binding, table: Table) -> OpenCLBuffer:
    """The buffer a binding names, or that the table puts into its slot."""
    buffer = table[binding.source] if isinstance(binding.source, int) else binding.source
    assert isinstance(buffer, OpenCLBuffer)
    return buffer


class EnqueueList:
    """A call per command, for the table bound last."""

    __slots__ = ("_commands", "_dependent", "_queue", "steps")

    def __init__(self, queue: int, commands: Sequence[Command], table: Table) -> None:
        self._queue = queue
        self._commands = commands
        self._dependent = [index for index, command in enumerate(commands) if command.slots]
        self.steps = [command.enqueue(queue, table) for command in commands]

    def bind(self, table: Table) -> None:
        """Make the calls for another table. Earlier runs are enqueued, and keep what they were given."""
        for index in self._dependent:
            self.steps[index] = self._commands[index].enqueue(self._queue, table)


class Recorded:
    """A command buffer of all commands for one table. It may be submitted while it is under way."""

    __slots__ = ("_held", "_owned", "steps")

    def __init__(self, api: Api, queue: int, commands: Sequence[Command], table: Table) -> None:
        handle = api.create_command_buffer(queue)
        self._owned: list[Callable[[], object]] = [partial(api.calls.clReleaseCommandBufferKHR, handle)]
        self._held: list[OpenCLBuffer] = []
        try:
            for command in commands:
                kernel = command.record(handle, table)
                if kernel is not None:
                    self._owned.append(kernel.release)
            check(api.calls.clFinalizeCommandBufferKHR(handle), "finishing a command buffer")
        except BaseException:
            self.release()
            raise
        for buffer in table:
            assert isinstance(buffer, OpenCLBuffer)
            if buffer.has_memory_object:
                buffer.holders.append(self)
                self._held.append(buffer)
        self.steps: Sequence[Step] = [partial(api.calls.clEnqueueCommandBufferKHR, 0, None, P(handle), *NO_EVENTS)]

    @property
    def released(self) -> bool:
        return not self._owned

    def release(self) -> None:
        """A buffer that goes and whoever needs room may both come here, on two threads: what one pops is its own."""
        with suppress(IndexError):
            while True:
                self._forget(self._held.pop())
        with suppress(IndexError):
            while True:
                self._owned.pop()()
        self.steps = ()

    def _forget(self, buffer: OpenCLBuffer) -> None:
        with suppress(ValueError):
            buffer.holders.remove(self)
