"""Attributes and names of library calls are written and read back, and invalid ones are refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrion.schema.library_call import (
    KINDS,
    attributes_bytes,
    check_attributes,
    kind_of,
    name_problem,
    read_attributes,
)
from orchestrion.schema.tensor_shapes import ShapeError

INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)
VALUES = st.one_of(
    st.booleans(),
    INTS,
    FLOATS,
    st.text(st.characters(exclude_categories=["Cs"])),
    *(st.lists(kind, min_size=1).map(tuple) for kind in (st.booleans(), INTS, FLOATS)),
)


@given(st.dictionaries(st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,9}\Z"), VALUES))
def test_what_is_written_is_read_back(given_: dict[str, object]) -> None:
    attributes = tuple(sorted(given_.items()))
    check_attributes(attributes)  # type: ignore[arg-type]
    data = attributes_bytes(attributes)  # type: ignore[arg-type]
    found, end = read_attributes(b"xy" + data + b"z", 2)
    assert end == 2 + len(data) and found == attributes
    assert [type(value) for _, value in found] == [type(value) for _, value in attributes]


def test_every_kind_of_value() -> None:
    values = [True, 1, 1.0, "1", (1,), (1.0,), (True,)]
    assert [kind_of(value) for value in values] == list(KINDS)
    assert kind_of(()).name == "list of ints"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "9223372036854775808 does not fit 64 bits"),
        ((0, -(2**63) - 1), "-9223372036854775809 does not fit 64 bits"),
        ((1, 1.0), "(1, 1.0) is no value of an attribute: bool, int, float, string, list of ints"),
        (None, "None is no value"),
        ([1], "[1] is no value"),
        (b"x", "b'x' is no value"),
        ("\udc80", "a string that is no UTF-8"),
    ],
)
def test_values_that_are_none(value: object, message: str) -> None:
    with pytest.raises(ShapeError) as refused:
        kind_of(value)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", ["blas.gemm", "_a.B_1"])
def test_names(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize("name", ["", "gemm", "a.b.c", ".b", "a.", "a b.c", "a.b\n", "1a.b", "é.b", "a.b()", "../a.b"])
def test_names_that_are_none(name: str) -> None:
    assert name_problem(name) == f"{name!r} is not the name of a library function (LIBRARY.FUNCTION)"


def test_long_names() -> None:
    assert name_problem("a." + "b" * 253) is None
    assert name_problem("a." + "b" * 254) == "a name of 256 characters, at most 255 are possible"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack("<HI1sB", 1, 1, b"a", 99), "attribute 'a' has a value of unknown kind 99"),
        (struct.pack("<HI1sBB", 1, 1, b"a", 1, 2), "a bool is 2"),
        (struct.pack("<HI1sBI2s", 1, 1, b"a", 7, 2, b"\1\7"), "a bool is 7"),
        (struct.pack("<HI1s", 1, 1, b"\xff"), "a string that is no UTF-8"),
    ],
)
def test_bytes_that_are_none(data: bytes, message: str) -> None:
    with pytest.raises(ShapeError) as refused:
        read_attributes(data, 0)
    assert message in str(refused.value)


@pytest.mark.parametrize("value", [True, 7, 0.5, "text", (1, 2), (0.5,), (True, False)])
def test_every_truncation_is_refused(value: object) -> None:
    data = attributes_bytes((("key", value),))  # type: ignore[arg-type]
    for length in range(len(data)):
        with pytest.raises(struct.error):
            read_attributes(data[:length], 0)


@pytest.mark.parametrize("tag", [4, 5, 6, 7])
def test_great_counts_take_no_memory(tag: int) -> None:
    with pytest.raises(struct.error):
        read_attributes(struct.pack("<HI1sBI", 1, 1, b"a", tag, 2**32 - 1), 0)
