"""Integers of widths that a device lacks: the table of scalars against the primitives, and rewritten kernels."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scalar_cases import samples

from orchestrion.compiler.kernel.emulation.scalars import Emulator
from orchestrion.compiler.scalars.numpy_emitter import NumpyEmitter
from orchestrion.compiler.scalars.primitives import BY_OP_NAME, PRIMITIVES, Primitive
from orchestrion.schema.dtypes import BY_NAME, COMPUTED, FLOAT, SIGNED, UNSIGNED, DType

Array = np.ndarray
I1 = BY_NAME["i1"]
#: widths of integers that a device may lack together
LACKING = (frozenset({64}), frozenset({8, 16}), frozenset({8, 16, 64}))


def applications(widths: frozenset[int]) -> Iterator[tuple[Primitive, list[DType], DType]]:
    """Each primitive on emulated operands, or with an emulated result."""
    types = [dtype for dtype in COMPUTED if dtype.bits < 64 or dtype.kind != FLOAT]
    lacks = Emulator(NumpyEmitter(), widths).lacks
    for row in PRIMITIVES:
        for subject in types:
            operands = [subject if variable == "T" else I1 for variable in row.operands]
            for result in types if row.result == "U" else (subject if row.result == "T" else I1,):
                if row.accepts(operands, result) and (lacks(subject) or lacks(result)):
                    yield row, operands, result


def values(dtype: DType) -> Array:
    """The hard values of a type; of integers also random ones of every magnitude."""
    if dtype.kind not in (SIGNED, UNSIGNED):
        return samples(dtype)
    if dtype.bits == 8:
        return np.arange(256, dtype=np.uint8).view(dtype.numpy)
    random, info = np.random.default_rng(dtype.code), np.iinfo(dtype.numpy)
    more = random.integers(info.min, info.max, 64, dtype.numpy, endpoint=True)
    return np.concatenate([samples(dtype), more >> random.integers(0, dtype.bits, 64).astype(dtype.numpy)])


def defined(row: Primitive, arrays: list[Array], result: DType) -> Array:
    """Where the op has a meaning."""
    x, y = arrays[0], arrays[-1]
    if row.name in ("unchecked_divide", "unchecked_remainder"):
        wraps = (x.dtype.kind == "i") & (x == np.iinfo(x.dtype).min) & (y == ~y.dtype.type(0))
        return np.asarray((y != 0) & ~wraps)
    if row.name.startswith("unchecked_shift"):
        return np.asarray((y >= 0) & (y < 8 * y.itemsize))
    if row.name == "unchecked_convert":
        info = np.iinfo(result.numpy)
        beyond = 2.0 ** (info.bits - (info.min < 0))
        return np.asarray((np.trunc(x) >= float(info.min)) & (x < beyond))
    return np.ones(x.shape, bool)


def split(emulator: Emulator[Array], array: Array, dtype: DType) -> tuple[Array, ...]:
    """The parts of emulated values."""
    if not emulator.lacks(dtype):
        return (array,)
    if dtype.bits == 64:
        whole = array.view(np.uint64)
        return (whole & np.uint64(0xFFFFFFFF)).astype(np.uint32), (whole >> np.uint64(32)).astype(np.uint32)
    return (array.astype(np.int32 if dtype.kind == SIGNED else np.uint32),)


def joined(emulator: Emulator[Array], parts: tuple[Array, ...], dtype: DType) -> Array:
    """The values of parts, which must have the types and ranges of `scalars.py`."""
    assert tuple(BY_NAME[name].numpy for name in emulator.parts_of(dtype)) == tuple(part.dtype for part in parts)
    if not emulator.lacks(dtype):
        return parts[0]
    if dtype.bits == 64:
        low, high = (part.astype(np.uint64) for part in parts)
        return (low | high << np.uint64(32)).view(dtype.numpy)
    narrow = parts[0].astype(dtype.numpy)
    assert (narrow.astype(parts[0].dtype) == parts[0]).all()
    return narrow


def check(row: Primitive, arrays: list[Array], types: list[DType], result: DType, widths: frozenset[int]) -> None:
    inside = defined(row, arrays, result)
    arrays = [array[inside] for array in arrays]
    emulator = Emulator(NumpyEmitter(), widths)
    parts = [split(emulator, array, dtype) for array, dtype in zip(arrays, types, strict=True)]
    got, want = joined(emulator, emulator.primitive(row, parts, types, result), result), row.evaluate(arrays, result)
    wrong = np.flatnonzero((got != want) & ((got == got) | (want == want)))
    detail = [(tuple(array[i] for array in arrays), got[i], want[i]) for i in wrong[:5]]
    assert not len(wrong), f"{row.name} {types} -> {result}: (operands, got, want) {detail}"


@pytest.mark.parametrize("widths", LACKING, ids=str)
def test_an_emulated_primitive_means_what_its_row_says(widths: frozenset[int]) -> None:
    """All values of 8 bits, and hard ones of more."""
    for row, types, result in applications(widths):
        spaces = [values(dtype) for dtype in types]
        if len(spaces) == 3:
            spaces = [space[:: max(1, len(space) // 13)] for space in spaces]
        arrays = [np.ascontiguousarray(part.reshape(-1)) for part in np.meshgrid(*spaces, indexing="ij")]
        check(row, arrays, types, result, widths)


WORDS = st.integers(0, 2**64 - 1) | st.integers(0, 63).flatmap(lambda n: st.integers(0, 2 << n)) | st.builds(
    lambda high, low: (high << 32 | low) % 2**64,
    st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1]),
    st.sampled_from([0, 1, 2**16 - 1, 2**16, 2**31, 2**32 - 1]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=32), st.sampled_from(["i64", "ui64"]))
def test_arithmetic_on_pairs(numbers: list[tuple[int, int]], name: str) -> None:
    dtype = BY_NAME[name]
    patterns = [np.array(column, np.uint64).view(dtype.numpy) for column in zip(*numbers, strict=True)]
    for op in ("add", "subtract", "multiply", "unchecked_divide", "unchecked_remainder", "compare_lt", "compare_ge"):
        row, result = BY_OP_NAME[op], I1 if op.startswith("compare") else dtype
        if row.accepts([dtype, dtype], result):
            check(row, patterns, [dtype, dtype], result, frozenset({64}))
    check(BY_OP_NAME["convert"], patterns[:1], [dtype], BY_NAME["f32"], frozenset({64}))
    shift = [patterns[0], patterns[1] & dtype.numpy.type(63)]
    for op in ("left", "right_logical", "right_arithmetic"):
        check(BY_OP_NAME[f"unchecked_shift_{op}"], shift, [dtype, dtype], dtype, frozenset({64}))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-(2.0**63), 2.0**64, width=32), min_size=1, max_size=32), st.sampled_from(["i64", "ui64"]))
def test_floats_to_pairs(numbers: list[float], name: str) -> None:
    check(
        BY_OP_NAME["unchecked_convert"],
        [np.array(numbers, np.float32)],
        [BY_NAME["f32"]],
        BY_NAME[name],
        frozenset({64}),
    )
