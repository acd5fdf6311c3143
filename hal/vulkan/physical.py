"""Physical devices: their properties, the features to enable, and their description for the HAL.

A device is usable if it has a compute queue, Vulkan 1.1 and timeline semaphores; for any other, `scan` says why not.
Hardware devices come first, then software devices. The table FEATURES holds every Vulkan feature that is enabled where
available. HAL_FEATURES says which of them make up one HAL feature. What a quirk of the driver (`schema/quirks.py`) or
the device profile withholds counts as absent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestrion.hal.backend import DeviceInfo, Limits
from orchestrion.hal.quirks import quirks_of
from orchestrion.schema.quirks import DriverFacts, Quirk

from .api import Api, Handle
from .budget import read_budgets
from .device_profile import DeviceProfile, device_profile, weaker
from .heaps import TYPE_CPU, Heap, Machine, MemoryType, machine_of
from .instance import LEAST_VERSION, Instance, unpack_version

NEVER = (99, 0)
FLOAT_CONTROLS = "VK_KHR_shader_float_controls"
#: property of a device, followed by a width in bits: code may ask to keep NaN, infinities and signs of zeros
PRESERVES = "shaderSignedZeroInfNanPreserveFloat"


@dataclass(frozen=True, slots=True)
class Feature:
    """One Vulkan feature: its field, its struct, the extension it needs, and the version `core` that includes it."""

    field: str
    struct: str
    extension: str
    core: tuple[int, int]


FEATURES: tuple[Feature, ...] = (
    Feature("robustBufferAccess", "VkPhysicalDeviceFeatures2", "", (1, 0)),
    Feature("shaderInt16", "VkPhysicalDeviceFeatures2", "", (1, 0)),
    Feature("shaderInt64", "VkPhysicalDeviceFeatures2", "", (1, 0)),
    Feature("shaderFloat64", "VkPhysicalDeviceFeatures2", "", (1, 0)),
    Feature("storageBuffer16BitAccess", "VkPhysicalDevice16BitStorageFeatures", "", (1, 1)),
    Feature("storageBuffer8BitAccess", "VkPhysicalDevice8BitStorageFeatures", "VK_KHR_8bit_storage", (1, 2)),
    Feature("shaderInt8", "VkPhysicalDeviceShaderFloat16Int8Features", "VK_KHR_shader_float16_int8", (1, 2)),
    Feature("timelineSemaphore", "VkPhysicalDeviceTimelineSemaphoreFeatures", "VK_KHR_timeline_semaphore", (1, 2)),
    Feature("robustBufferAccess2", "VkPhysicalDeviceRobustness2FeaturesEXT", "VK_EXT_robustness2", NEVER),
    Feature(
        "shaderZeroInitializeWorkgroupMemory",
        "VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures",
        "VK_KHR_zero_initialize_workgroup_memory",
        (1, 3),
    ),
)

#: HAL feature -> the Vulkan features that it needs. Every device is `robust`: without robust buffer access 2 the loader
#: clamps indices (`spirv_harden`).
HAL_FEATURES: dict[str, tuple[str, ...]] = {
    "int8": ("shaderInt8", "storageBuffer8BitAccess"),
    "int16": ("shaderInt16", "storageBuffer16BitAccess"),
    "int64": ("shaderInt64",),
    "float64": ("shaderFloat64",),
    "robust": (),
}

VENDORS: dict[int, str] = {
    0x1002: "AMD",
    0x1010: "Imagination",
    0x106B: "Apple",
    0x10DE: "NVIDIA",
    0x13B5: "Arm",
    0x1AE0: "Google",
    0x5143: "Qualcomm",
    0x8086: "Intel",
    0x10005: "Mesa",
}

#: VkPhysicalDeviceType -> rank in the list: discrete, integrated, virtual, other, software
RANKS: dict[int, int] = {2: 0, 1: 1, 3: 2, 0: 3, 4: 4}
#: VkPhysicalDeviceType: integrated, discrete and virtual GPUs
TYPES_GPU = (1, 2, 3)
#: storage buffers that entries of modules bind at most, and one for their parameters
ROOMY_STORAGE_BUFFERS = 17
#: bytes; offsets and lengths of fills are multiples of it
WORD = 4
#: VkQueueFlagBits
GRAPHICS, COMPUTE, TRANSFER = 1, 2, 4


@dataclass(frozen=True, slots=True)
class PhysicalDevice:
    """A usable device: its description for the HAL, and what opening it needs."""

    handle: Handle
    info: DeviceInfo
    queue_family: int
    upload_queue: tuple[int, int] | None  #: family and index of a second queue for uploads
    timestamp_bits: int  #: valid bits of the queue family's timestamps; 0 without timestamps
    timestamp_period: float  #: nanoseconds per tick
    enabled: frozenset[str]  #: fields of FEATURES
    extensions: tuple[str, ...]
    suffix: str  #: suffix of the timeline functions: "" or "KHR"
    device_type: int  #: VkPhysicalDeviceType
    memory_types: tuple[MemoryType, ...]
    max_allocation: int
    max_workgroup: tuple[int, int, int]
    special_floats: frozenset[int]  #: bits of the float types whose NaN, infinities and signs of zeros code may keep
    identity: str  #: identifies device and driver version, for cache keys
    uniform_parameters: bool  #: parameters of entries are in uniform buffers, because storage buffers are few
    profile: DeviceProfile | None  #: the profile that restricts it; None without restrictions
    quirks: tuple[Quirk, ...]  #: the known defects of its driver that apply

    @property
    def fill_alignment(self) -> int:
        """The multiple at which a long fill begins, in bytes."""
        return max([row.fill_alignment for row in self.quirks], default=WORD)

    @property
    def stores_pipelines(self) -> bool:
        """Whether pipelines are kept for later processes."""
        return all([row.stores_pipelines for row in self.quirks])

    @property
    def splits_selections(self) -> bool:
        """Whether the driver gets no selection with two arms (`spirv_selections`)."""
        return any([row.splits_selections for row in self.quirks])

    @property
    def halves_conversions(self) -> bool:
        """Whether the driver gets no conversion of a whole u32 to f32 (`spirv_conversions`)."""
        return any([row.halves_conversions for row in self.quirks])

    @property
    def machine(self) -> Machine:
        return machine_of(self.memory_types, self.device_type)


def scan(instance: Instance) -> tuple[list[PhysicalDevice], list[str]]:
    """Returns the usable devices, and a text for each unusable one. Hardware first; within a kind, more
    features first.
    """
    api = instance.api
    found: list[tuple[tuple[int, int], _Probe]] = []
    reasons: list[str] = []
    for handle in api.enumerate("vkEnumeratePhysicalDevices", "VkPhysicalDevice", instance.handle):
        probe = _Probe(api, handle, instance.version, device_profile())
        reason = probe.unusable()
        if reason:
            reasons.append(f"{probe.name}: {reason}")
        else:
            found.append(((RANKS.get(probe.kind, 3), -len(probe.supported)), probe))
    found.sort(key=lambda pair: pair[0])
    return [probe.describe(index) for index, (_, probe) in enumerate(found)], reasons


def choose_upload_queue(families: Sequence[tuple[int, int]], compute: int) -> tuple[int, int] | None:
    """Returns family and index of the queue for uploads, or None if the device has only the compute queue.

    A family for transfers only is best, because on most GPUs it is a copy engine of its own; otherwise a second queue
    of the compute family. `families`: flags and number of queues of each. `compute`: the family whose queue 0 computes.
    """
    for family, (flags, count) in enumerate(families):
        if flags & TRANSFER and not flags & (GRAPHICS | COMPUTE) and count:
            return family, 0
    return (compute, 1) if families[compute][1] > 1 else None


def feature_chain(api: Api, fields: frozenset[str]) -> Any:
    """Returns a VkPhysicalDeviceFeatures2 with these features enabled; the structs of other features are
    chained to it.
    """
    chain = api.null
    for struct in dict.fromkeys(row.struct for row in FEATURES if row.struct != "VkPhysicalDeviceFeatures2"):
        names = [row.field for row in FEATURES if row.struct == struct and row.field in fields]
        if names:
            chain = api.new(struct, pNext=chain, **dict.fromkeys(names, 1))
    core = {row.field: 1 for row in FEATURES if row.struct == "VkPhysicalDeviceFeatures2" and row.field in fields}
    return api.new("VkPhysicalDeviceFeatures2", pNext=chain, features=core)


class _Probe:
    """Queries one device, and decides whether it is usable."""

    def __init__(
        self, api: Api, handle: Handle, instance_version: tuple[int, int], profile: DeviceProfile | None = None
    ) -> None:
        self.api = api
        self.profile = profile
        self.handle = handle
        properties = api.ffi.new("VkPhysicalDeviceProperties *")
        api.lib.vkGetPhysicalDeviceProperties(handle, properties)
        self.properties = properties
        self.limits = properties.limits
        self.name = api.string(properties.deviceName)
        self.kind = int(properties.deviceType)
        self.device_version = unpack_version(properties.apiVersion)
        self.version = min(instance_version, self.device_version)
        self.families = self._families()
        self.queue_family = next((at for at, (flags, _, _) in enumerate(self.families) if flags & COMPUTE), -1)
        self.timestamp_bits = self.families[self.queue_family][2] if self.queue_family >= 0 else 0
        self.present = self._extensions()
        #: what the device has, which orders devices; `enabled` is what the profile takes of it
        self.supported = self.enabled = self._features() if self.version >= LEAST_VERSION else frozenset[str]()
        self.driver_id, self.driver_words = self._driver()
        facts = DriverFacts(
            vendor=int(properties.vendorID),
            device=int(properties.deviceID),
            kind=self.kind,
            driver=self.driver_id,
            number=int(properties.driverVersion),
            text=self.driver_words,
        )
        self.quirks = quirks_of("vulkan", facts)
        if profile is not None:
            self.version = min(self.version, profile.version)
            self.present &= profile.extensions
            self.enabled = self._features() & profile.features if self.version >= LEAST_VERSION else frozenset()
        #: Vulkan feature that a quirk withholds -> the quirk
        self.withheld = {field: row for row in self.quirks for field in row.lacks if field in self.enabled}
        self.enabled -= self.withheld.keys()

    def unusable(self) -> str:
        for row in self.quirks:
            if row.refused:
                return f"{row.refused} (quirk {row.name}; ORCHESTRION_QUIRKS=off uses it)"
        if self.version < LEAST_VERSION:
            return f"Vulkan {self.version[0]}.{self.version[1]}, needed is 1.1"
        if self.queue_family < 0:
            return "no queue for compute"
        if "timelineSemaphore" not in self.enabled:
            return "no timeline semaphores"
        return ""

    def _families(self) -> list[tuple[int, int, int]]:
        """Flags, number of queues and valid timestamp bits of each queue family."""
        count = self.api.ffi.new("uint32_t *")
        self.api.lib.vkGetPhysicalDeviceQueueFamilyProperties(self.handle, count, self.api.null)
        rows = self.api.ffi.new("VkQueueFamilyProperties[]", count[0])
        self.api.lib.vkGetPhysicalDeviceQueueFamilyProperties(self.handle, count, rows)
        return [(int(row.queueFlags), int(row.queueCount), int(row.timestampValidBits)) for row in rows]

    def _extensions(self) -> frozenset[str]:
        rows = self.api.enumerate(
            "vkEnumerateDeviceExtensionProperties", "VkExtensionProperties", self.handle, self.api.null
        )
        return frozenset(self.api.string(row.extensionName) for row in rows)

    def _features(self) -> frozenset[str]:
        """The rows of FEATURES that the device supports."""
        api = self.api
        rows = [row for row in FEATURES if self.version >= row.core or row.extension in self.present]
        structs: dict[str, Any] = {}
        chain = api.null
        for struct in dict.fromkeys(row.struct for row in reversed(rows)):
            chain = structs[struct] = api.new(struct, pNext=chain)
        api.lib.vkGetPhysicalDeviceFeatures2(self.handle, structs["VkPhysicalDeviceFeatures2"])
        core = structs.pop("VkPhysicalDeviceFeatures2").features
        return frozenset(row.field for row in rows if getattr(structs.get(row.struct, core), row.field))

    def _enabled_extensions(self) -> tuple[str, ...]:
        wanted = [row.extension for row in FEATURES if row.field in self.enabled and self.version < row.core]
        wanted += ["VK_EXT_external_memory_host", "VK_EXT_memory_budget", "VK_KHR_portability_subset"]
        wanted += [FLOAT_CONTROLS] if self.version < (1, 2) else []
        return tuple(dict.fromkeys(name for name in wanted if name in self.present))

    def _driver(self) -> tuple[int, str]:
        """The VkDriverId, 0 if the device does not state it, and the driver's name and version as text."""
        api, words = self.api, ""
        driver = api.new("VkPhysicalDeviceDriverProperties")
        if self.version >= (1, 2) or (self.version >= LEAST_VERSION and "VK_KHR_driver_properties" in self.present):
            api.lib.vkGetPhysicalDeviceProperties2(self.handle, api.new("VkPhysicalDeviceProperties2", pNext=driver))
            words = f"{api.string(driver.driverName)} {api.string(driver.driverInfo)}".strip()
        return int(driver.driverID), words or f"driver {self.properties.driverVersion:#x}"

    def _more_properties(self) -> tuple[int, int]:
        """The largest allocation, and the alignment of imported host memory."""
        api, imports = self.api, "VK_EXT_external_memory_host" in self.present
        host = api.new("VkPhysicalDeviceExternalMemoryHostPropertiesEXT")
        maintenance = api.new("VkPhysicalDeviceMaintenance3Properties", pNext=host if imports else api.null)
        api.lib.vkGetPhysicalDeviceProperties2(self.handle, api.new("VkPhysicalDeviceProperties2", pNext=maintenance))
        alignment = int(host.minImportedHostPointerAlignment) if imports else 1
        return int(maintenance.maxMemoryAllocationSize), alignment

    def _special_floats(self) -> frozenset[int]:
        """The widths of floats, in bits, for which code may ask to keep NaN, infinities and signs of zeros."""
        if self.version < (1, 2) and FLOAT_CONTROLS not in self.present:
            return frozenset()
        api = self.api
        controls = api.new("VkPhysicalDeviceFloatControlsProperties")
        api.lib.vkGetPhysicalDeviceProperties2(self.handle, api.new("VkPhysicalDeviceProperties2", pNext=controls))
        return frozenset(width for width in (16, 32, 64) if getattr(controls, f"{PRESERVES}{width}"))

    def _memory(self) -> tuple[tuple[MemoryType, ...], int]:
        """The memory types in the driver's order (best first among equals), and the bytes of device-local heaps."""
        memory = self.api.ffi.new("VkPhysicalDeviceMemoryProperties *")
        self.api.lib.vkGetPhysicalDeviceMemoryProperties(self.handle, memory)
        local = self.api.vk.VK_MEMORY_HEAP_DEVICE_LOCAL_BIT
        heaps = [
            Heap(index, int(memory.memoryHeaps[index].size), bool(memory.memoryHeaps[index].flags & local))
            for index in range(memory.memoryHeapCount)
        ]
        rows = [memory.memoryTypes[index] for index in range(memory.memoryTypeCount)]
        types = tuple(MemoryType(index, int(row.propertyFlags), heaps[row.heapIndex]) for index, row in enumerate(rows))
        return types, sum(heap.size for heap in heaps if heap.local)

    def _notes(self, types: tuple[MemoryType, ...]) -> tuple[str, ...]:
        notes = [machine_of(types, self.kind).value]
        if self.profile is not None:
            notes.append(f"restricted to device profile {self.profile.name}")
        if "VK_EXT_memory_budget" in self.present:
            rows = read_budgets(self.api, self.handle)
            free = sum(
                max(0, rows[heap.index][0] - rows[heap.index][1])
                for heap in {row.heap for row in types if row.heap.local}
            )
            notes.append(f"{free / 2**30:.1f} GiB of device memory are free")
        if self.kind == TYPE_CPU:
            notes.append("software: runs on the CPU")
        if not self.timestamp_bits:
            notes.append("its compute queue has no timestamps: it cannot be profiled")
        if "robustBufferAccess2" not in self.enabled:
            notes.append("no robust buffer access 2: indices into bindings are clamped")
        return (*notes, *[row.note for row in self.quirks])

    def describe(self, index: int) -> PhysicalDevice:
        max_allocation, import_alignment = self._more_properties()
        limits, max_workgroup = self._limits(import_alignment), _triple(self.limits.maxComputeWorkGroupSize)
        if (profile := self.profile) is not None:
            limits = weaker(limits, profile.limits)
            max_workgroup = _triple([*map(min, max_workgroup, profile.max_workgroup)])
            max_allocation = min(max_allocation, profile.max_allocation)
        types, memory_bytes = self._memory()
        features = {name for name, fields in HAL_FEATURES.items() if self.enabled.issuperset(fields)}
        if self.kind in TYPES_GPU:
            features.add("gpu")
        info = DeviceInfo(
            driver="vulkan",
            index=index,
            name=self.name,
            vendor=VENDORS.get(self.properties.vendorID, f"vendor {self.properties.vendorID:#x}"),
            version=f"{self.driver_words}, Vulkan {self.device_version[0]}.{self.device_version[1]}",
            formats=("spirv",),
            features=frozenset(features),
            limits=limits,
            memory_bytes=memory_bytes,
            notes=self._notes(types),
            timestamps=self.timestamp_bits > 0,
            verified_formats=frozenset({"spirv"}),
            withheld=tuple(
                [
                    (name, self.withheld[field].name)
                    for name, fields in HAL_FEATURES.items()
                    for field in fields
                    if field in self.withheld
                ]
            ),
        )
        uuid = bytes(self.properties.pipelineCacheUUID).hex()
        return PhysicalDevice(
            handle=self.handle,
            info=info,
            queue_family=self.queue_family,
            upload_queue=choose_upload_queue([row[:2] for row in self.families], self.queue_family),
            timestamp_bits=self.timestamp_bits,
            timestamp_period=float(self.limits.timestampPeriod),
            enabled=self.enabled,
            extensions=self._enabled_extensions(),
            suffix="" if self.version >= (1, 2) else "KHR",
            device_type=self.kind,
            memory_types=types,
            max_allocation=max_allocation,
            max_workgroup=max_workgroup,
            special_floats=self._special_floats(),
            identity=f"{self.properties.vendorID:x}-{self.properties.deviceID:x}-{self.properties.driverVersion:x}-{uuid}",
            uniform_parameters=self._uniform_parameters,
            profile=profile,
            quirks=self.quirks,
        )

    @property
    def _storage_buffers(self) -> int:
        """Storage buffers that a pipeline may have, parameters included."""
        limits = self.limits
        return min(
            int(limits.maxPerStageDescriptorStorageBuffers),
            int(limits.maxDescriptorSetStorageBuffers),
            int(limits.maxPerStageResources),
        )

    @property
    def _uniform_parameters(self) -> bool:
        return self.profile is not None or self._storage_buffers < ROOMY_STORAGE_BUFFERS

    def _limits(self, import_alignment: int) -> Limits:
        limits = self.limits
        return Limits(
            max_workgroup_count=_triple(limits.maxComputeWorkGroupCount),
            max_workgroup_size=int(limits.maxComputeWorkGroupInvocations),
            max_binding_length=int(limits.maxStorageBufferRange),
            max_bindings=self._storage_buffers - (not self._uniform_parameters),
            max_parameter_bytes=int(limits.maxPushConstantsSize),
            shared_memory_bytes=int(limits.maxComputeSharedMemorySize),
            min_binding_alignment=int(limits.minStorageBufferOffsetAlignment),
            host_import_alignment=import_alignment,
        )


def _triple(values: Any) -> tuple[int, int, int]:
    return int(values[0]), int(values[1]), int(values[2])
