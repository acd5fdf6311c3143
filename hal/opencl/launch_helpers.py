"""Child processes that launch kernels in advance, so that this process finds their code in the driver's cache.

There is one child less than processors. Each is started on demand, and ends when it was idle for a while
(`schema/child_process.py`). Children only get code that this process runs as well.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from typing import TYPE_CHECKING, Any

from orchestrion.hal.backend import Entry
from orchestrion.hal.parallel_jobs import HelperFailed
from orchestrion.schema.child_process import Child, ChildFailed

if TYPE_CHECKING:
    from .launches import Launch

#: the most children; with more, the disk and the memory for compilers are the bottleneck
MAX_CHILDREN = 7
#: seconds for one request; if the driver takes longer, this process compiles the code
SECONDS = 600.0


class Helper:
    """A child process that works for the device with this index. Called for a launch; raises HelperFailed if it cannot
    do it.
    """

    def __init__(self, child: Child, index: int) -> None:
        self._child = child
        self._index = index

    def start(self) -> None:
        """Start the process unless it runs. If that fails, the next request raises HelperFailed."""
        try:
            self._child.start()
        except ChildFailed:
            return

    def build(self, payload: memoryview, entries: tuple[Entry, ...]) -> None:
        """Build a program and keep it for launches."""
        rows = [[entry.name, entry.bindings, entry.parameter_words, entry.workgroup_size] for entry in entries]
        self._ask({"kind": "build", "entries": rows}, payload)

    def __call__(self, launch: Launch) -> None:
        """Launch an entry of a program that was built."""
        payload = launch.executable.payload
        fields: dict[str, Any] = {
            "kind": "launch",
            "digest": hashlib.sha256(payload).hexdigest(),
            "entry": launch.entry,
            "groups": launch.groups,
            "lengths": launch.lengths,
            "parameters": launch.parameters.hex(),
        }
        if not self._ask(fields)["done"]:
            self.build(payload, launch.executable.entries)
            self._ask(fields)

    def _ask(self, fields: dict[str, Any], data: bytes | memoryview = b"") -> dict[str, Any]:
        try:
            answer = self._child.request({"device": self._index, **fields}, data, deadline=SECONDS)
        except ChildFailed as error:
            raise HelperFailed(str(error)) from error
        return answer.fields


@cache
def _children() -> tuple[Child, ...]:
    count = min((os.cpu_count() or 1) - 1, MAX_CHILDREN)
    return tuple([Child("orchestrion.hal.opencl.launch_process:answer") for _ in range(count)])


def helpers(index: int) -> list[Helper]:
    """The helpers for the device with this index."""
    return [Helper(child, index) for child in _children()]
