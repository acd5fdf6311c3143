"""Positions as sums, what is made in front of loops, and reductions as nests of loops."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.ir.core import Block, Operation, Value
from orchestrion.compiler.ir.types import scalar
from orchestrion.compiler.kernel.code.affine import aligned, split, sum_of
from orchestrion.compiler.kernel.code.builder import KernelBuilder
from orchestrion.compiler.kernel.dialect import SCALARS, For, LoadLanes, MultiplyAdd, is_vector
from orchestrion.compiler.kernel.elements.index import delinearize, linearize
from orchestrion.compiler.kernel.elements.loops import BLOCK, Nest, Reduction, Scalars, nest_iterations
from orchestrion.compiler.kernel.machine import Machine, Quirks
from orchestrion.compiler.kernel.reduction_limits import max_loop_iterations
from orchestrion.schema.quirks import LLVMPIPE_ITERATIONS


@pytest.fixture
def b() -> KernelBuilder:
    return KernelBuilder(Block([scalar("ui32")]))


def value(b: KernelBuilder) -> Value:
    """An index that nobody knows."""
    return b.entry.arguments[0]


@pytest.mark.parametrize("shape", [(5,), (4, 5), (3, 4, 5), (2, 1, 7)], ids=str)
def test_what_was_divided_goes_back_together(b: KernelBuilder, shape: Sequence[int]) -> None:
    x = value(b)
    assert linearize(b, delinearize(b, x, tuple(shape)), tuple(shape)) is x


def test_a_window_that_counts_on_into_the_next_axis_is_one_number(b: KernelBuilder) -> None:
    q, first = value(b), b.workgroup_id()
    column = b.op("add", b.op("multiply", first, b.index(2)), b.op("unchecked_divide", q, b.index(3)))
    place = linearize(b, [column, b.op("unchecked_remainder", q, b.index(3))], (9, 3))
    assert dict(sum_of(place).terms) == {first: 6, q: 1}


def test_a_sum_whose_parts_are_shared_takes_no_time(b: KernelBuilder) -> None:
    """A sum of 2^60 terms, if each was counted."""
    x = value(b)
    for _ in range(60):
        x = b.op("add", x, x)
    assert sum_of(b.op("add", x, b.index(1))) == ({}, 1)


@pytest.mark.parametrize(
    ("times", "more", "tile", "place"), [(8, 3, 4, 3), (4, 4, 4, 0), (12, 6, 4, 2), (6, 0, 4, None), (1, 0, 8, None)]
)
def test_a_place_in_a_tile_is_seen(b: KernelBuilder, times: int, more: int, tile: int, place: int | None) -> None:
    found = aligned(b, b.op("add", b.op("multiply", value(b), b.index(times)), b.index(more)), tile)
    assert (None if found is None else found[1]) == place


def test_no_place_is_seen_where_something_is_subtracted(b: KernelBuilder) -> None:
    down = b.op("multiply", value(b), b.index((1 << 32) - 4))
    assert aligned(b, b.op("add", down, b.index(40)), 4) is None


@pytest.mark.parametrize(("times", "more"), [(6, 1), (4, 2), (2, 1), (3, 0), (1, 5)])
def test_a_split_is_a_division(b: KernelBuilder, times: int, more: int) -> None:
    x = b.index(7)
    got = split(b, b.op("add", b.op("multiply", x, b.index(times)), b.index(more)), 4)
    assert [b.known(part) for part in got] == list(divmod(7 * times + more, 4))


def test_what_stands_still_is_in_front_of_loops_and_inside_branches(b: KernelBuilder) -> None:
    x = value(b)
    outer = b.begin_loop(b.index(0), x, b.index(1), [])
    branch = b.begin_if(b.op("compare_lt", outer.index, b.index(3)))
    inner = b.begin_loop(b.index(0), x, b.index(1), [])
    still, moves = b.op("multiply", x, x), b.op("multiply", outer.index, x)
    inside = b.op("add", inner.index, moves)
    again = b.op("multiply", x, x)
    parents = [made.defining_op.parent for made in (still, moves, inside)]  # type: ignore[union-attr]
    assert again is still and parents == [branch.arms[0], branch.arms[0], inner.block]
    b.end_loop(inner, [])
    b.end_if(branch)
    b.end_loop(outer, [])


# nests


def counting(b: KernelBuilder, sizes: tuple[int, ...], seen: list[tuple[Value, ...]]) -> Reduction:
    """A sum of ones that tells where it was asked for elements."""

    def start() -> Scalars:
        yield from ()
        return [b.const(0.0, "f32")]

    def element(place: Sequence[Value]) -> Scalars:
        yield from ()
        seen.append(tuple(place))
        return [b.const(1.0, "f32")]

    def combine(x: Sequence[Value], y: Sequence[Value]) -> Scalars:
        yield from ()
        return [b.op("add", x[0], y[0])]

    return Reduction(sizes, start, element, combine, [b.const(0.0, "f32")])


def drained(scalars: Scalars) -> list[Value]:
    with pytest.raises(StopIteration) as end:
        next(scalars)
    found: list[Value] = end.value.value
    return found


def longest_block(block: Block, b: KernelBuilder) -> int:
    """Turns of the innermost loops around one accumulator, at most."""
    loops = [op for outer in block for op in outer.walk() if isinstance(op, For)]
    innermost = [op for op in loops if not any(isinstance(inner, For) for inner in op.body.block)]
    return max(b.known(op.upper) or BLOCK for op in innermost)  # type: ignore[type-var, return-value]


@pytest.mark.parametrize("sizes", [(5,), (64,), (65,), (1000,), (7, 21), (3, 3, 64), (300, 3), (2, 5000)], ids=str)
def test_a_nest_has_a_loop_per_axis_and_blocks(b: KernelBuilder, sizes: tuple[int, ...]) -> None:
    seen: list[tuple[Value, ...]] = []
    nest = Nest(b, counting(b, sizes, seen))
    limited = Machine(quirks=Quirks(max_loop_iterations=LLVMPIPE_ITERATIONS))
    assert nest_iterations(sizes) <= max_loop_iterations(limited)
    drained(nest.axis(0, (), [b.const(0.0, "f32")]))
    assert len(seen) <= 4 and all(len(place) == len(sizes) for place in seen)
    assert longest_block(b.entry, b) <= BLOCK
    assert not [op for top in b.entry for op in top.walk() if "divide" in op.name or "remainder" in op.name]


# what convolutions and products become


def bodies(function: Any, target: str, *shapes: tuple[int, ...]) -> list[Operation]:
    text = jax.jit(function).lower(*[jnp.zeros(shape, jnp.float32) for shape in shapes]).as_text()
    module = Compilation(targets=(target,)).module(text, "executables")
    return [op for op in module.walk() if op.name == "ll_seq.lowered_entry"] or [
        op for op in module.walk() if op.name == "ll_seq.entry"
    ]


def convolution(stride: int, order: tuple[str, str, str]) -> Any:
    return lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=order)


@pytest.mark.parametrize("target", ["opencl", "spirv", "cpu"])
@pytest.mark.parametrize(
    ("stride", "order", "shapes"),
    [
        (1, ("NHWC", "HWIO", "NHWC"), ((1, 14, 14, 64), (3, 3, 64, 32))),
        (2, ("NHWC", "HWIO", "NHWC"), ((1, 32, 32, 3), (7, 7, 3, 64))),
        (1, ("NCHW", "OIHW", "NCHW"), ((1, 64, 14, 14), (32, 64, 3, 3))),
    ],
    ids=["3x3", "7x7", "features first"],
)
def test_a_convolution_divides_in_no_loop(target: str, stride: int, order: Any, shapes: Any) -> None:
    """The padded image is a dispatch of its own, as are transpositions; the dot finds its places by adding."""
    found = bodies(convolution(stride, order), target, *shapes)
    *others, dot = found if order[2] == "NHWC" else [found[-1], *found[:-1]]  # the result is transposed last
    assert len(found) == (2 if order[2] == "NHWC" else 4)
    loops = [op for op in dot.walk() if isinstance(op, For)]
    assert loops
    winograd = target == "cpu" and stride == 1  # divides once per square of results
    if winograd:
        loops = [loop for loop in loops if any(isinstance(op, MultiplyAdd) for op in loop.body.block.ops)]
        assert loops
    loops += [op for other in others for op in other.walk() if isinstance(op, For)]  # native code copies whole lines
    inside = [op.name for loop in loops for op in loop.body.block.ops]
    assert not [name for name in inside if "divide" in name or "remainder" in name]


def test_opencl_computes_neighbouring_columns_in_vectors() -> None:
    (dot,) = bodies(lambda x, y: x @ y, "opencl", (24, 40), (40, 33))
    assert sum(isinstance(op, LoadLanes) for op in dot.walk()) == 1
    products = [op for op in dot.walk() if isinstance(op, SCALARS["multiply"]) and is_vector(op.output.type)]
    assert len(products) == 8
