"""Builds of untrusted modules, made first in a helper process that is killed at its deadline.

The helper (`build_process`) is started on demand, and kept for later builds. Its driver's pipeline cache is copied to
the user's cache, where the build of this process finds it; Mesa also has its own cache. A driver without a cache takes
about as long again, so this process only builds what the helper built within the limits. An entry in the user's cache
records the seconds that a build took, by device, driver version, features, version of this runtime, entries and
content, so that the next process does not need the helper.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from orchestrion.hal import errors
from orchestrion.hal.backend import Entry
from orchestrion.hal.errors import BuildFailed, DeadlineExceeded, HalError, Unsupported
from orchestrion.hal.fork import new_lock
from orchestrion.hal.version import runtime_version
from orchestrion.schema.child_process import (
    Child,
    ChildDied,
    ChildFailed,
    ChildLate,
    ChildUnavailable,
    Message,
)
from orchestrion.schema.errors import ModuleError

from .pipeline_cache import HEADER_BYTES, cache_key

if TYPE_CHECKING:
    from .device import VulkanDevice

#: the most bytes of the helper: memory of shader compilers, and the stacks of the driver's threads
MEMORY_BYTES = (2 << 30) + (16 << 20) * (os.cpu_count() or 1)
#: seconds for the helper to open a device, which does not depend on a module
OPEN_SECONDS = 60.0

_ERRORS: dict[str, Callable[[str], Exception]] = {
    name: value for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, HalError)
}

helper = Child("orchestrion.hal.vulkan.build_process:answer", memory=MEMORY_BYTES)


#: held during a trial build, so that only one runs at a time
_turn = new_lock()


def trial_build(device: VulkanDevice, payload: memoryview, entries: tuple[Entry, ...], deadline: float) -> float:
    """Implements `BackendDevice.trial_build`. The seconds spent waiting for builds of other threads do not count."""
    row = json.dumps([[entry.name, entry.bindings, entry.parameter_words, entry.workgroup_size] for entry in entries])
    key = "built", row, runtime_version(), *cache_key(device, payload)  # the runtime hardens the code before
    if _is_known(device, key, deadline):
        return 0.0
    with _turn:
        if _is_known(device, key, deadline):
            return 0.0
        _open(device)
        started = perf_counter()
        answer = _ask(device, {"kind": "build", "entries": json.loads(row)}, payload, deadline)
        seconds = perf_counter() - started
    if "error" in answer.fields:
        raise _as_error(answer.fields)
    if (
        device.physical.stores_pipelines and len(answer.data) > HEADER_BYTES
    ):  # contains pipelines, which the build of this process uses
        device.cache.put(answer.data, *cache_key(device, payload))
    device.cache.put(repr(seconds).encode(), *key)
    return seconds


def _is_known(device: VulkanDevice, key: tuple[str | bytes, ...], deadline: float) -> bool:
    """Whether the cache has an entry of an earlier build within this time."""
    known = device.cache.get(*key)
    try:
        return known is not None and float(known) <= deadline
    except ValueError:  # not an entry of this version
        return False


def _open(device: VulkanDevice) -> None:
    """Have the helper open the device. A helper that was started in another environment (with other variables that
    choose Vulkan drivers) may not find it, and is replaced once.
    """
    for _ in range(2):
        if "missing" not in _ask(device, {"kind": "open"}, b"", OPEN_SECONDS).fields:
            return
        helper.end()
    raise BuildFailed(f"the helper process that builds code does not find device {device.info.id} ({device.info.name})")


def _ask(device: VulkanDevice, fields: dict[str, Any], data: bytes | memoryview, deadline: float) -> Message:
    physical, name = device.physical, device.info.name
    which = {
        "identity": physical.identity,
        "profile": "full" if physical.profile is None else physical.profile.name,
        "quirks": ",".join([row.name for row in physical.quirks]) or "off",
        "enabled": sorted(physical.enabled),
        "features": sorted(device.info.features),
    }
    try:
        return helper.request(which | fields, data, deadline=deadline)
    except ChildLate as error:
        if fields["kind"] == "build":
            raise DeadlineExceeded(f"{len(data)} bytes of spirv were not built after {deadline:.3g} s") from error
        raise BuildFailed(f"the driver of {name} did not open the device in a helper process: {error}") from error
    except ChildDied as error:
        what = f"building code of this module ({len(data)} bytes)" if data else "opening the device"
        raise BuildFailed(
            f"the driver of {name} crashed while {what} in a helper process, which {error.how}; "
            f"it may have {MEMORY_BYTES >> 20} MiB. This process is unharmed"
        ) from error
    except ChildUnavailable as error:
        raise Unsupported(
            f"the time for building code cannot be limited: {error}; build_deadline=inf (--build-deadline=inf) builds "
            "it in this process without a limit"
        ) from error
    except ChildFailed as error:
        raise BuildFailed(f"building code of this module failed in a helper process: {error}") from error


def _as_error(fields: dict[str, Any]) -> Exception:
    """The exception that the build raised in the helper."""
    name, message, offset = str(fields["error"]), str(fields.get("message")), fields.get("offset")
    if name == ModuleError.__name__:
        error = ModuleError(message)
        error.offset = offset if isinstance(offset, int) else None
        return error
    return _ERRORS.get(name, BuildFailed)(message)
