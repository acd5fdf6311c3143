"""A program's executables, built side by side while its initializers run.

- Helper threads build from the last executable on, and the thread that runs the initializers, which ask for them from
  the first on, builds what no helper has taken. So with one processor, or one executable, nothing is different.
- What a helper built, or the error that ended it, is the initializers' when they ask for that executable: errors are
  raised where they would be without helpers, and of what nobody asks for nobody is told.
- There are helpers only where a build takes long (`BackendDevice.compiles`), and for programs whose code is built
  without a limit on time or fuel: limits are counted build by build, in the order of the initializers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from orchestrion.hal.executable import Executable

from .fence import Future
from .load_progress import BuildProgress, LoadProgress
from .selection import Choice, choose_variant

if TYPE_CHECKING:
    from orchestrion.hal.device import Device

    from .call import CallContext
    from .limits import Limits
    from .linker import LinkedProgram


def choose(linked: LinkedProgram, device: Device, ordinal: int) -> Choice:
    """The variant of an executable of the program that the device gets. `DeviceError`: there is none."""
    module, known = linked.module, linked.code.chosen
    chosen = known.get(ordinal)
    if chosen is None or chosen.info is not device.info or not module.container.complete:
        chosen = choose_variant(module, module.executables[linked.row.executables_start + ordinal], device.info)
        if module.container.complete:
            known[ordinal] = chosen
    return chosen


def build(linked: LinkedProgram, device: Device, chosen: Choice) -> Executable:
    """The executable of that variant. Raises what `Device.create_executable` does, and `ModuleError`."""
    payload = linked.module.segment(chosen.payload)
    return device.create_executable(chosen.format, payload, chosen.entries, linked.module.container.digest)


def defer(context: CallContext, chosen: Choice, ordinal: int) -> Executable:
    """The executable of that variant, built when it is first used: `build`, noted among the facts of the context."""
    linked, device = context.program, context.device
    assert device is not None
    facts = context.facts

    def make() -> Executable:
        started = time.monotonic()
        made = build(linked, device, chosen)
        facts.build_seconds += time.monotonic() - started
        facts.builds[ordinal] = made.build
        return made

    return Executable.deferred(device, chosen.entries, make)


@contextmanager
def building(context: CallContext, limits: Limits, progress: LoadProgress | None) -> Generator[None]:
    """Have helpers build while a program's context runs its initializers within `limits`, where that is worth it.
    `progress` hears of each executable that is built.
    """
    linked, device = context.program, context.device
    if progress is not None and not linked.lazy:
        context.progress = BuildProgress(progress, linked.row.executables_end - linked.row.executables_start)
    builds = None
    if device is not None and _is_worth_it(linked, device, limits):
        builds = context.builds = ParallelBuilds(linked, device, context.progress)
    try:
        if builds is not None:
            builds.start()
        yield
    finally:
        context.progress = context.builds = None
        if builds is not None:
            builds.end()


def _is_worth_it(linked: LinkedProgram, device: Device, limits: Limits) -> bool:
    if linked.lazy:
        return False
    count, builds = linked.row.executables_end - linked.row.executables_start, device.builds
    if count < 2 or not device.device_state.backend.compiles or limits.fuel is not None:
        return False
    if builds is None or builds.declared is not None:
        return False
    return not builds.needs_helper(device.policy, linked.module.container.digest)


class ParallelBuilds:
    """Of one program, while it is loaded. `take` is called by the thread that runs the initializers."""

    def __init__(self, linked: LinkedProgram, device: Device, progress: BuildProgress | None) -> None:
        self._progress = progress
        self._linked = linked
        self._device = device
        count = linked.row.executables_end - linked.row.executables_start
        #: by ordinal, those that nobody asked for
        self._futures = {ordinal: Future(f"the build of executable {ordinal}") for ordinal in range(count)}
        self._left = self._futures.copy()  #: those that nobody has begun; who pops one, which is one step, builds it
        self._stopped = False
        helpers = min(os.cpu_count() or 1, count) - 1
        self._threads = [threading.Thread(target=self._help, daemon=True) for _ in range(helpers)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """No further build begins, and those under way are waited for."""
        self._stopped = True
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self._futures.clear()

    def take(self, ordinal: int) -> tuple[Executable, float] | None:
        """What a helper built and the seconds that it was waited for; None if no helper has begun to, or if it was
        asked for before: it is the caller's to build then. Raises what ended the build.
        """
        future = self._futures.pop(ordinal, None)
        if future is None or self._left.pop(ordinal, None) is not None:
            return None
        started = time.monotonic()
        executable: Executable = future.result()
        return executable, time.monotonic() - started

    def _help(self) -> None:
        with suppress(KeyError):  # none is left
            while not self._stopped:
                ordinal, future = self._left.popitem()  # the last one
                self._build(ordinal, future)

    def _build(self, ordinal: int, future: Future) -> None:
        try:
            chosen = choose(self._linked, self._device, ordinal)
            future.deliver(build(self._linked, self._device, chosen))
            if self._progress is not None:
                self._progress.built(ordinal)
        except BaseException as error:  # whatever it is, it belongs to who asks for the executable
            self._stopped = True
            future.settle(error)
