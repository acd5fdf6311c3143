"""Buffers of the OpenCL driver over memory objects that note what happens to them."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

pytest.importorskip("pyopencl")
from orchestrion.hal.opencl.buffer import OpenCLBuffer


class Memory:
    """A memory object that notes which of its parts are released, in order."""

    def __init__(self, released: list[tuple[int, int]], range: tuple[int, int] = (0, 0)) -> None:
        self.released, self.range = released, range

    def get_sub_region(self, offset: int, length: int) -> Memory:
        return Memory(self.released, (offset, length))

    def release(self) -> None:
        self.released.append(self.range)


def test_the_last_part_of_a_buffer_is_released_first() -> None:
    """And the buffer behind all of them; a range has one part. NVIDIA's driver crashes in other orders."""
    buffer, released = OpenCLBuffer(), list[tuple[int, int]]()
    buffer.prepare()
    buffer.whole = Memory(released)

    class Taker:
        given: ClassVar[list[Any]] = []

        def set_memory(self, position: int, memory: Any) -> None:
            self.given.append(memory)

        def forget(self, buffer: object) -> None:
            self.given.append(buffer)

    taker: Any = Taker()
    for offset, length in ((512, 8), (0, 64), (0, 512), (256, 512), (512, 8)):
        buffer.set_argument(taker, 0, offset, length)
    assert taker.given[0] is taker.given[4] and taker.given[1] is taker.given[2] is buffer.whole
    buffer.release()
    assert taker.given[-1] is buffer
    assert released == [(256, 512), (512, 8), (0, 0)]
