"""The state of a running call: its stack of frames, its remaining fuel, and the block where it continues.

The interpreter and the ops change its fields; this file does not know instructions. A call belongs to one context and
is run by one thread at a time. Fuel is given out in slices, so the hot path only counts down one integer. When a slice
is used up, `refuel` compares the clock, the cancellation and the total fuel with the limits.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from orchestrion.hal.errors import DeadlineExceeded as HalDeadlineExceeded

from .errors import Cancelled, DeadlineExceeded, DepthExceeded, FuelExhausted

if TYPE_CHECKING:
    from orchestrion.hal.device import Device
    from orchestrion.hal.executable import Executable
    from orchestrion.hal.semaphore import Fence

    from .errors import DeviceLost, VmError
    from .growable_buffers import ResultBuffers
    from .limits import Limits
    from .linker import LinkedProgram
    from .load_facts import LoadFacts
    from .load_progress import BuildProgress
    from .memory import Memory
    from .pending_batch import PendingBatch

#: units of fuel (about one per instruction) between two checks of the clock and of cancellation: a few milliseconds
SLICE = 1 << 14
#: registers of all frames of a call
MAX_FRAME_REGISTERS = 1 << 18
#: bytes that are filled, copied, compared or cleared for one unit of fuel
BYTES_PER_UNIT = 256
#: units of fuel for creating an object of the device: a buffer, a recording, an executable, a fence
OBJECT_UNITS = 16
#: bytes of allocated device memory for one more unit of fuel: the memory is zeroed
ALLOCATED_BYTES_PER_UNIT = 4096


class Builds(Protocol):
    """Helper threads that build executables while initializers run. See `parallel_builds.py`."""

    def take(self, ordinal: int) -> tuple[Executable, float] | None:
        """The executable, and the seconds that the caller waited for it. None: the caller has to build it."""

    def end(self) -> None:
        """Begin no further build, and wait for the running builds."""


class CallContext(Protocol):
    """The context of a call, as the call and the native functions see it. See `context.py`."""

    facts: LoadFacts
    builds: Builds | None
    progress: BuildProgress | None
    result_buffers: ResultBuffers | None
    constant_bytes: int
    device: Device | None
    lost: DeviceLost | None
    globals: list[Any]

    @property
    def program(self) -> LinkedProgram: ...

    @property
    def memory(self) -> Memory: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def cancelled(self) -> bool: ...

    @property
    def parent(self) -> CallContext | None:
        """The context of the program's initializers. None if this is that context."""

    @property
    def execute(self) -> Callable[..., object]:
        """`Queue.execute`: submits a recording and waits."""

    @property
    def build_seconds(self) -> float: ...

    def refusal(self) -> VmError:
        """The error of a call to a closed context."""


class Watcher:
    """Ends submitted work at a deadline, in seconds of the monotonic clock."""

    __slots__ = ("_deadline",)

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def check(self) -> None:
        if time.monotonic() >= self._deadline:
            raise HalDeadlineExceeded("the call that submitted the work exceeded its deadline")


class Meter:
    """Watches a recording with loops: it spends a unit of fuel of the call for each microsecond, and ends the work when
    a limit of the call is reached.
    """

    __slots__ = ("_call", "_last")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._last = time.monotonic_ns()

    def check(self) -> None:
        units = (time.monotonic_ns() - self._last) // 1000
        self._last += 1000 * units
        self._call.spend(units)
        self._call.check()


