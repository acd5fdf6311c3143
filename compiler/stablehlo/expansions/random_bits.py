"""`rng_bit_generator` as integer arithmetic: the same bits as XLA on CPU, for each algorithm.

The state is a key and a counter of 64 bits each; Philox may have a counter of 128 bits, else the key is its upper half.
Both algorithms encrypt counter, counter + 1, ...: Philox 4x32 with 10 rounds gives four words for each, ThreeFry 2x32
with 20 rounds two. `DEFAULT` is Philox. Numbers of 8 and 16 bits are the low bits of 32-bit words. Source: J. Salmon
and others, "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from orchestrion.compiler.ir.attributes import DialectAttr, IntegerAttr, StringAttr
from orchestrion.compiler.ir.core import Operation, Value
from orchestrion.compiler.ir.dims import Dim, UndecidedError
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import TensorType, scalar
from orchestrion.compiler.stablehlo.builders.basic import bitcast, compare, constant, convert, elementwise
from orchestrion.compiler.stablehlo.builders.shape_builders import (
    broadcast,
    concatenate,
    leading_slice,
    reshape,
    slice_range,
)
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_supported, tensor_of
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.compiler.stablehlo.ops.structural import Iota
from orchestrion.schema.dtypes import SIGNED, UNSIGNED

#: Name in a `custom_call` of `rng_bit_generator` with a computed shape.
RNG_BIT_GENERATOR: Final = "stablehlo.dynamic_rng_bit_generator"
_U32: Final = scalar("ui32")
_U64: Final = scalar("ui64")
_PHILOX_ROUNDS: Final = 10
_PHILOX_FACTORS: Final = (0xD2511F53, 0xCD9E8D57)
_PHILOX_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_THREEFRY_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY: Final = 0x1BD11BDA


def expand_rng_bit_generator(op: Operation, rewriter: Rewriter) -> bool:
    """Expands the op, or a `custom_call` of `RNG_BIT_GENERATOR`; skips malformed ops. Raises UndecidedError for
    undecided sizes.
    """
    if isinstance(op, CustomCall) and op.get("call_target_name") != StringAttr(RNG_BIT_GENERATOR):
        return False
    given = op.get_as("rng_algorithm", DialectAttr)
    types = [value.type for value in (*op.operands, *op.results)]
    if given is None or len(op.operands) != 1 or len(op.results) != 2 or not all(map(is_supported, types)):
        return False
    algorithm = given.body.split()[-1]
    state, bits = tensor_of(op.operands[0]), op.results[1]
    sizes = {"THREE_FRY": (2,), "PHILOX": (2, 3), "DEFAULT": (2, 3)}.get(algorithm, ())
    if op.results[0].type != state or state.element != _U64 or state.rank != 1 or state.shape[0] not in sizes:
        return False
    if dtype_of(bits).kind not in (SIGNED, UNSIGNED):
        return False
    words = [_word(rewriter, op.operands[0], at) for at in range(state.shape[0])]
    draw = _threefry if algorithm == "THREE_FRY" else _philox
    after, drawn = draw(rewriter, words, tensor_of(bits).shape, 2 if dtype_of(bits).bits == 64 else 1)
    name = str(tensor_of(bits).element)
    drawn = convert(rewriter, drawn, f"ui{dtype_of(bits).bits}")
    drawn = bitcast(rewriter, drawn, name) if dtype_of(bits).kind == SIGNED else drawn
    parts = [reshape(rewriter, value, (1,)) for value in (words[0], *after)]
    rewriter.replace(op, [concatenate(rewriter, parts, 0), drawn])
    return True


# The algorithms. Each returns the words of the next counter, and the numbers, of `width` 32-bit words each


def _philox(rewriter: Rewriter, state: list[Value], shape: tuple[int, ...], width: int) -> tuple[list[Value], Value]:
    """Philox: the words of consecutive blocks follow each other."""
    per_block = 4 // width
    count = prod(shape)
    blocks = -(-count // per_block)
    key, low, high = (*state, state[0])[:3]
    line = TensorType((blocks,), _U64)
    numbers = rewriter.build(Iota, iota_dimension=IntegerAttr(0), out=line).result
    lows, highs = _sum128(
        rewriter, broadcast(rewriter, low, line.shape), broadcast(rewriter, high, line.shape), numbers
    )
    words = _philox_rounds(
        rewriter, [*_halves(rewriter, lows), *_halves(rewriter, highs)], list(_halves(rewriter, key))
    )
    drawn = words if width == 1 else [_whole(rewriter, *words[:2]), _whole(rewriter, *words[2:])]
    columns = concatenate(rewriter, [reshape(rewriter, value, (blocks, 1)) for value in drawn], 1)
    flat = leading_slice(rewriter, reshape(rewriter, columns, (blocks * per_block,)), (count,))
    after = _sum128(rewriter, low, high, constant(rewriter, blocks, tensor_of(low)))
    return list(after[: len(state) - 1]), reshape(rewriter, flat, shape)


def _philox_rounds(rewriter: Rewriter, words: list[Value], key: list[Value]) -> list[Value]:
    type = tensor_of(words[0])
    for iteration in range(_PHILOX_ROUNDS):
        if iteration:
            steps = [constant(rewriter, step, tensor_of(key[0])) for step in _PHILOX_STEPS]
            key = [elementwise(rewriter, "add", word, step) for word, step in zip(key, steps, strict=True)]
        (high0, low0), (high1, low1) = (
            _product(rewriter, words[at], factor) for at, factor in zip((0, 2), _PHILOX_FACTORS, strict=True)
        )
        one = elementwise(rewriter, "xor", high1, words[1])
        other = elementwise(rewriter, "xor", high0, words[3])
        keys = [broadcast(rewriter, word, type.shape) for word in key]
        words = [
            elementwise(rewriter, "xor", one, keys[0]),
            low1,
            elementwise(rewriter, "xor", other, keys[1]),
            low0,
        ]
    return words


def _threefry(rewriter: Rewriter, state: list[Value], shape: tuple[int, ...], width: int) -> tuple[list[Value], Value]:
    """ThreeFry: the first and the second word of a block are neighbours along the halved axis, for 32-bit numbers."""
    given, shape = shape, shape or (1,)
    axis = _halved_axis(shape) if width == 1 else 0
    half = shape if width == 2 else (*shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :])
    key, low = state
    line = TensorType((prod(half),), _U64)
    numbers = rewriter.build(Iota, iota_dimension=IntegerAttr(0), out=line).result
    counters = elementwise(rewriter, "add", numbers, broadcast(rewriter, low, line.shape))
    words = _threefry_rounds(rewriter, _halves(rewriter, counters), _halves(rewriter, key))
    if width == 2:
        drawn = _whole(rewriter, *words)
    else:
        apart = (*half[: axis + 1], 1, *half[axis + 1 :])
        pairs = concatenate(rewriter, [reshape(rewriter, word, apart) for word in words], axis + 1)
        whole = (*half[:axis], 2 * half[axis], *half[axis + 1 :])
        drawn = leading_slice(rewriter, reshape(rewriter, pairs, whole), shape)
    after = elementwise(rewriter, "add", low, constant(rewriter, prod(half), tensor_of(low)))
    return [after], reshape(rewriter, drawn, given)


def _halved_axis(shape: tuple[int, ...]) -> int:
    """The first axis of even size, else the first of the largest ones. Raises UndecidedError if symbolic sizes decide
    it.
    """
    for axis, size in enumerate(shape if len(shape) > 1 else ()):
        if isinstance(size % 2, Dim):
            raise UndecidedError(f"whether {size} is even, and its axis halved, depends on the sizes of a call")
        if size % 2 == 0:
            return axis
    return shape.index(max(shape)) if len(shape) > 1 else 0


def _threefry_rounds(rewriter: Rewriter, words: Sequence[Value], key: Sequence[Value]) -> list[Value]:
    type = tensor_of(words[0])
    parity = constant(rewriter, _THREEFRY_PARITY, tensor_of(key[0]))
    last = elementwise(rewriter, "xor", elementwise(rewriter, "xor", *key), parity)
    keys = [broadcast(rewriter, word, type.shape) for word in (*key, last)]
    x, y = (elementwise(rewriter, "add", word, own) for word, own in zip(words, keys, strict=False))
    for iteration in range(5):
        for rotation in _THREEFRY_ROTATIONS[iteration % 2]:
            x = elementwise(rewriter, "add", x, y)
            left = elementwise(rewriter, "shift_left", y, constant(rewriter, rotation, type))
            right = elementwise(rewriter, "shift_right_logical", y, constant(rewriter, 32 - rotation, type))
            y = elementwise(rewriter, "xor", elementwise(rewriter, "or", left, right), x)
        x = elementwise(rewriter, "add", x, keys[(iteration + 1) % 3])
        y = elementwise(rewriter, "add", y, keys[(iteration + 2) % 3])
        y = elementwise(rewriter, "add", y, constant(rewriter, iteration + 1, type))
    return [x, y]


# Wide integers


def _product(rewriter: Rewriter, value: Value, factor: int) -> tuple[Value, Value]:
    """The upper and the lower word of a product of 32-bit numbers."""
    wide = convert(rewriter, value, "ui64")
    low, high = _halves(rewriter, elementwise(rewriter, "multiply", wide, constant(rewriter, factor, tensor_of(wide))))
    return high, low


def _sum128(rewriter: Rewriter, low: Value, high: Value, added: Value) -> tuple[Value, Value]:
    total = elementwise(rewriter, "add", low, added)
    carry = convert(rewriter, compare(rewriter, "LT", total, low), "ui64")
    return total, elementwise(rewriter, "add", high, carry)


def _halves(rewriter: Rewriter, value: Value) -> tuple[Value, Value]:
    """The lower and the upper word."""
    shifted = elementwise(rewriter, "shift_right_logical", value, constant(rewriter, 32, tensor_of(value)))
    return convert(rewriter, value, "ui32"), convert(rewriter, shifted, "ui32")


def _whole(rewriter: Rewriter, low: Value, high: Value) -> Value:
    wide = convert(rewriter, high, "ui64")
    shifted = elementwise(rewriter, "shift_left", wide, constant(rewriter, 32, tensor_of(wide)))
    return elementwise(rewriter, "or", shifted, convert(rewriter, low, "ui64"))


# Data movement


def _word(rewriter: Rewriter, state: Value, at: int) -> Value:
    return reshape(rewriter, slice_range(rewriter, state, (at,), (at + 1,)), ())
