"""Known defects of device drivers, and what is done instead: a table with a row per defect, used by both halves.

`hal/quirks.py` says which rows apply to a device, and drivers act on them. The compiler takes the number of iterations
that kernels keep to from this file.
"""

import re
from dataclasses import dataclass
from typing import Final

#: VkDriverId
AMD_PROPRIETARY, AMD_OPEN_SOURCE, NVIDIA, INTEL_WINDOWS, IMAGINATION, QUALCOMM, SWIFTSHADER, LLVMPIPE = (
    1, 2, 4, 5, 7, 8, 10, 13,
)  # fmt: skip
#: VkPhysicalDeviceType
INTEGRATED: Final = 1
#: iterations of all loops of an invocation after which Mesa's llvmpipe ends them without an error
LLVMPIPE_ITERATIONS: Final = 65_535


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """What a device reports about its driver. `number`: the version as the driver encodes it. `text`: versions as text.

    Vulkan: `vendor`, `device`, `kind` and `number` of VkPhysicalDeviceProperties (vendorID, deviceID, deviceType,
    driverVersion), `driver` of VkPhysicalDeviceDriverProperties (driverID; 0 if unknown), and `text` its driverInfo.
    OpenCL: `platform` and `text` are the names of the platform and the version of the device.
    """

    vendor: int = 0
    device: int = 0
    kind: int = 0
    driver: int = 0
    number: int = 0
    platform: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """One defect of a driver.

    `api`: the driver of the HAL. `doc`: what goes wrong, then what is done instead. `source`: address of the report.
    Matched are vendors, devices, drivers, kinds and platforms that are listed (an empty list matches all), numbers of
    versions from `since` to below `before`, and the regular expression `text` somewhere in the text.

    `lacks`: Vulkan features that count as absent. `fill_alignment`: a fill of more than 4096 bytes starts at a multiple
    of it. `stores_pipelines`: compiled pipelines may be given to the driver again. `splits_selections`: a selection
    with two arms is given to the driver as two selections with one arm. `halves_conversions`: a u32 is converted to f32
    by halves. `max_loop_iterations`: iterations of all loops of an invocation together, outer ones counted, after which
    the driver ends them without an error; None without such a limit. `refused`: why the device cannot be used; empty if
    it can.
    """

    name: str
    api: str
    doc: str
    source: str
    vendors: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()
    drivers: tuple[int, ...] = ()
    kinds: tuple[int, ...] = ()
    platforms: tuple[str, ...] = ()
    since: int = 0
    before: int = 1 << 32
    text: str = ""
    lacks: frozenset[str] = frozenset()
    fill_alignment: int = 4
    stores_pipelines: bool = True
    splits_selections: bool = False
    halves_conversions: bool = False
    max_loop_iterations: int | None = None
    refused: str = ""

    def matches(self, facts: DriverFacts) -> bool:
        return (
            all(
                not listed or value in listed
                for listed, value in (
                    (self.vendors, facts.vendor),
                    (self.devices, facts.device),
                    (self.drivers, facts.driver),
                    (self.kinds, facts.kind),
                )
            )
            and (not self.platforms or facts.platform in self.platforms)
            and self.since <= facts.number < self.before
            and re.search(self.text, facts.text) is not None
        )

    @property
    def note(self) -> str:
        """The row as a note of a device."""
        return f"quirk {self.name}: {self.doc} ({self.source})"


QUIRKS: Final[tuple[Quirk, ...]] = (
    Quirk(
        name="intel-robustness2",
        api="vulkan",
        vendors=(0x8086,),
        drivers=(INTEL_WINDOWS,),
        kinds=(INTEGRATED,),
        before=101 << 14 | 2115,
        doc="drivers for Windows before 31.0.101.2115 lose accesses with robust buffer access 2; indices are clamped",
        source="https://github.com/gfx-rs/wgpu/issues/4599",
        lacks=frozenset({"robustBufferAccess2"}),
    ),
    Quirk(
        name="amd-zeroed-workgroup",
        api="vulkan",
        vendors=(0x1002,),
        drivers=(AMD_PROPRIETARY, AMD_OPEN_SOURCE),
        doc="workgroup memory is zeroed without a barrier behind it; the shader zeroes the memory, with a barrier",
        source="https://github.com/gfx-rs/wgpu/issues/4591",
        lacks=frozenset({"shaderZeroInitializeWorkgroupMemory"}),
    ),
    Quirk(
        name="nvidia-fill",
        api="vulkan",
        vendors=(0x10DE,),
        drivers=(NVIDIA,),
        doc="a fill of more than 4096 bytes whose offset is no multiple of 16 fills another range; the bytes up to a "
        "multiple of 16 are filled by a second fill",
        source="https://github.com/gfx-rs/wgpu/issues/4122",
        fill_alignment=16,
    ),
    Quirk(
        name="qualcomm-int64",
        api="vulkan",
        vendors=(0x5143,),
        drivers=(QUALCOMM,),
        doc="64-bit integers of shaders are unreliable; 64-bit integers are computed as pairs of words",
        source="https://github.com/eden-emulator/mirror/blob/56e6bb331187dd85767deb0d0131fb3fbd085998/"
        "src/video_core/vulkan_common/vulkan_device.cpp",
        lacks=frozenset({"shaderInt64"}),
    ),
    Quirk(
        name="adreno630-pipelines",
        api="vulkan",
        vendors=(0x5143,),
        devices=(0x6030001,),
        drivers=(0, QUALCOMM),
        doc="vkCreatePipelineCache crashes on data of an earlier process; pipelines are not stored",
        source="https://github.com/flutter/flutter/issues/172624",
        stores_pipelines=False,
    ),
    Quirk(
        name="powervr-pipelines",
        api="vulkan",
        vendors=(0x1010,),
        drivers=(IMAGINATION,),
        doc="vkCreatePipelineCache crashes on data of an earlier process; pipelines are not stored",
        source="https://github.com/godotengine/godot/issues/115171",
        stores_pipelines=False,
    ),
    Quirk(
        name="swiftshader-selections",
        api="vulkan",
        drivers=(SWIFTSHADER,),
        doc="each branch with two arms in a loop doubles the time of a build; branches are split into two with one arm",
        source="https://github.com/google/swiftshader/blob/master/src/Pipeline/SpirvShader.cpp",
        splits_selections=True,
    ),
    Quirk(
        name="swiftshader-unsigned",
        api="vulkan",
        drivers=(SWIFTSHADER,),
        doc="a u32 of 2^31 or more is rounded twice when it is converted to f32; its halves are converted",
        source="https://github.com/google/swiftshader/blob/master/src/Reactor/Reactor.cpp",
        halves_conversions=True,
    ),
    Quirk(
        name="llvmpipe-loops",
        api="vulkan",
        drivers=(LLVMPIPE,),
        doc="loops end after 65,535 iterations of an invocation without an error; kernels have fewer iterations",
        source="https://gitlab.freedesktop.org/mesa/mesa/-/blob/main/src/gallium/auxiliary/gallivm/lp_bld_limits.h",
        max_loop_iterations=LLVMPIPE_ITERATIONS,
    ),
    Quirk(
        name="pocl-generic",
        api="opencl",
        platforms=("Portable Computing Language",),
        text="PoCL.*x86_64.*-generic$",
        doc="a PoCL that is too old to know the processor builds no code; the device is not listed",
        source="https://github.com/pocl/pocl/issues/1049",
        refused="is built by a PoCL too old to know this processor (its compiler refuses the target CPU 'generic')",
    ),
)
BY_NAME: Final[dict[str, Quirk]] = {row.name: row for row in QUIRKS}
