"""Memory that holds machine code. It is never writable and executable at the same time.

Code is copied into a sealed file in memory, which nobody can change afterwards, and mapped from there. Where such files
are not available, it is written to anonymous memory, which is protected before it is used. It is never mapped from a
file on disk, whose content may change after it was verified.
"""

import ctypes
import fcntl
import mmap
import os

from orchestrion.hal.errors import DeviceOutOfMemory

SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
READ_WRITE, READ_EXECUTE = mmap.PROT_READ | mmap.PROT_WRITE, mmap.PROT_READ | mmap.PROT_EXEC
ANONYMOUS = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
#: what mmap returns if it fails
FAILED = ctypes.c_void_p(-1).value

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip
libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class CodeMemory:
    """A mapping of machine code. `address`: its first byte, at a multiple of the page size."""

    __slots__ = ("_size", "address")

    def __init__(self, code: memoryview | bytes, sealed: bool = True) -> None:
        """`sealed`: try a sealed file first. Raises DeviceOutOfMemory if the system maps no executable memory."""
        self._size = len(code)
        found = _map_sealed(code) if sealed else None
        self.address: int = _map_anonymous(code) if found is None else found

    def release(self) -> None:
        address, self.address = self.address, 0
        if address:
            libc.munmap(address, self._size)


def map_memory(size: int, protection: int, flags: int, file: int = -1) -> int:
    """The address of new memory. Raises OSError."""
    address: int | None = libc.mmap(None, size, protection, flags, file, 0)
    if address is None or address == FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return address


def _map_sealed(code: memoryview | bytes) -> int | None:
    """Map code from a sealed file in memory; None if the system has none, or maps them without execution."""
    try:
        file = os.memfd_create("orchestrion-code", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError:
        return None
    try:
        view = memoryview(code)
        while view:
            view = view[os.write(file, view) :]
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS)
        return map_memory(len(code), READ_EXECUTE, mmap.MAP_PRIVATE, file)
    except OSError:
        return None
    finally:
        os.close(file)


def _map_anonymous(code: memoryview | bytes) -> int:
    try:
        address = map_memory(len(code), READ_WRITE, ANONYMOUS)
    except OSError as error:
        raise DeviceOutOfMemory(f"{len(code)} bytes for machine code: {error}") from error
    ctypes.memmove(address, bytes(code), len(code))
    if libc.mprotect(address, len(code), READ_EXECUTE):
        number = ctypes.get_errno()
        libc.munmap(address, len(code))
        raise DeviceOutOfMemory(f"{len(code)} bytes of memory cannot be made executable: {os.strerror(number)}")
    return address
