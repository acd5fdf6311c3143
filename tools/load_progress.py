"""Shows the progress of loading a module on a terminal: the stage, and how much of its device code is built."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import terminal

if TYPE_CHECKING:
    from orchestrion.vm.load_progress import Progress

#: stage of a load -> the items that it counts
_PARTS = {"build": "executables", "warm_up": "kernels"}


@contextmanager
def loading(module: str, device: str = "") -> "Iterator[Progress | None]":
    """The `progress` argument of `vm.load`; None if standard error is no terminal. `device`: shown as well."""
    what = os.path.basename(module) + (f" on {device}" if device else "")
    with terminal.line(sys.stderr) as line:
        if line is None:
            yield None
            return

        def tell(stage: str, done: int, count: int) -> None:
            counted = f", {done} of {count} {_PARTS.get(stage, 'parts')}" if count else ""
            line.show(f"{what}: {stage.replace('_', ' ')}{counted}", is_part=done > 0)

        yield tell
