"""The driver interface: what a driver implements. Everything else calls the front (`hal.device.Device` and its
siblings).

`API_VERSION` is the version of this interface: of this file and of the names in `hal.public.PUBLIC`. A driver states
the version it was written for (`BackendDriver.api_version`). The driver runs if its major version equals this one and
its minor version is not newer: a minor version only adds methods with a body, fields with a default, and names.

Rules for both sides:
- The front validates every argument and counts every call before a backend gets it. Backends do neither.
- All sizes and offsets are bytes. A buffer's memory is little endian.
- No allocation, copy, fill or grid is empty; the front rounds allocations up to 16 bytes. A binding's length may be 0.
- A program never reads memory of another program. An allocation is zeroed, padding included, before anything can read
  it. The range that a kernel gets for a binding ends at the binding's length.
- A semaphore reaches the value that a submission promised when the submission is over, also if it failed. In that case
  `wait` for the value raises the error.
- The front keeps every buffer, executable and command buffer alive while work in flight may use it; a backend relies on
  that. The front calls `release` exactly once.
- Methods may be called from any thread. The front serialises calls on one queue, with two exceptions: a queue that
  `overlaps` gets `wait` at the same time, from several threads, and several threads call `create_executable` at once.
- A backend raises the errors of `hal.errors`; the message states the fact first, with both values. After
  `DeviceOutOfMemory` the front calls `trim` and may retry once. After `DeviceLost` it only waits, releases and closes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .device_info import NO_LIMIT as NO_LIMIT
from .device_info import DeviceInfo as DeviceInfo
from .device_info import Limits as Limits
from .errors import HalError, Unsupported
from .parallel_jobs import Progress, Using

#: major and minor version of the driver interface
API_VERSION = (1, 0)

Bytes = npt.NDArray[np.uint8]

#: error message of the signals of a submission that an exception interrupted before the driver had it
NOT_MADE = "the submission was interrupted before the device had it"


class MemoryUse(Enum):
    """What a buffer is for. The driver chooses the memory: which heap, and whether the host maps it.

    Every buffer can be read and written by kernels, copies, fills and the host, whatever its use is.

    | use | written by | read by | on a device with memory of its own |
    | --- | --- | --- | --- |
    | CONSTANT | the host or an initializer, once | kernels, in every call | device memory |
    | ARENA | kernels | kernels | device memory |
    | INPUT | the host, before a call | kernels of that call | device memory, mapped only if host writes are fast |
    | OUTPUT | kernels of a call | the host, after that call | device memory |
    | STAGING | the host, or copies | copies, or the host | host memory, mapped |

    Where host and device share one memory, the driver maps all of them.
    """

    CONSTANT = "constant"
    ARENA = "arena"
    INPUT = "input"
    OUTPUT = "output"
    STAGING = "staging"


class Entry(NamedTuple):
    """One entry point of an executable, as the module describes it; already verified."""

    name: str
    bindings: tuple[tuple[str, int], ...]  # (access "read" | "write" | "readwrite", least length) per binding
    parameter_words: int
    workgroup_size: tuple[int, int, int]


class NativeRange(NamedTuple):
    """A range of bytes of a buffer in the driver's own API: its handle, the first byte, and the number of bytes."""

    handle: Any
    offset: int
    size: int


class BackendBuffer(ABC):
    """Memory of a device."""

    size: int
    #: Persistent host mapping of all bytes, coherent once the work that touches it was waited for; else None.
    host: Bytes | None
    #: False if the host's processor does not cache the mapping: writing it is fast, reading it slow. The front then
    #: reads through `BackendQueue.read`.
    host_cached: bool = True

    @property
    def native(self) -> NativeRange | None:
        """Returns the bytes in the driver's own API, or None if it has no buffers. The front has read a byte before, so
        zeroing is over.
        """
        return None

    def map_file(self, file: int, size: int) -> bool:
        """Put private pages of a file in place of the first `size` bytes. False, without a change, if it cannot."""
        return False

    @abstractmethod
    def release(self) -> None: ...


