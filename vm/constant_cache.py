"""The cache of derived constants on disk. A program initializer computes them on the device; later loads read them.

- The key of an entry is everything that its bytes depend on: the digest of the module, the digest of its parameters
  with their adapters, the program, the number that the compiler gave the constant, the version of this runtime, the
  device with its driver version, features and limits (they decide which variants of executables are chosen), and the
  size. An entry with another key is a miss, and the constant is computed.
- Loads under the trust policy `require` have entries of their own. Without that policy constants are not hashed before
  they are used: somebody could change a mapped file during one load and so leave wrong values for later loads.
- Only a program initializer may use the cache, since it reads nothing but the module. Other code could store data of
  its caller where the next load of the module reads it.
- Constants are read without comparing their digests. Before a derived constant is stored, the digests are compared.
- Constants are not stored if they depend on code whose version is not in the key: other native modules than `hal`, and
  the interpreter of tensor bytecode.
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

#: bytes of all entries: packed weights are large
LIMIT = 1 << 30
#: copies of an entry that may be in host memory at one time
COPIES = 1
#: profiles whose code is device code, not tensor bytecode
_DEVICE_CODE_PROFILES = frozenset(name for name, row in PROFILES.items() if row.format != "tensor-bytecode")


def load(call: Call, device: Device, buffer: Buffer, number: int) -> int:
    """Fill a buffer from the cache. Gives 1, or 0 if there is no entry; then the buffer is unchanged.

    `number`: the one that the compiler gave the constant. `Trap` outside of program initializers.
    """
    _require_initializer(call)
    if not _has_complete_key(call):
        return 0
    with _charged_copies(call, buffer) as charged:
        if not charged:
            return 0
        buffer.wait(call)
        found = Cache("derived", LIMIT).get_values(buffer.size, buffer.write_file, *_key(call, device, buffer, number))
        if not found:
            return 0
    call.spend_bytes(buffer.size)
    return 1


def save(call: Call, device: Device, buffer: Buffer, number: int) -> None:
    """Store the bytes of a buffer. `Trap` outside of program initializers. `ModuleError` if a constant of the program,
    from which the bytes may be derived, is damaged.
    """
    _require_initializer(call)
    if not _has_complete_key(call) or buffer.size > LIMIT:
        return
    cache = Cache("derived", LIMIT)
    if not cache.usable:
        return
    program, module = call.program.row, call.program.module
    for constant in module.constants[program.constants_start : program.constants_end]:
        if constant.segment not in call.program.parameters.by_segment:
            module.segment(constant.segment)
    call.spend_bytes(buffer.size)
    with _charged_copies(call, buffer) as charged:
        if charged:
            buffer.wait(call)
            data = buffer.map() if buffer.host_cached else None
            if data is None:
                data = np.empty(buffer.size, np.uint8)
                buffer.read(data)
            cache.put_values(data, *_key(call, device, buffer, number))


@contextmanager
def _charged_copies(call: Call, buffer: Buffer) -> Iterator[bool]:
    """Charge the copies in host memory during the body. Gives False if the memory limit forbids them."""
    budget, size = call.memory.budget, COPIES * buffer.size
    charged = budget.charge(size)
    try:
        yield charged
    finally:
        if charged:
            budget.refund(size)


def _require_initializer(call: Call) -> None:
    """Raise `Trap` unless a program initializer runs: nothing else runs in the context without a parent."""
    if call.context.parent is not None:
        raise Trap("derived constants are for initializers of the program, other code may not load or save any")


def _has_complete_key(call: Call) -> bool:
    """Whether the bytes depend only on what the key names: the module, the device and this runtime."""
    program = call.program
    profile = program.module.strings[program.row.profile]
    return profile in _DEVICE_CODE_PROFILES and not program.code.calls_other_natives


def _key(call: Call, device: Device, buffer: Buffer, number: int) -> tuple[str | bytes, ...]:
    info, program = device.info, call.program
    parts = (program.ordinal, number, buffer.size, "open" if program.module.guard is None else "guarded")
    digests = (program.module.container.digest, program.parameters.digest())
    machine = (info.driver, info.name, info.vendor, info.version, ",".join(sorted(info.features)), repr(info.limits))
    return (*digests, runtime_version(), *machine, *map(str, parts))
