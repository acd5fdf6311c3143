"""The OpenCL driver: every device of every platform that pyopencl's loader finds, for programs in OpenCL C.

pyopencl is imported when devices are listed, not before. Devices of each platform count separately: Debian's PoCL and
that of the distribution `pyopencl[pocl]` are two devices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrion.hal.backend import BackendDevice, BackendDriver, DeviceInfo, Limits
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.quirks import quirks_of
from orchestrion.schema.hints import install, pip
from orchestrion.schema.quirks import DriverFacts

from .heaps import Machine, machine_of

if TYPE_CHECKING:
    import pyopencl as cl

#: bytes of an entry's parameter words; OpenCL guarantees 1024 bytes for these and the pointers
PARAMETER_BYTES = 256
POINTER_BYTES = 8
#: workgroups per dimension: kernels count workgroups, and compute the linear index, in 31 bits
MAX_GROUPS = 2**31 - 1
#: bytes; kernels only assume the alignment of an element, but whole cache lines are faster
IMPORT_ALIGNMENT = 64
#: CL_QUEUE_PROFILING_ENABLE
PROFILING = 2
#: CL_DEVICE_TYPE_GPU
GPU = 4


class OpenCLDriver(BackendDriver):
    name = "opencl"

    def devices(self) -> list[DeviceInfo]:
        devices, left_out = find()
        infos = [describe(index, device) for index, device in enumerate(devices)]
        if left_out:
            infos[0] = replace(infos[0], notes=(*infos[0].notes, *left_out))
        return infos

    def open(self, info: DeviceInfo) -> BackendDevice:
        from .device import OpenCLDevice  # imports pyopencl

        return OpenCLDevice(info, find()[0][info.index])

    def open_profiled(self, info: DeviceInfo) -> BackendDevice:
        from .profiling import ProfiledDevice

        return ProfiledDevice(info, find()[0][info.index])


def describe(index: int, device: cl.Device) -> DeviceInfo:
    """What a device reports, in the terms of the HAL."""
    from .api import why_no_command_buffers  # imports pyopencl

    extensions = device.extensions.split()
    full = device.profile == "FULL_PROFILE"
    features = {"int8", "int16"}
    if full or "cles_khr_int64" in extensions:
        features.add("int64")
    if "cl_khr_fp64" in extensions:
        features.add("float64")
    if device.type & GPU:
        features.add("gpu")
    notes = [f"platform {device.platform.name.strip()} {device.platform.version.strip()}"]
    reason = why_no_command_buffers(device)
    notes.append(f"calls replay enqueue lists ({reason})" if reason else "calls replay command buffers")
    notes.append(machine_of_device(device).value)
    return DeviceInfo(
        driver="opencl",
        index=index,
        name=device.name.strip(),
        vendor=device.vendor.strip(),
        version=f"{device.version.strip()}, driver {device.driver_version.strip()}",
        formats=("opencl-c",),
        features=frozenset(features),
        limits=_limits(device),
        memory_bytes=device.global_mem_size,
        notes=tuple(notes),
        timestamps=bool(device.queue_properties & PROFILING),
    )


def machine_of_device(device: cl.Device) -> Machine:
    """How the device shares memory with the host."""
    import pyopencl as cl

    try:
        fine_grain = bool(device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER)
    except cl.LogicError:  # older than OpenCL 2.0, which introduced this query
        fine_grain = False
    return machine_of(bool(device.host_unified_memory), fine_grain)


def _limits(device: cl.Device) -> Limits:
    return Limits(
        max_workgroup_count=(MAX_GROUPS, MAX_GROUPS, MAX_GROUPS),
        max_workgroup_size=device.max_work_group_size,
        max_binding_length=device.max_mem_alloc_size,
        max_bindings=(device.max_parameter_size - PARAMETER_BYTES) // POINTER_BYTES,
        max_parameter_bytes=PARAMETER_BYTES,
        shared_memory_bytes=device.local_mem_size,
        min_binding_alignment=max(16, device.mem_base_addr_align // 8),
        host_import_alignment=IMPORT_ALIGNMENT,
    )


def why_unusable(device: cl.Device) -> str:
    """Why a device cannot run OpenCL C; empty if it can."""
    if not device.available or not device.compiler_available:
        return "is not available" if device.compiler_available else "has no compiler"
    facts = DriverFacts(platform=device.platform.name.strip(), text=device.version.strip())
    refused = [row for row in quirks_of("opencl", facts) if row.refused]
    return f"{refused[0].refused} (quirk {refused[0].name}; ORCHESTRION_QUIRKS=off uses it)" if refused else ""


def find() -> tuple[list[Any], list[str]]:
    """Returns the usable devices, platform by platform, and a text for each unusable one. Raises DriverUnavailable,
    which states what to install.
    """
    try:
        import pyopencl as cl
    except ImportError as error:
        raise DriverUnavailable(
            f"pyopencl cannot be imported ({error}): {install('opencl')}, "
            "or 'pyopencl[pocl]' for a CPU device that needs no system package"
        ) from error
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        raise DriverUnavailable(
            f"no OpenCL platform ({error}): install your device's OpenCL driver, "
            f"or PoCL for the CPU ({pip('pyopencl[pocl]')}, Debian package pocl-opencl-icd)"
        ) from error
    devices, left_out = [], []
    for platform in platforms:
        try:
            found = platform.get_devices()
        except cl.Error as error:
            left_out.append(f"left out: platform {platform.name.strip()}: {error}")
            continue
        for device in found:
            reason = why_unusable(device)
            if reason:
                left_out.append(f"left out: {device.name.strip()} ({device.driver_version.strip()}) {reason}")
            else:
                devices.append(device)
    if not devices:
        raise DriverUnavailable(f"no usable OpenCL device; {'; '.join(left_out)}")
    return devices, left_out
