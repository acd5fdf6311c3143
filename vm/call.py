"""A running call: its stack of frames, what it may still spend, where it goes on.

The interpreter and the ops work on its fields; nothing here knows instructions. A call belongs to one context and is
run by one thread at a time. Fuel is handed out in slices, so that the hot path only counts down one integer; when a
slice is used up, `refuel` looks at the clock, at `cancel` and at the total.
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

#: units of fuel (instructions, about) between two looks at clock and cancellation: a few milliseconds
SLICE = 1 << 14
#: registers of all frames of a call
MAX_ROOM = 1 << 18
#: bytes that fill, copy, compare or clear memory for one unit of fuel
BYTES_PER_UNIT = 256
#: units of fuel for making an object of the device: a buffer, a recording, an executable, a fence
OBJECT_UNITS = 16
#: bytes of device memory for one more unit of fuel: it is zeroed when it is allocated
ALLOCATED_BYTES_PER_UNIT = 4096


class Builds(Protocol):
    """Helpers that build executables while initializers run. See `parallel_builds.py`."""

    def take(self, ordinal: int) -> tuple[Executable, float] | None:
        """The executable and the seconds that it was waited for; None: the caller has to build it."""

    def end(self) -> None:
        """Begin no further build, and wait for those under way."""


class CallContext(Protocol):
    """What a running call and the native functions that it calls ask of its context. See `context.py`."""

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
        """The context of the program's initializers; None for that one itself."""

    @property
    def execute(self) -> Callable[..., object]:
        """Runs recordings and waits: `Queue.execute`."""

    @property
    def build_seconds(self) -> float: ...

    def refusal(self) -> VmError:
        """Why a closed context does nothing."""


class Watcher:
    """Ends submitted work at a moment."""

    __slots__ = ("_deadline",)

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def check(self) -> None:
        if time.monotonic() >= self._deadline:
            raise HalDeadlineExceeded("the call that submitted the work ran longer than it may")


class Call:
    """One call of an exported function or an initializer."""

    __slots__ = (
        "block",
        "built",
        "context",
        "deadline",
        "depth",
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
        "room",
        "stack",
        "suspended",
        "waiting",
    )

    #: whether its thread waits for the device; submitted calls are suspended instead
    blocking: ClassVar[bool] = True

    def __init__(self, context: CallContext, limits: Limits | None = None) -> None:
        """`limits`: None for those of the context. The context limits memory, whatever is given here."""
        self.context = context
        self.program = context.program
        self.memory = context.memory
        self.limits = limits = context.limits if limits is None else limits
        self.limited = limits.deadline is not None or limits.fuel is not None
        self.depth = limits.depth - 1  #: frames below the running one
        self.stack: list[tuple[list[Any], Any, int]] = []
        self.begin()

    def begin(self) -> None:
        """Nothing spent, nothing run."""
        limits = self.limits
        self.room = MAX_ROOM
        self.regs: Any = None  #: registers of the frame to go on with
        self.block: Any = None
        self.resumption: Any = None  #: the block to go on at when `waiting` is signalled
        self.suspended: Any = None  #: the block that ended with the suspension
        self.waiting: Any = None
        self.results: tuple[Any, ...] = ()
        self.pending_batch: PendingBatch | None = None  #: for the next submission
        self.built: set[int] = set()  #: executables whose build time was added to the deadline
        self.deadline = None if limits.deadline is None else time.monotonic() + limits.deadline
        fuel = None if limits.fuel is None else int(limits.fuel)
        self.fuel = SLICE if fuel is None else min(SLICE, fuel)
        self.reserve: int | None = None if fuel is None else fuel - self.fuel

    def refuel(self) -> None:
        """The slice is overdrawn: end the call when a limit is reached, else hand out the next slice."""
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
        """`Cancelled` or `DeadlineExceeded` when it is time."""
        if self.context.cancelled:
            raise Cancelled("the call was cancelled")
        if self.deadline is not None and time.monotonic() >= self.deadline:
            limits = self.limits
            raise DeadlineExceeded(f"the call ran longer than {limits.deadline} s{limits.origin('deadline')}")

    def too_deep(self) -> DepthExceeded:
        """Why no further frame may be made."""
        count = len(self.stack) + 1
        if count > self.depth:
            return DepthExceeded(f"calls are nested {count + 1} deep, {self.depth + 1} is the limit")
        return DepthExceeded(f"the frames of {count + 1} nested calls exceed {MAX_ROOM} registers")

    def spend(self, units: int) -> None:
        """Fuel for work that is not a back-edge."""
        self.fuel -= units
        if self.fuel < 0:
            self.refuel()

    def spend_bytes(self, count: int) -> None:
        """Fuel for work that grows with a number of bytes."""
        if count >= BYTES_PER_UNIT:
            self.spend(count // BYTES_PER_UNIT)

    def spend_object(self, size: int = 0) -> None:
        """Spend fuel for making an object of the device that takes `size` bytes of its memory."""
        self.spend(OBJECT_UNITS + size // ALLOCATED_BYTES_PER_UNIT)

    def count_apart(self, executable: int, seconds: float) -> None:
        """Postpone the deadline by the time in which an executable was built, which has a limit of its own. Only the
        first build of each: a program that asks for more executables than are kept has them built again and again.
        """
        if self.deadline is not None and executable not in self.built:
            self.built.add(executable)
            self.deadline += seconds

    def watcher(self) -> Watcher | None:
        """Who ends work that the call submits when the call's time is up, also after the call."""
        return None if self.deadline is None else Watcher(self.deadline)

    def reached(self, fence: Any) -> bool:
        """Whether a fence was signalled; raises the error of work that failed."""
        if not fence.reached:
            return False
        fence.wait(0.0)
        return True

    def wait(self) -> None:
        """Block until the fence that suspended the call is signalled. `Cancelled` or `DeadlineExceeded` when it is
        time; a cancellation is seen within a tenth of a second.
        """
        fence, self.waiting = self.waiting, None
        fence.watch(self, self.deadline)

    def time_left(self) -> float | None:
        """Seconds; None where there is no deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class SuspendableCall(Call):
    """A call whose thread does not wait for the device: where it would, the call is suspended. See `submit.py`."""

    __slots__ = ()

    blocking: ClassVar[bool] = False

    @abstractmethod
    def timeline(self) -> Fence:
        """The fence that the next submission to the device shall signal."""
