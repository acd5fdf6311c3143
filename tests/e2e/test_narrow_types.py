"""Types of fewer bits than devices compute with: every conversion and what is computed, on every device.

The oracle of formats is ml_dtypes, which rounds twice on the way from f64 and from integers: there it is
`schema/float_formats.py`, which `tests/schema/test_float_formats.py` compares with ml_dtypes.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from everyday import of_the_day

jax = pytest.importorskip("jax")
ml_dtypes = pytest.importorskip("ml_dtypes")

import jax.numpy as jnp  # noqa: E402

from orchestrion.compiler.driver import compile  # noqa: E402
from orchestrion.schema.decoder import read_module  # noqa: E402
from orchestrion.schema.dtypes import BY_NAME, FLOAT, FLOAT_FORMATS, DType  # noqa: E402

Array = np.ndarray[Any, Any]
EACH_DEVICE = pytest.mark.parametrize("device", ["reference", "opencl", "vulkan"])
FLOATS = tuple(FLOAT_FORMATS)
INTEGERS = ("i2", "i4", "ui2", "ui4")


@functools.cache
def module_of(
    device: str, sources: tuple[str, ...], targets: tuple[str, ...], sizes: tuple[int, ...]
) -> tuple[bytes, list[tuple[str, str]]]:
    """A program that converts each of its arguments to each of the types, and what each result is."""
    body, results, pairs = [], [], []
    for number, (source, size) in enumerate(zip(sources, sizes, strict=True)):
        for target in targets:
            taken, given = (f"tensor<{size}x{name}>" for name in (source, target))
            body.append(f"%r{len(pairs)} = stablehlo.convert %a{number} : ({taken}) -> {given}")
            pairs.append((source, target))
            results.append(given)
    typed = enumerate(zip(sources, sizes, strict=True))
    arguments = ", ".join(f"%a{i}: tensor<{size}x{name}>" for i, (name, size) in typed)
    names = ", ".join(f"%r{i}" for i in range(len(pairs)))
    text = f"func.func @main({arguments}) -> ({', '.join(results)}) {{\n" + "\n".join(body)
    return compile(f"{text}\nreturn {names} : {', '.join(results)}\n}}", targets=[device]), pairs


def bits(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


def every(dtype: DType) -> Array:
    """All values of a type."""
    codes = np.arange(1 << dtype.bits)
    if dtype.bits < 8 and dtype.kind != FLOAT:
        return (codes - (1 << dtype.bits - 1 if dtype.name[0] == "i" else 0)).astype(np.int8).astype(dtype.numpy)
    return codes.astype(f"u{dtype.itemsize}").view(dtype.numpy)


def hard_f32() -> Array:
    """What lies half way between two numbers of a format, its neighbours, specials, and numbers from everywhere."""
    random = np.random.default_rng(1)
    found = [np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)]
    for name, row in FLOAT_FORMATS.items():
        step = 3 if row.bits <= 8 else 97
        with np.errstate(all="ignore"):
            all_of = np.unique(every(BY_NAME[name]).astype(np.float64))
            number = all_of[np.isfinite(all_of)][::step]
            middle = ((number[1:] + number[:-1]) / 2).astype(np.float32)
        found += [middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))]
    found.append(random.integers(0, 1 << 32, 2000, dtype=np.uint32).view(np.float32))
    return np.concatenate(found)


def same(got: Array, want: Array, what: object) -> None:
    """Equal bit for bit, but that a NaN is any NaN."""
    assert got.dtype == want.dtype, what
    with np.errstate(invalid="ignore"):
        wide = (got.astype(np.float64), want.astype(np.float64))
    wrong = (bits(got) != bits(want)) & ~(np.isnan(wide[0]) & np.isnan(wide[1]))
    first = np.flatnonzero(wrong)[:5]
    assert not wrong.any(), (what, int(wrong.sum()), first, got[first], want[first])


@EACH_DEVICE
def test_every_conversion_from_every_value(device: str, load_on: Callable[..., Any]) -> None:
    """To f32 and from there: what stands between any two types."""
    names = (*FLOATS, *INTEGERS) if device != "opencl" else ("f16", "f8E5M2FNUZ", "i4")
    sources = {name: every(BY_NAME[name]) for name in names}
    module, pairs = module_of(device, tuple(sources), ("f32", "i4"), tuple(x.size for x in sources.values()))
    program = load_on(module, device)
    results = program.main(*sources.values())
    program.close()
    for (source, target), got in zip(pairs, results, strict=True):
        same(got, converted(sources[source], BY_NAME[target]), (source, target))


def converted(values: Array, target: DType) -> Array:
    """What a conversion gives."""
    with np.errstate(all="ignore"):
        wide = values.astype(np.float32)
        if target.name == "f8E8M0FNU":  # of numbers below the least normal f32, ml_dtypes gives more than the nearest
            wide = np.where(
                (wide > 0) & (wide < 2.0**-126), np.float32(2.0**-127) * (1 + (wide >= 1.5 * 2.0**-127)), wide
            )
        if "f" in target.name:
            return wide.astype(target.numpy)
        if values.dtype.name.startswith(("int", "uint")) and target.bits < 32:
            return wrapped(values.astype(np.int64), target)
        bottom = 0 if target.name[0] == "u" else -(1 << target.bits - 1)
        top = (1 << target.bits) - 1 + bottom
        whole = np.nan_to_num(np.clip(np.trunc(wide.astype(np.float64)), bottom, top), nan=0).astype(np.int64)
        return wrapped(whole, target) if target.bits < 32 else whole.astype(np.int32)


def wrapped(values: Array, target: DType) -> Array:
    """Integers modulo 2^n."""
    low = values & (1 << target.bits) - 1
    signed = target.name[0] == "i"
    return (low - (low >> target.bits - 1 << target.bits if signed else 0)).astype(np.int8).astype(target.numpy)


@pytest.mark.sampled(every=3)
@EACH_DEVICE
def test_one_rounding_from_wide_types(device: str, load_on: Callable[..., Any], pytestconfig: pytest.Config) -> None:
    """The numbers from f32 as ml_dtypes has them; f64 and integers that lie just beside the middle of two."""
    x = np.array(of_the_day(pytestconfig, hard_f32(), 5))
    with np.errstate(invalid="ignore"):  # some NaNs are signalling
        wide = x.astype(np.float64)
    near = wide * (1 + np.random.default_rng(2).choice([0, 2.0**-40, -(2.0**-40)], x.size))
    random = np.random.default_rng(3)
    whole = random.integers(-(1 << 31), 1 << 31, 1024) >> random.integers(0, 31, 1024)
    whole[:512] |= (1 << random.integers(1, 31, 512)) + 1
    sources = {
        "f32": x,
        "f64": near,
        "i32": whole.astype(np.int32),
        "ui64": np.abs(whole).astype(np.uint64) << np.uint64(20),
    }
    formats = FLOATS if device != "opencl" else ("bf16", "f8E4M3FN")  # kernels take long to build there
    if device == "opencl":
        del sources["i32"], sources["f64"]
    module, pairs = module_of(device, tuple(sources), formats, tuple(x.size for x in sources.values()))
    program = load_on(module, device)
    results = program.main(*sources.values())
    program.close()
    for (source, target), got in zip(pairs, results, strict=True):
        row, dtype = FLOAT_FORMATS[target], BY_NAME[target]
        want = np.array([row.rounded(float(v)) for v in sources[source]], f"u{dtype.itemsize}").view(dtype.numpy)
        same(got, want, (source, target))


def mlp(x: Any, w1: Any, b1: Any, w2: Any) -> Any:
    """A layer with a bias and tanh, one without, a softmax: bf16 between all of them."""
    hidden = jnp.tanh(x @ w1 + b1)
    return jax.nn.softmax(hidden @ w2), jnp.max(hidden, axis=0), jnp.sort(hidden, axis=1)


@pytest.mark.sampled(every=3)
@EACH_DEVICE
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_a_network(dtype: str, device: str, load_on: Callable[..., Any]) -> None:
    random, kind = np.random.default_rng(3), BY_NAME[dtype].numpy
    arrays = [random.standard_normal(shape).astype(kind) for shape in ((4, 8), (8, 16), (16,), (16, 5))]
    program = load_on(compile(jax.jit(mlp).lower(*arrays), targets=[device]), device)
    got = program.main(*arrays)
    program.close()
    unit = float(ml_dtypes.finfo(kind).eps)
    for ours, theirs in zip(got, jax.jit(mlp)(*arrays), strict=True):
        assert ours.dtype == kind
        want = np.asarray(theirs).astype(np.float32)
        np.testing.assert_allclose(ours.astype(np.float32), want, rtol=4 * unit, atol=unit * np.abs(want).max())


BINARY = (
    "add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor", "divide", "remainder",
    "shift_left", "shift_right_arithmetic", "shift_right_logical",
)  # fmt: skip
UNARY = ("not", "popcnt", "count_leading_zeros")


def integer_results(x: Array, y: Array, dtype: DType) -> list[Array]:
    """What the ops above give of all pairs of 4-bit integers, in the order of their names."""
    ux, uy = x & 15, y & 15
    sx, by = np.where(ux > 7, ux - 16, ux), np.minimum(uy, 4)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(y == 0, -1, np.trunc(x / y)).astype(np.int64)
    rest = np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y)))
    found = [x + y, x - y, x * y, np.maximum(x, y), np.minimum(x, y), x & y, x | y, x ^ y, quotient, rest]
    found += [np.where(uy < 4, ux << by, 0), sx >> by, np.where(uy < 4, ux >> by, 0)]
    found += [~x, np.array([int(v).bit_count() for v in ux]), np.array([4 - int(v).bit_length() for v in ux])]
    return [wrapped(np.asarray(value, np.int64), dtype) for value in found]


@EACH_DEVICE
@pytest.mark.parametrize("name", ["i4", "ui4"])
def test_all_pairs_of_small_integers(name: str, device: str, load_on: Callable[..., Any]) -> None:
    """And two of them as the halves of a byte, the lower first."""
    dtype, type = BY_NAME[name], f"tensor<256x{name}>"
    body = [f"%r{i} = stablehlo.{op} %x, %y : {type}" for i, op in enumerate(BINARY)]
    body += [f"%r{len(BINARY) + i} = stablehlo.{op} %x : {type}" for i, op in enumerate(UNARY)]
    body.append(f"%h = stablehlo.reshape %x : ({type}) -> tensor<128x2x{name}>")
    body.append(f"%b = stablehlo.bitcast_convert %h : (tensor<128x2x{name}>) -> tensor<128xui8>")
    count = len(BINARY) + len(UNARY)
    types = ", ".join([*[type] * count, "tensor<128xui8>"])
    names = ", ".join([*[f"%r{i}" for i in range(count)], "%b"])
    lines = "\n".join(body)
    text = f"func.func @main(%x: {type}, %y: {type}) -> ({types}) {{\n{lines}\nreturn {names} : {types}\n}}"
    values = np.arange(16) - (8 if name == "i4" else 0)
    x, y = np.repeat(values, 16), np.tile(values, 16)
    program = load_on(compile(text, targets=[device]), device)
    *got, halves = program.main(wrapped(x, dtype), wrapped(y, dtype))
    program.close()
    for op, ours, want in zip((*BINARY, *UNARY), got, integer_results(x, y, dtype), strict=True):
        same(ours, want, op)
    np.testing.assert_array_equal(halves, (x[::2] & 15) | (x[1::2] & 15) << 4)


def test_a_chain_is_one_dispatch_and_rounds_between(load_on: Callable[..., Any]) -> None:
    """Ten ops on bf16, none of which may keep what the one before had in more bits."""
    x = np.linspace(-3, 3, 1001).astype(ml_dtypes.bfloat16)
    names = ["multiply", "add", "subtract", "maximum", "add"] * 2
    lines = [f"%{i + 1} = stablehlo.{op} %{i}, %0 : tensor<1001xbf16>" for i, op in enumerate(names)]
    body = "\n".join(lines).replace("%0", "%x")
    text = f"func.func @main(%x: tensor<1001xbf16>) -> tensor<1001xbf16> {{\n{body}\nreturn %10 : tensor<1001xbf16>\n}}"
    program = load_on(compile(text, targets=("reference",)), "reference")
    got = program.main(x)
    assert program.statistics()["calls"][-1]["dispatches"] == 1
    program.close()
    want, functions = x, {"multiply": np.multiply, "add": np.add, "subtract": np.subtract, "maximum": np.maximum}
    for name in names:
        want = functions[name](want.astype(np.float32), x.astype(np.float32)).astype(x.dtype)
    same(got, want, "chain")


@EACH_DEVICE
@pytest.mark.parametrize("name", ["i4", "f4E2M1FN"])
def test_weights_of_four_bits_are_packed(name: str, device: str, load_on: Callable[..., Any]) -> None:
    random = np.random.default_rng(5)
    weights = random.choice(every(BY_NAME[name]), (128, 96))
    x = random.standard_normal((3, 128)).astype(ml_dtypes.bfloat16)

    def function(x: Any) -> Any:
        return x @ jnp.asarray(weights).astype(jnp.bfloat16), jnp.asarray(weights)[1:, ::2]

    profile = {"reference": "reference", "opencl": "opencl", "vulkan": "spirv"}[device]
    module = compile(jax.jit(function).lower(x), targets=(profile,))
    rows = read_module(module)
    assert sum(rows.segments[one.segment].size for one in rows.constants) == weights.size // 2
    program = load_on(module, device)
    product, moved = program.main(x)
    program.close()
    same(moved, np.ascontiguousarray(weights[1:, ::2]), "moved")
    want = x.astype(np.float32) @ weights.astype(np.float32)
    np.testing.assert_allclose(product.astype(np.float32), want, rtol=2**-8, atol=1e-5)


def test_the_neighbour_of_every_value(load_on: Callable[..., Any]) -> None:
    """Towards every value. Formats without an integer of their size, or without a sign, are refused."""
    names = [name for name, row in FLOAT_FORMATS.items() if row.bits in (4, 8) and name != "f8E8M0FNU"]
    arguments, body = [], []
    for at, name in enumerate(names):
        type = f"tensor<{1 << 2 * BY_NAME[name].bits}x{name}>"
        arguments += [f"%x{at}: {type}", f"%y{at}: {type}"]
        body.append(f"%r{at} = chlo.next_after %x{at}, %y{at} : {type}, {type} -> {type}")
    results = ", ".join(line.rpartition(" ")[2] for line in body)
    made = "\n".join([*body, f"return {', '.join(f'%r{at}' for at in range(len(names)))} : {results}"])
    text = f"func.func @main({', '.join(arguments)}) -> ({results}) {{\n{made}\n}}"
    program = load_on(compile(text, targets=["reference"]), "reference")
    pairs = [np.meshgrid(every(BY_NAME[name]), every(BY_NAME[name])) for name in names]
    given = [array.ravel() for pair in pairs for array in pair]
    for name, x, y, got in zip(names, given[::2], given[1::2], program.main(*given), strict=True):
        with np.errstate(invalid="ignore"):
            same(got, np.nextafter(x, y), name)
