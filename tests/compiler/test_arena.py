"""The arena: no two tenants that live at one time share a byte, and memory is reused."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrion.compiler.sequencer.arena import ALIGNMENT, Tenant, align, pack, pack_arenas, peak_bytes


def tenant(size: int, first: int, last: int) -> Tenant:
    return Tenant(size, (1 << last + 1) - (1 << first))


TENANTS = st.lists(
    st.builds(
        lambda size, first, length: tenant(size, first, first + length),
        st.integers(1, 5000),
        st.integers(0, 20),
        st.integers(0, 8),
    ),
    max_size=24,
)


@given(TENANTS)
def test_live_ranges_never_overlap(tenants: list[Tenant]) -> None:
    offsets, total = pack(tenants)
    for i, a in enumerate(tenants):
        assert offsets[i] % ALIGNMENT == 0 and offsets[i] + a.size <= total
        for j, b in enumerate(tenants[:i]):
            if a.live & b.live:
                assert offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]


@given(TENANTS)
def test_the_arena_is_at_least_the_peak_and_at_most_the_sum(tenants: list[Tenant]) -> None:
    _, total = pack(tenants)
    assert peak_bytes(tenants) <= total <= sum(-(-t.size // ALIGNMENT) * ALIGNMENT for t in tenants)


def test_a_chain_needs_two_buffers() -> None:
    chain = [tenant(1024, step, step + 1) for step in range(10)]
    offsets, total = pack(chain)
    assert total == 2048
    assert offsets == [0, 1024] * 5


def test_the_smallest_gap_that_fits_is_taken() -> None:
    tenants = [
        tenant(4096, 0, 0),  # frees [0, 4096) before step 1
        tenant(3072, 0, 9),
        tenant(2048, 0, 0),  # frees [7168, 9216)
        tenant(1536, 0, 9),
        tenant(1280, 1, 1),
    ]
    offsets, total = pack(tenants)
    assert total == peak_bytes(tenants) == 10752


def test_nothing_to_pack() -> None:
    assert pack([]) == ([], 0)


@given(TENANTS, st.integers(1, 8000))
def test_parts_are_no_larger_than_asked(tenants: list[Tenant], most: int) -> None:
    """Unless a tenant is: that has a part of its own. What lives at one time shares no byte."""
    places, sizes = pack_arenas(tenants, most)
    assert set(range(len(sizes))) == {part for part, _ in places} or not tenants
    for i, (a, (part, offset)) in enumerate(zip(tenants, places, strict=True)):
        assert offset % ALIGNMENT == 0 and offset + a.size <= sizes[part]
        for b, (other, start) in zip(tenants[:i], places, strict=False):
            if part == other and a.live & b.live:
                assert offset + a.size <= start or start + b.size <= offset
    for number, size in enumerate(sizes):
        largest = max(
            (align(a.size) for a, (part, _) in zip(tenants, places, strict=True) if part == number), default=0
        )
        assert size <= max(most, largest)
    if pack(tenants)[1] <= most:
        assert len(sizes) == 1
