"""Derived constants on disk: what a program initializer computed on the device, for the next load of the same module.

- A row's key is all that the bytes depend on: the module's digest, that of its parameters with their adapters, the
  program, the number that the compiler gave, the version of this runtime, the device with its driver's version, enabled
  features and limits (by which variants of executables are chosen), and the size. Whatever does not fit is a miss, and
  is computed.
- Loads under the trust policy `require` have rows of their own. Without it nobody looks at constants before they are
  used: who writes to a mapped file and takes it back would leave wrong values for all who load the module later.
- Only a program initializer may ask: it has seen nothing but the module. Any other code could leave what callers gave
  it to whoever loads the module next.
- Constants are read without comparing their digests, but what is derived from them is kept only when those are right.
- Not kept is what other code than the module's has a part in, whose version no key names: that of further native
  modules, and that which gives tensor bytecode its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from orchestrion.hal.cache import Cache
from orchestrion.hal.version import runtime_version
from orchestrion.schema.profiles import PROFILES

from .errors import Trap

if TYPE_CHECKING:
    from orchestrion.hal.buffer import Buffer
    from orchestrion.hal.device import Device

    from .call import Call

#: bytes of all rows: packed weights are large
LIMIT = 1 << 30
#: of a row, that are in host memory at one time
COPIES = 3
#: profiles whose code the device runs by itself
_COMPLETE = frozenset(name for name, row in PROFILES.items() if row.format != "tensor-bytecode")


def load(call: Call, device: Device, buffer: Buffer, number: int) -> int:
    """1 when the buffer was filled from the cache, else 0, and the buffer is as it was."""
    _require_initializer(call)
    if not _is_complete(call):
        return 0
    with _room(call, buffer) as there:
        data = Cache("derived", LIMIT).get(*_key(call, device, buffer, number)) if there else None
        if data is None or len(data) != buffer.size:
            return 0
        call.spend_bytes(buffer.size)
        buffer.wait(call)
        buffer.write(np.frombuffer(data, np.uint8))
        return 1


def save(call: Call, device: Device, buffer: Buffer, number: int) -> None:
    """Keep what the buffer holds. `ModuleError`: a constant that it may come from is damaged."""
    _require_initializer(call)
    if not _is_complete(call) or buffer.size > LIMIT:
        return
    cache = Cache("derived", LIMIT)
    if not cache.usable:
        return
    program, module = call.program.row, call.program.module
    for constant in module.constants[program.constants_start : program.constants_end]:
        if constant.segment not in call.program.parameters.by_segment:
            module.segment(constant.segment)
    call.spend_bytes(buffer.size)
    with _room(call, buffer) as there:
        if there:
            data = np.empty(buffer.size, np.uint8)
            buffer.wait(call)
            buffer.read(data)
            cache.put(data.tobytes(), *_key(call, device, buffer, number))


@contextmanager
def _room(call: Call, buffer: Buffer) -> Iterator[bool]:
    """Whether the limit leaves room for the copies in host memory, which are charged meanwhile. It need not."""
    budget, size = call.memory.budget, COPIES * buffer.size
    there = budget.charge(size)
    try:
        yield there
    finally:
        if there:
            budget.refund(size)


def _require_initializer(call: Call) -> None:
    """Initializers of the program are all that runs in its own context."""
    if call.context.parent is not None:
        raise Trap("derived constants are for initializers of the program, other code may not load or save any")


def _is_complete(call: Call) -> bool:
    """Whether the module and the device are all that the bytes depend on."""
    program = call.program
    return program.module.strings[program.row.profile] in _COMPLETE and not program.code.further_natives


def _key(call: Call, device: Device, buffer: Buffer, number: int) -> tuple[str | bytes, ...]:
    info, program = device.info, call.program
    parts = (program.ordinal, number, buffer.size, "open" if program.module.guard is None else "guarded")
    digests = (program.module.container.digest, program.parameters.digest())
    machine = (info.driver, info.name, info.vendor, info.version, ",".join(sorted(info.features)), repr(info.limits))
    return (*digests, runtime_version(), *machine, *map(str, parts))
