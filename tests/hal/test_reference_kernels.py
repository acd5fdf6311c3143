"""The reference device's structural ops against JAX, over random shapes: odd, with zeros, of rank 0."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrion.hal.backend import Entry
from orchestrion.hal.device import Device
from orchestrion.hal.libraries import register, registry
from orchestrion.hal.reference.driver import ReferenceDriver
from orchestrion.schema.dtypes import BY_NAME, BY_NUMPY
from orchestrion.schema.tensor_bytecode import FORMAT, Body, EntryCode
from orchestrion.schema.tensor_encoding import encode
from orchestrion.schema.tensor_shapes import TensorType

jax = pytest.importorskip("jax")
lax = jax.lax

FAST = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SIZES = st.sampled_from([0, 1, 2, 3, 5, 7])
SHAPES = st.lists(SIZES, max_size=4).map(tuple)
NUMBERS = ["i8", "i32", "ui16", "i64", "f32", "f64"]

Run = Callable[..., list[np.ndarray]]


@pytest.fixture(scope="module")
def run():
    """`run(build, *arrays)`: `build(code, *values)` returns the values to store. Runs the code and returns their
    arrays.
    """
    driver = ReferenceDriver()
    with Device.of(driver.open(driver.devices()[0])) as device:
        yield lambda build, *arrays: run_on(device, build, *arrays)


def dirty(shape: Any, dtype: Any = float) -> np.ndarray:
    """Makes `numpy.empty` return memory with nonzero contents, so that an element that a kernel omits is a wrong
    result.
    """
    return np.frombuffer(b"\xa5" * (prod(np.atleast_1d(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape).copy()


def run_on(device: Device, build: Callable[..., tuple[int, ...]], *arrays: np.ndarray) -> list[np.ndarray]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(np, "empty", dirty)
        return _run_on(device, build, *arrays)


def _run_on(device: Device, build: Callable[..., tuple[int, ...]], *arrays: np.ndarray) -> list[np.ndarray]:
    code = EntryCode(len(arrays) + 8)
    values = [
        code.emit("load_input", (), binding, TensorType(BY_NUMPY[array.dtype], array.shape))[0]
        for binding, array in enumerate(arrays)
    ]
    stored = build(code, *values)
    for position, value in enumerate(stored):
        code.emit("store_output", (value,), len(arrays) + position)
    entry = Entry("f", code.accesses, 0, (1, 1, 1))
    executable = device.create_executable(FORMAT, memoryview(encode([code])), (entry,))
    buffers = [device.allocator.allocate(length) for _, length in code.accesses]
    for array, buffer in zip(arrays, buffers, strict=False):
        buffer.write(np.frombuffer(array.tobytes(), np.uint8))
    commands = device.create_command_buffer(len(buffers))
    commands.dispatch(executable, 0, (1, 1, 1), [(slot, 0, buffer.size) for slot, buffer in enumerate(buffers)])
    commands.finish()
    device.queue.execute(commands, buffers)
    results = []
    for position, value in enumerate(stored):
        type = code.values[value]
        raw = np.empty(type.bytes, np.uint8)
        buffers[len(arrays) + position].read(raw)
        results.append(np.frombuffer(raw.tobytes(), type.dtype.numpy).reshape(type.shape))
    for item in (*buffers, commands, executable):
        item.release()
    return results


def random_array(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng([seed, *shape])
    kind = BY_NAME[dtype].numpy
    if kind.kind == "f":
        return random.normal(size=shape).astype(kind)
    if kind.kind == "b":
        return random.random(shape) < 0.5
    return random.integers(-100 if kind.kind == "i" else 0, 100, shape).astype(kind)


def same(got: np.ndarray, want: object) -> None:
    __tracebackhide__ = True
    want = np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)


def tree_sum(dtype: str) -> Body:
    return body_of(dtype, lambda body, x, y: (body.emit("add", (x, y))[0],))


def body_of(dtype: str, build: Callable[..., tuple[int, ...]], *more: str) -> Body:
    types = [TensorType(BY_NAME[name], ()) for name in (dtype, *more)]
    body = Body((*types, *types))
    body.finish(build(body, *range(2 * len(types))))
    return body


@given(st.data())
@FAST
def test_broadcast_in_dim(run, data):
    shape = data.draw(SHAPES)
    axes = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(shape))))) if shape else ()))
    x = random_array(tuple(data.draw(st.sampled_from([1, shape[axis]])) for axis in axes), "f32")
    (got,) = run(lambda code, v: tuple(code.emit("broadcast_in_dim", (v,), shape, axes)), x)
    same(got, lax.broadcast_in_dim(x, shape, axes))


def test_broadcast_to_axes_in_another_order(run):
    x = random_array((2, 3), "i32")
    (got,) = run(lambda code, v: tuple(code.emit("broadcast_in_dim", (v,), (3, 4, 2), (2, 0))), x)
    same(got, np.broadcast_to(x.T[:, None, :], (3, 4, 2)))


@given(st.data())
@FAST
def test_transpose_reverse_reshape_and_slice(run, data):
    x = random_array(data.draw(SHAPES), data.draw(st.sampled_from(["i8", "f64", "i1"])))
    order = tuple(data.draw(st.permutations(range(x.ndim))))
    axes = tuple(data.draw(st.sets(st.sampled_from(range(x.ndim)))) if x.ndim else ())
    ends = [sorted((data.draw(st.integers(0, size)), data.draw(st.integers(0, size)))) for size in x.shape]
    starts, limits = tuple(low for low, _ in ends), tuple(high for _, high in ends)
    strides = tuple(data.draw(st.integers(1, 3)) for _ in x.shape)

    def build(code, v):
        (turned,) = code.emit("transpose", (v,), order)
        return (
            turned,
            *code.emit("reverse", (v,), axes),
            *code.emit("slice", (v,), starts, limits, strides),
            *code.emit("reshape", (turned,), (1, x.size)),
        )

    turned, back, part, flat = run(build, x)
    same(turned, lax.transpose(x, order))
    same(back, lax.rev(x, axes))
    same(part, lax.slice(x, starts, limits, strides))
    same(flat, lax.reshape(lax.transpose(x, order), (1, x.size)))


@given(st.data())
@FAST
def test_pad(run, data):
    x = random_array(data.draw(SHAPES), "i32")
    interior = [data.draw(st.integers(0, 2)) for _ in x.shape]
    spans = [size + max(size - 1, 0) * between for size, between in zip(x.shape, interior, strict=True)]
    low = [data.draw(st.integers(-span, 3)) for span in spans]
    high = [data.draw(st.integers(-span - min(first, 0), 3)) for span, first in zip(spans, low, strict=True)]
    (got,) = run(
        lambda code, v: tuple(
            code.emit(
                "pad",
                (v, *code.emit("constant", (), TensorType(BY_NAME["i32"], ()), b"\7\0\0\0")),
                tuple(low),
                tuple(high),
                tuple(interior),
            )
        ),
        x,
    )
    same(got, lax.pad(x, np.int32(7), list(zip(low, high, interior, strict=True))))


@FAST
@given(data=st.data())
def test_windows(run, data):
    """Windows of an array in memory, of a reversed view and of a broadcast view; also where no window fits."""
    shape = data.draw(SHAPES)
    x = np.arange(prod(shape), dtype=np.int32).reshape(shape)
    axes = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(0, len(shape)))]
    numbers = [tuple(data.draw(st.integers(1, 4)) for _ in axes) for _ in range(3)]
    wide = (3, *shape)
    turned, repeated, plain = run(
        lambda code, v: tuple(
            code.emit("windows", (base,), tuple(axis + more for axis in axes), *numbers)[0]
            for base, more in (
                (code.emit("reverse", (v,), tuple(range(len(shape))))[0], 0),
                (code.emit("broadcast_in_dim", (v,), wide, tuple(range(1, len(wide))))[0], 1),
                (v, 0),
            )
        ),
        x,
    )
    np.testing.assert_array_equal(plain, windows_of(x, axes, *numbers))
    np.testing.assert_array_equal(turned, windows_of(np.flip(x), axes, *numbers))
    for one in repeated:
        np.testing.assert_array_equal(one, plain)


def test_steps_of_any_size_where_there_is_no_window(run):
    x = np.zeros((0, 5), np.int32)
    numbers = ((0, 1), (2**31, 7), (2**62, 2**62), (2**62, 2**62))
    (got,) = run(lambda code, v: (code.emit("reshape", code.emit("windows", (v,), *numbers), (0,))[0],), x)
    assert got.shape == (0,)


def windows_of(x, axes, sizes, strides, dilations):
    """The same, by gathering along one axis after the other."""
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations, strict=True):
        starts = range(0, x.shape[axis] - (size - 1) * dilation, stride)
        places = np.array([[start + at * dilation for at in range(size)] for start in starts], int)
        x = np.moveaxis(np.take(x, places.reshape(-1, size), axis), axis + 1, -1)
    return x


@given(st.data())
@FAST
def test_concatenate(run, data):
    shape = data.draw(st.lists(SIZES, min_size=1, max_size=3))
    axis = data.draw(st.integers(0, len(shape) - 1))
    arrays = []
    for seed in range(data.draw(st.integers(1, 4))):
        shape[axis] = data.draw(SIZES)
        arrays.append(random_array(tuple(shape), "i16", seed))
    (got,) = run(lambda code, *values: tuple(code.emit("concatenate", values, axis)), *arrays)
    same(got, lax.concatenate(arrays, axis))


@pytest.mark.parametrize("dtype", ["i8", "i32", "ui8", "ui64", "f32", "f64"])
def test_iota(run, dtype):
    type = TensorType(BY_NAME[dtype], (3, 300, 2))
    got, empty = run(
        lambda code: (
            *code.emit("iota", (), type, 1),
            *code.emit("iota", (), TensorType(BY_NAME[dtype], (0, 2)), 0),
        )
    )
    same(got, lax.broadcasted_iota(BY_NAME[dtype].numpy, (3, 300, 2), 1))
    assert empty.shape == (0, 2)


@given(st.data())
@FAST
def test_dot_general(run, data):
    dtype = data.draw(st.sampled_from(NUMBERS))
    batch = data.draw(st.lists(SIZES, max_size=2))
    contract = data.draw(st.lists(SIZES, max_size=2))
    free = [data.draw(st.lists(SIZES, max_size=2)) for _ in range(2)]
    operands, numbers = [], []
    for seed, own in enumerate(free):
        sizes = [*batch, *contract, *own]
        order = data.draw(st.permutations(range(len(sizes))))
        place = [order.index(axis) for axis in range(len(sizes))]
        operands.append(random_array(tuple(sizes[axis] for axis in order), dtype, seed))
        numbers.append((tuple(place[: len(batch)]), tuple(place[len(batch) : len(batch) + len(contract)])))
    (left_batch, left), (right_batch, right) = numbers

    def build(code, x, y):
        return tuple(code.emit("dot_general", (x, y), left_batch, right_batch, left, right, BY_NAME[dtype]))

    (got,) = run(build, *operands)
    want = lax.dot_general(*operands, ((left, right), (left_batch, right_batch)), preferred_element_type=got.dtype)
    assert got.shape == want.shape
    if got.dtype.kind == "f":
        depth, epsilon = max(prod(contract), 1), float(np.finfo(got.dtype).eps)
        np.testing.assert_allclose(got, want, rtol=8 * epsilon, atol=8 * depth * epsilon)
    else:
        same(got, want)


def test_dot_general_in_the_wider_of_both_types(run):
    x, y = random_array((5, 300), "i8"), random_array((300, 4), "i8", 1)
    product = ((), (), (1,), (0,))
    wide, narrow = run(
        lambda code, a, b: (
            *code.emit("dot_general", (a, b), *product, BY_NAME["i32"]),
            *code.emit("dot_general", (a, b), *product, BY_NAME["i8"]),
        ),
        x,
        y,
    )
    exact = x.astype(object) @ y.astype(object)
    assert (wide == exact).all() and np.abs(exact).max() > 127
    same(narrow, lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=np.int8))
    f = random_array((6, 50), "f64")
    (rounded,) = run(lambda code, a: tuple(code.emit("dot_general", (a, a), (), (), (1,), (1,), BY_NAME["f32"])), f)
    same(rounded, (f @ f.T).astype(np.float32))
    bits = [random_array((3, 4), "i1"), random_array((4, 5), "i1", 1)]
    (hit,) = run(lambda code, a, b: tuple(code.emit("dot_general", (a, b), *product, BY_NAME["i1"])), *bits)
    same(hit, (bits[0].astype(int) @ bits[1].astype(int)) > 0)


def test_dot_general_of_views_that_blas_cannot_take(run):
    x = random_array((9, 8), "f32")

    def build(code, v):
        (part,) = code.emit("slice", (v,), (0, 0), (9, 8), (2, 2))
        (row,) = code.emit("slice", (v,), (0, 0), (1, 8), (1, 2))
        (wide,) = code.emit("broadcast_in_dim", (row,), (5, 4), (0, 1))
        return tuple(code.emit("dot_general", (part, wide), (), (), (1,), (1,), BY_NAME["f32"]))

    (got,) = run(build, x)
    np.testing.assert_allclose(got, x[::2, ::2] @ np.broadcast_to(x[:1, ::2], (5, 4)).T, rtol=1e-5, atol=1e-5)


@given(st.data())
@FAST
def test_reduce_with_one_operand(run, data):
    dtype = data.draw(st.sampled_from(NUMBERS))
    name = data.draw(st.sampled_from(["add", "multiply", "maximum", "minimum"]))
    x = random_array(data.draw(SHAPES.filter(len)), dtype)
    axes = tuple(data.draw(st.sets(st.sampled_from(range(x.ndim)), min_size=1)))
    start = np.array(3, x.dtype)

    def build(code, v):
        body = body_of(dtype, lambda b, a, e: tuple(b.emit(name, (a, e))))
        (initial,) = code.emit("constant", (), TensorType(BY_NAME[dtype], ()), start.tobytes())
        return tuple(code.emit("reduce", (v, initial), axes, body))

    (got,) = run(build, x)
    function = {"add": lax.add, "multiply": lax.mul, "maximum": lax.max, "minimum": lax.min}[name]
    want = np.asarray(lax.reduce(x, start, function, axes))
    if prod(x.shape[axis] for axis in axes) == 1:  # XLA leaves the initial value out there
        want = np.asarray(function(start, want))
    assert got.dtype == want.dtype and got.shape == want.shape
    if got.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=1e-4 if dtype == "f32" else 1e-12, atol=1e-5)
    else:
        same(got, want)


def test_the_initial_value_is_used_where_there_is_nothing_to_combine(run):
    """As in StableHLO's own interpreter. XLA omits the initial value, which the specification also allows."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    x, start = random_array((3, 1), "i32"), np.array(3, np.int32)
    text = """
      func.func @main(%x: tensor<3x1xi32>, %s: tensor<i32>) -> (tensor<3x1xi32>, tensor<3xi32>) {
        %0 = stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = []
          : (tensor<3x1xi32>, tensor<i32>) -> tensor<3x1xi32>
        %1 = stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [1]
          : (tensor<3x1xi32>, tensor<i32>) -> tensor<3xi32>
        return %0, %1 : tensor<3x1xi32>, tensor<3xi32>
      }"""
    with mlir.make_ir_context():
        arguments = [ir.DenseElementsAttr.get(array) for array in (x, start)]
        want = [np.array(result) for result in stablehlo.eval_module(ir.Module.parse(text), arguments)]
    got = run(
        lambda code, v, s: (
            *code.emit("reduce", (v, s), (), tree_sum("i32")),
            *code.emit("reduce", (v, s), (1,), tree_sum("i32")),
        ),
        x,
        start,
    )
    same(got[0], want[0])
    same(got[1], want[1])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_reduce_with_two_operands(run, axis):
    """argmax as JAX writes it: the first index of the greatest value, with NaN greater than all."""
    x = random_array((5, 7, 6), "f32")
    x[1, 2, 3] = x[3, 3, 3] = np.nan
    x[2] = x[4]

    def greater(body, a, i, b, j):
        (more,) = body.emit("compare_gt", (a, b))
        (nan,) = body.emit("compare_ne", (a, a))
        (first,) = body.emit("or", (more, nan))
        (equal,) = body.emit("compare_eq", (a, b))
        (lower,) = body.emit("compare_lt", (i, j))
        (tie,) = body.emit("and", (equal, lower))
        (keep,) = body.emit("or", (first, tie))
        return (*body.emit("select", (first, a, b)), *body.emit("select", (keep, i, j)))

    def build(code, v):
        f32, i32 = BY_NAME["f32"], BY_NAME["i32"]
        (index,) = code.emit("iota", (), TensorType(i32, x.shape), axis)
        (low,) = code.emit("constant", (), TensorType(f32, ()), np.float32(-np.inf).tobytes())
        (zero,) = code.emit("constant", (), TensorType(i32, ()), bytes(4))
        return tuple(code.emit("reduce", (v, index, low, zero), (axis,), body_of("f32", greater, "i32")))

    values, places = run(build, x)
    same(values, jax.numpy.max(x, axis))
    same(places, lax.argmax(x, axis, np.int32))


