"""An interpreter that knows which results every device must give: all others are *open*.

Open are results that the specification leaves open, floats whose bits drivers choose (NaN, infinities, zeros, denormal
numbers), what is loaded from outside of a buffer, what two invocations store to one place, and whatever is made of such
values. A run is comparable unless control flow or the order of invocations decides what it computes.
"""

import math
from collections.abc import Callable
from typing import Any

from spirv_interpreter import Run
from spirv_memory import Adversary, Buffer, Workgroup
from spirv_program import Variable


class OpenInt(int):
    """An integer or bool of which nothing is known."""

    def __sub__(self, other: int) -> "OpenInt":
        return OpenInt(int(self) - other)


class OpenFloat(float):
    """A float of which nothing is known."""


OPEN = (OpenInt, OpenFloat)


def opened(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(opened, value))
    return OpenFloat(value) if isinstance(value, float) else OpenInt(value)


def is_open(value: Any) -> bool:
    return any(map(is_open, value)) if isinstance(value, tuple) else isinstance(value, OPEN)


def _special(value: Any, least: float) -> bool:
    """Whether drivers differ on a float: NaN, infinities, zeros and denormal numbers."""
    return isinstance(value, float) and not (math.isfinite(value) and abs(value) >= least)


#: kind -> the least normal number
_LEAST = {"f32": 2.0**-126, "f64": 2.0**-1022}


def traced(function: Callable[..., Any], kind: str, operands: list[str]) -> Callable[..., Any]:
    """The function of an instruction, whose result is open if an operand is or drivers differ on it."""
    leasts = [_LEAST.get(name, 0.0) for name in operands]
    least = _LEAST.get(kind, 0.0)

    def trace(*values: Any) -> Any:
        found = function(*values)
        if found is None:
            return None
        special = any(map(_special, values, leasts)) or _special(found, least)
        return opened(found) if special or any(map(is_open, values)) else found

    return trace


class OpenAdversary(Adversary):
    def value(self, kind: str, *key: Any) -> Any:
        return opened(super().value(kind, *key))


class Log:
    """Who read and wrote each cell of an object since the last barrier that orders its accesses."""

    def __init__(self) -> None:
        self.readers: dict[int, set[int]] = {}
        self.writers: dict[int, set[int]] = {}

    def read(self, cell: int, who: int) -> bool:
        """Whether the read has one order only."""
        self.readers.setdefault(cell, set()).add(who)
        return not self.writers.get(cell, set()) - {who}

    def write(self, cell: int, who: int) -> tuple[bool, bool]:
        """Whether no other invocation read the cell, and whether none wrote it."""
        writers = self.writers.setdefault(cell, set())
        writers.add(who)
        return not self.readers.get(cell, set()) - {who}, not writers - {who}


class TracedWorkgroup(Workgroup):
    """Workgroup memory that knows which cells are open."""

    def __init__(self, run: "TracedRun", length: int, fill: Any) -> None:
        super().__init__(length, fill)
        self.run = run
        self.log = Log()

    def load(self, index: int) -> Any:
        if is_open(index):
            self.run.comparable = False
        elif not self.log.read(index, self.run.current):
            self.run.comparable = False
        return super().load(index)

    def store(self, index: int, value: Any) -> None:
        if is_open(index):
            self.run.comparable = False
        unread, unwritten = self.log.write(index, self.run.current)
        self.run.comparable &= unread
        super().store(index, value if unwritten else opened(value))


class Shadow:
    """What is known of a binding's bytes: which are open."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.log = Log()


class TracedBuffer(Buffer):
    """A storage buffer that knows which bytes are open. Barriers do not order its accesses."""

    def __init__(self, run: "TracedRun", shadow: Shadow, *given: Any) -> None:
        super().__init__(*given)
        self.run = run
        self.shadow = shadow

    def load(self, index: int) -> Any:
        if is_open(index) or not self.inside(index):
            return None
        return super().load(index)

    def lane(self, index: int) -> Any:
        cells = range(index * self.bytes, (index + 1) * self.bytes)
        for cell in cells:
            self.run.comparable &= self.shadow.log.read(cell, self.run.current)
        value = super().lane(index)
        return value if self.shadow.open.isdisjoint(cells) else opened(value)

    def store(self, index: int, value: Any) -> None:
        if is_open(index) or not self.inside(index):
            for cell in range(len(self.memory)):  # devices that clamp write somewhere in it
                self.mark(cell, False)
            return
        super().store(index, value)

    def write(self, index: int, value: Any) -> None:
        known = not is_open(value) and not _special(value, _LEAST[f"f{self.bits}"] if self.floats else 0.0)
        for cell in range(index * self.bytes, (index + 1) * self.bytes):
            self.mark(cell, known)
        super().write(index, value)

    def mark(self, cell: int, known: bool) -> None:
        """A byte that is written, with what is known or not."""
        unread, unwritten = self.shadow.log.write(cell, self.run.current)
        self.run.comparable &= unread
        if known and unwritten:
            self.shadow.open.discard(cell)
        else:
            self.shadow.open.add(cell)


class TracedRun(Run):
    """`comparable`: whether what is not open is the same everywhere. `shadows`: open bytes by binding."""

    comparable = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.shadows: dict[int, Shadow] = {}

    def target(self, block: Any, values: dict[int, Any]) -> int:
        if block.condition and is_open(values[block.condition]):
            self.comparable = False
        return super().target(block, values)

    def passed_barrier(self) -> None:
        for memory in self.memories.values():
            if isinstance(memory, TracedWorkgroup):
                memory.log = Log()

    def workgroup(self, variable: Variable) -> Workgroup:
        plain = super().workgroup(variable)
        return TracedWorkgroup(self, plain.length, plain.fill)

    def buffer(self, variable: Variable) -> Buffer:
        plain = super().buffer(variable)
        shadow = self.shadows.setdefault(variable.binding, Shadow())
        kind = variable.content.members[0][:-2].partition("x")[0]
        return TracedBuffer(self, shadow, plain.memory, kind, plain.lanes, plain.robust, plain.writable)