class BackendExecutable(ABC):
    """Device code that is ready to dispatch.

    `cached`: whether the driver's binary was found in the user's cache; None if the driver stores none.
    """

    entries: tuple[Entry, ...]
    cached: bool | None = None

    def scratch_bytes(self, entry: int, parameters: bytes) -> int:
        """Bytes of memory that a running dispatch of the entry takes in addition to its bindings; counted against
        memory limits.
        """
        return 0

    def held_bytes(self, entry: int, parameters: bytes) -> int:
        """Bytes of host memory that a recorded dispatch of the entry keeps between runs."""
        return 0

    def code_bytes(self, entry: int, parameters: bytes) -> int:
        """Bytes of code that recording a dispatch of the entry reads and verifies; the virtual machine charges fuel for
        them.
        """
        return 0

    @abstractmethod
    def release(self) -> None: ...


class Binding(NamedTuple):
    """A range of a buffer, or of the buffer that a submission puts into a slot. `offset` and `length` are bytes."""

    source: BackendBuffer | int
    offset: int
    length: int

    def memory(self, table: Sequence[BackendBuffer]) -> Bytes:
        """The range in host memory, with the buffers of `table` in the slots. For drivers whose buffers all have
        `host`.
        """
        buffer = table[self.source] if isinstance(self.source, int) else self.source
        assert buffer.host is not None, "a buffer without host mapping"
        return buffer.host[self.offset : self.offset + self.length]


#: workgroup counts and parameters of an indirect dispatch
IndirectArgument = tuple[tuple[int, int, int], bytes]


class BackendCommandBuffer(ABC):
    """A recording that can be submitted any number of times. It never changes after `finish`."""

    @abstractmethod
    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None: ...

    @abstractmethod
    def copy(self, source: Binding, target: Binding) -> None:
        """Copy `source.length` bytes. Both lengths are equal, and the ranges do not overlap.

        If a table puts one buffer behind both bindings, the ranges may also be identical; then nothing is copied.
        """

    @abstractmethod
    def fill(self, target: Binding, pattern: bytes) -> None:
        """Repeat a pattern of 1, 2, 4 or 8 bytes. Offset and length are multiples of the pattern's size."""

    def fill_bytes(self, target: Binding, pattern: bytes) -> int:
        """Bytes of memory that a recorded fill takes in addition to the command."""
        return 0

    @abstractmethod
    def barrier(self) -> None:
        """Commands recorded later see the writes of commands recorded earlier."""

    def begin_loop(self, predicate: Binding) -> None:
        """Begin a loop. The commands up to its `end` run while the predicate, one byte, is not 0.

        The device reads the predicate before each iteration, including the first. Loops and branches nest. The driver
        orders memory as if a barrier stood before each read of a predicate or selector, before each iteration, and
        after each loop and branch. Called only if the device states `control_flow`, as are `begin_branch`, `next_arm`
        and `end`.
        """
        raise _no_control_flow(self)

    def begin_branch(self, selector: Binding, arms: int) -> None:
        """Begin a branch with `arms` arms, of which one runs. `next_arm` separates the arms, and `end` follows the last
        one.

        A selector of one byte is a predicate with two arms: the first runs if it is not 0. A selector of four bytes is
        a signed index; an index below 0 or above the last arm selects the last arm.
        """
        raise _no_control_flow(self)

    def next_arm(self) -> None:
        """End an arm of the innermost branch and begin the next one."""
        raise _no_control_flow(self)

    def end(self) -> None:
        """End the innermost loop or branch."""
        raise _no_control_flow(self)

    def dispatch_indirect(self, executable: BackendExecutable, entry: int, bindings: Sequence[Binding]) -> None:
        """Record a dispatch whose workgroup counts and parameters each instance supplies.

        Only for devices with `BackendDevice.indirect_dispatch`. A slot's range may be longer than the buffer in a
        table; then it ends with the buffer.
        """
        raise Unsupported(f"{type(self).__name__} records no indirect dispatches")

    def instance(self, arguments: Sequence[IndirectArgument | None], lengths: Sequence[int]) -> "BackendInstance":
        """Returns the finished recording with these arguments for its indirect dispatches, in order. A dispatch whose
        argument is None does not run.

        `lengths`: the bytes of each copy and fill, in order, at most as many as recorded; 0 skips it. Any number of
        instances may be in flight at once.
        """
        raise Unsupported(f"{type(self).__name__} records no indirect dispatches")

    @abstractmethod
    def finish(self) -> None: ...

    @abstractmethod
    def release(self) -> None: ...


def _no_control_flow(commands: BackendCommandBuffer) -> Unsupported:
    return Unsupported(f"{type(commands).__name__} records no loops and branches")