def test_reduce_keeps_the_order_of_elements(run):
    """The reducer is associative but not commutative: it composes affine maps modulo 2^32."""
    a, b = random_array((3, 11, 2), "i32"), random_array((3, 11, 2), "i32", 1)

    def compose(body, a, b, c, d):
        (scaled,) = body.emit("multiply", (c, b))
        return (*body.emit("multiply", (c, a)), *body.emit("add", (scaled, d)))

    def build(code, u, v):
        i32 = TensorType(BY_NAME["i32"], ())
        (one,) = code.emit("constant", (), i32, b"\1\0\0\0")
        (zero,) = code.emit("constant", (), i32, bytes(4))
        return tuple(code.emit("reduce", (u, v, one, zero), (0, 1), body_of("i32", compose, "i32")))

    slopes, offsets = run(build, a, b)
    for lane in range(2):
        slope, offset = np.int32(1), np.int32(0)
        with np.errstate(over="ignore"):
            for c, d in zip(a[..., lane].flat, b[..., lane].flat, strict=True):
                slope, offset = c * slope, c * offset + d
        assert (slopes[lane], offsets[lane]) == (slope, offset)


def test_sums_are_as_accurate_as_a_tree(run):
    x = np.full(1 << 20, 0.1, np.float32)
    (got,) = run(
        lambda code, v: tuple(
            code.emit(
                "reduce",
                (v, *code.emit("constant", (), TensorType(BY_NAME["f32"], ()), bytes(4))),
                (0,),
                tree_sum("f32"),
            )
        ),
        x,
    )
    assert abs(got - x.astype(np.float64).sum()) <= 20 * np.finfo(np.float32).eps * got


