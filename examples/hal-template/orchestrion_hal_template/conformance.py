"""The kernels of the conformance suite in the format `template-lanes`: `add`, `iota` and `increment` over `n` words."""

import struct
from functools import cache

from orchestrion.hal.cts.kernels import ENTRIES, Kernel
from orchestrion.schema.dtypes import BY_NAME

from .bytecode import MAGIC, NAMES, VERSION
from .declarations import FORMAT

NUMBERS = {name: number for number, name in enumerate(NAMES)}
#: the registers of each entry: ids and parameters, set by the device; the index and its guard; operands; constants
GROUP, LOCAL, N, VALUE, INDEX, INSIDE, TIMES, X, Y, SIZE, ZERO, ONE = range(12)
TYPES = ["i1" if register == INSIDE else "ui32" for register in range(12)]


def kernel(n: int, value: int) -> Kernel:
    """The kernels of the conformance suite, with parameters that hold `n` and `value`."""
    return Kernel(FORMAT.name, _payload(), ENTRIES, struct.pack("<II", n, value))


@cache
def _payload() -> bytes:
    loads = [_row("load", X, INDEX, 0), _row("load", Y, INDEX, 1)]
    add = [*loads, _row("add", X, X, Y), _row("add", X, X, VALUE), _row("store", X, INDEX, 2)]
    iota = [_row("add", X, INDEX, VALUE), _row("store", X, INDEX, 0)]
    increment = [_row("load", X, INDEX, 0), _row("add", X, X, VALUE), _row("store", X, INDEX, 0)]
    words = [VERSION, len(ENTRIES)]
    for entry, body in zip(ENTRIES, (add, iota, increment), strict=True):
        words += [entry.parameter_words, *entry.workgroup_size, *_entry(entry.workgroup_size[0], body)]
    return MAGIC + struct.pack(f"<{len(words)}I", *words)


def _entry(size: int, body: list[list[int]]) -> list[int]:
    """The words of an entry that runs `body` for each index below `n`."""
    rows = [
        _row("constant", SIZE, size, 0),
        _row("constant", ONE, 1, 0),
        _row("multiply", INDEX, GROUP, SIZE),
        _row("add", INDEX, INDEX, LOCAL),
        _row("compare_lt", INSIDE, INDEX, N),
        _row("select", TIMES, INSIDE, ONE, ZERO),
        _row("for", X, ZERO, TIMES, ONE),
        *body,
        _row("end"),
        _row("end"),
    ]
    return [len(TYPES), *[BY_NAME[name].code for name in TYPES], 0, *[word for row in rows for word in row]]


def _row(op: str, *operands: int) -> list[int]:
    return [NUMBERS[op] | len(operands) << 16, *operands]
