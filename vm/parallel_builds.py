"""Builds a program's executables in several threads while its initializers run.

- Initializers create executables from the first one on. Helper threads build from the last one on. The thread of the
  initializers builds an executable itself if no helper has begun to. So with one processor, or with one executable,
  everything is as without helpers.
- The initializer that creates an executable gets what a helper built, or the error of that build. So errors are raised
  where they would be raised without helpers. Errors of executables that no initializer creates are ignored.
- There are helpers only if builds are slow (`BackendDevice.compiles`) and neither time nor fuel is limited: limits
  count one build after the other, in the order of the initializers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from orchestrion.hal.errors import BuildFailed as HalBuildFailed
from orchestrion.hal.executable import Executable

from .build_failures import MAX_ATTEMPTS, MAX_MESSAGE, remember
from .errors import BuildFailed, DeviceError, shorten
from .fence import Future
from .load_progress import BuildProgress, LoadProgress
from .selection import Choice, choose_variant, no_variant, no_variant_builds

if TYPE_CHECKING:
    from orchestrion.hal.device import Device

    from .call import CallContext
    from .limits import Limits
    from .linker import LinkedProgram


def choose(linked: LinkedProgram, device: Device, ordinal: int) -> Choice:
    """The variant of executable `ordinal` that the device gets. `DeviceError` if there is none."""
    module, known = linked.module, linked.code.chosen
    chosen = known.get(ordinal)
    if chosen is None or chosen.info is not device.info or not module.container.complete:
        row = module.executables[linked.row.executables_start + ordinal]
        chosen = choose_variant(module, row, device.info)
        if chosen is None:
            raise DeviceError(no_variant(module, row, device.info))
        if module.container.complete:
            known[ordinal] = chosen
    return chosen


def build(linked: LinkedProgram, device: Device, ordinal: int, chosen: Choice, recorded: bool = False) -> Executable:
    """Build the variant `chosen` of executable `ordinal`, or, if the driver fails to, the next variant that it builds.

    `recorded`: recordings depend on the entries of `chosen`, so only variants with the same entries are tried. Raises
    `BuildFailed` if none of up to `MAX_ATTEMPTS` variants is built, what `Device.create_executable` raises otherwise,
    and `ModuleError`.
    """
    module, tried = linked.module, dict[int, str]()
    row = module.executables[linked.row.executables_start + ordinal]
    while True:
        try:
            payload = module.segment(chosen.payload)
            made = device.create_executable(chosen.format, payload, chosen.entries, module.container.digest)
            break
        except HalBuildFailed as error:
            tried[chosen.variant] = shorten(str(error), MAX_MESSAGE)
            following = choose_variant(module, row, device.info, tried)
            while recorded and following is not None and following.entries != chosen.entries:
                tried[following.variant] = "its workgroups have another size, and recordings were made already"
                following = choose_variant(module, row, device.info, tried)
            if following is None or len(tried) >= MAX_ATTEMPTS:
                failed = BuildFailed(no_variant_builds(module, row, device.info, tried))
                failed.program = None if recorded else linked.ordinal
                raise failed from error
            chosen = following
    if tried:
        remember(module, device.info, tried, {})
        linked.code.chosen.pop(ordinal, None)
    return made


def defer(context: CallContext, chosen: Choice, ordinal: int) -> Executable:
    """The executable of a variant, built at its first use. The build is noted in `context.facts`."""
    linked, device = context.program, context.device
    assert device is not None
    facts = context.facts

    def make() -> Executable:
        started = time.monotonic()
        made = build(linked, device, ordinal, chosen, recorded=True)
        facts.build_seconds += time.monotonic() - started
        facts.builds[ordinal] = made.build
        return made

    return Executable.deferred(device, chosen.entries, make)


@contextmanager
def building(context: CallContext, limits: Limits, progress: LoadProgress | None) -> Generator[None]:
    """Run helper threads during the body, in which `context` runs the program's initializers within `limits`. Reports
    each build to `progress`.
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
    """Whether helper threads build executables, as the top of this file says."""
    if linked.lazy:
        return False
    count, builds = linked.row.executables_end - linked.row.executables_start, device.builds
    if count < 2 or not device.device_state.backend.compiles or limits.fuel is not None:
        return False
    if builds is None or builds.declared is not None:
        return False
    return not builds.needs_helper(device.policy, linked.module.container.digest)


class ParallelBuilds:
    """The builds of one program while it is loaded. The thread that runs the initializers calls `take`."""

    def __init__(self, linked: LinkedProgram, device: Device, progress: BuildProgress | None) -> None:
        self._progress = progress
        self._linked = linked
        self._device = device
        count = linked.row.executables_end - linked.row.executables_start
        #: by ordinal, builds that `take` was not called for
        self._futures = {ordinal: Future(f"the build of executable {ordinal}") for ordinal in range(count)}
        self._left = self._futures.copy()  #: builds that have not begun; a thread pops one, atomically, and builds it
        self._stopped = False
        helpers = min(os.cpu_count() or 1, count) - 1
        self._threads = [threading.Thread(target=self._help, daemon=True) for _ in range(helpers)]

    def start(self) -> None:
        """Start the helper threads."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Begin no further build, and wait for the running builds."""
        self._stopped = True
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self._futures.clear()

    def take(self, ordinal: int) -> tuple[Executable, float] | None:
        """The executable that a helper built, and the seconds that this call waited for it. Raises the error of the
        build.

        None if no helper has begun the build, or if this was called before: the caller has to build the executable.
        """
        future = self._futures.pop(ordinal, None)
        if future is None or self._left.pop(ordinal, None) is not None:
            return None
        started = time.monotonic()
        executable: Executable = future.result()
        return executable, time.monotonic() - started

    def _help(self) -> None:
        with suppress(KeyError):  # no build is left
            while not self._stopped:
                ordinal, future = self._left.popitem()  # the last executable
                self._build(ordinal, future)

    def _build(self, ordinal: int, future: Future) -> None:
        try:
            chosen = choose(self._linked, self._device, ordinal)
            future.deliver(build(self._linked, self._device, ordinal, chosen))
            if self._progress is not None:
                self._progress.built(ordinal)
        except BaseException as error:  # any error is raised where the executable is created
            self._stopped = True
            future.settle(error)
