"""Guard bytes around every buffer of the host, the reference and the null device, and inside fresh memory.

Within `guarded(pattern)` every such buffer lies in the middle of a larger array whose other bytes are the pattern, and
memory that NumPy gives uncleared is filled with it. `Guards.check` finds a write outside of a buffer. A read outside,
or of memory that nobody wrote, shows as a difference between two runs with different patterns. An allocation above
`most` bytes, which no limit allowed, is found when it is made.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from orchestrion.hal.device_info import NO_LIMIT
from orchestrion.hal.host_buffer import ALIGNMENT, ArrayBuffer
from orchestrion.vm import refs

#: bytes on either side
WIDTH = 128
PATTERNS = (0xA5, 0x5A)


class Broken(Exception):
    """A promise of the runtime is broken."""


class Guards:
    """The guards of the buffers made so far."""

    def __init__(self, pattern: int, most: int) -> None:
        self.pattern = pattern
        self.most = most
        self.sides: list[tuple[Any, Any, int]] = []

    def inside(self, size: int) -> Any:
        """`size` zeroed bytes with guards around them."""
        self.refuse(size)
        whole = np.full(size + 2 * WIDTH + ALIGNMENT, self.pattern, np.uint8)
        start = WIDTH + -(whole.ctypes.data + WIDTH) % ALIGNMENT
        whole[start : start + size] = 0
        self.sides.append((whole[:start], whole[start + size :], size))
        return whole[start : start + size]

    def refuse(self, size: int) -> None:
        if size > self.most:
            raise Broken(f"{size} bytes at once, {self.most} are the most")

    def check(self) -> None:
        for before, after, size in self.sides:
            if (before != self.pattern).any() or (after != self.pattern).any():
                raise Broken(f"bytes beside a buffer of {size} bytes were written")


@contextmanager
def guarded(pattern: int, most: int) -> Iterator[Guards]:
    guards = Guards(pattern, most)
    host = refs.HostBuffer.allocate.__func__  # type: ignore[attr-defined]

    def array(cls: type[ArrayBuffer], size: int, limit: int = NO_LIMIT) -> ArrayBuffer:
        made: ArrayBuffer = cls(guards.inside(size)) if size <= min(limit, most) else real(cls, size, limit)
        return made

    def allocate(cls: type[refs.HostBuffer], memory: Any, size: int, *spend: Any) -> refs.HostBuffer:
        made: refs.HostBuffer = host(cls, memory, size, *spend)
        made.data = memoryview(guards.inside(size))
        return made

    real = ArrayBuffer.allocate.__func__  # type: ignore[attr-defined]
    with (
        patch.object(ArrayBuffer, "allocate", classmethod(array)),
        patch.object(refs.HostBuffer, "allocate", classmethod(allocate)),
        patch.object(np, "empty", _filled(guards, np.empty)),
        patch.object(np, "arange", _limited(guards, np.arange)),
    ):
        yield guards


def _filled(guards: Guards, real: Callable[..., Any]) -> Callable[..., Any]:
    """`np.empty`, but what is there is known."""

    def empty(shape: Any, dtype: Any = float, *rest: Any, **named: Any) -> Any:
        size = np.dtype(dtype).itemsize
        for dim in shape if isinstance(shape, tuple | list) else (shape,):
            size *= int(dim)
        guards.refuse(size)
        made = real(shape, dtype, *rest, **named)
        if size and made.flags.c_contiguous and made.dtype.kind not in "OUS":
            made.reshape(-1).view(np.uint8)[:] = guards.pattern
        return made

    return empty


def _limited(guards: Guards, real: Callable[..., Any]) -> Callable[..., Any]:
    def arange(*bounds: Any, **named: Any) -> Any:
        guards.refuse(8 * int(bounds[-1] if len(bounds) < 3 else bounds[1]))
        return real(*bounds, **named)

    return arange
