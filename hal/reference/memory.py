"""Bounds the memory that a dispatch needs in addition to its bindings, before it runs, and when each value is dropped.

It is an upper bound. A value that owns memory counts from the instruction that creates it to the one after which its
register is cleared. Each instruction also counts the temporaries of its NumPy code.
"""

from collections.abc import Sequence

import numpy as np

from orchestrion.schema.scalar_meanings import Widened
from orchestrion.schema.tensor_bytecode import Body, Code, Instruction
from orchestrion.schema.tensor_shapes import TensorType

from .kernels import PIECE

#: the most temporaries of a scalar op that takes several NumPy calls: arrays of 8-byte elements
TEMPORARIES = 10


def last_uses(code: Code) -> list[int]:
    """Per value, the last instruction that uses it or a view of it; for an unused value, the instruction that creates
    it.
    """
    last = [-1] * len(code.values)
    for ordinal in range(len(code.instructions) - 1, -1, -1):
        instruction = code.instructions[ordinal]
        for value in range(instruction.first, instruction.first + len(instruction.types)):
            last[value] = max(last[value], ordinal)
        end = last[instruction.first] if instruction.row.view else ordinal
        for operand in instruction.operands:
            last[operand] = max(last[operand], end)
    return last


def peak_bytes(code: Code, owned: Sequence[int], drops: Sequence[int]) -> int:
    """The most bytes in use at the same time. Per value: the bytes it owns, and the instruction after which it is
    dropped, or -1.
    """
    going = [0] * len(code.instructions)
    for size, ordinal in zip(owned, drops, strict=True):
        if ordinal >= 0:
            going[ordinal] += size
    live = peak = 0
    for ordinal, instruction in enumerate(code.instructions):
        live += sum(owned[instruction.first : instruction.first + len(instruction.types)])
        peak = max(peak, live + temporaries(code, instruction))
        live -= going[ordinal]
    return peak


def temporaries(code: Code, instruction: Instruction) -> int:
    """Bytes that an instruction's NumPy code takes in addition to operands and results."""
    row, types = instruction.row, instruction.types
    operands = [code.values[operand] for operand in instruction.operands]
    if row.scalar is not None:
        return _per_element(code, instruction) * min(PIECE, types[0].elements)
    if row.name == "reduce":
        return _reduce(operands, instruction.attributes[1])
    if row.name == "scatter":
        return _scatter(code, instruction)
    if row.name == "dot_general":
        width = max(operands[0].dtype.itemsize, types[0].dtype.itemsize)
        return 2 * width * (operands[0].elements + operands[1].elements) + width * types[0].elements
    if row.name == "library_call":  # copies of unaligned or strided operands, and the function's workspace
        from orchestrion.hal.libraries.registry import find

        workspace = find(instruction.attributes[1]).workspace
        return (1 + workspace) * sum(operand.bytes for operand in operands) + sum(type.bytes for type in types)
    if row.name == "gather":
        return 8 * (operands[0].rank + 3) * max(types[0].elements, operands[1].elements)
    if row.name == "iota":
        axis: int = instruction.attributes[1]
        return 8 * types[0].shape[axis]
    return 0


def _per_element(code: Code, instruction: Instruction) -> int:
    scalar = instruction.row.scalar
    if scalar is None:
        return 0
    kind = code.values[instruction.operands[-1]].dtype.kind
    return 0 if isinstance(scalar.meaning(kind), np.ufunc | Widened) else 8 * TEMPORARIES


def _reduce(operands: Sequence[TensorType], body: Body) -> int:
    """The transposed inputs, and the tree with all temporaries that the body makes for each pair."""
    inputs = operands[: len(operands) // 2]
    pairs = max(inputs[0].elements, inputs[0].elements // 2 + 1)
    each = sum([value.dtype.itemsize for value in body.values])
    each += max((_per_element(body, one) for one in body.instructions), default=0)
    return 2 * sum(operand.bytes for operand in inputs) + each * pairs


def _scatter(code: Code, instruction: Instruction) -> int:
    """The row numbers and their sort orders; the updates, the elements they change, and the temporaries of the body."""
    body: Body = instruction.attributes[0]
    count = len(instruction.types)
    indices, update = (code.values[instruction.operands[at]] for at in (count, count + 1))
    each = 2 * sum([value.dtype.itemsize for value in body.values])
    each += max((_per_element(body, one) for one in body.instructions), default=0)
    return 8 * 8 * indices.elements + each * update.elements
