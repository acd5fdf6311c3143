"""The reference types that the VM itself has: typed lists and host byte buffers.

Both are charged to their context's memory when they are made or grow, and give it back when the last reference goes.
Null is Python's None. What native modules add (device buffers, views, fences) is theirs.
"""

from typing import Any, ClassVar

from .errors import DeviceOutOfMemory, Trap
from .memory import Memory

#: bytes charged per element of a list: of numbers a pointer and now and then a number, of refs what the smallest
#: object of the device takes in Python
NUMBER_BYTES, REF_BYTES = 32, 1024
#: bytes charged per list and buffer for the object itself
OBJECT_BYTES = 128


class TypedList:
    """A list of one element type. Only the ops of its type touch `items`, so it never holds anything else."""

    __slots__ = ("_charged", "_memory", "items")

    type_name: ClassVar[str]
    zero: ClassVar[int | float | None]
    element_bytes: ClassVar[int] = NUMBER_BYTES

    def __init__(self, memory: Memory, size: int) -> None:
        self._memory = memory
        self._charged = 0
        memory.charge(OBJECT_BYTES)
        self._charged = OBJECT_BYTES
        self.items: list[Any] = []
        self.resize(size)

    def resize(self, size: int) -> None:
        if size < 0:
            raise Trap(f"list size {size} is negative")
        items = self.items
        growth = size - len(items)
        if growth <= 0:
            del items[size:]
            return
        missing = OBJECT_BYTES + self.element_bytes * size - self._charged
        if missing > 0:
            self._memory.charge(missing)
            self._charged += missing
        try:
            items += [self.zero] * growth
        except (MemoryError, OverflowError):
            raise DeviceOutOfMemory(f"list of {size} elements: the machine has no room") from None

    def __del__(self) -> None:
        if self._charged:
            self._memory.refund(self._charged)


class ListI32(TypedList):
    __slots__ = ()
    type_name, zero = "list<i32>", 0


class ListI64(TypedList):
    __slots__ = ()
    type_name, zero = "list<i64>", 0


class ListF32(TypedList):
    __slots__ = ()
    type_name, zero = "list<f32>", 0.0


class ListF64(TypedList):
    __slots__ = ()
    type_name, zero = "list<f64>", 0.0


class ListAny(TypedList):
    __slots__ = ()
    type_name, zero = "list<any>", None
    element_bytes = REF_BYTES


class HostBuffer:
    """Bytes of the host: `data` is a view of memory that this buffer owns, shares with `owner`, or of the module's
    file.
    """

    __slots__ = ("_charged", "_memory", "_owner", "data", "size")

    def __init__(
        self, data: memoryview, memory: Memory | None = None, charged: int = 0, owner: "HostBuffer | None" = None
    ) -> None:
        self._memory = memory
        self._charged = charged
        self._owner = owner
        self.data = data
        self.size = len(data)

    @classmethod
    def allocate(cls, memory: Memory, size: int) -> "HostBuffer":
        """Zeroed bytes."""
        if size < 0:
            raise Trap(f"buffer size {size} is negative")
        charged = size + OBJECT_BYTES
        memory.charge(charged)
        try:
            return cls(memoryview(bytearray(size)), memory, charged)
        except (MemoryError, OverflowError):
            memory.refund(charged)
            raise DeviceOutOfMemory(f"buffer of {size} bytes: the machine has no room") from None

    @classmethod
    def constant(cls, memory: Memory, data: memoryview) -> "HostBuffer":
        """Read-only bytes that somebody else owns."""
        memory.charge(OBJECT_BYTES)
        return cls(data.toreadonly(), memory, OBJECT_BYTES)

    def slice(self, memory: Memory, offset: int, length: int) -> "HostBuffer":
        """A view of the same memory, which stays charged until the last view goes."""
        self.check(offset, length)
        memory.charge(OBJECT_BYTES)
        return HostBuffer(self.data[offset : offset + length], memory, OBJECT_BYTES, self._owner or self)

    def check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self.size:
            raise Trap(f"bytes {offset} to {offset + length} are outside a buffer of {self.size} bytes")

    def check_writable(self, offset: int, length: int) -> None:
        if self.data.readonly:
            raise Trap(f"buffer of {self.size} bytes is read-only")
        self.check(offset, length)

    def __del__(self) -> None:
        if self._charged and self._memory is not None:
            self._memory.refund(self._charged)


LIST_TYPES: dict[str, type[TypedList]] = {
    "i32": ListI32,
    "i64": ListI64,
    "f32": ListF32,
    "f64": ListF64,
    "ref": ListAny,
}
#: ref type -> the class of its values; native modules add theirs when they are imported (`native.py`)
TYPES: dict[str, type] = {"buffer": HostBuffer} | {cls.type_name: cls for cls in LIST_TYPES.values()}


def type_name(value: object) -> str:
    """What a value is, in the words of signatures."""
    if value is None:
        return "null"
    for name, cls in TYPES.items():
        if type(value) is cls:
            return name
    return type(value).__name__
