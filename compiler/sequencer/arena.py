"""Packs buffers that live at different times into one arena.

A tenant occupies `size` bytes from step `first` to step `last`, both included. Two tenants whose steps overlap get
ranges that do not; others may share memory. The largest is placed first, in the smallest gap that holds it (best
fit), which is the greedy-by-size strategy of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
Inference" (2020). Equal input gives equal offsets: ties go by the position in the list.

It knows nothing of IR.
"""

from collections.abc import Sequence
from dataclasses import dataclass

#: The most that Vulkan lets a device ask of a storage buffer's offset; no OpenCL device asks for more.
ALIGNMENT = 256


@dataclass(frozen=True, slots=True)
class Tenant:
    """A buffer of `size` bytes, live from step `first` to step `last` inclusive."""

    size: int
    first: int
    last: int

    def meets(self, other: "Tenant") -> bool:
        return self.first <= other.last and other.first <= self.last


def align(size: int) -> int:
    """`size` rounded up to the arena's alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def pack(tenants: Sequence[Tenant]) -> tuple[list[int], int]:
    """The offset of each tenant, in the order given, and the size of the arena; all multiples of `ALIGNMENT`."""
    offsets = [0] * len(tenants)
    placed: list[int] = []
    total = 0
    for index in sorted(range(len(tenants)), key=lambda i: (-tenants[i].size, i)):
        tenant = tenants[index]
        taken = sorted((offsets[i], offsets[i] + align(tenants[i].size)) for i in placed if tenant.meets(tenants[i]))
        offsets[index] = _best_fit(taken, align(tenant.size))
        placed.append(index)
        total = max(total, offsets[index] + align(tenant.size))
    return offsets, total


def _best_fit(taken: list[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap between sorted ranges that holds `size` bytes, else the end of the last range."""
    end = 0
    best: tuple[int, int] | None = None
    for start, stop in taken:
        gap = start - end
        if gap >= size and (best is None or gap < best[0]):
            best = gap, end
        end = max(end, stop)
    return end if best is None else best[1]
