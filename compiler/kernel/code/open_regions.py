"""Regions of `kernel` IR under construction, and the values that are known in them."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from orchestrion.compiler.ir.core import Block, Value
from orchestrion.compiler.ir.types import Type


class Scopes:
    """A stack of dictionaries, one per open region. Reads look outwards; writes go to the innermost."""

    def __init__(self) -> None:
        self.stack: list[dict[Hashable, Value]] = [{}]

    def push(self) -> None:
        """Opens a scope."""
        self.stack.append({})

    def pop(self) -> None:
        """Closes the innermost scope."""
        self.stack.pop()

    def get(self, key: Hashable) -> Value | None:
        """The value of a key in the innermost scope that has it; None if none has."""
        for scope in reversed(self.stack):
            if key in scope:
                return scope[key]
        return None

    def set(self, key: Hashable, value: Value, level: int = -1) -> None:
        """Sets the value of a key, in the innermost scope or at a level."""
        self.stack[level][key] = value


@dataclass(slots=True)
class OpenLoop:
    """A `kernel.for` under construction: its index and carried values."""

    bounds: tuple[Value, Value, Value]
    start: list[Value]
    block: Block
    outer: Block

    @property
    def index(self) -> Value:
        """The loop index."""
        return self.block.arguments[0]

    @property
    def carried(self) -> list[Value]:
        """The carried values inside the loop."""
        return list(self.block.arguments[1:])


@dataclass(slots=True)
class OpenWhile:
    """A `kernel.while` under construction: its limit and its first condition."""

    most: Value
    start: Value
    outer: Block


@dataclass(slots=True)
class OpenIf:
    """A `kernel.if` under construction, with the arms built so far. `rare`: the first one hardly ever runs."""

    condition: Value
    outer: Block
    arms: list[Block] = field(default_factory=list)
    types: list[Type] = field(default_factory=list)
    rare: bool = False
