"""An open device, as everything except drivers uses it: the root of the front.

The front is the one place that validates and counts. `share` returns another `Device` over the same hardware queue and
executables, with its own statistics, memory limit and leak accounting; use one per thread or VM context. `close`
reports what was not released. The hardware is released when all shares are closed or dropped, and nothing is in use.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from .allocator import Allocator
from .backend import BackendDevice, DeviceInfo, Entry
from .building import BuildBudget
from .command_buffer import CommandBuffer
from .errors import DeadlineExceeded, DeviceLost, HalError, InvalidArgument, Unsupported
from .executable import Executable, ExecutableCache
from .fork import after_fork, new_lock
from .lifetime import Account, DeviceState
from .lost import DetectLoss
from .memory_pressure import Callback, retry_after_freeing
from .policy import Policy
from .queue import queue_of
from .semaphore import MAX_VALUE, Semaphore
from .statistics import Statistics

if TYPE_CHECKING:
    from .residency import Pool

#: a unique number for each share made in this process
_numbers = count(1)
#: the kinds of objects that are counted for leaks
KINDS = ("buffer", "executable", "command buffer", "semaphore")


class _Opened(NamedTuple):
    """The accounts and the policy that a device was opened with; all shares refer to them."""

    accounts: tuple[Account, ...]
    policy: Policy


class Device:
    """An open device. Made by `hal.registry.open_device`, or by `Device.of` over a backend.

    Methods raise InvalidArgument on a closed device, and for an object that is released or of another device. Once the
    driver has raised `DeviceLost`, every use of the device and of its shares raises it, except `close`.
    """

    def __init__(
        self,
        state: DeviceState,
        accounts: tuple[Account, ...],
        executables: ExecutableCache,
        policy: Policy,
        builds: BuildBudget | None = None,
        opened: _Opened | None = None,
    ) -> None:
        self.device_state = state
        self.builds = builds
        self.info: DeviceInfo = state.backend.info
        self.policy = policy
        self.statistics = Statistics()
        self.live: dict[str, int] = dict.fromkeys(KINDS, 0)
        self.signal_lock = new_lock()
        self.closed = False
        self._why_closed = "is closed"
        self.executables = executables
        self.allocator = Allocator(self, accounts)
        self.streaming: Pool | None = None  #: of the program that this is a share for
        self.queue = queue_of(self)
        self._accounts = accounts
        self._opened = _Opened(accounts, policy) if opened is None else opened
        self._share = next(_numbers)
        state.shares[self._share] = weakref.ref(self)
        if state.lost is not None:  # by another thread, since the queue was made
            self.invalidate_after_loss()
        _devices.add(self)

    def __repr__(self) -> str:
        return f"<Device {self.info.id}: {self.info.name}{', closed' if self.closed else ''}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise InvalidArgument(f"the device {self.info.id} does not pickle: open it again by its name")

    @classmethod
    def of(cls, backend: BackendDevice, memory_limit: int | None = None, policy: Policy | None = None) -> Device:
        """Returns the front over an open backend device. `memory_limit` in bytes applies to all shares together."""
        executables = ExecutableCache()
        device = cls(
            DeviceState(backend), (Account(memory_limit),), executables, Policy() if policy is None else policy
        )
        device.device_state.memory_pressure.add(device, (), executables.release_unused)
        return device

    def share(
        self, memory_limit: int | None = None, budget: Account | None = None, builds: BuildBudget | None = None
    ) -> Device:
        """Returns another `Device` over the same hardware. Both memory limits apply to it, and it is closed
        independently.

        `budget` is charged as well: an account that also counts other memory. `builds` limits the time for building its
        code, and that of its own shares unless they get another one. Without it each executable has the default
        deadline.
        """
        self.check_open()
        self.check_not_lost()
        budgets = () if budget is None else (budget,)
        accounts = Account(memory_limit), *budgets, *self._accounts
        builds = self.builds if builds is None else builds
        made = Device(self.device_state, accounts, self.executables, self.policy, builds, self._opened)
        made.streaming = self.streaming
        return made

    def sibling(self, policy: Policy | None = None) -> Device:
        """Returns another `Device` over the same hardware, with the limits that the device was opened with instead of
        those of this share.

        `policy`: None for the policy that the device was opened with.
        """
        self.check_open()
        opened = self._opened
        policy = opened.policy if policy is None else policy
        return Device(self.device_state, opened.accounts, self.executables, policy, None, opened)

    def allow_signed(self, digest: bytes) -> None:
        """Allow native code of the module with this root digest on this share and on its own shares: the module is
        signed for that.
        """
        self.policy = self.policy.with_signed(digest)

    def create_executable(
        self, format: str, payload: memoryview, entries: tuple[Entry, ...], digest: bytes | None = None
    ) -> Executable:
        """Build code, or return it from the cache. `digest` is the root digest of the module that the code comes from.

        Code of trusted modules is built in this process (`Policy.builds_here`), unless the share has a build deadline.
        Raises Unsupported if the device lacks the format or something an entry needs, PolicyRefused for untrusted
        native code, ModuleError if the payload is malformed, and BuildDeadlineExceeded or BuildFailed if building it in
        a helper process took too long or crashed the driver.
        """
        self.check_open()
        if format not in self.info.formats:
            raise Unsupported(f"device {self.info.id} runs {', '.join(self.info.formats)}, not {format}")
        self.policy.check(format, digest, self.info)
        with DetectLoss(self.device_state):
            # several threads build for one share, so none of them speaks for the call that is under way there
            return retry_after_freeing(
                self.device_state, None, lambda: self.executables.get(self, format, payload, entries, digest)
            )

    def trial_build(
        self, format: str, payload: memoryview, entries: tuple[Entry, ...], digest: bytes | None
    ) -> float | None:
        """Build the code in a helper process, within the build deadline, if that is required
        (`BuildBudget.needs_helper`).

        Returns the seconds that the build took; 0 if an earlier build is on record, None if none was required. Raises
        the errors of `create_executable`.
        """
        backend = self.device_state.backend
        builds = BuildBudget() if self.builds is None else self.builds
        if not backend.compiles or not builds.needs_helper(self.policy, digest):
            return None
        left = builds.take(payload.nbytes)
        try:
            seconds = backend.trial_build(format, payload, entries, left)
        except DeadlineExceeded as error:
            builds.spend(left)
            raise builds.exceeded(payload.nbytes, left) from error
        builds.spend(seconds)
        return seconds

    def create_command_buffer(self, slots: int = 0, indirect: bool = False) -> CommandBuffer:
        """Start recording. Each submission supplies one buffer per slot.

        `indirect`: the recording may have indirect dispatches, whose arguments come with `CommandBuffer.instance`. When
        it is finished, only its instances are submitted. Raises Unsupported unless the device has `indirect_dispatch`.
        """
        self.check_open()
        commands = CommandBuffer(self, slots, indirect)
        if self.streaming is not None:
            self.streaming.adopt(commands.backend, self.statistics)
        return commands

    @property
    def indirect_dispatch(self) -> bool:
        """Whether command buffers may contain indirect dispatches."""
        return self.device_state.backend.indirect_dispatch

    def create_semaphore(self, initial: int = 0) -> Semaphore:
        """Returns a timeline semaphore with this initial value, 0 to 2**63 - 1."""
        self.check_open()
        if not 0 <= initial <= MAX_VALUE:
            raise InvalidArgument(f"semaphore value {initial} is not in 0 to {MAX_VALUE}")
        with DetectLoss(self.device_state):
            state = self.device_state
            return Semaphore(self, retry_after_freeing(state, self, lambda: state.backend.create_semaphore(initial)))

    def import_semaphore(self, handle: Any) -> Semaphore:
        """Returns a semaphore over the caller's own semaphore or event, to wait for and to signal. The caller still
        owns it, and keeps it alive while this one is used.

        OpenCL takes a `pyopencl.Event` of any context: its value is 0 until it completes, then 1. It can be signalled
        if it is a `UserEvent`. Vulkan takes a timeline `VkSemaphore` of this device (`native.device`), as an integer or
        a handle of the `vulkan` package. Raises InvalidArgument for other handles, Unsupported on other devices.
        """
        self.check_open()
        with DetectLoss(self.device_state):
            return Semaphore(self, self.device_state.backend.import_semaphore(handle))

    @property
    def native(self) -> Any:
        """The handles in the driver's own API, named as there (`OpenCLHandles`, `VulkanHandles`); None without one.

        They belong to the device: use them while it is open. Hold `lock` while submitting to its Vulkan queue.
        """
        self.check_open()
        return self.device_state.backend.native

    @property
    def lock(self) -> threading.Lock:
        """The lock of the driver's queue. No method of this device may be called while holding it."""
        return self.device_state.lock

    def check_open(self) -> None:
        if self.closed:
            raise InvalidArgument(f"device {self.info.id} {self._why_closed}")

    def on_memory_pressure(self, callback: Callback) -> None:
        """Register a bound method that is called when memory runs out (`memory_pressure.py`), while its
        object lives.
        """
        self.device_state.memory_pressure.add(self, self._accounts, callback)

    def check_not_lost(self) -> None:
        """Raises DeviceLost with the reason if the device is lost."""
        lost = self.device_state.lost
        if lost is not None:
            raise DeviceLost(f"device {self.info.id} was lost before: {lost}")

    def invalidate_after_loss(self) -> None:
        """See `DeviceState.lose`."""
        self.queue.invalidate_after_loss()

    def invalidate_after_fork(self, parent: int) -> None:
        """In a process that was forked from the owner: refuse every use of this device, and release nothing of it."""
        self.closed = True
        self._why_closed = f"was opened by process {parent}, of which this one is a fork; open it here as well"
        self.device_state.abandoned = True
        self.device_state.lock = self.queue.invalidate_after_fork(
            DeviceLost(f"device {self.info.id} {self._why_closed}")
        )

    @property
    def leaks(self) -> tuple[str, ...]:
        """What is not released now: a text per kind of object."""
        return tuple(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in self.live.items() if count)

    @property
    def close_seconds(self) -> float:
        """Seconds that `close` waits for work in flight; 30 by default. All shares of the device have one value."""
        return self.device_state.close_seconds

    @close_seconds.setter
    def close_seconds(self, seconds: float) -> None:
        if not seconds >= 0:
            raise InvalidArgument(f"device {self.info.id}: closing cannot wait {seconds} s")
        self.device_state.close_seconds = seconds

    def close(self) -> tuple[str, ...]:
        """Wait for submitted work and end the use of the device. Returns `leaks`, and warns (ResourceWarning) if there
        are any.

        Work that an exception left behind is waited for as well. After `close_seconds` a warning states how many
        submissions are not over. The resources of these submissions are kept until they are over, or for the life of
        the process.
        """
        return self._end(warn=True)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """As `close`, but without a warning if an exception is propagating, because its traceback may hold handles."""
        self._end(warn=kind is None)

    def __del__(self) -> None:
        """The device was dropped without `close`. Handles hold their device, so no handle is left."""
        if hasattr(self, "_share"):
            self.drop()

    def drop(self) -> None:
        """End the use soon, without waiting for work or taking a lock. For the finalizer of an object that owns the
        share.
        """
        if not self.closed:
            self.closed = True
            self.device_state.drop_share(self._share, self.executables.clear)

    def _leave(self) -> None:
        """Close the device after the last share. It can be called again after an exception."""
        if self.device_state.leave(self._share):
            self.executables.clear()
            self.device_state.close()
        self.closed = True

    def _end(self, warn: bool) -> tuple[str, ...]:
        if self.closed:
            return ()
        failure, over, lost = None, True, self.device_state.lost is not None
        try:
            over = self.queue.finish(self.device_state.close_seconds)
            if over:
                self.queue.wait_idle()
        except HalError as error:  # what failed in flight must not keep the device open
            failure = error
        leaks = self.leaks
        unfinished = self.device_state.unfinished
        self._leave()
        if not over:
            warnings.warn(
                f"device {self.info.id} closed while {unfinished} submission{'s were' if unfinished > 1 else ' was'} "
                f"not over after {self.device_state.close_seconds} s: what they use is kept until they are",
                ResourceWarning,
                3,
            )
        if leaks and warn:
            warnings.warn(f"device {self.info.id} closed with {', '.join(leaks)} not released", ResourceWarning, 3)
        if failure is not None and not lost:  # of a lost device everybody was told
            raise failure
        return leaks


_devices: weakref.WeakSet[Device] = weakref.WeakSet()


@after_fork
def _invalidate_after_fork(parent: int) -> None:
    for device in [*_devices]:
        device.invalidate_after_fork(parent)
