"""Property tests of the division into workgroups and of folding."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrion.hal.errors import InvalidArgument, Unsupported
from orchestrion.hal.workload import Grid, divide, fold

COUNTS = st.tuples(*[st.integers(0, 2**40)] * 3)
SIZES = st.tuples(*[st.integers(1, 1024)] * 3)
LIMITS = st.tuples(*[st.integers(1, 2**20)] * 3)


@given(COUNTS, SIZES)
def test_division_covers_and_no_more(workload: Grid, size: Grid) -> None:
    for count, groups, one in zip(workload, divide(workload, size), size, strict=True):
        assert (groups - 1) * one < count <= groups * one or count == groups == 0


@given(COUNTS, LIMITS)
def test_folding_keeps_the_groups(groups: Grid, limits: Grid) -> None:
    """Within the limits, at least as many groups, exceeding by less than the folded rows; refused only
    when none fits.
    """
    total = prod(groups)
    try:
        folded = fold(groups, limits)
    except Unsupported:
        assert total > limits[0] * limits[1] * limits[2] - limits[0] * (limits[2] + 1)
        return
    assert all(count <= limit for count, limit in zip(folded, limits, strict=True))
    assert total <= prod(folded)
    assert prod(folded) - total < max(1, folded[1] * folded[2])


def test_groups_within_the_limits_stay() -> None:
    assert fold((3, 4, 5), (65535, 65535, 65535)) == (3, 4, 5)
    assert fold((0, 1, 1), (1, 1, 1)) == (0, 1, 1)


@pytest.mark.parametrize(
    ("groups", "folded"),
    [
        ((65536, 1, 1), (32768, 2, 1)),
        ((1, 1, 65536), (32768, 2, 1)),
        ((65535 * 65535 + 1, 1, 1), (65535, 32768, 2)),
    ],
)
def test_folded(groups: Grid, folded: Grid) -> None:
    assert fold(groups, (65535, 65535, 65535)) == folded


def test_refused() -> None:
    with pytest.raises(Unsupported, match="1000 workgroups exceed the device's limit of 512"):
        fold((1000, 1, 1), (8, 8, 8))
    with pytest.raises(InvalidArgument, match=r"workload \(-1, 1, 1\)"):
        divide((-1, 1, 1), (1, 1, 1))
