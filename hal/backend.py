"""The driver interface: what a driver implements. Everybody else calls the front (`hal.device.Device` and its kin).

`API_VERSION` is the version of this interface: of this file and of the names in `hal.public.PUBLIC`. A driver states
the version it was written for (`BackendDriver.api_version`). It runs if the major version is the same and the minor
version is not newer than this one: a minor version only adds methods with a body, fields with a default, and names.

Rules for both sides:
- The front validates every argument and counts every call before a backend sees it; backends do neither.
- All sizes and offsets are bytes. A buffer's memory is little endian.
- No allocation is empty (the front rounds sizes up to 16), and no copy, fill or grid is. A binding's length may be 0.
- A program sees no memory of another: an allocation is zeroed, padding included, before anything can read it, and the
  range that a kernel gets for a binding ends at the binding's length.
- A semaphore's value reaches what a submission promised once that is over, also when it failed; then `wait` for that
  value raises the error.
- The front keeps every buffer, executable and command buffer that work in flight may touch alive until that
  work is done; a backend may rely on it. `release` is called exactly once, by the front.
- Methods may be called from any thread; the front serialises calls on one queue. A queue that `overlaps` gets `wait`
  beside them, from several threads at once, and `create_executable` is called by several threads at once anyway.
- A backend raises the errors of `hal.errors`, in words: fact first, both values. After `DeviceOutOfMemory` the front
  calls `trim` and may try once more; after `DeviceLost` it only waits, releases and closes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .errors import HalError, Unsupported
from .side_by_side import Progress, Using

#: major and minor version of the driver interface
API_VERSION = (1, 0)
NO_LIMIT = 2**63 - 1

Bytes = npt.NDArray[np.uint8]

#: message of the error with which the signals of a submission fail that an exception ended
NOT_MADE = "the submission was interrupted before the device had it"


class MemoryUse(Enum):
    """What a buffer is for. The driver chooses the memory: which heap, and whether the host maps it.

    Every buffer can be read and written by kernels, copies, fills and the host, whatever its use is.

    | use | written by | read by | on a device with memory of its own |
    | --- | --- | --- | --- |
    | CONSTANT | the host, once | kernels, in every call | device memory |
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


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers a device states; `NO_LIMIT` where it has no limit of its own."""

    max_workgroup_count: tuple[int, int, int]
    max_workgroup_size: int
    max_binding_length: int
    max_bindings: int
    max_parameter_bytes: int
    shared_memory_bytes: int
    min_binding_alignment: int
    host_import_alignment: int


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device as `--list-devices` shows it, and the profile that programs are matched against.

    `formats` are the executable formats it runs, best first: "tensor-bytecode", "spirv", "opencl-c", or one that a
    package declares. `verified_formats`: those whose code `create_executable` verifies, so that it cannot reach outside
    its bindings; code of strangers runs in these only, and only if the format is declared to be confined.
    `features` are names from `schema.profiles.FEATURES`, or `vendor.feature` of a package. `timestamps`: opened with
    profiling it times its commands. `control_flow`: recordings may hold loops and branches.
    """

    driver: str
    index: int
    name: str
    vendor: str
    version: str
    formats: tuple[str, ...]
    features: frozenset[str]
    limits: Limits
    memory_bytes: int
    notes: tuple[str, ...] = field(default=())
    timestamps: bool = False
    verified_formats: frozenset[str] = frozenset()
    control_flow: bool = False

    @property
    def id(self) -> str:
        """`vulkan` for a driver's first device, `vulkan:1` for the next."""
        return self.driver if self.index == 0 else f"{self.driver}:{self.index}"


class Entry(NamedTuple):
    """One entry point of an executable: what the module says of it, already verified."""

    name: str
    bindings: tuple[tuple[str, int], ...]  # (access "read" | "write" | "readwrite", least length) per binding
    parameter_words: int
    workgroup_size: tuple[int, int, int]


