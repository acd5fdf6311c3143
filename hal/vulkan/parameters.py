"""Parameters and workgroup counts of a recording's dispatches, in memory that its commands read when they run.

- A `ParameterRange` is the memory of one dispatch: its parameters, at a multiple of `ALIGNMENT`, then the three counts
  of an indirect dispatch (VkDispatchIndirectCommand).
- A `ParameterLayout` assigns the ranges, and packs the bytes of all of them.
- A `ParameterBlock` is host-visible memory with such bytes. It is written only while no submission in flight reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from orchestrion.hal.backend import IndirectArgument

if TYPE_CHECKING:
    from .allocator import Allocator
    from .buffer import VulkanBuffer

#: the largest value that Vulkan allows for minStorageBufferOffsetAlignment
ALIGNMENT: Final = 256
COUNTS: Final = struct.Struct("<3I")


class ParameterRange(NamedTuple):
    """The bytes of one dispatch in a block, `offset` from its start."""

    offset: int
    parameters: int  #: number of parameter bytes

    @property
    def counts(self) -> int:
        """The offset of the workgroup counts in the block."""
        return self.offset + self.parameters


class _RangeContent(NamedTuple):
    """The content of one range of a block."""

    fixed: bytes | None  #: the entire content; None if each instance supplies it
    zeros: bytes  #: zeros of the same length
    pad: bytes  #: padding after parameters and counts


class ParameterLayout:
    """The ranges of one recording's dispatches. `range` is the number of bytes that a descriptor of
    parameters covers.
    """

    __slots__ = ("_rows", "_size", "indirect", "range")

    def __init__(self) -> None:
        self._rows: list[_RangeContent] = []
        self._size = 0
        self.indirect = False  #: whether the recording has an indirect dispatch
        self.range = 0

    def add(self, parameters: bytes) -> ParameterRange:
        """Add a dispatch with fixed parameters."""
        return self._add(len(parameters), len(parameters), parameters)

    def add_indirect(self, size: int) -> ParameterRange:
        """Add a dispatch that gets its counts and `size` bytes of parameters from each instance."""
        self.indirect = True
        return self._add(size, size + COUNTS.size, None)

    def pack(self, arguments: Sequence[IndirectArgument | None]) -> bytes:
        """The bytes of a block, with these arguments for the indirect dispatches in order. None: no workgroups."""
        given = iter(arguments)
        pieces: list[bytes] = []
        for fixed, zeros, pad in self._rows:
            argument = next(given) if fixed is None else None
            if argument is None:
                pieces.append(fixed or zeros)
            else:
                groups, parameters = argument
                pieces += (parameters, COUNTS.pack(*groups), pad)
        pieces.append(bytes(self.range))
        return b"".join(pieces)

    @property
    def size(self) -> int:
        """Bytes of a block; 0 without ranges. A descriptor of `range` bytes fits at each range."""
        return self._size + self.range

    def _add(self, parameters: int, used: int, fixed: bytes | None) -> ParameterRange:
        parameter_range = ParameterRange(self._size, parameters)
        length = -(-used // ALIGNMENT) * ALIGNMENT
        pad = bytes(length - used)
        self._rows.append(_RangeContent(None if fixed is None else fixed + pad, bytes(length), pad))
        self._size += length
        self.range = max(self.range, -(-parameters // 16) * 16)
        return parameter_range


class ParameterBlock:
    """Memory for the bytes of one layout. `data` is its content, None while it is being written."""

    __slots__ = ("buffer", "data", "number")

    def __init__(self, allocator: Allocator, number: int, size: int) -> None:
        self.number = number
        self.buffer: VulkanBuffer = allocator.allocate_staging(size)
        self.data: bytes | None = None

    def write(self, data: bytes) -> None:
        assert self.buffer.host is not None, "host-visible memory is mapped"
        self.data = None
        self.buffer.host[: len(data)] = np.frombuffer(data, np.uint8)
        self.data = data
