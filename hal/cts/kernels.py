"""The code that cases dispatch: three entries, in every executable format.

A package that declares a format also declares these kernels in it: an entry point of the group
`orchestrion.conformance`, named like the format, for a function that returns a `Kernel` for (n, value).

All entries process 32-bit unsigned words of `n` elements. Formats with parameters take `n` and `value` as two parameter
words, guard `i < n`, and use the linear workgroup index; their sources are in `payloads/`. Tensor bytecode has no
parameters: each (n, value) is its own program.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from orchestrion.hal.backend import Entry
from orchestrion.schema import tensor_encoding
from orchestrion.schema.dtypes import BY_NAME
from orchestrion.schema.errors import PluginError
from orchestrion.schema.tensor_bytecode import EntryCode
from orchestrion.schema.tensor_shapes import TensorType

#: entries by number: c[i] = a[i] + b[i] + value; out[i] = i + value; data[i] = data[i] + value
ADD, IOTA, INCREMENT = 0, 1, 2

WORKGROUPS = ((64, 1, 1), (1, 1, 1), (64, 1, 1))

ENTRIES: tuple[Entry, ...] = (
    Entry("add", (("read", 4), ("read", 4), ("write", 4)), 2, WORKGROUPS[ADD]),
    Entry("iota", (("write", 4),), 2, WORKGROUPS[IOTA]),
    Entry("increment", (("readwrite", 4),), 2, WORKGROUPS[INCREMENT]),
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """An executable to create, and the parameters for dispatching its entries."""

    format: str
    payload: bytes
    entries: tuple[Entry, ...]
    parameters: bytes


def _words(format: str, file: str) -> Callable[[int, int], Kernel]:
    def make(n: int, value: int) -> Kernel:
        payload = (files("orchestrion.hal.cts") / "payloads" / file).read_bytes()
        return Kernel(format, payload, ENTRIES, struct.pack("<II", n, value))

    return make


def _native(n: int, value: int) -> Kernel:
    """The image for the processor of this machine."""
    from orchestrion.hal.cpu.processor import architecture

    return _words("native-image", f"kernels.{architecture()}.img")(n, value)


def _tensor(n: int, value: int) -> Kernel:
    codes = _tensor_codes(n, value)
    entries = tuple(
        Entry(row.name, code.accesses, 0, row.workgroup_size) for row, code in zip(ENTRIES, codes, strict=True)
    )
    return Kernel("tensor-bytecode", tensor_encoding.encode(codes), entries, b"")


def _tensor_codes(n: int, value: int) -> list[EntryCode]:
    words = TensorType(BY_NAME["ui32"], (n,))
    constant = np.full(n, value, "<u4").tobytes()
    codes = [EntryCode(len(row.bindings)) for row in ENTRIES]

    def store_sum(code: EntryCode, values: range, binding: int) -> None:
        added = code.emit("constant", (), words, constant)
        total = code.emit("add", (*values, *added))
        code.emit("store_output", total, binding)

    a = codes[ADD].emit("load_input", (), 0, words)
    b = codes[ADD].emit("load_input", (), 1, words)
    store_sum(codes[ADD], codes[ADD].emit("add", (*a, *b)), 2)
    store_sum(codes[IOTA], codes[IOTA].emit("iota", (), words, 0), 0)
    store_sum(codes[INCREMENT], codes[INCREMENT].emit("load_input", (), 0, words), 0)
    return codes


#: executable format -> function that returns its kernels over `n` elements with `value`
FORMATS: dict[str, Callable[[int, int], Kernel]] = {
    "tensor-bytecode": cache(_tensor),
    "spirv": _words("spirv", "kernels.spv"),
    "opencl-c": _words("opencl-c", "kernels.cl"),
    "native-image": _native,
}


def find_kernels(format: str) -> Callable[[int, int], Kernel] | None:
    """The kernels in a format, including those that another package declares; None if none exist. Raises PluginError if
    the declaring package cannot be used.
    """
    found = FORMATS.get(format)
    if found is not None:
        return found
    from orchestrion.schema.plugins import find

    declared: Any = find("orchestrion.conformance", format, object)
    if declared is not None and not callable(declared):
        raise PluginError(f"conformance kernels {format}: {declared!r:.200} is not a function of (n, value)")
    made: Callable[[int, int], Kernel] | None = declared
    return made