class NativeRange(NamedTuple):
    """Bytes of a buffer in a driver's own API: its handle, and which of its bytes."""

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
        """Its bytes in the driver's own API; None: it has no buffers. The front has read a byte: zeroing is over."""
        return None

    @abstractmethod
    def release(self) -> None: ...


class BackendExecutable(ABC):
    """Code of a device, ready to dispatch.

    `cached`: whether what the driver had built was found in the user's cache; None where nothing is kept there.
    """

    entries: tuple[Entry, ...]
    cached: bool | None = None

    def scratch_bytes(self, entry: int, parameters: bytes) -> int:
        """Memory that a dispatch of the entry takes beside its bindings while it runs; limits are held against it."""
        return 0

    def held_bytes(self, entry: int, parameters: bytes) -> int:
        """Host memory that a recorded dispatch of the entry keeps from one run to the next."""
        return 0

    def code_bytes(self, entry: int, parameters: bytes) -> int:
        """Bytes of code that recording a dispatch of the entry reads and verifies: the virtual machine takes fuel for
        them.
        """
        return 0

    @abstractmethod
    def release(self) -> None: ...


class Binding(NamedTuple):
    """A range of a buffer, or of whatever buffer a submit puts into the slot."""

    source: BackendBuffer | int
    offset: int
    length: int

    def memory(self, table: Sequence[BackendBuffer]) -> Bytes:
        """The range in the host's memory, with these buffers in the slots: for drivers whose buffers have `host`."""
        buffer = table[self.source] if isinstance(self.source, int) else self.source
        assert buffer.host is not None, "a buffer without host mapping"
        return buffer.host[self.offset : self.offset + self.length]


#: workgroup counts and parameters of an indirect dispatch
IndirectArgument = tuple[tuple[int, int, int], bytes]


class BackendCommandBuffer(ABC):
    """A recording that can be submitted any number of times. `finish` ends recording, after which it never changes."""

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
        """Copy `source.length` bytes; both lengths are equal and the ranges do not overlap.

        A table may put one buffer behind both: then they may be the same range, and nothing is to be copied.
        """

    @abstractmethod
    def fill(self, target: Binding, pattern: bytes) -> None:
        """Repeat a pattern of 1, 2, 4 or 8 bytes; offset and length are multiples of its size."""

    def fill_bytes(self, target: Binding, pattern: bytes) -> int:
        """Memory that a recorded fill takes beside the command."""
        return 0

    @abstractmethod
    def barrier(self) -> None:
        """What is recorded after sees the writes of what was recorded before."""

    def begin_loop(self, predicate: Binding) -> None:
        """Begin a loop: what is recorded up to its `end` runs while the predicate, one byte, is not 0.

        The device reads the predicate before each iteration, the first one included. Loops and branches nest. A barrier
        stands before each read of a predicate or selector, before each iteration, and after each loop and branch.
        Called only if the device states `control_flow`, as `begin_branch`, `next_arm` and `end`.
        """
        raise _no_control_flow(self)

    def begin_branch(self, selector: Binding, arms: int) -> None:
        """Begin a branch: of so many arms, with `next_arm` between two and `end` behind the last, one runs.

        A selector of one byte is a predicate with two arms: the first runs if it is not 0. A selector of four bytes is
        a signed index; one below 0 or above the last arm selects the last arm.
        """
        raise _no_control_flow(self)

    def next_arm(self) -> None:
        """End an arm of the innermost branch and begin the next one."""
        raise _no_control_flow(self)

    def end(self) -> None:
        """End the innermost loop or branch."""
        raise _no_control_flow(self)

    def dispatch_indirect(self, executable: BackendExecutable, entry: int, bindings: Sequence[Binding]) -> None:
        """Record a dispatch whose workgroup counts and parameters come with each instance.

        Only for devices with `BackendDevice.indirect_dispatch`. The range of a slot may be longer than the buffer that
        a table has there: it ends with the buffer.
        """
        raise Unsupported(f"{type(self).__name__} records no indirect dispatches")

    def instance(self, arguments: Sequence[IndirectArgument | None], lengths: Sequence[int]) -> "BackendInstance":
        """The finished recording with these for its indirect dispatches, in order; None: such a dispatch does not run.

        `lengths`: the bytes of each copy and fill, in order, at most as many as were recorded; 0: none. Any number of
        instances may be under way at once.
        """
        raise Unsupported(f"{type(self).__name__} records no indirect dispatches")

    @abstractmethod
    def finish(self) -> None: ...

    @abstractmethod
    def release(self) -> None: ...


