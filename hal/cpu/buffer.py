"""Memory of the CPU, whose address native code gets. Imported host memory is used where it is.

Constants that are computed lie in pages of their own, so that pages of a file can take their place.
"""

import ctypes
import mmap
import os
from typing import Self

import numpy as np

from orchestrion.hal.backend import Bytes
from orchestrion.hal.errors import DeviceOutOfMemory
from orchestrion.hal.host_buffer import ArrayBuffer

from .code_memory import ANONYMOUS, READ_WRITE, libc

#: the least bytes that get pages of their own
LEAST_PAGED = 1 << 16
#: the least bytes for which the system is asked for huge pages, as NumPy does
LEAST_HUGE = 1 << 22
#: `f_type` of file systems whose files no other host removes or truncates: ext4, XFS, Btrfs, F2FS, tmpfs, overlayfs
LOCAL_FILE_SYSTEMS = frozenset((0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x01021994, 0x794C7630))
_MAP_FIXED, _MADV_POPULATE_READ = 0x10, 22


class CpuBuffer(ArrayBuffer):
    """`host` is the memory, `address` its first byte. `paged`: whether it lies in pages of its own."""

    __slots__ = ("address", "paged")

    def __init__(self, host: Bytes, paged: bool = False) -> None:
        super().__init__(host)
        self.address: int = host.ctypes.data
        self.paged = paged

    @classmethod
    def allocate_pages(cls, size: int, limit: int) -> Self:
        """As `allocate`, in pages of its own unless it is small."""
        if not LEAST_PAGED <= size <= limit:
            return cls.allocate(size, limit)
        try:
            memory = mmap.mmap(-1, size, ANONYMOUS, READ_WRITE)
        except OSError as error:
            raise DeviceOutOfMemory(f"allocation of {size} bytes failed: {error}") from error
        if size >= LEAST_HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        return cls(np.frombuffer(memory, np.uint8), True)

    def map_file(self, file: int, size: int) -> bool:
        """The last bytes, which fill no page, are read. Raises DeviceOutOfMemory if the system maps nothing more."""
        whole = size - size % mmap.PAGESIZE
        if not self.paged or self.host is None or not whole or not _is_local(file):
            return False
        if libc.mmap(self.address, whole, READ_WRITE, mmap.MAP_PRIVATE | _MAP_FIXED, file, 0) != self.address:
            error = os.strerror(ctypes.get_errno())  # and the pages that were here may be gone
            if libc.mmap(self.address, whole, READ_WRITE, ANONYMOUS | _MAP_FIXED, -1, 0) != self.address:
                raise DeviceOutOfMemory(f"{whole} bytes of a file cannot be mapped: {error}")
            return False
        libc.madvise(
            ctypes.c_void_p(self.address), ctypes.c_size_t(whole), _MADV_POPULATE_READ
        )  # an older system may refuse
        self.host[whole:size] = np.frombuffer(os.pread(file, size - whole, whole), np.uint8)
        return True


def _is_local(file: int) -> bool:
    state = (ctypes.c_long * 32)()  # `struct statfs`, whose first field is `f_type`
    return libc.fstatfs(file, state) == 0 and state[0] in LOCAL_FILE_SYSTEMS
