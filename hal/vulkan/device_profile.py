"""Device profiles: the features, extensions and limits that the driver takes from a device.

`ORCHESTRION_VULKAN_PROFILE=least` (`--device-profile=least`) restricts every device to what each Vulkan 1.1 device with
timeline semaphores has: no optional feature, no other extension, and the least limits of the specification. Code that
runs on such a device runs on a phone of that kind. `least,max_binding_length=65536` also lowers single limits: fields
of `Limits` that are one number. The variable is read whenever devices are listed or opened, so open devices keep their
profile.
"""

import os
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from orchestrion.hal.backend import Limits
from orchestrion.hal.errors import DriverUnavailable

PROFILE_VARIABLE: Final = "ORCHESTRION_VULKAN_PROFILE"
#: fields of `Limits` of which a smaller number is the stronger promise
_ALIGNMENTS: Final = ("min_binding_alignment", "host_import_alignment")


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """What the driver takes from a device at most. `features`: fields of `physical.FEATURES`; `extensions`: names;
    `version`: of Vulkan; `limits`; `max_workgroup`: the largest size in x, y and z; `max_allocation`: bytes.
    """

    name: str
    features: frozenset[str]
    extensions: frozenset[str]
    version: tuple[int, int]
    limits: Limits
    max_workgroup: tuple[int, int, int]
    max_allocation: int


#: the required limits of Vulkan 1.1 (specification, section "Limit Requirements"); 4 storage buffers per stage
LEAST: Final = DeviceProfile(
    name="least",
    features=frozenset({"robustBufferAccess", "timelineSemaphore"}),
    extensions=frozenset({"VK_KHR_timeline_semaphore", "VK_KHR_portability_subset"}),
    version=(1, 1),
    limits=Limits(
        max_workgroup_count=(65_535, 65_535, 65_535),
        max_workgroup_size=128,
        max_binding_length=128 << 20,
        max_bindings=4,
        max_parameter_bytes=128,
        shared_memory_bytes=16 << 10,
        min_binding_alignment=256,
        host_import_alignment=1,
    ),
    max_workgroup=(128, 128, 64),
    max_allocation=1 << 30,
)
#: fields of `Limits` that `ORCHESTRION_VULKAN_PROFILE` may lower
SINGLE_LIMITS: Final = tuple(row.name for row in fields(Limits) if row.name != "max_workgroup_count")
#: name -> profile; None for all that a device has
DEVICE_PROFILES: Final[dict[str, DeviceProfile | None]] = {"full": None, "least": LEAST}


def device_profile() -> DeviceProfile | None:
    """The profile that the environment asks for. Raises DriverUnavailable for an unknown name or limit."""
    text = os.environ.get(PROFILE_VARIABLE) or "full"
    try:
        return profile_named(text)
    except ValueError as error:
        raise DriverUnavailable(f"{PROFILE_VARIABLE} is {text!r}; {error}") from None


def profile_named(text: str) -> DeviceProfile | None:
    """The profile of a name, and of `least` with other limits: `least,max_bindings=3`. Raises ValueError."""
    name, *changes = text.split(",")
    if name not in DEVICE_PROFILES:
        raise ValueError(f"it takes {' or '.join(DEVICE_PROFILES)}")
    found = DEVICE_PROFILES[name]
    if not changes:
        return found
    limits: dict[str, Any] = {}
    for change in changes:
        field, _, value = change.partition("=")
        if found is None or field not in SINGLE_LIMITS or not value.isdecimal():
            raise ValueError(f"behind least, it takes limits such as max_bindings=3: {', '.join(SINGLE_LIMITS)}")
        limits[field] = int(value)
    assert found is not None
    return replace(found, name=text, limits=weaker(found.limits, replace(found.limits, **limits)))


def weaker(limits: Limits, least: Limits) -> Limits:
    """The weaker promise of each limit."""
    return replace(
        limits,
        **{
            row.name: (max if row.name in _ALIGNMENTS else min)(getattr(limits, row.name), getattr(least, row.name))
            for row in fields(Limits)
        },
    )
