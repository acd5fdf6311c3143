"""How a case is declared: a function of a `Rig`, named `<file>.<function>`."""

from collections.abc import Callable

from .rig import Rig

Case = Callable[[Rig], None]


class Group:
    """The cases of one file, in their order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cases: dict[str, Case] = {}

    def __call__(self, function: Case) -> Case:
        self.add(function.__name__, function)
        return function

    def add(self, name: str, function: Case) -> None:
        name = f"{self.name}.{name}"
        assert name not in self.cases, name
        self.cases[name] = function