def test_a_constant_inside_a_reducer(run):
    def body(b, x, y):
        (two,) = b.emit("constant", (), TensorType(BY_NAME["i32"], ()), b"\2\0\0\0")
        (total,) = b.emit("add", (x, y))
        return tuple(b.emit("maximum", (total, two)))

    x = np.array([[0, 0, 0], [5, -9, 1]], np.int32)
    (got,) = run(
        lambda code, v: tuple(
            code.emit(
                "reduce",
                (v, *code.emit("constant", (), TensorType(BY_NAME["i32"], ()), bytes(4))),
                (1,),
                body_of("i32", body),
            )
        ),
        x,
    )
    assert got.tolist() == [2, 3]


@pytest.mark.parametrize("shape", [(3,), (5, 7)])
@pytest.mark.parametrize("direct", [False, True])
def test_a_library_function_that_writes_nothing_gives_zeros(
    run: Run, shape: tuple[int, ...], direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outputs contain no other data, whether they are in a binding or an intermediate value."""
    monkeypatch.setattr(registry, "_registered", {})
    register("test", {"lazy": lambda inputs, outputs, attributes: None})
    type = TensorType(BY_NAME["i32"], shape)

    def build(code: EntryCode, x: int) -> tuple[int, ...]:
        (made,) = code.emit("library_call", (x,), (type,), "test.lazy", ())
        return (made,) if direct else tuple(code.emit("add", (made, x)))

    x = random_array(shape, "i32")
    np.testing.assert_array_equal(run(build, x)[0], np.zeros_like(x) if direct else x)
