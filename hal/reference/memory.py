"""How much memory a dispatch needs beside its bindings, known before it runs, and when each value may go.

An estimate from above, in Python integers: a value that owns memory counts from the instruction that makes it to the
one after which its register is cleared, and each instruction counts the temporaries of its NumPy code.
"""

from collections.abc import Sequence

import numpy as np

from orchestrion.schema.scalar_meanings import Widened
from orchestrion.schema.tensor_bytecode import Body, Code, Instruction
from orchestrion.schema.tensor_shapes import TensorType

from .kernels import PIECE

#: Temporaries of a meaning that is not one NumPy call: at most this many arrays of 8-byte elements.
TEMPORARIES = 10


def last_uses(code: Code) -> list[int]:
    """Per value, the last instruction that needs it or a view of it; for a value nobody uses the one that makes it."""
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
    """The most bytes in use at once. Per value: the bytes it owns, and the instruction it is dropped after, or -1."""
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
    """Bytes an instruction's NumPy code takes beside operands and results."""
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
    if row.name == "library_call":  # copies of what is not contiguous or aligned, and what the function takes
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
    """The inputs in the order of the reduction, and the tree with all that the body makes of each pair."""
    inputs = operands[: len(operands) // 2]
    pairs = max(inputs[0].elements, inputs[0].elements // 2 + 1)
    each = sum([value.dtype.itemsize for value in body.values])
    each += max((_per_element(body, one) for one in body.instructions), default=0)
    return 2 * sum(operand.bytes for operand in inputs) + each * pairs


def _scatter(code: Code, instruction: Instruction) -> int:
    """The numbers of rows and the orders made of them; updates, what they change, and all that the body makes."""
    body: Body = instruction.attributes[0]
    count = len(instruction.types)
    indices, update = (code.values[instruction.operands[at]] for at in (count, count + 1))
    each = 2 * sum([value.dtype.itemsize for value in body.values])
    each += max((_per_element(body, one) for one in body.instructions), default=0)
    return 8 * 8 * indices.elements + each * update.elements