class BackendInstance(BackendCommandBuffer):
    """A recording with arguments for its indirect dispatches. It is submitted like a recording, and never recorded
    into.

    Made by `BackendCommandBuffer.instance`. It owns nothing that `release` would have to free; the front keeps the
    recording alive.
    """

    def dispatch(
        self,
        executable: BackendExecutable,
        entry: int,
        groups: tuple[int, int, int],
        bindings: Sequence[Binding],
        parameters: bytes,
    ) -> None:
        raise Unsupported("an instance is recorded already")

    def copy(self, source: Binding, target: Binding) -> None:
        raise Unsupported("an instance is recorded already")

    def fill(self, target: Binding, pattern: bytes) -> None:
        raise Unsupported("an instance is recorded already")

    def barrier(self) -> None:
        raise Unsupported("an instance is recorded already")

    def finish(self) -> None:
        raise Unsupported("an instance is recorded already")

    def release(self) -> None:
        """Nothing to do."""


class BackendSemaphore(ABC):
    """A timeline semaphore: a 64-bit value that only grows."""

    @property
    def native(self) -> Any:
        """Returns the handle in the driver's own API, or None if it has none."""
        return None

    @abstractmethod
    def value(self) -> int: ...

    @abstractmethod
    def signal(self, value: int) -> None: ...

    @abstractmethod
    def wait(self, value: int, timeout: float | None) -> bool:
        """Block until the value is reached. Returns False if `timeout` seconds pass first."""

    @abstractmethod
    def fail(self, value: int, error: HalError) -> None:
        """Reach the value without success. A wait for this value, or for one between the last reached value and it,
        raises `error`.
        """

    @abstractmethod
    def release(self) -> None: ...


Point = tuple[BackendSemaphore, int]
#: start and end of a command
Span = tuple[int, int]


class Watcher(Protocol):
    """Stops a wait or a running computation, for example at a deadline."""

    def check(self) -> None:
        """Raises if it is time to stop. The queue calls it repeatedly."""


#: a recording, and the buffer of each of its slots
BackendWork = tuple[BackendCommandBuffer, Sequence[BackendBuffer]]


def _host_memory(queue: "BackendQueue", buffer: BackendBuffer) -> Bytes:
    if buffer.host is None:
        raise Unsupported(f"{type(queue).__name__} cannot copy to and from buffers without host mapping")
    return buffer.host


