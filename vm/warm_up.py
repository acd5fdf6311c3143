"""Does work of the first calls in advance, for exports of static shapes (docs/building-code.md).

Allocates memory for arguments and results, builds device code that is not built yet, and lets the driver encode each
recording for the buffers that calls put into its slots. Nothing runs on the device.
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
    """Warm up the functions of a context. Raises what a first call would raise, such as `CallerError` for a closed
    program. Reports builds of executables, and kernels that the driver compiles, to `progress`.
    """
    with context.lock:
        device = context.device
        if device is None or context.closed:
            raise context.refusal()
        deferred = [value for value in context.globals if isinstance(value, Executable) and not value.is_built]
        _build_all(deferred, progress)
        for value in context.globals:
            if isinstance(value, Recording):
                _ = value.commands  # records a deferred recording
        works: list[Work] = []
        for function in functions.values():
            if not isinstance(function, ScalarFunction):
                works += function.flat.warm_up()
        device.queue.prepare(works, no_progress if progress is None else progress.parts_of("warm_up"))


def _build_all(deferred: Sequence[Executable], progress: LoadProgress | None) -> None:
    """Build executables in several threads. Raises the first error, when all builds have ended."""
    if not deferred:
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(len(deferred), os.cpu_count() or 1)) as pool:
        for number, built in enumerate([pool.submit(executable.build_now) for executable in deferred]):
            if progress is not None:
                progress.report("build", number, len(deferred))
            built.result()
    if progress is not None:
        progress.report("build", len(deferred), len(deferred))


def warm_up_where_there_is_room(
    context: Context, functions: Mapping[str, AnyFunction], progress: LoadProgress | None
) -> str:
    """As `warm_up`. Gives an empty text, or the reason if memory or a memory limit does not suffice. Then everything is
    left to calls, which need less memory, since they may not call all exports.
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
