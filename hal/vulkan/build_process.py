"""The helper process that builds pipelines of untrusted modules (`trial_build` starts it, and may kill it).

It opens the same device with the same features, builds with the same code (`VulkanExecutable`), and returns the
contents of the pipeline cache. Then each entry is launched with no workgroups: a driver that compiles at the first
launch (lavapipe) compiles now, and nothing of the module runs. The validation layer is not loaded here; the requesting
process builds the same code again, with the layer if it is enabled.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from orchestrion.hal.backend import Entry
from orchestrion.hal.cache import Cache
from orchestrion.hal.errors import HalError
from orchestrion.hal.quirks import QUIRKS_VARIABLE
from orchestrion.schema.child_process import Message
from orchestrion.schema.errors import ModuleError

from .device import VulkanDevice
from .device_profile import PROFILE_VARIABLE
from .executable import VulkanExecutable
from .first_launches import launch_nothing
from .instance import VALIDATION_VARIABLE, open_instance
from .physical import scan

_devices: dict[str, VulkanDevice] = {}


def answer(request: Message) -> Message:
    """Handles a request: `open` finds a device, `build` builds an executable for it. `trial_build` documents the
    fields.
    """
    fields = request.fields
    device = _device(fields)
    if device is None:
        return Message({"missing": True})
    if fields["kind"] == "open":
        return Message({})
    rows = _Rows()
    device.cache = rows
    try:
        _build(device, memoryview(request.data), entries_of(fields["entries"]))
    except (ModuleError, HalError) as error:
        offset = error.offset if isinstance(error, ModuleError) else None
        return Message({"error": type(error).__name__, "message": str(error), "offset": offset})
    return Message({}, rows.data)


def entries_of(fields: list[list[Any]]) -> tuple[Entry, ...]:
    return tuple(
        Entry(name, tuple((access, length) for access, length in bindings), words, (size[0], size[1], size[2]))
        for name, bindings, words, size in fields
    )


class _Rows(Cache):
    """Replaces the user's cache: it finds nothing, and stores the one entry that the requesting process will keep."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data = b""

    def get(self, *key: str | bytes) -> bytes | None:
        return None

    def put(self, data: bytes, *key: str | bytes) -> None:
        self.data = data


def _device(fields: dict[str, Any]) -> VulkanDevice | None:
    """Returns the device with this identity, opened with these features; None if it does not exist."""
    features = frozenset(fields["features"])
    enabled = frozenset(fields["enabled"])
    name = ",".join((fields["identity"], fields["profile"], fields["quirks"], *sorted(enabled)))
    if name in _devices:
        return _devices[name]
    os.environ.pop(VALIDATION_VARIABLE, None)
    os.environ[PROFILE_VARIABLE], os.environ[QUIRKS_VARIABLE] = fields["profile"], fields["quirks"]
    instance = open_instance()
    for row in scan(instance)[0]:
        if row.identity == fields["identity"] and row.enabled >= enabled:
            same = replace(row, enabled=enabled, info=replace(row.info, features=features))
            return _devices.setdefault(name, VulkanDevice(instance.api, same))
    return None


def _build(device: VulkanDevice, payload: memoryview, entries: tuple[Entry, ...]) -> None:
    executable = VulkanExecutable(device, payload, entries)
    try:
        for index in range(len(entries)):
            launch_nothing(device, executable, index)
    finally:
        executable.release()
