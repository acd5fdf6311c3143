"""The sample of a sweep that `make test` runs (`everyday.py`): nothing that a sweep has is missing in it."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from everyday import covering, in_turn, mark_long, of_the_day, sample
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent


def pairs(cells: list[tuple[int, ...]]) -> set[tuple[int, int]]:
    return {pair for cell in cells for pair in enumerate(cell)}


@given(st.integers(1, 3).flatmap(lambda size: st.lists(st.tuples(*[st.integers(0, 4)] * size), max_size=40)))
def test_each_value_of_each_parameter_is_in_the_sample(cells: list[tuple[int, ...]]) -> None:
    chosen = covering(cells)
    assert chosen == sorted(set(chosen))
    assert pairs([cells[index] for index in chosen]) == pairs(cells)


def test_values_are_met_with_others_in_turn() -> None:
    cells = [(case, device) for case in range(9) for device in "abc"]
    chosen = [cells[index] for index in covering(cells)]
    assert chosen == [(case, "abc"[case % 3]) for case in range(9)]


def test_values_that_always_run() -> None:
    cells = [(case, device) for case in range(4) for device in "abc"]
    chosen = {cells[index] for index in sample(cells, always=("a",))}
    assert chosen == {*((case, "a") for case in range(4)), (0, "b"), (1, "c"), (2, "b"), (3, "c")}


def test_each_nth_of_a_list() -> None:
    assert sample([(value,) for value in range(10)], every=4) == {0, 4, 8}


def test_things_run_on_devices_in_turn() -> None:
    cells = [(device, (thing,)) for thing in range(3) for device in ("a", "b")]
    assert [cells[index] for index in sorted(in_turn(cells, 1))] == [("b", (0,)), ("a", (1,)), ("b", (2,))]


class Cell:
    """What `mark_long` knows of a test of pytest."""

    def __init__(self, name: str, mark: pytest.MarkDecorator | None, **params: object) -> None:
        self.nodeid = name
        self.long = False
        if params:
            self.callspec = type("Spec", (), {"params": params})
        self._mark = mark

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self._mark.mark if self._mark is not None and name == self._mark.name else None

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        assert mark.name == "long"
        self.long = True


def test_cells_outside_of_the_sample_are_long() -> None:
    sampled, objects = pytest.mark.sampled(always=("a",)), [object() for _ in range(4)]
    sweep = [Cell(f"f[{i}]", sampled, case=case, device=d) for i, case in enumerate(objects) for d in "abc"]
    others = [Cell("g", None), Cell("h[0]", pytest.mark.long, case=0)]
    mark_long([*sweep, *others])  # type: ignore[list-item]
    assert [cell.long for cell in sweep] == [0, 0, 1, 0, 1, 0] * 2
    assert not any(cell.long for cell in others)


def test_tests_of_several_devices_take_turns() -> None:
    names = [f"tests/e2e/test_x.py::test_{number}" for number in range(3)]
    tests = [Cell(f"{name}[{device}]", None, device=device) for name in names for device in "ab"]
    elsewhere = [Cell(f"tests/hal/test_x.py::test_0[{device}]", None, device=device) for device in "ab"]
    mark_long([*tests, *elsewhere])  # type: ignore[list-item]
    assert [cell.long for cell in tests] == [False, True, True, False, False, True]
    assert not any(cell.long for cell in elsewhere)


def test_levels_of_one_device_take_turns() -> None:
    tests = [Cell(f"tests/e2e/test_x.py::test_0[{level}]", None, level=level) for level in ("v3", "v2")]
    texts = [Cell(f"tests/compiler/test_x.py::test_0[{level}]", None, level=level) for level in ("v3", "v2")]
    mark_long([*tests, *texts])  # type: ignore[list-item]
    assert [cell.long for cell in (*tests, *texts)] == [False, True, False, False]


@pytest.mark.parametrize(("expression", "found"), [("not long", [0, 3, 6]), ("", [*range(8)])])
def test_a_loop_goes_through_each_nth_thing_every_day(expression: str, found: list[int]) -> None:
    config = SimpleNamespace(getoption={"markexpr": expression}.__getitem__)
    assert of_the_day(config, range(8), 3) == found  # type: ignore[arg-type]


def test_the_long_run_leaves_nothing_out() -> None:
    """It is the everyday run without its selection."""
    recipes = dict(part.split(":", 1) for part in (ROOT / "Makefile").read_text().split("\n\n") if ":" in part)
    everyday, whole = recipes["test"].splitlines()[1:], recipes["test-all"].splitlines()[1:]
    assert everyday == [line + ' -m "not long"' for line in whole]
