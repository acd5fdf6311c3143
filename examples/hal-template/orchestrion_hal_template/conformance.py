"""The kernels of the conformance suite in the format `template-lanes`: `add`, `iota` and `increment` over `n` words."""

import struct
from functools import cache

from orchestrion.hal.cts.kernels import ENTRIES, Kernel
from orchestrion.schema.dtypes import BY_NAME

from .bytecode import MAGIC, NAMES, VERSION
from .declarations import FORMAT

NUMBERS = {name: number for number, name in enumerate(NAMES)}
#: the registers of each entry: ids and parameters, which are given, and index, its guard, operands, constants
GROUP, LOCAL, N, VALUE, INDEX, INSIDE, TIMES, X, Y, SIZE, ZERO, ONE = range(12)
TYPES = ["i1" if register == INSIDE else "ui32" for register in range(12)]


def kernel(n: int, value: int) -> Kernel:
    """The kernels and their parameters."""
    return Kernel(FORMAT.name, _payload(), ENTRIES, struct.pack("<II", n, value))


@cache
def _payload() -> bytes:
    add = [("load", X, INDEX, 0), ("load", Y, INDEX, 1), ("add", X, X, Y), ("add", X, X, VALUE), ("store", X, INDEX, 2)]
    iota = [("add", X, INDEX, VALUE), ("store", X, INDEX, 0)]
    increment = [("load", X, INDEX, 0), ("add", X, X, VALUE), ("store", X, INDEX, 0)]
    words = [VERSION, len(ENTRIES)]
    for entry, body in zip(ENTRIES, (add, iota, increment), strict=True):
        words += _entry(entry.workgroup_size[0], body)
    return MAGIC + struct.pack(f"<{len(words)}I", *words)


def _entry(size: int, body: list[tuple[str, int] | tuple[str, int, int] | tuple[str, int, int, int]]) -> list[int]:
    """The words of an entry: its body for each index below `n`."""
    index = [
        ("constant", SIZE, size, 0), ("constant", ONE, 1, 0),
        ("multiply", INDEX, GROUP, SIZE), ("add", INDEX, INDEX, LOCAL),
        ("compare_lt", INSIDE, INDEX, N), ("select", TIMES, INSIDE, ONE, ZERO), ("for", X, ZERO, TIMES, ONE),
    ]  # fmt: skip
    code = [
        word
        for op, *operands in (*index, *body, ("end",), ("end",))
        for word in (NUMBERS[op] | len(operands) << 16, *operands)
    ]
    return [len(TYPES), *[BY_NAME[name].code for name in TYPES], 0, *code]
