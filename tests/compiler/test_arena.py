"""The arena: no two tenants that live at one time share a byte, and memory is reused."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrion.compiler.sequencer.arena import ALIGNMENT, Tenant, pack

TENANTS = st.lists(
    st.builds(
        lambda size, first, length: Tenant(size, first, first + length),
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
            if a.first <= b.last and b.first <= a.last:
                assert offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]


@given(TENANTS)
def test_the_arena_is_at_least_the_peak_and_at_most_the_sum(tenants: list[Tenant]) -> None:
    _, total = pack(tenants)
    live = [sum(t.size for t in tenants if t.first <= step <= t.last) for step in range(40)]
    assert max(live) <= total <= sum(-(-t.size // ALIGNMENT) * ALIGNMENT for t in tenants)


def test_a_chain_needs_two_buffers() -> None:
    chain = [Tenant(1024, step, step + 1) for step in range(10)]
    offsets, total = pack(chain)
    assert total == 2048
    assert offsets == [0, 1024] * 5


def test_the_smallest_gap_that_fits_is_taken() -> None:
    tenants = [
        Tenant(4096, 0, 0),  # frees [0, 4096) before step 1
        Tenant(3072, 0, 9),
        Tenant(2048, 0, 0),  # frees [7168, 9216)
        Tenant(1536, 0, 9),
        Tenant(1280, 1, 1),
    ]
    offsets, total = pack(tenants)
    assert offsets == [0, 4096, 7168, 9216, 7168]
    assert total == 10752


def test_nothing_to_pack() -> None:
    assert pack([]) == ([], 0)