class Call:
    """A call of an exported function or of initializers."""

    __slots__ = (
        "block",
        "context",
        "deadline",
        "depth",
        "executables_built",
        "free_registers",
        "pending_batch",
        "fuel",
        "limited",
        "limits",
        "memory",
        "program",
        "regs",
        "reserve",
        "results",
        "resumption",
        "stack",
        "suspended",
        "waiting",
    )

    #: whether the call blocks its thread while it waits for the device; submitted calls are suspended instead
    blocking: ClassVar[bool] = True

    def __init__(self, context: CallContext, limits: Limits | None = None) -> None:
        """`limits`: of fuel, deadline and depth; None: those of the context. The context limits memory."""
        self.context = context
        self.program = context.program
        self.memory = context.memory
        self.limits = limits = context.limits if limits is None else limits
        self.limited = limits.deadline is not None or limits.fuel is not None
        self.depth = limits.depth - 1  #: the most frames in `stack`
        self.stack: list[tuple[list[Any], Any, int]] = []  #: the callers' registers, block and weight
        self.begin()

    def begin(self) -> None:
        """Reset the call: full fuel, a new deadline, no frames."""
        limits = self.limits
        self.free_registers = MAX_FRAME_REGISTERS
        self.regs: Any = None  #: the registers of the frame that continues
        self.block: Any = None  #: the block where it continues
        self.resumption: Any = None  #: the block where it continues when `waiting` is signalled
        self.suspended: Any = None  #: the block that ended with the suspension
        self.waiting: Any = None  #: the fence that a suspended call waits for
        self.results: tuple[Any, ...] = ()
        self.pending_batch: PendingBatch | None = None  #: enqueued recordings for the next submission
        self.executables_built: set[int] = set()  #: those whose build time was added to the deadline
        self.deadline = None if limits.deadline is None else time.monotonic() + limits.deadline
        fuel = None if limits.fuel is None else int(limits.fuel)
        self.fuel = SLICE if fuel is None else min(SLICE, fuel)
        self.reserve: int | None = None if fuel is None else fuel - self.fuel

    def refuel(self) -> None:
        """Take the next slice of fuel, once `fuel` is negative. Raises if a limit is reached."""
        self.check()
        if self.reserve is None:
            self.fuel = SLICE
            return
        left = self.reserve + self.fuel
        if left < 0:
            raise FuelExhausted(f"the call used up its fuel of {self.limits.fuel}{self.limits.origin('fuel')}")
        self.fuel = min(SLICE, left)
        self.reserve = left - self.fuel

    def check(self) -> None:
        """Raise `Cancelled` if the call was cancelled, `DeadlineExceeded` if its deadline has passed."""
        if self.context.cancelled:
            raise Cancelled("the call was cancelled")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            limits = self.limits
            raise DeadlineExceeded(f"the call ran longer than {limits.deadline} s{limits.origin('deadline')}")

    def depth_error(self) -> DepthExceeded:
        """The error for a frame that exceeds the limit of depth or of registers."""
        count = len(self.stack) + 1
        if count > self.depth:
            return DepthExceeded(f"calls are nested {count + 1} deep, {self.depth + 1} is the limit")
        return DepthExceeded(f"the frames of {count + 1} nested calls exceed {MAX_FRAME_REGISTERS} registers")

    def spend(self, units: int) -> None:
        """Spend fuel for work other than a branch backwards or a call."""
        self.fuel -= units
        if self.fuel < 0:
            self.refuel()

    def spend_bytes(self, count: int) -> None:
        """Spend fuel for work on `count` bytes."""
        if count >= BYTES_PER_UNIT:
            self.spend(count // BYTES_PER_UNIT)

    def spend_object(self, size: int = 0) -> None:
        """Spend fuel for creating an object of the device with `size` bytes of device memory."""
        self.spend(OBJECT_UNITS + size // ALLOCATED_BYTES_PER_UNIT)

    def postpone_deadline(self, executable: int, seconds: float) -> None:
        """Add the build time of an executable to the deadline, since `build_deadline` limits it. Only the first build
        of each executable counts: a program may create one again and again.
        """
        if self.deadline is not None and executable not in self.executables_built:
            self.executables_built.add(executable)
            self.deadline += seconds

    def watcher(self) -> Watcher | None:
        """An object that ends submitted work at the call's deadline, even after the call; None without a deadline."""
        return None if self.deadline is None else Watcher(self.deadline)

    def meter(self) -> Meter | Call:
        """A watcher for a recording with loops: it spends the call's fuel. The call itself if fuel is not limited."""
        return self if self.reserve is None else Meter(self)

    def reached(self, fence: Any) -> bool:
        """Whether a fence of the device was signalled. Raises the error of work that failed."""
        if not fence.reached:
            return False
        fence.wait(0.0)
        return True

    def wait(self) -> None:
        """Block until the fence `waiting` is signalled. Raises what `check` raises, within 0.1 s of a cancellation."""
        fence, self.waiting = self.waiting, None
        fence.watch(self, self.deadline)

    def time_left(self) -> float | None:
        """Seconds until the deadline; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class SuspendableCall(Call):
    """A call that is suspended where a blocking call would wait for the device. See `submit.py`."""

    __slots__ = ()

    blocking: ClassVar[bool] = False

    @abstractmethod
    def timeline(self) -> Fence:
        """The fence that the next submission to the device shall signal."""

    @abstractmethod
    def submitted_meter(self) -> Any:
        """As `watcher`, for a recording with loops: it also spends the call's fuel."""
