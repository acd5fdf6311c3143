"""Base class of targets whose entries are `kernel` IR, lowered by schedules for a machine, and what renders that IR."""

from collections.abc import Callable
from typing import Any

from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.kernel.body import Body
from orchestrion.compiler.kernel.choose import Choice, choose
from orchestrion.compiler.kernel.lower import lower_entry
from orchestrion.compiler.profiles import DEFAULT

from .target import Target


class KernelTarget(Target):
    """A target that has a row in `machines` for each kind of device, and serializes `kernel` IR."""

    def choose(self, body: Body, machine: str = DEFAULT) -> Choice:
        return choose(body, self.row(machine))

    def lower(self, entry: Operation, machine: str = DEFAULT) -> None:
        lower_entry(entry, self.row(machine))


#: ops whose methods cannot have their names
_METHODS = {"for": "loop", "if": "branch", "yield": "nothing", "return": "nothing"}


def methods_of(renderer: type) -> dict[str, Callable[[Any, Any], None]]:
    """Op of `kernel` -> the method of a class that renders it, which has the name of the op. Ops without a method are
    left out.
    """
    short = {name: name.removeprefix("kernel.") for name in k.DIALECT.ops}
    named = {name: getattr(renderer, _METHODS.get(last, last), None) for name, last in short.items()}
    return {name: method for name, method in named.items() if method is not None}
