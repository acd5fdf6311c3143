"""Recordings of commands, as the functions of the module `hal` make and submit them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from orchestrion.hal.command_buffer import CommandBuffer

from .memory import Memory

#: slots of one recording, and bytes charged for each
MAX_SLOTS, SLOT_BYTES = 1 << 16, 64
#: bytes charged for a recorded command, and for each of its bindings
COMMAND_BYTES, BINDING_BYTES = 512, 256


class Recording:
    """A command buffer and the parameters of its next dispatch. Its host memory is charged to the context that made
    it.

    `commands` of a deferred recording, whose code is built when it is first used, are made when they are first asked
    for: `create` gives the command buffer, and `record` is called for it what was asked of the recording before.
    """

    __slots__ = ("_create", "_deferred", "_memory", "charged", "commands", "parameters")

    commands: CommandBuffer

    def __init__(
        self, commands: CommandBuffer | None, memory: Memory, create: Callable[[], CommandBuffer] | None = None
    ) -> None:
        """`commands`, or `create` for a deferred one."""
        if commands is not None:
            self.commands = commands
        self.parameters = b""
        self._memory = memory
        self._create = create
        self._deferred: list[Callable[[CommandBuffer], object]] = []
        self.charged = 0  #: bytes

    def record(self, step: Callable[[CommandBuffer], object]) -> None:
        """Call `step` with the command buffer: now, or once there is one."""
        if self._create is None:
            step(self.commands)
        else:
            self._deferred.append(step)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """The command buffer of a deferred recording."""
            if name != "commands" or self._create is None:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            commands = self._create()
            for step in self._deferred:
                step(commands)
            self.commands, self._create, self._deferred = commands, None, []
            return commands

    def charge(self, size: int) -> None:
        self._memory.charge(size)
        self.charged += size

    def __del__(self) -> None:
        if self.charged:
            self._memory.refund(self.charged)
