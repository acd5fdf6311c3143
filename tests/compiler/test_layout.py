"""Encodings as text, and the memory that a tensor with one takes."""

from math import prod

import pytest

from orchestrion.compiler.flow.layout import (
    Encoding,
    EncodingError,
    Layout,
    encoded,
    encoding_of,
    layout_of,
    plain,
    problem,
    storage_bytes,
    storage_elements,
)
from orchestrion.compiler.ir.dims import symbol, typical
from orchestrion.compiler.ir.types import TensorType, scalar, tensor

LAYOUT = "#util.layout<axes = [[1], [0]], tiles = [8, 1], inner = [0]>"
ENCODING = "#util.encoding<role = lhs, batch = [], free = [0], contract = [1], sizes = [64, 7, 100]>"


def typed(shape: tuple[int, ...], encoding: str = "", element: str = "f32") -> TensorType:
    return TensorType(shape, scalar(element), encoding)


def test_plain_tensors_take_their_elements() -> None:
    assert storage_bytes(tensor((64, 100), "f64")) == 64 * 100 * 8
    assert layout_of(tensor((3,), "i8")) is None


def test_a_symbolic_encoding_takes_no_more() -> None:
    type = typed((64, 100), ENCODING)
    assert storage_elements(type) == 6400
    assert encoding_of(type) == Encoding("lhs", (), (0,), (1,), (64, 7, 100))
    with pytest.raises(EncodingError, match="has no layout yet"):
        layout_of(type)


def test_a_layout_takes_its_padding() -> None:
    type = typed((64, 100), LAYOUT)
    layout = layout_of(type)
    assert layout == Layout(((1,), (0,)), (8, 1), (0,))
    assert layout.physical_shape(type.shape) == (13, 64, 8)
    assert storage_bytes(type) == 13 * 64 * 8 * 4
    assert plain(type) == tensor((64, 100), "f32")
    assert encoded(plain(type), layout) == type


def test_groups_count_as_one_dimension() -> None:
    layout = Layout(((0,), (1, 3), (2,)), (1, 4, 3), (2, 1))
    type = encoded(tensor((2, 3, 5, 7), "i16"), layout)
    assert layout.physical_shape(type.shape) == (2, 6, 2, 3, 4)
    assert storage_bytes(type) == prod((2, 6, 2, 3, 4)) * 2
    assert encoding_of(type) == layout


def test_what_a_call_brings_is_ordered_and_not_cut() -> None:
    size = symbol("s", 1, 999)
    encoding = Encoding("rhs", (0,), (1,), (2,), (typical(size), typical(size), 8))
    type = encoded(typed((2, size, 8)), encoding.tiled((2, size, 8), 16))
    assert layout_of(type) == encoding.ordered == Layout(((0,), (2,), (1,)), (1, 1, 1), ())
    assert storage_elements(type) == 16 * size
    assert encoding.tiled((size, 30, 8), 16) == Layout(((0,), (1,), (2,)), (1, 16, 1), (1,))
    with pytest.raises(EncodingError, match=r"axes \[1\] have a dynamic size and cannot be cut into tiles"):
        encoded(typed((2, size, 8)), Layout(((0,), (1,), (2,)), (1, 16, 1), (1,)))


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("#sparse<x>", "is neither"),
        ("#util.layout<axes = [[0],[1]], tiles = [1, 1], inner = []>", "is neither"),
        ("#util.layout<axes = [[0], [01]], tiles = [1, 1], inner = []>", "is neither"),
        ("#util.layout<axes = [[0], [0]], tiles = [1, 1], inner = []>", "are not those of rank 2, each once"),
        ("#util.layout<axes = [[0]], tiles = [1], inner = []>", "are not those of rank 2, each once"),
        ("#util.layout<axes = [[0], [1]], tiles = [1], inner = []>", "2 groups of axes, 1 tiles"),
        ("#util.layout<axes = [[0], [1]], tiles = [0, 1], inner = []>", "are not between 1 and 1024"),
        ("#util.layout<axes = [[0], [1]], tiles = [1, 1025], inner = [1]>", "are not between 1 and 1024"),
        ("#util.layout<axes = [[0], [1]], tiles = [2, 1], inner = [1]>", r"must be the groups that are cut, \[0\]"),
        (ENCODING.replace("lhs", "out"), "is neither"),
        (ENCODING.replace("contract = [1]", "contract = []"), "are not those of rank 2, each once"),
        (ENCODING.replace("64, 7, 100", "64, 7"), "is neither"),
        (ENCODING.replace("64, 7, 100", "7, 64, 100"), "the free axes have 64 elements, sizes say 7"),
        (ENCODING.replace("64, 7, 100", "64, 7, 10"), "the contract axes have 100 elements, sizes say 10"),
    ],
)
def test_what_is_refused(encoding: str, message: str) -> None:
    type = typed((64, 100), encoding)
    with pytest.raises(EncodingError, match=message):
        encoding_of(type)
    assert encoding in (problem(type) or "")
    assert problem(plain(type)) is None
