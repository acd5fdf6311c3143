"""Shows on a terminal how far the load of a module is: the stage, and how much of its device code is built."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from . import terminal

if TYPE_CHECKING:
    from orchestrion.vm.load_progress import Progress

#: stage of a load -> what is counted in it
_PARTS = {"build": "executables", "warm_up": "kernels"}


@contextmanager
def loading(module: str, device: str = "") -> "Iterator[Progress | None]":
    """What to give to `vm.load` as `progress`; None where standard error is no terminal. `device`: shown, too."""
    what = os.path.basename(module) + (f" on {device}" if device else "")
    with terminal.line(sys.stderr) as line:
        if line is None:
            yield None
            return

        def tell(stage: str, done: int, count: int) -> None:
            counted = f", {done} of {count} {_PARTS.get(stage, 'parts')}" if count else ""
            line.show(f"{what}: {stage.replace('_', ' ')}{counted}", is_part=done > 0)

        yield tell
