"""Runs entries of native images by ctypes, without a driver: the image is copied to memory that may be executed."""

import ctypes
import mmap
import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from orchestrion.schema.native_image import decode

#: level -> flags of `/proc/cpuinfo` that a processor with it has
_FLAGS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma"},
    "x86-64-v3": {"avx2", "bmi2", "f16c", "fma"},
    "x86-64-v2": {"sse4_2", "ssse3", "popcnt"},
}
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)


def levels_here() -> list[str]:
    """The levels whose images this machine runs, best first."""
    if platform.system() != "Linux":
        return []
    if platform.machine() == "aarch64":
        return ["aarch64"]
    found = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    return [level for level, flags in _FLAGS.items() if flags <= found]


def run(payload: bytes, entry: int, arrays: Sequence[np.ndarray], groups: int, parameters: bytes = b"") -> None:
    """Runs the workgroups of an entry, in two calls. Arrays are the bindings; those that it writes change."""
    image = decode(payload)
    row = image.entries[entry]
    assert row.bindings == len(arrays) and row.parameters <= len(parameters) // 4
    memory = mmap.mmap(-1, len(image.code), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory[:] = bytes(image.code)
    place = ctypes.c_char.from_buffer(memory)
    addresses = np.array([array.ctypes.data for array in arrays], np.uint64).tobytes()
    arguments = ctypes.create_string_buffer(addresses + parameters)
    function = _ENTRY(ctypes.addressof(place) + row.offset)
    middle = groups // 2
    for begin, end in ((middle, groups), (0, middle)):
        function(ctypes.addressof(arguments), begin, end)
    del place, function
