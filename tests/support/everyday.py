"""What `make test` runs of the suite; `make test-all` runs all of it.

Two markers say what waits for the long run (`@pytest.mark.long`, in which everything runs):

- `@pytest.mark.long`: the whole test.
- `@pytest.mark.sampled`: of a parametrized test every cell that is not in its covering sample. In the sample each value
  of each parameter occurs, so of 400 cases on 4 devices it has 400 cells: each case on one device, in turn.
  `always=(...)` names values, as the id of a test has them, all of whose cells are in the sample. `every=n` keeps each
  n-th cell of the rest.

The hook in `tests/conftest.py` gives `long` to cells outside of the samples, so `-m 'not long'` is the everyday run.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence

import pytest

#: the values of the parameters of a cell
Cell = Sequence[Hashable]


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


def mark_long(items: Iterable[pytest.Item]) -> None:
    """Gives `long` to the cells of sampled tests that are not in their sample."""
    sweeps: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            sweeps[item.nodeid.partition("[")[0]].append(item)
    for cells in sweeps.values():
        mark = cells[0].get_closest_marker("sampled")
        assert mark is not None
        chosen = sample([_values(item) for item in cells], **mark.kwargs)
        for index, item in enumerate(cells):
            if index not in chosen:
                item.add_marker(pytest.mark.long)


def _values(item: pytest.Item) -> Cell:
    """What is equal when two cells have the same value: strings and numbers themselves, the identity of others."""
    params = item.callspec.params  # type: ignore[attr-defined]
    plain = (str, bytes, int, float, bool, type(None))
    return [value if isinstance(value, plain) else id(value) for value in params.values()]
