"""Declares cases: functions of a `Rig`, named `<file>.<function>`, with the tags that they need.

    case = Group("transfers", __doc__)

    @case                                 # runs on every device
    def copy_whole(rig): ...

    @case.needing("dispatch")             # runs where the device has the tag (`tags.py`)
    def in_order(rig): ...

    @case.direct_and_slots()              # two cases: `fill_direct` and `fill_slots`
    def fill(rig, bound): ...

The docstring describes the case in the report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .rig import BINDINGS, Bound, Rig
from .tags import TAGS

Function = Callable[[Rig], None]


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `doc` states in a sentence or two what must hold; `needs` are names of `tags.TAGS`."""

    name: str
    run: Function
    needs: tuple[str, ...]
    doc: str

    @property
    def group(self) -> str:
        return self.name.partition(".")[0]


class Group:
    """The cases of one file, in order. `doc` is the file's docstring; `needs` are tags that all of its cases need."""

    def __init__(self, name: str, doc: str | None, *needs: str) -> None:
        assert doc, f"file {name} has no docstring"
        self.name = name
        self.doc = " ".join(doc.partition("\n\n")[0].split())
        self.needs = needs
        self.cases: dict[str, Case] = {}

    def __call__(self, function: Function) -> Function:
        self.add(function.__name__, function, function.__doc__)
        return function

    def needing(self, *needs: str) -> Callable[[Function], Function]:
        """Declares a case that needs these tags."""

        def declare(function: Function) -> Function:
            self.add(function.__name__, function, function.__doc__, *needs)
            return function

        return declare

    def direct_and_slots(
        self, *needs: str
    ) -> Callable[[Callable[[Rig, type[Bound]], None]], Callable[[Rig, type[Bound]], None]]:
        """Declares two cases: recordings of the function bind buffers directly, or through slots."""

        def declare(function: Callable[[Rig, type[Bound]], None]) -> Callable[[Rig, type[Bound]], None]:
            self.add_both(function.__name__, function, function.__doc__, *needs)
            return function

        return declare

    def add_both(self, name: str, function: Callable[[Rig, type[Bound]], None], doc: str | None, *needs: str) -> None:
        """As `add`, for a function that takes the class of bindings: adds two cases."""
        for suffix, kind in BINDINGS.items():
            self.add(f"{name}_{suffix}", partial(_bound, function, kind), doc, *needs)

    def add(self, name: str, function: Function, doc: str | None, *needs: str) -> None:
        name = f"{self.name}.{name}"
        assert name not in self.cases, f"two cases {name}"
        assert doc, f"case {name} has no docstring"
        tags = (*self.needs, *needs)
        assert TAGS.keys() >= set(tags), f"case {name} needs unknown tags: {tags}"
        self.cases[name] = Case(name, function, tags, " ".join(doc.split()))


def _bound(function: Callable[[Rig, type[Bound]], None], kind: type[Bound], rig: Rig) -> None:
    function(rig, kind)