class BackendQueue(ABC):
    """Executes work in order. Submissions of one queue start in the order in which they were submitted.

    A batch is a sequence of recordings that go to the device as one submission, as if a barrier stood between them. It
    may contain one recording several times, with the same or other tables.

    A blocking call is `execute` or `execute_batch`; the front holds the device's lock until it returns. If `overlaps`
    is true, a blocking call is two steps instead: `launch` or `launch_batch` under the lock, then `wait` without it, so
    that other threads can submit meanwhile. A driver that computes in the calling thread has nothing to overlap.
    """

    #: whether blocking calls are launched and waited for in two steps; if so, the driver implements the five methods
    #: from `create_ticket` to `abandon`
    overlaps: bool = False
    #: whether `prepare` does anything
    prepares: ClassVar[bool] = False

    def prepare(self, works: Sequence[BackendWork], using: Using, progress: Progress) -> None:
        """Do in advance what the first submissions of these works would do: compile and create what they need. Raises
        their errors. `using()` serialises use of this queue.
        """
        raise NotImplementedError(f"{type(self).__name__} prepares nothing")

    @abstractmethod
    def submit(
        self,
        batch: Sequence[BackendWork],
        waits: Sequence[Point],
        signals: Sequence[Point],
        watcher: Watcher | None = None,
    ) -> None:
        """Enqueue without blocking. An empty batch only waits and signals.

        If the work fails, its signals advance all the same, and a wait for them raises the error. A driver that
        computes on the host calls the watcher from time to time, in a thread of its own; the `HalError` that it raises
        ends the work.
        """

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        """Submit, and return when the work is done. This is the hot path of a blocking call: one submission and one
        wait.

        A driver that computes in the calling thread calls the watcher from time to time; an exception from it ends the
        work halfway. This default is `execute_batch` of one recording.
        """
        self.execute_batch([(commands, table)], watcher)

    @abstractmethod
    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        """As `execute`, for several recordings: one submission and one wait."""

    def create_ticket(self) -> Any:
        """Returns an object that identifies one launched submission until it was waited for, such as a fence.

        The front uses a ticket for one submission at a time, and reuses it after `wait` returned. The queue owns its
        tickets and releases all of them when the device is closed.
        """
        raise NotImplementedError(f"{type(self).__name__} does not overlap blocking calls")

    def launch(self, ticket: Any, commands: BackendCommandBuffer, table: Sequence[BackendBuffer]) -> None:
        """Submit without blocking: the first half of `execute`. Submissions start in the order of launches.

        The front keeps everything the work uses alive until the ticket was waited for, or until the work is over after
        `abandon`. The driver keeps what it created for this recording and table.
        """
        raise NotImplementedError(f"{type(self).__name__} does not overlap blocking calls")

    def launch_batch(self, ticket: Any, batch: Sequence[BackendWork]) -> None:
        """As `launch`, for several recordings: one submission."""
        raise NotImplementedError(f"{type(self).__name__} does not overlap blocking calls")

    def wait(self, ticket: Any, watcher: Watcher | None = None) -> None:
        """Return when the work launched with this ticket is over: the second half of `execute`. Raises its error.

        The front does not hold the device's lock. Other threads launch, wait and recover meanwhile, so shared state may
        be touched only in single steps of Python, or under a lock of the driver. The watcher is called from time to
        time; an exception from it ends the wait, not the work.
        """
        raise NotImplementedError(f"{type(self).__name__} does not overlap blocking calls")

    def abandon(self, ticket: Any) -> None:
        """Called after an exception ended `launch` or `wait`. The ticket is not used again. Its work may be in flight,
        or may not have been submitted.

        `recover` is called next, and does not signal before that work is over. A second call for the same ticket does
        nothing.
        """
        raise NotImplementedError(f"{type(self).__name__} does not overlap blocking calls")

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        """Copy from the host to a buffer without `host`, in order with later submissions. The caller may change `data`
        when this returns.

        `data` may be as large as the buffer, so copy it piece by piece: the host should never hold it twice. This
        default waits; it is for drivers whose buffers all have `host`.
        """
        self.wait_idle()
        _host_memory(self, buffer)[offset : offset + data.size] = data

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        """Copy to the host after all earlier work, and return when `out` is filled. For buffers without `host`, and for
        those with `host_cached` False.

        This default is for drivers whose buffers all have `host`.
        """
        self.wait_idle()
        out[:] = _host_memory(self, buffer)[offset : offset + out.size]

    @abstractmethod
    def wait_idle(self) -> None:
        """Return when all submitted work is over, including the work of a call that an exception ended."""

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        """Recover from a call of this queue that an exception ended, perhaps between two of its statements, as Ctrl-C
        does. Make the queue's state consistent, and reach `signals` once all submitted work is over.

        `unsure`: the signals of a submission that the device may or may not have. If it does not have it, these points
        fail. A driver that can signal behind its work does not wait; this default waits. An exception may end this
        method, too: then it is called again, with other signals, before any other method but `wait`.

        If the queue overlaps, submissions of other threads may be in flight, launched or submitted. They are not
        affected: their tickets and signals stay valid.
        """
        self.wait_idle()
        for semaphore, value in unsure:
            if semaphore.value() < value:
                semaphore.fail(value, HalError(NOT_MADE))
        for semaphore, value in signals:
            semaphore.signal(value)

    def take_timings(self) -> list[list[Span]]:
        """Returns the times of finished submissions that were not taken yet. For a device opened with profiling.

        The result has a list per submission with a non-empty batch, in the order of submission. Each list has a span
        for each dispatch, copy and fill, in the order of the batch and of recording; fewer if the work failed. Spans
        are nanoseconds of `hal.timing.now`, lie between the submitting call and the moment when the end was seen, and
        do not overlap.
        """
        raise NotImplementedError(f"{type(self).__name__} times no commands")


