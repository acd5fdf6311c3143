"""Loops and branches in recordings of the reference device: which command follows a command.

A recording is a list of commands. A loop or branch adds its own commands, which compute nothing and read at most one
range, and a jump for each of them: a function from the command's registers to the number of the next command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .program import Registers, Step

#: registers of a command -> number of the next command
Jump = Callable[[Registers], int]
#: steps of a command, and the registers that each is given
Bound = tuple[Sequence[Step], Registers]


class ControlFlow:
    """The jumps of one recording."""

    __slots__ = ("_jumps", "_open")

    def __init__(self) -> None:
        self._jumps: dict[int, Jump] = {}  #: by the number of the command that they follow
        self._open: list[_Loop | _Branch] = []

    def as_one(self, count: int, bound: Callable[[int], Bound]) -> tuple[Bound, ...]:
        """Returns one command, whose single step runs all commands and follows the jumps. So recordings without jumps
        check for none.

        `bound`: returns the command of a number, with its registers for one table of buffers.
        """
        jumps = self._jumps

        def run(_: Registers) -> None:
            number = 0
            while number < count:
                steps, registers = bound(number)
                for step in steps:
                    step(registers)
                jump = jumps.get(number)
                number = number + 1 if jump is None else jump(registers)

        return (((run,), []),)

    def begin_loop(self, command: int) -> None:
        """`command` is the number of the command that reads the predicate."""
        self._open.append(_Loop(command))

    def begin_branch(self, command: int, arms: int) -> None:
        """`command` is the number of the command that reads the selector."""
        self._open.append(_Branch(command, arms))

    def next_arm(self, command: int) -> None:
        branch = self._open[-1]
        assert isinstance(branch, _Branch)
        self._jumps[command] = branch.leave
        branch.starts.append(command + 1)

    def end(self, command: int) -> None:
        block = self._open.pop()
        self._jumps[block.command] = block.enter
        self._jumps[command] = block.leave
        block.after = command + 1


class _Loop:
    """A loop. `command` reads the predicate; the body follows it, up to the command before `after`."""

    __slots__ = ("after", "command")

    def __init__(self, command: int) -> None:
        self.command = command
        self.after = 0

    def enter(self, registers: Registers) -> int:
        return self.command + 1 if registers[0][0] else self.after

    def leave(self, registers: Registers) -> int:
        return self.command


class _Branch:
    """A branch. `command` reads the selector; `starts` are the first commands of the arms."""

    __slots__ = ("after", "arms", "command", "starts")

    def __init__(self, command: int, arms: int) -> None:
        self.command = command
        self.arms = arms
        self.starts = [command + 1]
        self.after = 0

    def enter(self, registers: Registers) -> int:
        selector: Any = registers[0]
        if len(selector) == 1:
            return self.starts[0 if selector[0] else 1]
        index = int.from_bytes(selector.tobytes(), "little", signed=True)
        return self.starts[index if 0 <= index < self.arms else -1]

    def leave(self, registers: Registers) -> int:
        return self.after
