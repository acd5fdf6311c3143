"""The limits within which initializers run when a module is loaded or a context is created.

The program's initializers run within them, and then those of each context. For each of fuel, deadline and memory the
first of these that is given holds:

1. the field of `load_limits` (of `load`, or of `create_context`),
2. the argument that limits calls,
3. the default, of modules that are not trusted (`Policy.trusts`); trusted ones have none.

`math.inf` given means no limit. The time in which device code is built does not count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from orchestrion.hal.device import Device
from orchestrion.schema.module import Module

from .context import Limits
from .errors import DeadlineExceeded, FuelExhausted, LimitError, MemoryExceeded

#: default fuel: units, and bytes of constants for each further unit. A spinning initializer ends within a second or so
FUEL, CONSTANT_BYTES_PER_UNIT = 1_000_000, 64
#: default deadline: seconds, and bytes of constants for each further second, in which they are copied and packed easily
DEADLINE, CONSTANT_BYTES_PER_SECOND = 10.0, 16 << 20
#: default memory: bytes, or half of the device's memory if that is less, plus a multiple of the bytes of constants
MEMORY, TIMES_CONSTANTS = 1 << 30, 4

#: error of a limit -> the limit's name in `Limits`
_NAMES: dict[type[LimitError], str] = {
    FuelExhausted: "fuel",
    DeadlineExceeded: "deadline",
    MemoryExceeded: "memory",
}


class LoadLimits(NamedTuple):
    """`limits`: those that hold; None is no limit. `defaults`: the names of those that are defaults."""

    limits: Limits
    defaults: frozenset[str]

    def explain(self, error: LimitError) -> None:
        """If the limit that was reached is a default, add to the error's message how to raise it."""
        name = _NAMES.get(type(error))
        if name in self.defaults:
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


def find_limits(given: Limits | None, calls: Limits, defaults: Limits | None) -> LoadLimits:
    """The limits of initializers, by the order at the top of this file. `given`: `load_limits`; `calls`: the limits of
    calls; `defaults`: None for a trusted module.
    """
    explicit = Limits() if given is None else given
    none = {name for name in _NAMES.values() if getattr(explicit, name) is None and getattr(calls, name) is None}
    others = Limits() if defaults is None else defaults
    limits = Limits(
        fuel=_first(explicit.fuel, calls.fuel, others.fuel),
        deadline=_first(explicit.deadline, calls.deadline, others.deadline),
        memory=_first(explicit.memory, calls.memory, others.memory),
        depth=calls.depth if given is None else given.depth,
    )
    return LoadLimits(finite(limits), frozenset() if defaults is None else frozenset(none))


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
