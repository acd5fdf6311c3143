"""Does ahead of the first call what it would do otherwise, for exports of static shapes (docs/building-code.md).

Memory for arguments and results is made, device code is built that is not built yet, and the driver makes what it keeps
of each recording for the buffers that calls put into its slots. Nothing runs on the device.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrion.hal.errors import MemoryLimitExceeded, OutOfMemory
from orchestrion.hal.executable import Executable
from orchestrion.hal.parallel_jobs import no_progress

from .errors import DeviceOutOfMemory, MemoryExceeded
from .load_progress import LoadProgress
from .recording import Recording
from .scalars import ScalarFunction

if TYPE_CHECKING:
    from orchestrion.hal.queue import Work

    from .context import Context
    from .tree_function import AnyFunction

_NO_ROOM = (OutOfMemory, MemoryLimitExceeded, DeviceOutOfMemory, MemoryExceeded)


def warm_up(context: Context, functions: Mapping[str, AnyFunction], progress: LoadProgress | None = None) -> None:
    """Warm the functions of a context. Raises what a first call would, `CallerError` for a closed program included.

    `progress` hears of executables that are built, and of kernels that the driver compiles.
    """
    with context.lock:
        device = context.device
        if device is None or context.closed:
            raise context.refusal()
        deferred = [value for value in context.globals if isinstance(value, Executable) and not value.is_built]
        _build_all(deferred, progress)
        for value in context.globals:
            if isinstance(value, Recording):
                _ = value.commands  # a deferred one is recorded now
        works: list[Work] = []
        for function in functions.values():
            if not isinstance(function, ScalarFunction):
                works += function.flat.warm_up()
        device.queue.prepare(works, no_progress if progress is None else progress.parts_of("warm_up"))


def _build_all(deferred: Sequence[Executable], progress: LoadProgress | None) -> None:
    """Build executables, side by side. Raises the first error, once no build is under way."""
    if not deferred:
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(deferred), os.cpu_count() or 1)) as pool:
        for number, built in enumerate([pool.submit(executable.build_now) for executable in deferred]):
            if progress is not None:
                progress.tell("build", number, len(deferred))
            built.result()
    if progress is not None:
        progress.tell("build", len(deferred), len(deferred))


def warm_up_where_there_is_room(
    context: Context, functions: Mapping[str, AnyFunction], progress: LoadProgress | None
) -> str:
    """As `warm_up`. Where memory or a limit on it does not suffice, everything is left to calls, which need less, since
    not every export is called: gives the reason, else an empty text.
    """
    try:
        warm_up(context, functions, progress)
    except _NO_ROOM as error:
        with context.lock:
            for function in functions.values():
                if not isinstance(function, ScalarFunction):
                    function.flat.release()
        return str(error)
    return ""
