"""The variants and programs of modules that a driver failed to build in this process. Selection passes over them.

An executable gets its next variant when the driver fails to build one, and a module its next program when the driver
builds no variant of an executable. What failed is remembered for the module, the device and the version of its driver,
once something else was built in its place, so later loads do not try it again. It is logged when it is remembered.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from orchestrion.hal.device_info import DeviceInfo
from orchestrion.hal.fork import new_lock
from orchestrion.schema.lru_cache import LruCache
from orchestrion.schema.module import Module

_log = logging.getLogger("orchestrion.vm")
#: most variants of an executable, and most programs of a module, that a load builds until one is built
MAX_ATTEMPTS: Final = 16
#: most characters of the driver's message about a variant; a log may repeat the source
MAX_MESSAGE: Final = 2000
#: modules on devices that are remembered
_MAX_REMEMBERED = 1024


class Failures(NamedTuple):
    """`variants`: index in `Module.variants` -> message of the driver. `programs`: ordinal -> why it cannot be
    built.
    """

    variants: Mapping[int, str]
    programs: Mapping[int, str]


_NONE = Failures({}, {})
_found: LruCache[tuple[object, ...], Failures] = LruCache()
_lock = new_lock()


def _key(module: Module, info: DeviceInfo) -> tuple[object, ...]:
    return module.container.digest, info.id, info.name, info.version, info.features


def failures_of(module: Module, info: DeviceInfo) -> Failures:
    """What failed before. Nobody changes it: later failures are a new object."""
    if not _found:
        return _NONE
    with _lock:
        return _found.use(_key(module, info)) or _NONE


def remember(module: Module, info: DeviceInfo, variants: Mapping[int, str], programs: Mapping[int, str]) -> None:
    """Note what the driver failed to build. Arguments as the fields of `Failures`."""
    with _lock:
        key = _key(module, info)
        found = _found.use(key) or _NONE
        new = [message for at, message in variants.items() if at not in found.variants]
        new += [message for at, message in programs.items() if at not in found.programs]
        joined = Failures({**found.variants, **variants}, {**found.programs, **programs})
        _found.put(key, joined, _MAX_REMEMBERED)
    for message in new:
        _log.warning("%s (%s) does not build code of a module, which gets other code: %s", info.id, info.name, message)
