"""The reference types of the VM: typed lists and host byte buffers.

Both are charged to the memory of their context when they are made or grow, and refunded when the last reference is
dropped. Null is Python's None. Native modules add types, such as device buffers, views and fences.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from .errors import DeviceOutOfMemory, Trap
from .memory import Memory

#: bytes charged per element of a list: for a number a pointer and possibly a Python number, for a ref the size of the
#: smallest device object in Python
NUMBER_BYTES, REF_BYTES = 32, 1024
#: bytes charged per list and buffer for the object itself
OBJECT_BYTES = 128

#: called with the number of elements or bytes, before memory is taken
Spend = Callable[[int], object]


def _nothing(count: int) -> None:
    """Spend nothing."""


class TypedList:
    """A list of one element type. Only the ops of that type change `items`, so it holds nothing else."""

    __slots__ = ("_charged", "_memory", "items")

    type_name: ClassVar[str]
    zero: ClassVar[int | float | None]
    element_bytes: ClassVar[int] = NUMBER_BYTES

    def __init__(self, memory: Memory, size: int, spend: Spend = _nothing) -> None:
        """`spend`: see `resize`."""
        self._memory = memory
        self._charged = 0
        memory.charge(OBJECT_BYTES)
        self._charged = OBJECT_BYTES
        self.items: list[Any] = []
        self.resize(size, spend)

    def resize(self, size: int, spend: Spend = _nothing) -> None:
        """Set the number of elements; new ones are zero or null. `spend` is called with that number before memory is
        taken. `Trap` if it is negative, `MemoryExceeded` for a limit, and what `spend` raises.
        """
        if size < 0:
            raise Trap(f"list size {size} is negative")
        items = self.items
        growth = size - len(items)
        if growth <= 0:
            spend(size)
            del items[size:]
            return
        missing = OBJECT_BYTES + self.element_bytes * size - self._charged
        if missing > 0:
            self._memory.charge(missing)
            self._charged += missing
        spend(size)
        try:
            items += [self.zero] * growth
        except (MemoryError, OverflowError):
            raise DeviceOutOfMemory(f"no host memory left for a list of {size} elements") from None

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
    """Bytes in host memory. `data` is a view of memory that this buffer owns, of the memory of `owner`, or
    of the file.
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
    def allocate(cls, memory: Memory, size: int, spend: Spend = _nothing) -> "HostBuffer":
        """A buffer of `size` zero bytes. `spend` and errors as for `TypedList.resize`."""
        if size < 0:
            raise Trap(f"buffer size {size} is negative")
        charged = size + OBJECT_BYTES
        memory.charge(charged)
        try:
            spend(size)
            return cls(memoryview(bytearray(size)), memory, charged)
        except BaseException as error:
            memory.refund(charged)
            if isinstance(error, MemoryError | OverflowError):
                raise DeviceOutOfMemory(f"no host memory left for a buffer of {size} bytes") from None
            raise

    @classmethod
    def constant(cls, memory: Memory, data: memoryview) -> "HostBuffer":
        """A buffer over read-only bytes that the module owns."""
        memory.charge(OBJECT_BYTES)
        return cls(data.toreadonly(), memory, OBJECT_BYTES)

    def slice(self, memory: Memory, offset: int, length: int) -> "HostBuffer":
        """A buffer over a range of the same memory, which stays charged until the last slice is dropped."""
        self.check(offset, length)
        memory.charge(OBJECT_BYTES)
        return HostBuffer(self.data[offset : offset + length], memory, OBJECT_BYTES, self._owner or self)

    def check(self, offset: int, length: int) -> None:
        """`Trap` unless the range lies in the buffer."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise Trap(f"bytes {offset} to {offset + length} are outside a buffer of {self.size} bytes")

    def check_writable(self, offset: int, length: int) -> None:
        """`Trap` unless the range lies in the buffer and can be written."""
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
#: ref type -> the class of its values; native modules add their types when they are imported (`native.py`)
TYPES: dict[str, type] = {"buffer": HostBuffer} | {cls.type_name: cls for cls in LIST_TYPES.values()}


def type_name(value: object) -> str:
    """The type of a value, as signatures write it."""
    if value is None:
        return "null"
    for name, cls in TYPES.items():
        if type(value) is cls:
            return name
    return type(value).__name__
