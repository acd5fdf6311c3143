"""The stacks of threads that run native code. Entries keep arrays there, and say how many bytes they use.

Threads of Python may have stacks of a few KiB, and native code that leaves its stack ends the process. So `replay`
compares the room in the stack of the caller's thread with what the entries of a recording need.
"""

import ctypes
import threading
from typing import NamedTuple

from orchestrion.schema.native_image import MOST_STACK

from .code_memory import libc

#: bytes that are left for signal handlers, and for functions of the worker and of the C library
RESERVE = 32 << 10
#: entries that use less are run on every stack, as C functions of libraries are
SMALL = 8 << 10
#: bytes of a stack on which every entry can run
ENOUGH = MOST_STACK + 2 * RESERVE

libc.pthread_self.restype = ctypes.c_void_p
libc.pthread_getattr_np.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
libc.pthread_attr_getstack.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
libc.pthread_attr_destroy.argtypes = (ctypes.c_void_p,)


class _Stack(NamedTuple):
    """A stack: its lowest address, and its bytes. Both are 0 if they are not known."""

    lowest: int
    size: int


class _Stacks(threading.local):
    """The stack of this thread."""

    def __init__(self) -> None:
        self.found = _find()


def needed(used: int) -> int:
    """Bytes that the stack must have left for entries that use `used` bytes; 0 if every stack has enough."""
    return used + RESERVE if used > SMALL else 0


def lowest_address() -> int:
    """The lowest address of the stack of this thread; 0 if it is not known."""
    return _stacks.found.lowest


def size() -> int:
    """The bytes of the stack of this thread; 0 if they are not known."""
    return _stacks.found.size


def _find() -> _Stack:
    attributes = (ctypes.c_uint64 * 16)()  # pthread_attr_t has 56 bytes on x86-64, and 64 on aarch64
    lowest, found = ctypes.c_void_p(), ctypes.c_size_t()
    if libc.pthread_getattr_np(libc.pthread_self(), attributes):
        return _Stack(0, 0)
    libc.pthread_attr_getstack(attributes, ctypes.byref(lowest), ctypes.byref(found))
    libc.pthread_attr_destroy(attributes)
    return _Stack(lowest.value or 0, found.value)


_stacks = _Stacks()
