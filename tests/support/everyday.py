"""What `make test` runs of the suite; `make test-all` runs all of it.

Two markers say what waits for the long run (`@pytest.mark.long`, in which everything runs):

- `@pytest.mark.long`: the whole test.
- `@pytest.mark.sampled`: of a parametrized test every cell that is not in its covering sample. In the sample each value
  of each parameter occurs, so of 400 cases on 4 devices it has 400 cells: each case on one device, in turn.
  `always=(...)` names values, as the id of a test has them, all of whose cells are in the sample. `every=n` keeps each
  n-th cell of the rest.

A test in a folder of `IN_TURN` without these markers that runs on several devices runs on one of them, and the next
such test on the next: a parameter in the row of the folder names the device. So each device runs a part of the tests of
each file.

Tests that go through many things in a loop take `of_the_day(config, things, every)`.

The hook in `tests/conftest.py` gives `long` to cells outside of the samples, so `-m 'not long'` is the everyday run.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TypeVar

import pytest

#: parameters and fixtures that say on which device a test runs
DEVICES = ("device", "target", "loop_device", "phone")
#: folders whose tests run on one device of several, in turn -> what names it; `level` is one of the device cpu
IN_TURN = {"tests/e2e/": (*DEVICES, "level"), "tests/compiler/": DEVICES}
#: the values of the parameters of a cell
Cell = Sequence[Hashable]
Thing = TypeVar("Thing")


def is_everyday(config: pytest.Config) -> bool:
    """Whether this run leaves out what waits for the long run."""
    return "not long" in str(config.getoption("markexpr"))


def of_the_day(config: pytest.Config, things: Iterable[Thing], every: int) -> list[Thing]:
    """What a test goes through: all things, and every day each n-th."""
    return list(things)[:: every if is_everyday(config) else 1]


def covering(cells: Sequence[Cell]) -> list[int]:
    """Indices, in order, of cells in which each value of each parameter occurs.

    The parameter with the most values decides how many they are: each value is met with the least used of the others.
    """
    having: dict[tuple[int, Hashable], list[int]] = defaultdict(list)
    for index, cell in enumerate(cells):
        for pair in enumerate(cell):
            having[pair].append(index)
    values = Counter(parameter for parameter, _ in having)
    used: Counter[tuple[int, Hashable]] = Counter()
    taken: set[int] = set()
    for pair in sorted(having, key=lambda pair: (-values[pair[0]], pair[0])):
        if not used[pair]:
            best = min(having[pair], key=lambda index: sum(used[other] for other in enumerate(cells[index])))
            taken.add(best)
            used.update(enumerate(cells[best]))
    return sorted(taken)


def sample(cells: Sequence[Cell], always: Collection[Hashable] = (), every: int = 1) -> set[int]:
    """Indices of the cells that run every day."""
    whole = {index for index, cell in enumerate(cells) if not set(cell).isdisjoint(always)}
    rest = [index for index in range(len(cells)) if index not in whole]
    return whole | {rest[index] for index in covering([cells[index] for index in rest])[::every]}


def in_turn(cells: Sequence[tuple[Hashable, Cell]], turn: int) -> set[int]:
    """Indices of the cells that run every day, of pairs of a device and of what runs on it: one device per thing."""
    things: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for index, (_, thing) in enumerate(cells):
        things[tuple(thing)].append(index)
    return {indices[(turn + number) % len(indices)] for number, indices in enumerate(things.values())}


def mark_long(items: Iterable[pytest.Item]) -> None:
    """Gives `long` to the cells of tests on which no turn falls, and that are not in a sample."""
    sweeps: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("long"):
            sweeps[item.nodeid.partition("[")[0]].append(item)
    turn = 0
    for name, cells in sweeps.items():
        mark, values = cells[0].get_closest_marker("sampled"), [_values(item) for item in cells]
        named = next((row for folder, row in IN_TURN.items() if name.startswith(folder)), ())
        device = next((parameter for parameter in named if parameter in values[0]), "")
        if mark is not None:
            chosen = sample([[*one.values()] for one in values], **mark.kwargs)
        elif device:
            pairs = [(one[device], [value for key, value in one.items() if key != device]) for one in values]
            chosen, turn = in_turn(pairs, turn), turn + 1
        else:
            continue
        for index, item in enumerate(cells):
            if index not in chosen:
                item.add_marker(pytest.mark.long)


def _values(item: pytest.Item) -> dict[str, Hashable]:
    """Parameter -> what is equal in cells of the same value: plain values themselves, the identity of others."""
    params = item.callspec.params  # type: ignore[attr-defined]
    plain = (str, bytes, int, float, bool, type(None))
    return {key: value if isinstance(value, plain) else id(value) for key, value in params.items()}