def _no_control_flow(commands: BackendCommandBuffer) -> Unsupported:
    return Unsupported(f"{type(commands).__name__} records no loops and branches")


class BackendInstance(BackendCommandBuffer):
    """A recording with arguments for its indirect dispatches: submitted like a recording, and never recorded into.

    Made by `BackendCommandBuffer.instance`. It owns nothing that `release` would have to give back; the front keeps the
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
        """Its handle in the driver's own API; None where it has none."""
        return None

    @abstractmethod
    def value(self) -> int: ...

    @abstractmethod
    def signal(self, value: int) -> None: ...

    @abstractmethod
    def wait(self, value: int, timeout: float | None) -> bool:
        """Block until the value is reached; False when `timeout` seconds passed first."""

    @abstractmethod
    def fail(self, value: int, error: HalError) -> None:
        """Reach the value without success: who waits for it, or for one between, gets the error."""

    @abstractmethod
    def release(self) -> None: ...


Point = tuple[BackendSemaphore, int]
#: start and end of a command
Span = tuple[int, int]


class Watcher(Protocol):
    """Whoever waits for work and may lose patience."""

    def check(self) -> None:
        """Raises when it is time to stop."""


#: a recording, and the buffer of each of its slots
BackendWork = tuple[BackendCommandBuffer, Sequence[BackendBuffer]]


def _host_memory(queue: "BackendQueue", buffer: BackendBuffer) -> Bytes:
    if buffer.host is None:
        raise Unsupported(f"{type(queue).__name__} cannot copy to and from buffers without host mapping")
    return buffer.host


