"""The limits within which initializers run when a module is loaded or a context is created, and those that a module
declares.

The program's initializers run within them, and then those of each context. For each of fuel, deadline and memory the
first of these that is given holds:

1. the field of `load_limits` (of `load`, or of `create_context`),
2. the argument that limits calls,
3. the default, of modules that are not trusted (`Policy.trusts`); trusted ones have none.

`math.inf` given means no limit. The time in which device code is built does not count.

A module may declare limits in its attributes (`schema/attributes.py`). A declared limit holds wherever it is tighter
than what was found otherwise, for trusted modules too, and nothing that a caller gives lifts it. A declared limit of
calls holds for initializers as well, unless one of initializers is declared.
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

#: default fuel: units, and bytes of constants for each further unit. A spinning initializer ends within a second or so
FUEL, CONSTANT_BYTES_PER_UNIT = 1_000_000, 64
#: default deadline: seconds, and bytes of constants for each further second, in which they are copied and packed easily
DEADLINE, CONSTANT_BYTES_PER_SECOND = 10.0, 16 << 20
#: default memory: bytes, or half of the device's memory if that is less, plus a multiple of the bytes of constants
MEMORY, TIMES_CONSTANTS = 1 << 30, 4

#: the limits that have defaults, and that a module may declare: fields of `Limits`
_NAMES = ("fuel", "deadline", "memory")


class LoadLimits(NamedTuple):
    """`limits`: those that hold; None is no limit. `defaults`: the names of those that are defaults."""

    limits: Limits
    defaults: frozenset[str]

    def explain(self, error: LimitError) -> None:
        """If the limit that was reached is a default, add to the error's message how to raise it."""
        name = error.limit
        if name is not None and name in self.defaults:
            error.message += (
                f"; {getattr(self.limits, name)} is the default of initializers of a module that is not trusted: "
                f"load_limits=vm.Limits({name}=...) or --load-{name} raises it"
            )


def default_limits(constant_bytes: int, device_bytes: int) -> Limits:
    """For a module that is not trusted. `constant_bytes`: of the program's constants and parameters that are there."""
    return Limits(
        fuel=FUEL + constant_bytes // CONSTANT_BYTES_PER_UNIT,
        deadline=DEADLINE + constant_bytes / CONSTANT_BYTES_PER_SECOND,
        memory=min(MEMORY, device_bytes // 2) + TIMES_CONSTANTS * constant_bytes,
    )


class Declared(NamedTuple):
    """What a module declares: the limits of its calls and of its initializers, and the seconds for building code."""

    calls: Limits
    load: Limits
    build_deadline: float | None


NOTHING = Declared(NO_LIMITS, NO_LIMITS, None)


def declared_by(module: Module) -> Declared:
    """`NOTHING` if the module declares no limits. `ModuleError` for a limit with a malformed value."""
    if not module.attributes:
        return NOTHING
    strings = module.strings
    rows = [row for row in module.attributes if strings[row.key].startswith(LIMITS_PREFIX)]
    if not rows:
        return NOTHING
    found = declared_limits({strings[row.key]: module.attribute_value(row) for row in rows})
    if not found:
        return NOTHING
    calls = {name: name for name in _NAMES if name in found}
    load = {name: f"load-{name}" if f"load-{name}" in found else name for name in _NAMES}
    return Declared(_declared(found, calls), _declared(found, load), found.get("build-deadline"))


def _declared(found: Mapping[str, float], names: Mapping[str, str]) -> Limits:
    """Limits of declared ones; `names`: field -> which of them it is."""
    there = {field: key for field, key in names.items() if key in found}
    fuel, deadline, memory = (found[there[name]] if name in there else None for name in _NAMES)
    return Limits(fuel, deadline, memory, declared=frozenset(LIMITS_PREFIX + key for key in there.values()))


def tighten(limits: Limits, declared: Limits) -> Limits:
    """The limits, with those of the module in place of what is looser. Neither has an infinite one."""
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
    given: Limits | None, calls: Limits, defaults: Limits | None, declared: Declared = NOTHING
) -> LoadLimits:
    """The limits of initializers, by the order at the top of this file. `given`: `load_limits`; `calls`: the limits of
    calls that the caller gave; `defaults`: None for a trusted module.
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
    """The limits with None in place of infinity."""
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
    """The defaults for a program of a module on a device; None if the module is trusted there. `parameters`: the values
    of its parameters, by segment.
    """
    if device.policy.trusts(module.container.digest):
        return None
    row = module.programs[program]
    segments = {constant.segment for constant in module.constants[row.constants_start : row.constants_end]}
    size = sum([module.container.spans[segment][1] for segment in segments])
    size += sum(map(len, (parameters or {}).values()))
    return default_limits(size, device.info.memory_bytes)
