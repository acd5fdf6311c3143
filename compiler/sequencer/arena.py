"""Packs buffers with different lifetimes into one arena. Knows nothing of IR.

A tenant occupies `size` bytes at the positions in `live`, a set stored as the bits of an integer. Two tenants that are
live at the same position get disjoint ranges; others may share memory. Tenants are placed one after the other, each
into the smallest gap that holds it (best fit). Several orders are tried and the smallest arena wins: by size, which is
the greedy strategy of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (2020), by size
times lifetime, and by first position. If no order reaches the lower bound `peak_bytes`, the tenant at the top of the
arena moves to the front of the order and the packing is repeated. Equal input gives equal offsets: ties are broken by
the index in the list.

A device limits the size of one allocation. `pack_arenas` packs into several arenas if one would be larger than that.

Tenants with symbolic sizes follow all others, in slots. A tenant takes a free slot that is known to be large enough for
all values of the symbols, else a new slot. So one packing is valid for every call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from orchestrion.compiler.ir.dims import AnySize, Size, bounds, ceildiv, is_dynamic, typical

from .positions import spans

#: Alignment of offsets, in bytes. Vulkan lets a device require 256 bytes of a storage buffer. OpenCL has no limit:
#: NVIDIA's driver states 512 bytes for sub-buffers, PoCL 128.
ALIGNMENT = 512
#: Maximum bytes of one arena and of one pool of constants. Every Vulkan device allocates 1 GiB at once, a WebGPU device
#: 256 MiB unless it reports more, an OpenCL device a quarter of its memory.
MAX_ALLOCATION = 256 << 20
#: Maximum number of repacks of one order, and the maximum number of tenants for which repacking is tried.
MAX_TRIES, MAX_TENANTS_TO_RETRY = 24, 200


@dataclass(frozen=True, slots=True)
class Tenant:
    """A buffer of `size` bytes that is live at the positions whose bits are set in `live`."""

    size: Size
    live: int


def align(size: AnySize) -> AnySize:
    """`size` in bytes, rounded up to the arena's alignment."""
    return ceildiv(size, ALIGNMENT) * ALIGNMENT


def peak_bytes(tenants: Sequence[Tenant]) -> int:
    """Maximum number of bytes, over aligned sizes, that are live at one position: a lower bound of the arena's size.
    Symbolic sizes count as typical values.
    """
    changes: dict[int, int] = {}
    for tenant in tenants:
        size = align(typical(tenant.size))
        for first, last in spans(tenant.live):
            changes[first] = changes.get(first, 0) + size
            changes[last + 1] = changes.get(last + 1, 0) - size
    return max(accumulate(change for _, change in sorted(changes.items())), default=0)


def pack(tenants: Sequence[Tenant]) -> tuple[list[Size], Size]:
    """The offset of each tenant, in order, and the size of the arena: multiples of `ALIGNMENT`, in bytes."""
    sized = [index for index, tenant in enumerate(tenants) if is_dynamic(tenant.size)]
    if sized:
        return _pack_sized(tenants, sized)
    least = peak_bytes(tenants)
    best: tuple[list[Size], Size] | None = None
    for key in _ORDERS:
        order = sorted(range(len(tenants)), key=lambda i, key=key: (*key(tenants[i]), i))  # type: ignore[misc]
        for _ in range(MAX_TRIES if len(tenants) <= MAX_TENANTS_TO_RETRY else 1):
            offsets, total = _place(tenants, order)
            if best is None or total < best[1]:
                best = offsets, total
            if best[1] == least:
                return best
            top = next(i for i in order if offsets[i] + align(tenants[i].size) == total)
            order = [top, *(i for i in order if i != top)]
    assert best is not None
    return best


