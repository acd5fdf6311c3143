"""Vulkan devices by name, opened with changes that a test makes."""

import dataclasses
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import pytest

from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.policy import Policy
from orchestrion.hal.vulkan import instance
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.device_profile import PROFILE_VARIABLE
from orchestrion.hal.vulkan.driver import VulkanDriver

_NOTHING: frozenset[str] = frozenset()


@contextmanager
def open_named(
    name: str, without: frozenset[str] = _NOTHING, disabled: frozenset[str] = _NOTHING, policy: Policy | None = None
) -> Iterator[Device]:
    """Open the first Vulkan device whose name contains `name`; skips the test where there is none.

    `without`: HAL features that the device does not state. `disabled`: Vulkan features that are not enabled.
    """
    try:
        rows = [row for row in VulkanDriver()._scan() if name in row.info.name]
    except DriverUnavailable as error:
        pytest.skip(str(error))
    if not rows:
        pytest.skip(f"no {name} is installed")
    info = dataclasses.replace(rows[0].info, features=rows[0].info.features - without)
    row = dataclasses.replace(rows[0], info=info, enabled=rows[0].enabled - disabled)
    with Device.of(VulkanDevice(instance.open_instance().api, row), policy=policy) as opened:
        yield opened


def profiled(profile: str | None) -> AbstractContextManager[Any]:
    """Vulkan drivers that are made inside have this device profile. Only Python sees the change of the environment:
    threads of drivers read the environment of the process at any time, which must not change then.
    """
    return patch.object(os, "environ", os.environ | {PROFILE_VARIABLE: profile}) if profile else nullcontext()
