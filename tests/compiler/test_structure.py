"""Index maps: they name the elements that NumPy takes, and answers about them are true of each element."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
import pytest
from dots import dots
from hypothesis import given, settings
from hypothesis import strategies as st
from stablehlo_text import apply, ints, main, reduction, tensor

from orchestrion.compiler.flow import structure
from orchestrion.compiler.flow.structure import PLACING, STRUCTURES, Coordinates, structure_of
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.ir.dims import evaluate
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.kernel.elements.elemental import ELEMENT_RULES
from orchestrion.compiler.stablehlo.ops.base import tensor_of
from orchestrion.compiler.stablehlo.ops.elementwise import Elementwise

Array = np.ndarray[Any, Any]
SHAPES = st.lists(st.sampled_from([1, 1, 2, 3, 4]), max_size=4).map(tuple)


def points(shape: Sequence[int], names: Sequence[str]) -> Iterator[tuple[tuple[int, ...], dict[str, int]]]:
    for point in np.ndindex(*shape):
        yield point, dict(zip(names, point, strict=True))


def taken(coordinates: Coordinates, array: Array, values: dict[str, int]) -> Any:
    return array[tuple(evaluate(coordinate, values) for coordinate in coordinates)]


def numbered(shape: Sequence[int]) -> Array:
    return np.arange(prod(shape)).reshape(shape)


def ops_of(text: str) -> list[Operation]:
    return [op for op in parse(text, "test.mlir").walk() if op.results]


def placing(op: str, attributes: str, shape: Sequence[int], out: Sequence[int]) -> Operation:
    """An op of one operand, the argument of a function."""
    types = [tensor(shape)], tensor(out)
    text = main([tensor(shape)], ["%r = " + apply(op, "%a0", attributes, *types)], [("%r", tensor(out))])
    return ops_of(text)[0]


@st.composite
def movements(draw: st.DrawFn) -> tuple[Operation, Array]:
    """An op that places elements, and what NumPy makes of a numbered operand."""
    shape = draw(SHAPES)
    x, rank = numbered(shape), len(shape)
    match draw(st.sampled_from(["transpose", "reshape", "broadcast", "slice", "reverse"])):
        case "transpose":
            order = draw(st.permutations(range(rank)))
            found = x.transpose(order)
            return placing("transpose", f"permutation = {ints(order)}", shape, found.shape), found
        case "reshape":
            sizes = draw(st.permutations([*shape, 1]))
            found = x.reshape(sizes if draw(st.booleans()) else [-1])
            return placing("reshape", "", shape, found.shape), found
        case "broadcast":
            out = [size if size != 1 else draw(st.integers(1, 3)) for size in shape]
            places = sorted(draw(st.permutations(range(rank + 2)))[:rank])
            whole = [2] * (rank + 2)
            for place, size in zip(places, out, strict=True):
                whole[place] = size
            lifted = x.reshape([shape[places.index(at)] if at in places else 1 for at in range(rank + 2)])
            return placing("broadcast_in_dim", f"broadcast_dimensions = {ints(places)}", shape, whole), (
                np.broadcast_to(lifted, whole)
            )
        case "slice":
            starts = [draw(st.integers(0, size - 1)) for size in shape]
            steps = [draw(st.integers(1, 2)) for _ in shape]
            found = x[tuple(slice(start, None, step) for start, step in zip(starts, steps, strict=True))]
            text = f"start_indices = {ints(starts)}, limit_indices = {ints(shape)}, strides = {ints(steps)}"
            return placing("slice", text, shape, found.shape), np.asarray(found)
        case _:
            axes = [axis for axis in range(rank) if draw(st.booleans())]
            return placing("reverse", f"dimensions = {ints(axes)}", shape, shape), np.flip(x, axes)


@settings(max_examples=200, deadline=None)
@given(movements())
def test_maps_of_movements_name_the_elements_that_numpy_takes(case: tuple[Operation, Array]) -> None:
    op, wanted = case
    (read,) = structure_of(op).reads
    x = numbered(tensor_of(op.operands[0]).shape)
    names = [structure.parallel(axis) for axis in range(wanted.ndim)]
    assert read.coordinates is not None and not read.partial
    for point, values in points(wanted.shape, names):
        assert taken(read.coordinates, x, values) == wanted[point]
    in_order = wanted.size == x.size and np.array_equal(wanted.reshape(-1), x.reshape(-1))
    assert structure.reads_in_order(op, 0) == in_order


@settings(max_examples=200, deadline=None)
@given(movements(), st.integers(1, 12))
def test_rows_are_those_that_elements_stay_in(case: tuple[Operation, Array], rows: int) -> None:
    op, wanted = case
    size = prod(tensor_of(op.operands[0]).shape)
    if size % rows or wanted.size % rows or not structure.stays_in_row(op, 0, rows):
        return
    own = np.arange(wanted.size) // (wanted.size // rows)
    np.testing.assert_array_equal(wanted.reshape(-1) // (size // rows), own)


@settings(max_examples=150, deadline=None)
@given(movements(), st.data())
def test_what_is_said_of_axes_in_memory_is_true(case: tuple[Operation, Array], data: st.DataObject) -> None:
    op, wanted = case
    value = op.results[0]
    axes = structure.axes_in_memory(value, op.operands[0])
    if axes is not None:
        shape = tensor_of(op.operands[0]).shape
        order = [axis for group in axes for axis in group]
        assert sorted(order) == list(range(len(shape)))
        np.testing.assert_array_equal(numbered(shape).transpose(order).reshape(wanted.shape), wanted)
    fastest, is_read = structure.fastest_axis(value), bool(structure.memory_reads(value))
    if is_read and fastest is not None and wanted.shape[fastest] > 1:
        assert (np.diff(wanted, axis=fastest) == 1).all()
    if wanted.ndim > 1:
        first, second = data.draw(st.permutations(range(wanted.ndim)).map(lambda order: order[:2]))
        if structure.is_one_axis(value, first, second):
            extents = wanted.shape[first], wanted.shape[second]
            lines = np.moveaxis(wanted, (first, second), (-2, -1)).reshape(-1, prod(extents))
            assert (np.diff(lines, n=2, axis=1) == 0).all()


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.data())
def test_maps_of_reductions(shape: tuple[int, ...], data: st.DataObject) -> None:
    gone = [axis for axis in range(len(shape)) if data.draw(st.booleans())]
    op = next(one for one in ops_of(reduction(shape, gone, "add", "i32", "0")) if one.name == "stablehlo.reduce")
    found, x = structure_of(op), numbered(shape)
    names = [structure.reduction(number) for number in range(len(found.reduction))]
    assert found.reads[0].coordinates is not None and found.reads[0].times == prod(found.reduction)
    for point, outer in points(found.parallel, [structure.parallel(axis) for axis in range(len(found.parallel))]):
        inner = [taken(found.reads[0].coordinates, x, outer | more) for _, more in points(found.reduction, names)]
        assert sum(inner) == np.sum(x, axis=tuple(gone))[point]


@settings(max_examples=60, deadline=None)
@given(dots().filter(lambda dot: prod(dot.out) * prod(dot.lhs) < 2000))
def test_maps_of_dots(dot: Any) -> None:
    op = next(one for one in ops_of(dot.text(["i32"] * 3)) if one.name == "stablehlo.dot_general")
    found, x, y = structure_of(op), numbered(dot.lhs), numbered(dot.rhs)
    wanted = np.einsum(dot.equation, x, y)
    assert found.parallel == dot.out
    left, right = (read.coordinates for read in found.reads)
    names = [structure.reduction(number) for number in range(len(found.reduction))]
    assert left is not None and right is not None
    for point, outer in points(found.parallel, [structure.parallel(axis) for axis in range(len(found.parallel))]):
        values = [outer | more for _, more in points(found.reduction, names)]
        assert sum(taken(left, x, one) * taken(right, y, one) for one in values) == wanted[point]


@pytest.mark.parametrize(("size", "stride", "dilation"), [(5, 1, 1), (5, 2, 1), (7, 2, 2), (6, 1, 3)])
def test_maps_of_windows(size: int, stride: int, dilation: int) -> None:
    count = (size - dilation - 1) // stride + 1
    text = f'"flow.windows"(%a0) <{{axes = {ints([0])}, sizes = {ints([2])}, strides = {ints([stride])}, '
    text += f"dilations = {ints([dilation])}}}> : ({tensor([size, 3])}) -> {tensor([count, 3, 2])}"
    op = ops_of(main([tensor([size, 3])], [f"%r = {text}"], [("%r", tensor([count, 3, 2]))]))[0]
    (read,) = structure_of(op).reads
    x = numbered([size, 3])
    assert read.coordinates is not None
    for (place, column, at), values in points([count, 3, 2], [structure.parallel(axis) for axis in range(3)]):
        assert taken(read.coordinates, x, values) == x[place * stride + at * dilation, column]


def test_each_op_of_kernels_states_its_structure() -> None:
    stated = {op.name for op in STRUCTURES}
    generators = {"stablehlo.constant", "stablehlo.iota", "flow.size"}
    elementwise = {name for name in ELEMENT_RULES if name.startswith("chlo.") or _is_elementwise(name)}
    assert set(ELEMENT_RULES) - generators - elementwise - {"flow.set_encoding"} <= stated
    assert {op.name for op in PLACING} <= stated


def _is_elementwise(name: str) -> bool:
    from orchestrion.compiler.stablehlo.ops.elementwise import OPS

    return name in OPS and issubclass(OPS[name], Elementwise)
