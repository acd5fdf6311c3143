"""The objects that an interpreted shader reads and writes, and the adversary that chooses what the specification leaves
open.

Each object judges its own accesses: an index that is not inside of it is a `Finding`, for storage buffers only where
no robust access is assumed. An index is a signed number, as access chains take it.
"""

from typing import Any

from spirv_values import Scalar, from_bits, to_bits


class Finding(Exception):
    """A shader did what no accepted shader may do. `kind`: the promise that is broken."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


_INTEGERS = (0, 1, 2, 3, 31, 32, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE,
             0xFFFFFFFF, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 255.0, 2147483648.0, -2147483648.0, 4294967296.0, 1e30, -1e30, 1e-40,
           float("inf"), float("-inf"), float("nan"))  # fmt: skip


class Adversary:
    """Chooses results that the specification leaves open: extremes, the same for the same instruction and operands.

    Hardware computes the same from the same, so a condition made of uniform values stays uniform.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def value(self, kind: str, *key: Any) -> Any:
        """A value of the type of that name."""
        chosen = hash((self.seed, *["nan" if part != part else part for part in key]))  # each NaN hashes differently
        if kind[0] == "f":
            return from_bits(to_bits(_FLOATS[chosen % len(_FLOATS)], 64), 64)
        if kind == "bool":
            return bool(chosen & 1)
        return _INTEGERS[chosen % len(_INTEGERS)] & (1 << Scalar.named(kind).bits) - 1


class Constant:
    """Inputs and parameters: a few values that nobody writes."""

    def __init__(self, name: str, values: Any) -> None:
        self.name = name
        self.values = values

    def load(self, index: int | None) -> Any:
        if index is None:
            return self.values
        if not 0 <= index < len(self.values):
            raise Finding("access", f"index {index} of {self.name}, which has {len(self.values)}")
        return self.values[index]

    def store(self, index: int | None, value: Any) -> None:
        raise Finding("access", f"a store to {self.name}")


class Workgroup:
    """A workgroup array. `fill`: what it holds before the first store, None where that may be anything.

    `strict`: nothing may be read before it is written.
    """

    def __init__(self, length: int, fill: Any = None, strict: bool = False) -> None:
        self.length = length
        self.fill = fill
        self.strict = strict
        self.cells: dict[int, Any] = {}

    def load(self, index: int) -> Any:
        if not 0 <= index < self.length:
            raise Finding("access", f"a load at {index} of {self.length} elements in workgroup memory")
        found = self.cells.get(index, self.fill)
        if found is None and self.strict:
            raise Finding("uninitialised", f"a load at {index} of workgroup memory that nobody wrote")
        return found

    def store(self, index: int, value: Any) -> None:
        if not 0 <= index < self.length:
            raise Finding("access", f"a store at {index} of {self.length} elements in workgroup memory")
        self.cells[index] = value


class Buffer:
    """A storage buffer as an array of scalars or vectors. `robust`: the device bounds its accesses."""

    def __init__(self, memory: bytearray, kind: str, lanes: int, robust: bool, writable: bool) -> None:
        scalar = Scalar.named(kind)
        self.memory = memory
        self.bits = scalar.bits
        self.bytes = scalar.bits // 8
        self.floats = scalar.base == "float"
        self.lanes = lanes
        self.robust = robust
        self.writable = writable
        self.length = len(memory) // (self.bytes * lanes)

    def inside(self, index: int) -> bool:
        if 0 <= index < self.length:
            return True
        if not self.robust:
            raise Finding("access", f"index {index} of a storage buffer of {self.length} elements")
        return False

    def load(self, index: int) -> Any:
        if not self.inside(index):
            return None
        lanes = tuple(self.lane(index * self.lanes + lane) for lane in range(self.lanes))
        return lanes if self.lanes > 1 else lanes[0]

    def lane(self, index: int) -> Any:
        at = index * self.bytes
        pattern = int.from_bytes(self.memory[at : at + self.bytes], "little")
        return from_bits(pattern, self.bits) if self.floats else pattern

    def store(self, index: int, value: Any) -> None:
        if not self.writable:
            raise Finding("access", "a store to a binding that is only read")
        if self.inside(index):
            for lane, part in enumerate(value if self.lanes > 1 else (value,)):
                self.write(index * self.lanes + lane, part)

    def write(self, index: int, value: Any) -> None:
        at = index * self.bytes
        pattern = to_bits(value, self.bits) if self.floats else int(value)
        self.memory[at : at + self.bytes] = pattern.to_bytes(self.bytes, "little")
