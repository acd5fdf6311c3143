"""The CPU driver: one device, which runs machine code that was made when the module was compiled.

It needs NumPy and ctypes only. A submission is one call of native code (`worker.ll`), which replays the recorded
commands and hands workgroups out to the threads of the pool. Machine code can do anything that the process can, so the
policy decides which modules may run here.
"""

import os

from orchestrion.hal.backend import BackendDevice, BackendDriver, Conformance, DeviceInfo, Limits
from orchestrion.hal.errors import DriverUnavailable, InvalidArgument
from orchestrion.schema.profiles import INSTRUCTION_SETS

from .processor import architecture, description, instruction_sets
from .thread_count import MAX_THREADS, thread_count, thread_note

FORMAT, LIBRARY_FORMAT = "native-image", "library-calls"
#: features of every processor that runs native images
TYPES = frozenset({"int8", "int16", "int64", "float64"})
#: bytes; code assumes the alignment of an element only, but whole cache lines are faster
BINDING_ALIGNMENT = 64
#: bytes; NumPy's allocations are aligned so, and a copy costs more than unaligned loads
IMPORT_ALIGNMENT = 16
MAX_GROUPS = 2**31 - 1


class CpuDriver(BackendDriver):
    name = "cpu"
    forks = True
    conformance = Conformance(
        unsupported={"executables.entry_with_another_workgroup_size": "a native image states no workgroup sizes"}
    )

    _threads: int | None = None

    def use_threads(self, count: int) -> None:
        if not 1 <= count <= MAX_THREADS:
            raise InvalidArgument(f"{count} threads, 1 to {MAX_THREADS} are allowed")
        self._threads = count

    def devices(self) -> list[DeviceInfo]:
        here, rows = architecture(), description()
        levels = instruction_sets(here, rows)
        try:
            threads = thread_count()
        except InvalidArgument as error:
            raise DriverUnavailable(str(error)) from error
        return [
            DeviceInfo(
                driver=self.name,
                index=0,
                name=rows.get("model name", here),
                vendor=rows.get("vendor_id", rows.get("CPU implementer", "unknown")),
                version=max(levels, key=INSTRUCTION_SETS.index),
                formats=(FORMAT, LIBRARY_FORMAT),
                features=TYPES | levels,
                limits=Limits(
                    max_workgroup_count=(MAX_GROUPS, MAX_GROUPS, MAX_GROUPS),
                    max_workgroup_size=1024,
                    max_binding_length=_memory_bytes(),
                    max_bindings=1024,
                    max_parameter_bytes=256,
                    shared_memory_bytes=384 << 10,
                    min_binding_alignment=BINDING_ALIGNMENT,
                    host_import_alignment=IMPORT_ALIGNMENT,
                ),
                memory_bytes=_memory_bytes(),
                notes=(thread_note(threads),),
                timestamps=True,
                control_flow=True,
            )
        ]

    def open(self, info: DeviceInfo) -> BackendDevice:
        from .device import CpuDevice

        return CpuDevice(info, self._threads)

    def open_profiled(self, info: DeviceInfo) -> BackendDevice:
        from .profiling import ProfiledDevice

        return ProfiledDevice(info, self._threads)


def _memory_bytes() -> int:
    """Bytes of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
