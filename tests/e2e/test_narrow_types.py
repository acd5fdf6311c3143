"""Types of fewer bits than devices compute with: every conversion and what is computed, on every device.

The oracle of formats is ml_dtypes, which rounds twice on the way from f64 and from integers: there it is
`schema/float_formats.py`, which `tests/schema/test_float_formats.py` compares with ml_dtypes.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
ml_dtypes = pytest.importorskip("ml_dtypes")

import jax.numpy as jnp  # noqa: E402

from orchestrion.compiler.driver import compile  # noqa: E402
from orchestrion.schema.dtypes import BY_NAME, DType  # noqa: E402
from orchestrion.schema.float_formats import FLOAT_FORMATS  # noqa: E402

Array = np.ndarray[Any, Any]
EACH_DEVICE = pytest.mark.parametrize("device", ["reference", "opencl", "vulkan"])
FLOATS = tuple(FLOAT_FORMATS)
INTEGERS = ("i2", "i4", "ui2", "ui4")


@functools.cache
def module_of(
    sources: tuple[str, ...], targets: tuple[str, ...], sizes: tuple[int, ...]
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
    return compile(f"{text}\nreturn {names} : {', '.join(results)}\n}}"), pairs


def bits(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


def every(dtype: DType) -> Array:
    """All values of a type."""
    codes = np.arange(1 << dtype.bits)
    if dtype.bits < 8:
        return (codes - (1 << dtype.bits - 1 if dtype.name[0] == "i" else 0)).astype(np.int8).astype(dtype.numpy)
    return codes.astype(f"u{dtype.itemsize}").view(dtype.numpy)


def hard_f32() -> Array:
    """What lies half way between two numbers of a format, its neighbours, specials, and numbers from everywhere."""
    random = np.random.default_rng(1)
    found = [np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)]
    for name, row in FLOAT_FORMATS.items():
        step = 3 if row.bits == 8 else 97
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
    module, pairs = module_of(tuple(sources), ("f32", "i4"), tuple(x.size for x in sources.values()))
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


@EACH_DEVICE
def test_one_rounding_from_wide_types(device: str, load_on: Callable[..., Any]) -> None:
    """The numbers from f32 as ml_dtypes has them; f64 and integers that lie just beside the middle of two."""
    x = hard_f32()
    x[np.isnan(x)] = 3.0
    near = x.astype(np.float64) * (1 + np.random.default_rng(2).choice([0, 2.0**-40, -(2.0**-40)], x.size))
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
    module, pairs = module_of(tuple(sources), formats, tuple(x.size for x in sources.values()))
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


@EACH_DEVICE
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_a_network(dtype: str, device: str, load_on: Callable[..., Any]) -> None:
    random, kind = np.random.default_rng(3), BY_NAME[dtype].numpy
    arrays = [random.standard_normal(shape).astype(kind) for shape in ((4, 8), (8, 16), (16,), (16, 5))]
    program = load_on(compile(jax.jit(mlp).lower(*arrays)), device)
    got = program.main(*arrays)
    program.close()
    unit = float(ml_dtypes.finfo(kind).eps)
    for ours, theirs in zip(got, jax.jit(mlp)(*arrays), strict=True):
        assert ours.dtype == kind
        want = np.asarray(theirs).astype(np.float32)
        np.testing.assert_allclose(ours.astype(np.float32), want, rtol=4 * unit, atol=unit * np.abs(want).max())