class BackendDevice(ABC):
    """An open device. `close` releases everything; the front has released its objects before."""

    info: DeviceInfo
    queue: BackendQueue
    #: whether `create_executable` calls a compiler whose time and memory are not linear in the payload
    compiles: ClassVar[bool] = True
    #: whether its command buffers record indirect dispatches (`BackendCommandBuffer.dispatch_indirect`)
    indirect_dispatch: ClassVar[bool] = False

    @abstractmethod
    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        """Returns a buffer of `size` bytes that reads as zeros, whatever was in the memory before.

        `use` decides where the buffer lies, never whether it works: a driver with one kind of memory may ignore it. A
        STAGING buffer is mapped (`BackendBuffer.host`) if the device maps any memory. May be called while another
        thread uses the queue. Raises OutOfMemory if there is no room, or `size` exceeds the device's largest
        allocation.
        """

    @abstractmethod
    def import_host(self, memory: Bytes) -> BackendBuffer | None:
        """Returns a buffer over host memory, which is not copied, or None if the device cannot import it (alignment,
        feature). Commands write to it only if `Limits.uses_host_addresses`.
        """

    def import_buffer(self, handle: Any, offset: int, size: int, writable: bool) -> BackendBuffer:
        """Returns a buffer over a range of bytes of a buffer of the driver's own API, which its owner keeps. Nothing
        outside of the range can be reached through it.

        `offset` is a multiple of `min_binding_alignment`. Raises InvalidArgument if the handle is no buffer of this
        device, if the range is outside of it as far as the API can tell, or if `writable` is true and the buffer is
        read-only.
        """
        raise Unsupported(f"device {self.info.id} has no buffers of an API of its own to import")

    @abstractmethod
    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> BackendExecutable:
        """Verify and build code. Several threads may call this at once, for different payloads.

        Raises ModuleError if the payload is malformed, Unsupported if the device lacks what it needs.
        """

    def trial_build(self, format: str, payload: memoryview, entries: tuple[Entry, ...], deadline: float) -> float:
        """Build the code in another process first, to find out whether `create_executable` terminates.

        Returns the seconds that the build took; 0 if an earlier build is on record. Called only if `compiles`, perhaps
        by several threads at once. Raises DeadlineExceeded if the build took longer than `deadline` seconds,
        BuildFailed if the driver crashed, and otherwise what `create_executable` would raise.
        """
        raise Unsupported(
            f"device {self.info.id} cannot limit the time for building code; build_deadline=inf "
            "(--build-deadline=inf) builds it without a limit"
        )

    @abstractmethod
    def create_command_buffer(self, slots: int) -> BackendCommandBuffer: ...

    @abstractmethod
    def create_semaphore(self, initial: int) -> BackendSemaphore: ...

    @property
    def native(self) -> Any:
        """Returns the handles in the driver's own API, for work that the caller submits to it directly; None without
        one.
        """
        return None

    def import_semaphore(self, handle: Any) -> BackendSemaphore:
        """Returns a semaphore over one of the driver's own API, which its owner keeps. Raises InvalidArgument for
        another kind of handle.
        """
        raise Unsupported(f"device {self.info.id} has no semaphores of an API of its own to import")

    def trim(self) -> bool:
        """Release memory kept for reuse; the queue's lock is held. Memory of work in flight stays. Returns whether any
        was released.
        """
        return False

    @abstractmethod
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Conformance:
    """What a driver declares to the conformance suite. `orchestrion.hal.cts` lists the names of the cases."""

    #: case -> why it can never pass here
    unsupported: Mapping[str, str] = field(default_factory=dict)
    #: case -> why it fails though it should pass; when it passes all the same, that is a failure
    expected_failures: Mapping[str, str] = field(default_factory=dict)
    #: False: dispatches are accepted and not executed, so that what they would compute is not checked
    computes: bool = True


class BackendDriver(ABC):
    """A driver as the entry-point group `orchestrion.hal` names it: a class that is created without arguments."""

    #: its entry point's name
    name: str
    #: version of the driver interface that it was written for; a driver that states none was written for 1.0
    api_version: ClassVar[tuple[int, int]] = (1, 0)
    conformance: Conformance = Conformance()
    #: whether it works in a process that was forked after the driver was used, as a driver without native state does
    forks: bool = False

    @abstractmethod
    def devices(self) -> list[DeviceInfo]:
        """Returns the devices that exist. Raises DriverUnavailable with the reason if the driver cannot be used."""

    @abstractmethod
    def open(self, info: DeviceInfo) -> BackendDevice: ...

    def use_threads(self, count: int) -> None:
        """Devices opened later run a dispatch on at most `count` threads of the host. Raises InvalidArgument for a
        wrong number.
        """
        raise Unsupported(f"driver {self.name} does not run on a number of threads of the host")

    def open_profiled(self, info: DeviceInfo) -> BackendDevice:
        """As `open`, for devices with `timestamps`. The device times its commands (`BackendQueue.take_timings`), and
        may run them one by one.
        """
        raise Unsupported(f"driver {self.name} times no commands")
