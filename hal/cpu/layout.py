"""Structures that Python and the native code share. `worker.ll` has the same ones, and says what they are for."""

import ctypes

import numpy as np

#: operations of a command; any other ends the run
END, DISPATCH, JUMP, JUMP_IF_ZERO, SELECT, STAMP = range(6)

#: a command: operation, target of a jump, code or memory, arguments, workgroups or arms
COMMAND = np.dtype(
    [("operation", "<u4"), ("target", "<u4"), ("memory", "<u8"), ("arguments", "<u8"), ("groups", "<u8")]
)
#: the byte of `memory` in a command
MEMORY_PLACE = 8
#: where a run reads an address, and which buffer of the table it is the address of
PATCH = np.dtype([("place", "<u8"), ("slot", "<u8"), ("offset", "<u8")])

#: bytes of a workgroup of a copy or fill
BLOCK = 1 << 18
#: entries of the worker's image
REPLAY, HELPER, STOP, COPY, FILL = range(5)
#: results of `replay`
FINISHED, SLICE_OVER, HALTED, SMALL_STACK = range(4)


class State(ctypes.Structure):
    """A recording, and how far its run is."""

    _fields_ = [
        ("pool", ctypes.c_uint64),
        ("commands", ctypes.c_uint64),
        ("patches", ctypes.c_uint64),
        ("patch_count", ctypes.c_uint64),
        ("table", ctypes.c_uint64),
        ("command", ctypes.c_uint64),
        ("workgroup", ctypes.c_uint64),
        ("slice_start", ctypes.c_uint64),
        ("last_look", ctypes.c_uint64),
        ("bound", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("interval", ctypes.c_uint32),
        ("credit", ctypes.c_uint32),
        ("stack", ctypes.c_uint64),
        ("stack_needed", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
    ]


class PoolWords(ctypes.Structure):
    """The memory of a pool. Words that different threads write lie in different cache lines."""

    _fields_ = [
        ("ticket", ctypes.c_uint64),
        ("_line0", ctypes.c_uint8 * 56),
        ("done", ctypes.c_uint32),
        ("waiting", ctypes.c_uint32),
        ("_line1", ctypes.c_uint8 * 56),
        ("owner", ctypes.c_uint32),
        ("stop", ctypes.c_uint32),
        ("sleepers", ctypes.c_uint32),
        ("halt", ctypes.c_uint32),
        ("helpers", ctypes.c_uint32),
        ("callers", ctypes.c_uint32),
        ("spin", ctypes.c_uint32),
        ("_unused", ctypes.c_uint32),
        ("_line2", ctypes.c_uint8 * 32),
        ("code", ctypes.c_uint64),
        ("arguments", ctypes.c_uint64),
        ("first", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("chunks", ctypes.c_uint64),
        ("threads", ctypes.c_uint32),
        ("_more", ctypes.c_uint32),
        ("_line3", ctypes.c_uint8 * 16),
        ("syscall", ctypes.c_uint64),
        ("clock_gettime", ctypes.c_uint64),
        ("memmove", ctypes.c_uint64),
        ("sched_getcpu", ctypes.c_uint64),
        ("home", ctypes.c_uint64 * 16),
    ]
