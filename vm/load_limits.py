"""The limits of initializers, when a module is loaded or a context is created, and the limits that a module declares.

They limit the initializers of the program, and the initializers of each context. For each of fuel, deadline and memory,
the first of these that is given is the limit:

1. the field of `load_limits` (of `load` or `create_context`),
2. the argument that limits calls,
3. the default, for modules that are not trusted (`Policy.trusts`); trusted modules have no default.

`math.inf` is no limit. The time for building device code does not count.

A module may declare limits in its attributes (`schema/attributes.py`). A declared limit is used if it is tighter than
the limit above, for trusted modules too; a caller cannot raise it. A declared limit of calls also limits initializers,
unless the module declares a limit of initializers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from orchestrion.hal.device import Device
from orchestrion.schema.attributes import LIMITS_PREFIX, declared_limits
from orchestrion.schema.module import Module

from .errors import LimitError
from .limits import NO_LIMITS, Limits

#: default fuel: units, and bytes of constants for one more unit. An endless loop ends within about a second
FUEL, CONSTANT_BYTES_PER_UNIT = 1_000_000, 64
#: default deadline: seconds, and bytes of constants for one more second, which is ample for copying and packing them
DEADLINE, CONSTANT_BYTES_PER_SECOND = 10.0, 16 << 20
#: default memory: bytes, or half of the device's memory if that is less, plus so many times the bytes of constants
MEMORY, TIMES_CONSTANTS = 1 << 30, 4

#: the fields of `Limits` that have defaults and that a module may declare
_NAMES = ("fuel", "deadline", "memory")


class LoadLimits(NamedTuple):
    """The limits of initializers. `defaults`: the names of the limits that are defaults."""

    limits: Limits
    defaults: frozenset[str]

    def explain(self, error: LimitError) -> None:
        """If `error` is about a default, add to its message how to raise that limit."""
        name = error.limit
        if name is not None and name in self.defaults:
            error.message += (
                f"; {getattr(self.limits, name)} is the default of initializers of a module that is not trusted: "
                f"load_limits=vm.Limits({name}=...) or --load-{name} raises it"
            )


def default_limits(constant_bytes: int, device_bytes: int) -> Limits:
    """The defaults for a module that is not trusted. `constant_bytes`: of the program's constants and parameters.
    `device_bytes`: of the device's memory.
    """
    return Limits(
        fuel=FUEL + constant_bytes // CONSTANT_BYTES_PER_UNIT,
        deadline=DEADLINE + constant_bytes / CONSTANT_BYTES_PER_SECOND,
        memory=min(MEMORY, device_bytes // 2) + TIMES_CONSTANTS * constant_bytes,
    )


class Declared(NamedTuple):
    """The limits that a module declares: of calls, of initializers, and the seconds for building device code."""

    calls: Limits
    load: Limits
    build_deadline: float | None


NOTHING_DECLARED = Declared(NO_LIMITS, NO_LIMITS, None)


def declared_by(module: Module) -> Declared:
    """The limits that a module declares; `NOTHING_DECLARED` if it declares none. `ModuleError` for a
    malformed limit.
    """
    if not module.attributes:
        return NOTHING_DECLARED
    strings = module.strings
    rows = [row for row in module.attributes if strings[row.key].startswith(LIMITS_PREFIX)]
    if not rows:
        return NOTHING_DECLARED
    found = declared_limits({strings[row.key]: module.attribute_value(row) for row in rows})
    if not found:
        return NOTHING_DECLARED
    calls = {name: name for name in _NAMES if name in found}
    load = {name: f"load-{name}" if f"load-{name}" in found else name for name in _NAMES}
    return Declared(_declared(found, calls), _declared(found, load), found.get("build-deadline"))


def _declared(found: Mapping[str, float], names: Mapping[str, str]) -> Limits:
    """The declared limits as `Limits`. `names`: field of `Limits` -> name of the declared limit."""
    there = {field: key for field, key in names.items() if key in found}
    fuel, deadline, memory = (found[there[name]] if name in there else None for name in _NAMES)
    return Limits(fuel, deadline, memory, declared=frozenset(LIMITS_PREFIX + key for key in there.values()))


def tighten(limits: Limits, declared: Limits) -> Limits:
    """The limits, where the module's limits replace looser ones. None of them is infinite."""
    if not declared.declared:
        return limits
    tighter = {name: getattr(declared, name) for name in _NAMES if _is_tighter(declared, limits, name)}
    keys = [key for name in tighter if (key := declared.declared_as(name)) is not None]
    return Limits(
        tighter.get("fuel", limits.fuel),
        tighter.get("deadline", limits.deadline),
        tighter.get("memory", limits.memory),
        limits.depth,
        declared=frozenset(keys),
    )


def _is_tighter(limits: Limits, others: Limits, name: str) -> bool:
    limit, other = getattr(limits, name), getattr(others, name)
    return limit is not None and (other is None or limit < other)


def find_limits(
    given: Limits | None, calls: Limits, defaults: Limits | None, declared: Declared = NOTHING_DECLARED
) -> LoadLimits:
    """The limits of initializers, as the top of this file says.

    `given`: the argument `load_limits`. `calls`: the limits of calls that the caller gave. `defaults`: None for a
    trusted module.
    """
    explicit = Limits() if given is None else given
    none = {name for name in _NAMES if getattr(explicit, name) is None and getattr(calls, name) is None}
    others = Limits() if defaults is None else defaults
    limits = Limits(
        fuel=_first(explicit.fuel, calls.fuel, others.fuel),
        deadline=_first(explicit.deadline, calls.deadline, others.deadline),
        memory=_first(explicit.memory, calls.memory, others.memory),
        depth=calls.depth if given is None else given.depth,
    )
    held = tighten(finite(limits), declared.load)
    return LoadLimits(held, frozenset(name for name in none if defaults is not None and held.declared_as(name) is None))


def finite(limits: Limits) -> Limits:
    """The limits, with None instead of infinity."""
    if math.inf not in (limits.fuel, limits.deadline, limits.memory):
        return limits
    return Limits(_finite(limits.fuel), _finite(limits.deadline), _finite(limits.memory), limits.depth)


def _finite(limit: float | None) -> float | None:
    return None if limit == math.inf else limit


def _first(*limits: float | None) -> float | None:
    return next((limit for limit in limits if limit is not None), None)


def defaults_of(
    module: Module, program: int, device: Device, parameters: Mapping[int, memoryview] | None = None
) -> Limits | None:
    """The default limits for a program of a module on a device; None if the device's policy trusts the module.
    `parameters`: the values of the program's parameters, by segment.
    """
    if device.policy.trusts(module.container.digest):
        return None
    row = module.programs[program]
    segments = {constant.segment for constant in module.constants[row.constants_start : row.constants_end]}
    size = sum([module.container.spans[segment][1] for segment in segments])
    size += sum(map(len, (parameters or {}).values()))
    return default_limits(size, device.info.memory_bytes)
