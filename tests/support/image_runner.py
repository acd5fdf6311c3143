"""Runs entries of native images by ctypes, without a driver: the image is copied to memory that may be executed.

The bindings lie between guard pages, so that an access beside one ends the process.
"""

import ctypes
import mmap
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from orchestrion.schema.native_image import decode

#: level -> flags of `/proc/cpuinfo` that a processor with it has
_FLAGS = {
    "x86-64-v4-bf16": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma", "avx512_bf16"},
    "x86-64-v4-vnni": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma", "avx512_vnni"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma"},
    "x86-64-v3": {"avx2", "bmi2", "f16c", "fma"},
    "x86-64-v2": {"sse4_2", "ssse3", "popcnt"},
}
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)


def levels_here() -> list[str]:
    """The levels whose images this machine runs, best first."""
    if platform.system() != "Linux":
        return []
    found = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    if platform.machine() == "aarch64":
        return [*(["aarch64-dotprod"] if "asimddp" in found else []), "aarch64"]
    return [level for level, flags in _FLAGS.items() if flags <= found]


def run(payload: bytes, entry: int, arrays: Sequence[np.ndarray], groups: int, parameters: bytes = b"") -> None:
    """Runs the workgroups of an entry on bindings that begin at a guard page, then on bindings that end at one.

    Arrays of bytes are the bindings; those that it writes change. Asserts that both runs write the same.
    """
    image = decode(payload)
    row = image.entries[entry]
    assert row.bindings == len(arrays) and row.parameters <= len(parameters) // 4
    memory = mmap.mmap(-1, len(image.code), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory[:] = bytes(image.code)
    place = ctypes.c_char.from_buffer(memory)
    function = _ENTRY(ctypes.addressof(place) + row.offset)
    first, second = (_run_guarded(function, arrays, groups, parameters, at_end) for at_end in (False, True))
    for array, one, other in zip(arrays, first, second, strict=True):
        np.testing.assert_array_equal(one, other)
        array[:] = one
    del place, function


def _run_guarded(
    function: Callable[[int, int, int], None],
    arrays: Sequence[np.ndarray],
    groups: int,
    parameters: bytes,
    at_end: bool,
) -> list[np.ndarray]:
    """The bindings after two calls, the second half of the workgroups first."""
    from guard_pages import GuardedMemory

    guarded = [GuardedMemory(array.size, at_end) for array in arrays]
    for memory, array in zip(guarded, arrays, strict=True):
        memory.view[:] = array
    addresses = np.array([memory.view.ctypes.data for memory in guarded], np.uint64).tobytes()
    arguments = ctypes.create_string_buffer(addresses + parameters)
    middle = groups // 2
    for begin, end in ((middle, groups), (0, middle)):
        function(ctypes.addressof(arguments), begin, end)
    found = [memory.view.copy() for memory in guarded]
    for memory in guarded:
        memory.release()
    return found
