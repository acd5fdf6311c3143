"""The code that cases dispatch: three entries, in every executable format.

All three take the same two parameters, `n` (elements) and `value`, work on 32-bit unsigned words, guard `i < n`, and
use the linear workgroup index. The texts stand in `payloads/`.
"""

import struct
from importlib.resources import files

from orchestrion.hal.backend import Entry

ADD, IOTA, INCREMENT = 0, 1, 2

ENTRIES: tuple[Entry, ...] = (
    #: c[i] = a[i] + b[i] + value
    Entry("add", (("read", 4), ("read", 4), ("write", 4)), 2, (64, 1, 1)),
    #: out[i] = i + value, one workgroup per element
    Entry("iota", (("write", 4),), 2, (1, 1, 1)),
    #: data[i] = data[i] + value
    Entry("increment", (("readwrite", 4),), 2, (64, 1, 1)),
)

#: executable format -> file in `payloads/`
PAYLOADS: dict[str, str] = {
    "spirv": "kernels.spv",
    "opencl-c": "kernels.cl",
}


def payload(format: str) -> bytes:
    return (files("orchestrion.hal.cts") / "payloads" / PAYLOADS[format]).read_bytes()


def parameters(n: int, value: int = 0) -> bytes:
    return struct.pack("<II", n, value)
