"""Recordings of commands, which the functions of the module `hal` make and submit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrion.hal.command_buffer import CommandBuffer
from orchestrion.hal.host_control_flow import HostControlFlow

from .memory import Memory

#: slots of one recording, and bytes charged for each slot
MAX_SLOTS, SLOT_BYTES = 1 << 16, 64
#: bytes charged for a recorded command, and for each of its bindings
COMMAND_BYTES, BINDING_BYTES = 512, 256
#: bytes charged for the begin and the end of a loop or of an arm; where the host runs it, each begins a recording
BLOCK_BYTES = 2048


class Recording:
    """A command buffer, and the parameters of its next dispatch. Host memory is charged to the context that made it.

    A deferred recording makes its command buffer at the first access to `commands`, and then records all steps that
    `record` was called with. So the device code that it uses is built at its first use.

    `control_flow`: whether it may have loops and branches. On a device that records none, `commands` is then a
    `HostControlFlow`.
    """

    __slots__ = ("_create", "_deferred", "_memory", "charged", "commands", "control_flow", "parameters")

    commands: CommandBuffer

    def __init__(
        self,
        commands: CommandBuffer | None,
        memory: Memory,
        create: Callable[[], CommandBuffer] | None = None,
        control_flow: bool = False,
    ) -> None:
        """`commands`: the command buffer. `create`: makes the command buffer of a deferred recording."""
        if commands is not None:
            self.commands = commands
        self.parameters = b""
        self.control_flow = control_flow
        self._memory = memory
        self._create = create
        self._deferred: list[Callable[[CommandBuffer], object]] = []
        self.charged = 0  #: bytes

    def record(self, step: Callable[[CommandBuffer], object]) -> None:
        """Call `step` with the command buffer, at once or when a deferred recording makes it."""
        if self._create is None:
            step(self.commands)
        else:
            self._deferred.append(step)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Make the command buffer of a deferred recording."""
            if name != "commands" or self._create is None:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            commands = self._create()
            for step in self._deferred:
                step(commands)
            self.commands, self._create, self._deferred = commands, None, []
            return commands

    @property
    def recordings(self) -> Sequence[CommandBuffer]:
        """The recordings of the device that its execution submits."""
        commands = self.commands
        return commands.parts if isinstance(commands, HostControlFlow) else (commands,)

    def charge(self, size: int) -> None:
        """Charge `size` bytes to the context until the recording is dropped. `MemoryExceeded` if a limit forbids it."""
        self._memory.charge(size)
        self.charged += size

    def __del__(self) -> None:
        if self.charged:
            self._memory.refund(self.charged)
