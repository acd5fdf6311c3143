"""Recorded commands, and two ways to run them: a list of prepared calls, or an OpenCL command buffer.

- A command returns the call that enqueues it, or adds itself to a command buffer. Direct bindings are set once; slots
  take buffers from a table.
- `EnqueueList` has a call per command. Another table only changes the calls that use slots, and only the arguments that
  differ.
- `Recorded` has one call for all commands, for one table. Some drivers read a kernel's arguments only when the command
  buffer is submitted, so each recording has its own kernel objects for dispatches with slots. With mutable dispatch it
  can be bound to another table (`mutable_dispatch.py`).
- The queue runs in order, so there are no barriers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from orchestrion.hal.backend import BackendBuffer, Binding
from orchestrion.hal.errors import HalError

from .api import Api, P, Sizes
from .buffer import OpenCLBuffer
from .failures import check
from .mutable_dispatch import Binder, all_shared, updatable

if TYPE_CHECKING:
    from .executable import Kernel, OpenCLExecutable

Table = Sequence[BackendBuffer]
#: enqueues a command and returns OpenCL's code. Arguments: the number of events to wait for, their array, and the
#: address of the new event (`NO_EVENTS`: none of these)
Step = Callable[..., int]

NO_EVENTS = (0, None, None)
NO_SYNC_POINTS = (0, None, None, None)


class Command(Protocol):
    #: whether it depends on the table
    slots: bool

    def enqueue(self, queue: int, table: Table) -> Step:
        """Returns the call that enqueues the command for the table. It replaces the call returned before."""

    def record(self, commands: int, table: Table) -> Kernel | None:
        """Add the command to a command buffer. Returns a kernel that only this recording uses, or None; the caller
        releases it.
        """

    @property
    def mutable(self) -> bool:
        """Whether slots of the command can be updated in a command buffer."""

    def release(self) -> None: ...


class Dispatch:
    """A launch. `bindings` are buffers or slots."""

    __slots__ = (
        "_calls",
        "_entry",
        "_kernel",
        "_local",
        "_total",
        "bindings",
        "entry",
        "executable",
        "groups",
        "parameters",
        "slots",
    )

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
        self.executable = executable
        self.entry = entry
        self.groups = groups
        self.bindings = bindings
        self.parameters = parameters
        self._entry = executable.entries[entry]
        size = self._entry.workgroup_size
        self._local = Sizes(*size)
        self._total = Sizes(*(count * items for count, items in zip(groups, size, strict=True)))
        self._kernel: Kernel | None = None
        self.slots = takes_slots(*bindings)

    def enqueue(self, queue: int, table: Table) -> Step:
        size = (3, None, self._total, self._local)
        return partial(self._calls.clEnqueueNDRangeKernel, P(queue), P(self._own(table).handle), *size)

    mutable = True

    def record(self, commands: int, table: Table) -> Kernel | None:
        kernel = self._bound(self._make(), table) if self.slots else self._own(table)
        self._put(commands, None, kernel, None)
        return kernel if self.slots else None

    def record_mutable(self, commands: int, table: Table) -> tuple[Kernel, int]:
        """As `record`, for a dispatch with slots. Also returns the handle by which its arguments are updated."""
        kernel, handle = self._bound(self._make(), table), P()
        try:
            self._put(commands, updatable(), kernel, ctypes.byref(handle))
        except HalError:
            kernel.release()
            raise
        assert handle.value is not None
        return kernel, handle.value

    def _put(self, commands: int, properties: Any, kernel: Kernel, handle: Any) -> None:
        where = (commands, None, properties, kernel.handle, 3, None, self._total, self._local)
        check(self._calls.clCommandNDRangeKernelKHR(*where, 0, None, None, handle), f"recording {self._entry.name}")

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
        kernel = self.executable.kernel(self._entry)
        kernel.set_words(len(self.bindings), self.parameters)
        return kernel

    def _bound(self, kernel: Kernel, table: Table) -> Kernel:
        for position, binding in enumerate(self.bindings):
            kernel.set_buffer(position, resolve(binding, table), binding.offset, binding.length)
        return kernel


class Copy:
    mutable = False
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
            return nothing
        return partial(self._calls.clEnqueueCopyBuffer, queue, source, target, taken, given, length)

    def record(self, commands: int, table: Table) -> None:
        source, target, taken, given, length = self._arguments(table)
        if source == target and taken == given:
            return
        arguments = (*self._prefix, source, target, taken, given, length)
        code = self._calls.clCommandCopyBufferKHR(commands, *arguments, *NO_SYNC_POINTS)
        check(code, f"recording a copy of {self._source.length} bytes")

    def release(self) -> None:
        """Nothing to release."""


def nothing(*_: object) -> int:
    """The step of a copy of a range onto itself, which OpenCL does not accept: it enqueues nothing and has no event."""
    return 0


class Fill:
    mutable = False
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
        return partial(self._calls.clEnqueueFillBuffer, queue, *self._arguments(table))

    def record(self, commands: int, table: Table) -> None:
        code = self._calls.clCommandFillBufferKHR(commands, *self._prefix, *self._arguments(table), *NO_SYNC_POINTS)
        check(code, f"recording a fill of {self._target.length} bytes")

    def release(self) -> None:
        """Nothing to release."""


def takes_slots(*bindings: Binding) -> bool:
    return any(isinstance(binding.source, int) for binding in bindings)


def resolve(binding: Binding, table: Table) -> OpenCLBuffer:
    """The buffer of a binding, or the buffer that the table has in its slot."""
    buffer = table[binding.source] if isinstance(binding.source, int) else binding.source
    assert isinstance(buffer, OpenCLBuffer)
    return buffer


class EnqueueList:
    """A call per command, for the table that was bound last."""

    __slots__ = ("_commands", "_dependent", "_queue", "steps")

    def __init__(self, queue: int, commands: Sequence[Command], table: Table) -> None:
        self._queue = queue
        self._commands = commands
        self._dependent = [index for index, command in enumerate(commands) if command.slots]
        self.steps = [command.enqueue(queue, table) for command in commands]

    def bind(self, table: Table) -> None:
        """Prepare the calls for another table. Earlier runs are enqueued, and keep their arguments."""
        for index in self._dependent:
            self.steps[index] = self._commands[index].enqueue(self._queue, table)


class Recorded:
    """A command buffer of all commands for one table. It may be submitted again while it is in flight."""

    __slots__ = ("_held", "_owned", "steps")

    def __init__(self, api: Api, queue: int, commands: Sequence[Command], table: Table) -> None:
        handle = api.create_command_buffer(queue, mutable=False)
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
        self.steps: Sequence[Step] = [partial(api.calls.clEnqueueCommandBufferKHR, 0, None, P(handle))]

    @property
    def released(self) -> bool:
        return not self._owned

    def rebind(self, table: Table) -> bool:
        """Use this table from now on. Returns False if that is not possible, or not possible now."""
        return False

    def release(self) -> None:
        """Two threads may call this: one that releases a buffer, and one that needs memory. Each releases
        what it pops.
        """
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


class MutableRecorded(Recorded):
    """A command buffer that can be bound to another table of shared buffers. It holds no `cl_mem` of a slot.

    `_event` is that of its last run; `_unknown` is True while the event is not known.
    """

    __slots__ = ("_api", "_binder", "_enqueue", "_event", "_unknown")

    def __init__(self, api: Api, queue: int, commands: Sequence[Command], table: Table) -> None:
        handle = api.create_command_buffer(queue, mutable=True)
        self._api = api
        self._held = []
        self._event = P()
        self._unknown = False
        self._owned = [self._forget_event, partial(api.calls.clReleaseCommandBufferKHR, handle)]
        dispatches: list[tuple[int, Sequence[Binding]]] = []
        try:
            for command in commands:
                if isinstance(command, Dispatch) and command.slots:
                    kernel, dispatch = command.record_mutable(handle, table)
                    self._owned.append(kernel.release)
                    dispatches.append((dispatch, command.bindings))
                else:
                    command.record(handle, table)
            check(api.calls.clFinalizeCommandBufferKHR(handle), "finishing a command buffer")
        except BaseException:
            self.release()
            raise
        self._binder = Binder(api, handle, dispatches)
        self._enqueue: Step = partial(api.calls.clEnqueueCommandBufferKHR, 0, None, P(handle))
        self.steps = [self._run]

    def rebind(self, table: Table) -> bool:
        if self.released or self._unknown or not all_shared(table) or not self._api.is_over(self._event):
            return False
        try:
            self._binder.bind(table)
        except BaseException:
            self.release()
            raise
        return True

    def _run(self, count: int, events: object, where: int | None) -> int:
        """Enqueue. `where`: the address of the caller's event, which the caller releases, or None."""
        self._unknown = True  # stays True if an exception comes between two of these steps
        self._forget_event()
        code = self._enqueue(count, events, ctypes.addressof(self._event) if where is None else where)
        if where is not None and not code:
            handle = P.from_address(where).value
            self._api.calls.clRetainEvent(handle)
            self._event.value = handle
        self._unknown = False
        return code

    def _forget_event(self) -> None:
        event, self._event.value = self._event.value, None
        if event:
            self._api.calls.clReleaseEvent(event)


def record(api: Api, queue: int, commands: Sequence[Command], table: Table) -> Recorded:
    """Returns a command buffer for this table. It can be bound to other tables if the device and the commands support
    that.
    """
    slots = [command.mutable for command in commands if command.slots]
    if api.mutable_dispatch and slots and all(slots) and all_shared(table):
        return MutableRecorded(api, queue, commands, table)
    return Recorded(api, queue, commands, table)