def pack_arenas(tenants: Sequence[Tenant], max_bytes: int) -> tuple[list[tuple[int, Size]], list[Size]]:
    """Returns the (arena, offset) of each tenant, in the order of `tenants`, and the size of each arena, in bytes.

    One arena if it has at most `max_bytes`. Otherwise tenants go, the largest first, into the first arena with room. A
    tenant larger than `max_bytes` gets an arena of its own. An arena with symbolic sizes is never split.
    """
    offsets, total = pack(tenants)
    if is_dynamic(total) or total <= max_bytes:
        return [(0, offset) for offset in offsets], [total]
    places: dict[int, tuple[int, Size]] = {}
    sizes: list[Size] = []
    for index in sorted(range(len(tenants)), key=lambda index: (-tenants[index].size, index)):
        tenant = tenants[index]
        places[index] = part, offset = _first_fit(places, sizes, tenants, tenant, max_bytes)
        sizes[part] = max(sizes[part], offset + align(tenant.size))
    return [places[index] for index in range(len(tenants))], sizes


def _first_fit(
    places: dict[int, tuple[int, Size]], sizes: list[Size], tenants: Sequence[Tenant], tenant: Tenant, max_bytes: int
) -> tuple[int, Size]:
    """Returns the first arena with room for a tenant, and the offset in it. Appends a new arena if none has room."""
    for part in range(len(sizes)):
        alive = [
            (tenants[other], offset)
            for other, (place, offset) in places.items()
            if place == part and tenants[other].live & tenant.live
        ]
        offset = _best_fit(alive, tenant)
        if offset + align(tenant.size) <= max(max_bytes, sizes[part]):
            return part, offset
    sizes.append(0)
    return len(sizes) - 1, 0


@dataclass(slots=True)
class _Slot:
    """Memory that tenants with symbolic sizes use one after the other."""

    size: Size
    live: int
    tenants: list[int]


def _pack_sized(tenants: Sequence[Tenant], sized: Sequence[int]) -> tuple[list[Size], Size]:
    """Returns the offsets if the tenants `sized` have symbolic sizes."""
    static = [index for index in range(len(tenants)) if index not in set(sized)]
    placed, end = pack([tenants[index] for index in static]) if static else ([], 0)
    offsets = dict(zip(static, placed, strict=True))
    for slot in _slots(tenants, sized):
        offsets |= dict.fromkeys(slot.tenants, end)
        end += align(slot.size)
    return [offsets[index] for index in range(len(tenants))], end


def _slots(tenants: Sequence[Tenant], sized: Sequence[int]) -> list[_Slot]:
    """Assigns tenants to slots, the largest first, each to the smallest slot with room for it."""
    slots: list[_Slot] = []
    for index in sorted(sized, key=lambda index: (-typical(tenants[index].size), index)):
        tenant = tenants[index]
        free = [slot for slot in slots if not slot.live & tenant.live and bounds(slot.size - tenant.size)[0] >= 0]
        if free:
            slot = min(free, key=lambda slot: typical(slot.size))
        else:
            slot = _Slot(tenant.size, 0, [])
            slots.append(slot)
        slot.live |= tenant.live
        slot.tenants.append(index)
    return slots


#: Sort keys of the orders that are tried: by size, by size times lifetime, by first position.
_ORDERS: Final[tuple[Callable[[Tenant], tuple[Size, ...]], ...]] = (
    lambda tenant: (-tenant.size,),
    lambda tenant: (-tenant.size * tenant.live.bit_count(),),
    lambda tenant: (tenant.live & -tenant.live, -tenant.size),
)


def _place(tenants: Sequence[Tenant], order: Sequence[int]) -> tuple[list[Size], Size]:
    offsets: list[Size] = [0] * len(tenants)
    placed: list[int] = []
    total: Size = 0
    for index in order:
        tenant = tenants[index]
        alive = [(tenants[i], offsets[i]) for i in placed if tenants[i].live & tenant.live]
        offsets[index] = _best_fit(alive, tenant)
        placed.append(index)
        total = max(total, offsets[index] + align(tenant.size))
    return offsets, total


def _best_fit(alive: Sequence[tuple[Tenant, Size]], tenant: Tenant) -> Size:
    """Start of the smallest gap for a tenant between those live with it, at these offsets; else the end of the last."""
    end: Size = 0
    size = align(tenant.size)
    best: tuple[Size, Size] | None = None
    for start, stop in sorted((at, at + align(other.size)) for other, at in alive):
        gap = start - end
        if gap >= size and (best is None or gap < best[0]):
            best = gap, end
        end = max(end, stop)
    return end if best is None else best[1]