class BackendQueue(ABC):
    """Work in order. Submissions of one queue start in the order they were submitted.

    A batch is recordings that go to the device as one submission, as if a barrier stood between them. The same
    recording may be in it again and again, with the same or with other tables.

    A blocking call is `execute` or `execute_batch`, for which the front holds the device's lock until it returns. Where
    `overlaps` is true it is two steps instead: `launch` or `launch_batch` under the lock, and `wait` outside of it, so
    that other threads submit meanwhile. A driver that works in the calling thread has nothing to overlap.
    """

    #: whether blocking calls are launched and waited for in two steps; then the five methods from `create_ticket` to
    #: `abandon` are there
    overlaps: bool = False
    #: whether `prepare` does anything
    prepares: ClassVar[bool] = False

    def prepare(self, works: Sequence[BackendWork], using: Using, progress: Progress) -> None:
        """Make what first submissions of these works would make; errors as theirs. `using()` serialises use of this."""
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

        When the work fails its signals advance all the same, and waiting for them raises the error. A driver that works
        on the host asks the watcher now and then, in a thread of its own: the `HalError` it raises ends the work.
        """

    def execute(
        self, commands: BackendCommandBuffer, table: Sequence[BackendBuffer], watcher: Watcher | None = None
    ) -> None:
        """Submit and return when done: the hot path of a blocking call, one submission and one wait.

        A driver that works in the calling thread asks the watcher now and then; what it raises ends the work halfway.
        This default is `execute_batch` of one recording.
        """
        self.execute_batch([(commands, table)], watcher)

    @abstractmethod
    def execute_batch(self, batch: Sequence[BackendWork], watcher: Watcher | None = None) -> None:
        """As `execute`, for several recordings: one submission and one wait."""

    def create_ticket(self) -> Any:
        """What one launched submission is known by until it was waited for (a fence, say).

        The front uses a ticket for one submission at a time, and again once `wait` returned. It is the queue's, which
        lets go of all its tickets when the device is closed.
        """
        raise NotImplementedError(f"{type(self).__name__} does not overlap blocking calls")

    def launch(self, ticket: Any, commands: BackendCommandBuffer, table: Sequence[BackendBuffer]) -> None:
        """Submit without blocking: the first half of `execute`. Submissions start in the order of launches.

        Until the ticket was waited for, or until what follows `abandon` is over, the front keeps alive what the work
        uses. A driver keeps what it made of the recording for this table.
        """
        raise NotImplementedError(f"{type(self).__name__} does not overlap blocking calls")

    def launch_batch(self, ticket: Any, batch: Sequence[BackendWork]) -> None:
        """As `launch`, for several recordings: one submission."""
        raise NotImplementedError(f"{type(self).__name__} does not overlap blocking calls")

    def wait(self, ticket: Any, watcher: Watcher | None = None) -> None:
        """Return when the work launched with this ticket is over: the second half of `execute`. Raises its error.

        The front does not hold the device's lock. Other threads launch, wait and recover meanwhile, so what they touch
        may only be touched in single steps of Python, or under a lock of the driver. What the watcher raises, asked now
        and then, ends the wait and not the work.
        """
        raise NotImplementedError(f"{type(self).__name__} does not overlap blocking calls")

    def abandon(self, ticket: Any) -> None:
        """An exception ended `launch` or `wait`: the ticket is not used again, and its work may be under way, or not
        have been submitted. `recover` comes next, and does not signal before that work is over. A second call for the
        same ticket does nothing.
        """
        raise NotImplementedError(f"{type(self).__name__} does not overlap blocking calls")

    def write(self, buffer: BackendBuffer, offset: int, data: Bytes) -> None:
        """Copy from the host to a buffer without `host`, in order with later submissions. `data` is the caller's again
        when this returns.

        It may be as large as the buffer: copy it piece by piece, so that the host never holds it twice. This default
        waits, and is for drivers whose buffers all have `host`.
        """
        self.wait_idle()
        _host_memory(self, buffer)[offset : offset + data.size] = data

    def read(self, buffer: BackendBuffer, offset: int, out: Bytes) -> None:
        """Copy to the host after all earlier work; returns when `out` is filled. For buffers without `host`, and those
        with `host_cached` False.

        This default is for drivers whose buffers all have `host`.
        """
        self.wait_idle()
        out[:] = _host_memory(self, buffer)[offset : offset + out.size]

    @abstractmethod
    def wait_idle(self) -> None:
        """Return when all submitted work is over, that of a call which an exception ended included."""

    def recover(self, signals: Sequence[Point], unsure: Sequence[Point] = ()) -> None:
        """Recover from a call of this queue that an exception ended, perhaps between two of its statements, as Ctrl-C
        does: make the queue's state consistent, and reach `signals` once all submitted work is over.

        `unsure`: the signals of a submission that the device may or may not have. If it does not, these points fail. A
        driver that can signal behind its work does not wait; this default waits. An exception may end this method, too:
        then it is called again, with other signals, before any other method but `wait`.

        Where the queue overlaps, other threads' submissions may be under way, launched or submitted. They go on as they
        were: their tickets and signals stay what they are.
        """
        self.wait_idle()
        for semaphore, value in unsure:
            if semaphore.value() < value:
                semaphore.fail(value, HalError(NOT_MADE))
        for semaphore, value in signals:
            semaphore.signal(value)

    def take_timings(self) -> list[list[Span]]:
        """For a device opened with profiling: the times of submissions that are over and were not taken yet.

        A row per submission whose batch is not empty, in the order of submission, and in it a span for each dispatch,
        copy and fill, in the order of the batch and of recording; fewer when the work failed. Spans are nanoseconds of
        `hal.timing.now`, lie between the call that submitted and the moment when the end was seen, and do not overlap.
        """
        raise NotImplementedError(f"{type(self).__name__} times no commands")


class BackendDevice(ABC):
    """An open device. Closing it releases everything; the front has released its objects before."""

    info: DeviceInfo
    queue: BackendQueue
    #: whether `create_executable` calls a compiler whose time and memory are not linear in the payload
    compiles: ClassVar[bool] = True
    #: whether its command buffers record indirect dispatches (`BackendCommandBuffer.dispatch_indirect`)
    indirect_dispatch: ClassVar[bool] = False

    @abstractmethod
    def allocate(self, size: int, use: MemoryUse) -> BackendBuffer:
        """A buffer of `size` bytes that reads as zeros, whatever was in the memory before.

        `use` decides where the buffer lies, never whether it works: a driver with one kind of memory may ignore it.
        A STAGING buffer is mapped (`BackendBuffer.host`) if the device maps any memory. `OutOfMemory`: there is no
        room, or `size` exceeds the device's largest allocation. May be called while another thread uses the queue.
        """

    @abstractmethod
    def import_host(self, memory: Bytes) -> BackendBuffer | None:
        """A buffer over host memory, never copied nor written; None where the device cannot (alignment, feature)."""

    def import_buffer(self, handle: Any, offset: int, size: int, writable: bool) -> BackendBuffer:
        """Bytes of a buffer of the driver's own API, which stays its owner's. Nothing outside of them may be reached.

        `offset` is a multiple of `min_binding_alignment`. `InvalidArgument`: it is no buffer of this device, or, as far
        as the API can tell, the range is outside of it, or it is not `writable`.
        """
        raise Unsupported(f"device {self.info.id} has no buffers of an API of its own to import")

    @abstractmethod
    def create_executable(self, format: str, payload: memoryview, entries: tuple[Entry, ...]) -> BackendExecutable:
        """Verify and build. Several threads may call this at once, for different payloads.

        `ModuleError` when the payload is malformed, `Unsupported` when the device lacks what it needs.
        """

    def trial_build(self, format: str, payload: memoryview, entries: tuple[Entry, ...], deadline: float) -> float:
        """Build the code in another process first, to find out that `create_executable` comes to its end.

        Returns the seconds that the build took, 0 if an earlier one is on record. `DeadlineExceeded`: it took longer
        than `deadline` seconds. `BuildFailed`: the driver crashed. Otherwise raises what `create_executable` would.
        Called only if `compiles`, perhaps by several threads at once.
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
        """The handles in the driver's own API, for work that others submit beside ours; None where it has none."""
        return None

    def import_semaphore(self, handle: Any) -> BackendSemaphore:
        """A semaphore or event of the driver's own API, which stays its owner's. `InvalidArgument`: it is none."""
        raise Unsupported(f"device {self.info.id} has no semaphores of an API of its own to import")

    def trim(self) -> bool:
        """Give back memory kept for reuse, under the queue's lock; work under way keeps its own. Whether any was."""
        return False

    @abstractmethod
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Conformance:
    """What a driver says of itself to the conformance suite; cases are named as `orchestrion.hal.cts` lists them."""

    #: case -> why it can never pass here
    unsupported: Mapping[str, str] = field(default_factory=dict)
    #: case -> why it fails though it should pass; when it passes all the same, that is a failure
    expected_failures: Mapping[str, str] = field(default_factory=dict)
    #: False: dispatches are accepted and not executed, so that what they would compute is not checked
    computes: bool = True


class BackendDriver(ABC):
    """A driver as the entry-point group `orchestrion.hal` names it: a class without arguments."""

    #: its entry point's name
    name: str
    #: version of the driver interface that it was written for; a driver that states none was written for 1.0
    api_version: ClassVar[tuple[int, int]] = (1, 0)
    conformance: Conformance = Conformance()
    #: whether it works in a process that was forked after the driver was used: one of the host alone does
    forks: bool = False

    @abstractmethod
    def devices(self) -> list[DeviceInfo]:
        """What is there. `DriverUnavailable` says why nothing can be."""

    @abstractmethod
    def open(self, info: DeviceInfo) -> BackendDevice: ...

    def open_profiled(self, info: DeviceInfo) -> BackendDevice:
        """As `open`, for devices with `timestamps`: times commands (`BackendQueue.take_timings`), maybe one by one."""
        raise Unsupported(f"driver {self.name} times no commands")
