"""Memory of the CPU, whose address native code gets. Imported host memory is used where it is."""

from orchestrion.hal.backend import Bytes
from orchestrion.hal.host_buffer import ArrayBuffer


class CpuBuffer(ArrayBuffer):
    """`host` is the memory, `address` its first byte."""

    __slots__ = ("address",)

    def __init__(self, host: Bytes) -> None:
        super().__init__(host)
        self.address: int = host.ctypes.data
