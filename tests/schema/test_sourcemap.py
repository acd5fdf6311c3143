"""Source maps: looking up locations, and a refusal for each rule."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrion.schema import sourcemap
from orchestrion.schema.errors import ModuleError
from orchestrion.schema.sourcemap import BINDINGS, OPS

LOCATIONS = [(0, 0, "a.py:1"), (0, 8, "b.py:2"), (2, 4, "a.py:1"), (2, 5, "größe.py:3")]


def test_finds_the_last_row_at_or_before_the_pc() -> None:
    found = sourcemap.decode(memoryview(sourcemap.encode(LOCATIONS)))
    assert found.texts == ["a.py:1", "b.py:2", "größe.py:3"]
    cases = [(0, 0), (0, 7), (0, 8), (0, 10**6), (1, 0), (2, 0), (2, 3), (2, 4), (2, 5), (3, 0)]
    assert [found.find(*case) for case in cases] == [
        "a.py:1", "a.py:1", "b.py:2", "b.py:2", None, None, None, "a.py:1", "größe.py:3", None,
    ]  # fmt: skip


def test_entries_have_the_ops_they_compute() -> None:
    rows = [*LOCATIONS, (OPS + 1, 0, "stablehlo.dot_general stablehlo.add"), (OPS + 1, 2, "stablehlo.tanh")]
    found = sourcemap.decode(memoryview(sourcemap.encode(rows)))
    assert found.source_ops(1, 0) == ("stablehlo.dot_general", "stablehlo.add")
    assert found.source_ops(1, 2) == ("stablehlo.tanh",)
    assert found.source_ops(1, 1) == found.source_ops(0, 0) == found.source_ops(2, 0) == ()
    assert found.find(2, 10**6) == "größe.py:3" and found.find(3, 0) is None


def test_entries_have_the_tensors_in_their_bindings() -> None:
    rows = [(OPS + 1, 0, "stablehlo.tanh"), (BINDINGS + 1, 0, "tensor<4xf32>; none"), (BINDINGS + 2, 0, "")]
    found = sourcemap.decode(memoryview(sourcemap.encode(rows)))
    assert found.binding_types(1, 0) == ("tensor<4xf32>", "none")
    assert found.binding_types(1, 1) == found.binding_types(2, 0) == found.binding_types(0, 0) == ()
    assert found.source_ops(1, 0) == ("stablehlo.tanh",)


def test_a_nul_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="NUL"):
        sourcemap.encode([(0, 0, "a\0b")])


def test_an_empty_map_finds_nothing() -> None:
    assert sourcemap.decode(memoryview(sourcemap.encode([]))).find(0, 0) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1234567", "7 bytes, its head takes 8"),
        (struct.pack("<II", 2**32 - 1, 0), "8 bytes, its head says"),
        (struct.pack("<II", 0, 1) + b"ab", "10 bytes, its head says 9"),
        (struct.pack("<II", 0, 2) + b"a\xff", r"not UTF-8: .*at byte 9"),
        (struct.pack("<II3I", 1, 1, 0, 0, 1) + b"a", "location 1 of 1"),
        (struct.pack("<II6I", 2, 1, 1, 4, 0, 1, 4, 0) + b"a", "row 1 does not ascend"),
        (struct.pack("<II6I", 2, 1, 1, 4, 0, 0, 9, 0) + b"a", "row 1 does not ascend"),
    ],
)
def test_damage_is_named(data: bytes, message: str) -> None:
    with pytest.raises(ModuleError, match=message):
        sourcemap.decode(memoryview(data))


@given(st.binary(max_size=64), st.integers(0, 4))
def test_any_bytes_give_a_map_or_the_one_error(tail: bytes, count: int) -> None:
    data = struct.pack("<II", count, max(len(tail) - 12 * count, 0)) + tail
    try:
        found = sourcemap.decode(memoryview(data))
    except ModuleError:
        return
    found.find(0, 0)
