"""`rng_bit_generator` as integer arithmetic: the same bits as XLA on CPU, for each algorithm.

The state is a key and a counter of 64 bits each; Philox may have a counter of 128 bits, else the key is its upper half.
Both algorithms encrypt counter, counter + 1, ...: Philox 4x32 with 10 rounds gives four words for each, ThreeFry 2x32
with 20 rounds two. `DEFAULT` is Philox. Numbers of 8 and 16 bits are the low bits of 32-bit words. Source: J. Salmon
and others, "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

from math import prod
from typing import Final

from orchestrion.compiler.ir.attributes import DialectAttr, StringAttr
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import Shape, UndecidedError, is_dynamic
from orchestrion.compiler.ir.rewriter import Rewriter
from orchestrion.compiler.ir.types import scalar
from orchestrion.compiler.stablehlo.builders.tensors import Tensor, concatenate, expansion
from orchestrion.compiler.stablehlo.ops.base import dtype_of, is_supported, tensor_of
from orchestrion.compiler.stablehlo.ops.custom_call import CustomCall
from orchestrion.schema.dtypes import SIGNED, UNSIGNED

#: Name in a `custom_call` of `rng_bit_generator` with a computed shape.
RNG_BIT_GENERATOR: Final = "stablehlo.dynamic_rng_bit_generator"
_U64: Final = scalar("ui64")
_PHILOX_ROUNDS: Final = 10
_PHILOX_FACTORS: Final = (0xD2511F53, 0xCD9E8D57)
_PHILOX_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_THREEFRY_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY: Final = 0x1BD11BDA


def expand_rng_bit_generator(op: Operation, rewriter: Rewriter) -> bool:
    """Expands the op, or a call of `RNG_BIT_GENERATOR`; skips malformed ops. Raises UndecidedError for some sizes."""
    if isinstance(op, CustomCall) and op.get("call_target_name") != StringAttr(RNG_BIT_GENERATOR):
        return False
    return expansion(_drawn, 1, 2)(op, rewriter)


def _drawn(op: Operation, state: Tensor) -> list[Tensor] | None:
    given, bits = op.get_as("rng_algorithm", DialectAttr), dtype_of(op.results[1])
    if given is None or not all(is_supported(value.type) for value in (state.value, *op.results)):
        return None
    algorithm = given.body.split()[-1]
    sizes = {"THREE_FRY": (2,), "PHILOX": (2, 3), "DEFAULT": (2, 3)}.get(algorithm, ())
    if op.results[0].type != state.type or state.type.element != _U64 or len(state.shape) != 1:
        return None
    if state.shape[0] not in sizes or bits.kind not in (SIGNED, UNSIGNED):
        return None
    words = [state.slice((at,), (at + 1,)).reshape() for at in range(state.shape[0])]
    draw = _threefry if algorithm == "THREE_FRY" else _philox
    after, drawn = draw(words, tensor_of(op.results[1]).shape, 2 if bits.bits == 64 else 1)
    drawn = drawn.convert(f"ui{bits.bits}").bitcast(bits.name)
    return [concatenate([x.reshape(1) for x in (words[0], *after)], 0), drawn]


# The algorithms. Each returns the words of the next counter, and the numbers, of `width` 32-bit words each


def _philox(state: list[Tensor], shape: Shape, width: int) -> tuple[list[Tensor], Tensor]:
    """Philox: the words of consecutive blocks follow each other."""
    per_block = 4 // width
    count = prod(shape)
    blocks = -(-count // per_block)
    key, low, high = (*state, state[0])[:3]
    wide = low.broadcast((blocks,)), high.broadcast((blocks,))
    lows, highs = _sum128(*wide, wide[0].iota(0, "ui64"))
    words = _philox_rounds([*_halves(lows), *_halves(highs)], [*_halves(key)])
    drawn = words if width == 1 else [_whole(*words[:2]), _whole(*words[2:])]
    columns = concatenate([x.reshape(blocks, 1) for x in drawn], 1)
    flat = columns.reshape(blocks * per_block).leading((count,))
    after = _sum128(low, high, low.of(blocks))
    return list(after[: len(state) - 1]), flat.reshape(*shape)


def _philox_rounds(words: list[Tensor], key: list[Tensor]) -> list[Tensor]:
    for iteration in range(_PHILOX_ROUNDS):
        if iteration:
            key = [word + step for word, step in zip(key, _PHILOX_STEPS, strict=True)]
        (low0, high0), (low1, high1) = (
            _halves(word.convert("ui64") * factor) for word, factor in zip(words[::2], _PHILOX_FACTORS, strict=True)
        )
        one, other = high1 ^ words[1], high0 ^ words[3]
        keys = [word.broadcast(one.shape) for word in key]
        words = [one ^ keys[0], low1, other ^ keys[1], low0]
    return words


def _threefry(state: list[Tensor], shape: Shape, width: int) -> tuple[list[Tensor], Tensor]:
    """ThreeFry: the first and the second word of a block are neighbours along the halved axis, for 32-bit numbers."""
    given, shape = shape, shape or (1,)
    axis = _halved_axis(shape) if width == 1 else 0
    half = shape if width == 2 else (*shape[:axis], -(-shape[axis] // 2), *shape[axis + 1 :])
    key, low = state
    start = low.broadcast((prod(half),))
    words = _threefry_rounds(*_halves(start.iota(0, "ui64") + start), *_halves(key))
    if width == 2:
        drawn = _whole(*words)
    else:
        pairs = concatenate([word.reshape(*half[: axis + 1], 1, *half[axis + 1 :]) for word in words], axis + 1)
        drawn = pairs.reshape(*half[:axis], 2 * half[axis], *half[axis + 1 :]).leading(shape)
    return [low + prod(half)], drawn.reshape(*given)


def _halved_axis(shape: Shape) -> int:
    """The first axis of even size, else the first of the largest. Raises UndecidedError if sizes do not decide it."""
    for axis, size in enumerate(shape if len(shape) > 1 else ()):
        if is_dynamic(size % 2):
            raise UndecidedError(f"whether {size} is even, and its axis halved, depends on the sizes of a call")
        if size % 2 == 0:
            return axis
    return shape.index(max(shape)) if len(shape) > 1 else 0


def _threefry_rounds(x: Tensor, y: Tensor, *key: Tensor) -> tuple[Tensor, Tensor]:
    keys = [word.broadcast(x.shape) for word in (*key, key[0] ^ key[1] ^ _THREEFRY_PARITY)]
    x, y = x + keys[0], y + keys[1]
    for iteration in range(5):
        for rotation in _THREEFRY_ROTATIONS[iteration % 2]:
            x = x + y
            y = (y << rotation | y >> 32 - rotation) ^ x
        x = x + keys[(iteration + 1) % 3]
        y = y + keys[(iteration + 2) % 3] + (iteration + 1)
    return x, y


# Wide integers, as the lower and the upper word


def _sum128(low: Tensor, high: Tensor, added: Tensor) -> tuple[Tensor, Tensor]:
    total = low + added
    return total, high + (total < low).convert("ui64")


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    high = x >> 32
    return x.convert("ui32"), high.convert("ui32")


def _whole(low: Tensor, high: Tensor) -> Tensor:
    return high.convert("ui64") << 32 | low.convert("ui64")
