"""Memory of the reference device. Imported host memory is used directly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrion.hal.backend import Bytes
from orchestrion.hal.host_buffer import ArrayBuffer

if TYPE_CHECKING:
    from .command_buffer import ReferenceCommandBuffer


class ReferenceBuffer(ArrayBuffer):
    """Device memory; `users` are the recordings that keep views of it from their last run."""

    __slots__ = ("users",)

    def __init__(self, host: Bytes) -> None:
        super().__init__(host)
        self.users: set[ReferenceCommandBuffer] = set()

    def release(self) -> None:
        for user in tuple(self.users):
            user.unbind()
        del self.host
