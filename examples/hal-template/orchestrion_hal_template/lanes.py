"""Runs code on the invocations of some workgroups in lockstep: a register is an array with one lane per invocation.

A register with the same value in all lanes is an array of rank 0. In loops a mask says which lanes take part; the
others keep their values. Every index is limited to its memory: a load beyond the end gives the last element, and a
store there does nothing.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from orchestrion.schema.dtypes import BOOL, DType
from orchestrion.schema.scalars import BY_NAME as SCALAR

from .bytecode import Code, Row

Array = npt.NDArray[Any]


class Lanes:
    """`groups` are the numbers of the workgroups, which have `size` invocations each. `check` may raise to stop the
    work.
    """

    def __init__(
        self, code: Code, memories: Sequence[Array], words: Array, groups: range, size: int, check: Callable[[], None]
    ) -> None:
        self.code, self.memories, self.check = code, memories, check
        self.rows = np.repeat(np.arange(len(groups)), size)  #: each lane's row in the shared arrays
        self.shared = [np.zeros((len(groups), length), storage(dtype)) for dtype, length in code.arrays]
        self.registers: list[Array] = [np.zeros((), dtype.numpy) for dtype in code.registers]
        indices = [(self.rows + groups.start).astype("<u4"), np.tile(np.arange(size, dtype="<u4"), len(groups))]
        self.registers[: 2 + words.size] = [*indices, *[word.reshape(()) for word in words]]

    def run(self, rows: Sequence[Row], mask: Array | None = None) -> None:
        for row in rows:
            match row.op:
                case "for":
                    self.loop(row.operands, row.body or [], mask)
                case "store":
                    self.store(row.operands, mask)
                case _:
                    self.put(row.operands[0], self.result(row), mask)

    def put(self, register: int, value: Array, mask: Array | None) -> None:
        self.registers[register] = value if mask is None else np.where(mask, value, self.registers[register])

    def result(self, row: Row) -> Array:
        dtype, operands = self.code.registers[row.operands[0]], row.operands[1:]
        match row.op:
            case "constant":
                return np.array(operands, "<u4").view(np.uint8)[: dtype.itemsize].view(dtype.numpy).reshape(())
            case "load":
                return self.load(dtype, *operands)
            case "move":
                return self.registers[operands[0]]
        values = np.broadcast_arrays(*[self.registers[operand] for operand in operands])
        kind = self.code.registers[operands[-1]].kind
        return SCALAR[row.op].meaning(kind)(*values, np.empty(values[0].shape, dtype.numpy))

    def memory(self, number: int, dtype: DType) -> tuple[Array, tuple[Array, ...]]:
        """A memory as elements of the type and, for a shared array, the index of each lane's row in it."""
        if number >= len(self.memories):
            return self.shared[number - len(self.memories)], (self.rows,)
        data = self.memories[number]
        return data[: data.size // dtype.itemsize * dtype.itemsize].view(storage(dtype)), ()

    def load(self, dtype: DType, index: int, number: int) -> Array:
        memory, place = self.memory(number, dtype)
        if not memory.shape[-1]:
            return np.zeros((), dtype.numpy)
        last = np.uint64(memory.shape[-1] - 1)
        found = memory[(*place, np.minimum(self.registers[index].astype(np.uint64), last).astype(np.intp))]
        return np.asarray(found != 0 if dtype.kind == BOOL else found)

    def store(self, operands: tuple[int, ...], mask: Array | None) -> None:
        value, index, number = operands
        memory, place = self.memory(number, self.code.registers[value])
        wide = self.registers[index].astype(np.uint64)
        inside = (wide < np.uint64(memory.shape[-1])) & (True if mask is None else mask)
        values, wide, inside, *rows = np.broadcast_arrays(self.registers[value], wide, inside, *place)
        memory[(*[row[inside] for row in rows], wide[inside].astype(np.intp))] = values[inside]

    def loop(self, operands: tuple[int, ...], body: Sequence[Row], mask: Array | None) -> None:
        at, end, step = (self.registers[operand] for operand in operands[1:])
        going = at < end
        while np.any(going if mask is None else going & mask):
            self.check()
            taking = mask if not going.ndim else going if mask is None else going & mask
            self.put(operands[0], at, taking)
            self.run(body, taking)
            at = at + step
            going = going & (at < end)  # a lane whose index wraps around stays stopped


def storage(dtype: DType) -> Any:
    """The NumPy type of an element in memory, which for an i1 is a byte."""
    return np.uint8 if dtype.kind == BOOL else dtype.numpy
