"""Loops and branches in recordings: which commands jump, and where to.

| recorded | commands |
| --- | --- |
| a loop | `JUMP_IF_ZERO` behind it, body, `JUMP` to the first |
| a branch by a predicate | `JUMP_IF_ZERO` to the second arm, first arm, `JUMP` behind it, second arm |
| a branch by an index | `SELECT`, a `JUMP` to each arm, the arms, each but the last with a `JUMP` behind the branch |
"""

from __future__ import annotations

from . import layout
from .program import Command


class ControlFlow:
    """The open loops and branches of one recording. `commands` is its list, which others append to as well."""

    __slots__ = ("_commands", "_open")

    def __init__(self, commands: list[Command]) -> None:
        self._commands = commands
        self._open: list[_Block] = []

    def begin_loop(self) -> None:
        """The next command reads the predicate."""
        self._open.append(_Block(len(self._commands), loop=True))

    def begin_branch(self, indexed: bool, arms: int) -> None:
        """The next command reads the selector; `begin_arms` follows it."""
        self._open.append(_Block(len(self._commands), arms=arms, indexed=indexed))

    def begin_arms(self) -> None:
        block = self._open[-1]
        block.starts.append(len(self._commands))
        if block.indexed:
            self._commands += [Command(layout.JUMP)] * block.arms
            block.starts = [len(self._commands)]

    def next_arm(self) -> None:
        block = self._open[-1]
        block.leaves.append(len(self._commands))
        self._commands.append(Command(layout.JUMP))
        block.starts.append(len(self._commands))

    def end(self) -> None:
        block = self._open.pop()
        if block.loop:
            self._commands.append(Command(layout.JUMP, target=block.command))
            self._aim(block.command, len(self._commands))
            return
        after = len(self._commands)
        for leave in block.leaves:
            self._aim(leave, after)
        if block.indexed:
            for arm, start in enumerate(block.starts):
                self._aim(block.command + 1 + arm, start)
        else:
            self._aim(block.command, block.starts[1] if len(block.starts) > 1 else after)

    def _aim(self, command: int, target: int) -> None:
        self._commands[command] = self._commands[command]._replace(target=target)


class _Block:
    """A loop or branch. `command` reads its predicate or selector; `starts` are the first commands of its arms, and
    `leaves` the jumps that end them.
    """

    __slots__ = ("arms", "command", "indexed", "leaves", "loop", "starts")

    def __init__(self, command: int, arms: int = 0, indexed: bool = False, loop: bool = False) -> None:
        self.command = command
        self.arms = arms
        self.indexed = indexed
        self.loop = loop
        self.starts: list[int] = []
        self.leaves: list[int] = []
