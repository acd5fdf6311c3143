"""Complex numbers on every device: functions against NumPy in double precision, programs against JAX.

A function may differ from the exact value by `MAX_ERROR` units of rounding of the result's magnitude, in each part.
Where it is infinite, NaN or zero, kind and sign must be those of C99, as NumPy has them. Where C99 leaves a sign open,
or NumPy differs from it, the value is not looked at.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

from orchestrion.compiler.driver import compile  # noqa: E402

Array = np.ndarray[Any, Any]
TARGETS = {"reference": "reference", "cpu": "cpu", "opencl": "opencl", "vulkan": "spirv", "swiftshader": "spirv"}
#: devices that compute with zeros instead of subnormal numbers (docs/numerics.md)
FLUSHING = ("swiftshader",)
MAX_ERROR = 6.0


def log1p(z: Array) -> Array:
    """NumPy's loses small numbers."""
    near = np.log1p(z.real * (2 + z.real) + z.imag**2) / 2 + 1j * np.arctan2(z.imag, 1 + z.real)
    return np.where(np.abs(z) < 0.5, near, np.log(1 + z))


#: op -> the function in NumPy
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "stablehlo.cosine": np.cos,
    "stablehlo.exponential": np.exp,
    "stablehlo.exponential_minus_one": np.expm1,
    "stablehlo.log": np.log,
    "stablehlo.log_plus_one": lambda z: log1p(z),
    "stablehlo.logistic": lambda z: np.where(z.real < 0, np.exp(z), 1) / (1 + np.exp(np.where(z.real < 0, z, -z))),
    "stablehlo.rsqrt": lambda z: 1 / np.sqrt(z),
    "stablehlo.sign": lambda z: z / np.abs(z),
    "stablehlo.sine": np.sin,
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.tan": np.tan,
    "stablehlo.tanh": np.tanh,
    "chlo.acos": np.arccos,
    "chlo.acosh": np.arccosh,
    "chlo.asin": np.arcsin,
    "chlo.asinh": np.arcsinh,
    "chlo.atan": np.arctan,
    "chlo.atanh": np.arctanh,
    "chlo.cosh": np.cosh,
    "chlo.sinh": np.sinh,
}
#: those whose special values are C99's and NumPy's alike
STANDARD = [name for name in FUNCTIONS if not name.endswith(("minus_one", "plus_one", "logistic", "rsqrt", "sign"))]


def arguments() -> tuple[Array, Array]:
    """Finite numbers of all sizes and near the places where formulas fail, then special ones."""
    random = np.random.default_rng(5)
    sizes = (1e-30, 1e-8, 0.1, 0.5, 1.0, 1.0000001, 1.5, 20.0, 1e10, 1e30)
    signed = [s * x for x in sizes for s in (1, -1)]
    grid = [complex(a, b) for a in (0.0, *signed) for b in (0.0, *signed)]
    circle = np.exp(1j * random.uniform(-3.2, 3.2, 50))
    plain = random.normal(size=50) + 1j * random.normal(size=50)
    parts = (0.0, -0.0, 0.5, -2.0, 1.0, -1.0, np.inf, -np.inf, np.nan)
    special = [complex(a, b) for a in parts for b in parts]
    finite = np.concatenate([np.array(grid), circle, plain, plain * 10 ** random.uniform(-30, 30, 50)])
    return finite.astype(np.complex64), np.array(special, np.complex64)


def functions(names: Sequence[str], count: int) -> str:
    """A module that applies ops to so many numbers."""
    type = f"tensor<{count}xcomplex<f32>>"
    lines = [f'%{i} = "{name}"(%z) : ({type}) -> {type}' for i, name in enumerate(names)]
    values = ", ".join(f"%{i}" for i in range(len(names)))
    results = f"({', '.join([type] * len(names))})"
    body = "\n".join(lines)
    head = f'"func.func"() <{{function_type = ({type}) -> {results}, sym_name = "main"}}> ({{\n^bb0(%z: {type}):'
    return f'{head}\n{body}\n"func.return"({values}) : {results} -> ()\n}}) : () -> ()\n'


def alike(got: Any, want: Any) -> Array:
    """Per part: NaN for NaN, equal infinities, zeros of one sign, and what is near."""
    with np.errstate(all="ignore"):
        near = np.abs(got - want) <= 1e-6 * np.abs(want)
    zero = (want != 0) | (np.signbit(got) == np.signbit(want))
    return np.where(np.isnan(want), np.isnan(got), ((got == want) | near) & zero)


@pytest.mark.sampled(every=4)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("device", ["reference", "cpu", "vulkan", "swiftshader"])
def test_functions(device: str, load_on: Callable[..., Any]) -> None:
    finite, special = arguments()
    text = functions(list(FUNCTIONS), len(finite) + len(special))
    program = load_on(compile(text, targets=[TARGETS[device]]), device)
    results = program.main(np.concatenate([finite, special]))
    program.close()
    unit, largest = np.finfo(np.float32).eps, np.finfo(np.float32).max
    for name, result in zip(FUNCTIONS, results, strict=True):
        got = result.astype(np.complex128)
        want = FUNCTIONS[name](np.concatenate([finite, special]).astype(np.complex128))
        near, exact = got[: len(finite)], want[: len(finite)]
        inside = (np.abs(exact.real) < largest) & (np.abs(exact.imag) < largest) & np.isfinite(exact)
        size = np.maximum(np.abs(exact), np.finfo(np.float32).tiny)
        errors = np.maximum(np.abs((near - exact).real), np.abs((near - exact).imag)) / size / unit
        worst = int(np.argmax(np.where(inside, errors, 0)))
        assert errors[worst] <= MAX_ERROR, f"{name}({finite[worst]}) is {near[worst]}, exactly {exact[worst]}"
        if name in STANDARD:
            there, sought = got[len(finite) :], want[len(finite) :]
            unsigned = _open_zero(name, special)
            there, sought = (
                np.where(unsigned, np.abs(one.real) + 1j * np.abs(one.imag), one) for one in (there, sought)
            )
            same = alike(there.real, sought.real) & alike(there.imag, sought.imag) | _open(name, special)
            bad = int(np.argmin(same))
            assert same[bad], f"{name}({special[bad]}) is {there[bad]}, must be {sought[bad]}"


def _open(name: str, z: Array) -> Any:
    """Where C99 leaves a sign open: of an infinity or zero whose angle is not known."""
    re, im = (z.imag, z.real) if name in ("stablehlo.sine", "stablehlo.cosine", "stablehlo.tan") else (z.real, z.imag)
    wild = ~np.isfinite(im) & (np.isinf(re) | (re == 0)) | np.isnan(re) & (im == 0)
    turning = ("exponential", "sine", "cosine", "tan", "tanh", "sinh", "cosh")
    return wild if name.partition(".")[2] in turning else np.zeros(len(z), bool)


def _open_zero(name: str, z: Array) -> Any:
    """Where C99 leaves the sign of a zero open: `catanh(NaN + inf i)`, and so `catan(inf + NaN i)`."""
    first, second = (z.imag, z.real) if name == "chlo.atanh" else (z.real, z.imag)
    return np.isinf(first) & np.isnan(second) if name in ("chlo.atan", "chlo.atanh") else np.zeros(len(z), bool)


def arithmetic(z: Any, w: Any) -> Any:
    return z + w, z - w, z * w, z / w, -z, jnp.abs(z), z == w, z != w, z**w, z**0.5, lax.complex(z.real, w.imag)


def shapes(z: Any) -> Any:
    table = np.arange(20).reshape(4, 5) * (1 + 0.5j)
    moved = [z.T, z[1:, ::2], z[::-1], z[jnp.array([1, 0, 3])], jnp.tile(z, (2, 1)), z + table.astype(np.complex64)]
    padded = jnp.pad(z, ((1, 2), (0, 1)), constant_values=1 + 2j)
    sliced = lax.dynamic_slice(z, (1, 2), (2, 2)), lax.dynamic_update_slice(z, z[:2, :2], (1, 2))
    kinds = z.astype(jnp.complex64), z.real.astype(jnp.complex64), jnp.arange(4, dtype=jnp.complex64)
    return *moved, padded, *sliced, *kinds, jnp.where(z.real > 0, z, 1j), jnp.angle(z), jnp.conj(z)


def folds(z: Any, w: Any) -> Any:
    line = z.reshape(-1)
    loop = lax.fori_loop(0, 4, lambda i, s: s * line[i] + 1j, jnp.complex64(1))
    grown = lax.while_loop(lambda s: jnp.abs(s) < 100, lambda s: s * s + line[0], line[1])
    chosen = lax.cond(line[0].real > 0, lambda x: jnp.cumsum(x), lambda x: x[::-1] * 2, line)
    sums = z.sum(), z.sum(0), jnp.prod(z, 1), z.mean(), jnp.max(line), jnp.sort(jnp.round(line))
    window = lax.reduce_window(line, np.complex64(0), lax.add, (3,), (1,), "SAME")
    return *sums, z @ w, jnp.vdot(z[0], w[:, 0]), jnp.convolve(line[:9], w[:, 0]), window, loop, grown, chosen


def gradients(z: Any) -> Any:
    return jax.grad(lambda x: jnp.abs(x).sum())(z), jax.grad(lambda x: (jnp.exp(x) * jnp.sin(x).conj()).real.sum())(z)


def _normal(*shape: int) -> Array:
    random = np.random.default_rng(shape)
    return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(np.complex64)


def little(z: Any, w: Any) -> Any:
    """For a device whose compiler is slow."""
    return z * w.T[:, 0] + 1j, jnp.sqrt(z), (z[None] @ w), jnp.abs(z).sum()


PROGRAMS = {
    "arithmetic": (arithmetic, _normal(6), _normal(6)[::-1].copy()),
    "shapes": (shapes, _normal(4, 5)),
    "folds": (folds, _normal(4, 5), _normal(5, 3)),
    "gradients": (gradients, _normal(4)),
    "little": (little, _normal(4), _normal(4, 4)),
}


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    ("name", "device"), [*product(PROGRAMS, ("reference", "vulkan", "swiftshader")), ("little", "opencl")]
)
def test_programs(name: str, device: str, load_on: Callable[..., Any]) -> None:
    function, *arrays = PROGRAMS[name]
    program = load_on(compile(jax.jit(function).lower(*arrays), targets=[TARGETS[device]]), device)
    got = program.main(*arrays)
    program.close()
    for ours, theirs in zip(got, jax.tree.leaves(jax.jit(function)(*arrays)), strict=True):
        want = np.asarray(theirs)
        assert (ours.dtype, ours.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(ours, want, rtol=1e-5, atol=1e-6 * max(1.0, float(np.abs(want).max())))


#: by NumPy; each number is its real part, then its imaginary part
ORDERED: dict[str, Callable[..., Any]] = {
    "maximum %z, %w": np.maximum,
    "minimum %z, %w": np.minimum,
    "clamp %z, %w, %z": lambda z, w: np.minimum(np.maximum(w, z), z),
    "atan2 %z, %w": lambda z, w: -1j * np.log((w + 1j * z) / np.sqrt(z * z + w * w)),
}


@pytest.mark.sampled(every=4)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("device", ["reference", "cpu", "opencl", "vulkan"])
def test_ops_that_jax_does_not_write(device: str, load_on: Callable[..., Any]) -> None:
    """The order of complex numbers, which the specification of StableHLO defines, and their angle."""
    type = "tensor<25xcomplex<f32>>"
    body = "\n".join(f"%{i} = stablehlo.{text} : {type}" for i, text in enumerate(ORDERED))
    results = ", ".join(f"%{i}" for i in range(len(ORDERED))), ", ".join([type] * len(ORDERED))
    text = (
        f"func.func @main(%z: {type}, %w: {type}) -> ({results[1]}) {{\n{body}\nreturn {results[0]} : {results[1]}\n}}"
    )
    line = np.array([complex(a, b) for a in (-2.0, -1.0, 0.5, 1.0, np.nan) for b in (-1.5, 0.25, 1.0, 2.0, 3.0)])
    z, w = line.astype(np.complex64), np.roll(line, 7).astype(np.complex64)
    program = load_on(compile(text, targets=[TARGETS[device]]), device)
    got = program.main(z, w)
    program.close()
    for ours, function in zip(got, ORDERED.values(), strict=True):
        np.testing.assert_allclose(ours, function(z.astype(np.complex128), w), rtol=2e-6)


@pytest.mark.parametrize("device", ["reference", "cpu", "opencl", "vulkan"])
def test_squares(device: str, load_on: Callable[..., Any]) -> None:
    """A part that is in range is right also where the squares of the parts overflow."""
    large = np.array([1e30 + 1e30j, 1e30 - 1e30j, 2e25 + 1e25j, complex(np.inf, np.inf)])
    z = np.concatenate([_normal(40), large]).astype(np.complex64)
    program = load_on(compile(jax.jit(lax.square).lower(z), targets=[TARGETS[device]]), device)
    got = program.main(z)
    program.close()
    inf = np.inf
    wanted = np.array([complex(0, inf), complex(0, -inf), complex(inf, inf), complex(np.nan, inf)], np.complex64)
    np.testing.assert_array_equal(got[40:], wanted)
    exact = z[:40].astype(np.complex128) ** 2
    assert (np.abs(got[:40] - exact) <= MAX_ERROR * np.finfo(np.float32).eps * np.abs(exact)).all()


@pytest.mark.parametrize("device", ["reference", "vulkan", "swiftshader"])
def test_quotients(device: str, load_on: Callable[..., Any]) -> None:
    """No size of the operands spoils a quotient that is in range, and C99 says what a zero or an infinity makes."""
    sizes = (1e-38, 1e-30, 1e-5, 1.0, 1e5, 1e30, 3e38)
    line = np.array([complex(s * a, b) for a in sizes for b in sizes for s in (1, -1)], np.complex64)
    z, w = np.repeat(line, 7), np.tile(np.roll(line, 13), 7)
    special = [(1, 0), (1 - 1j, -0.0), (complex(np.inf, np.nan), 1 + 1j), (1 + 2j, complex(np.inf, np.inf)), (0, 0)]
    above, below = np.array(special, np.complex64).T
    z, w = np.concatenate([z, above]), np.concatenate([w, below])
    program = load_on(compile(jax.jit(jnp.divide).lower(z, w), targets=[TARGETS[device]]), device)
    got = program.main(z, w)
    program.close()
    inf, nan = np.inf, np.nan
    wanted = np.array([complex(inf, nan), complex(-inf, inf), complex(inf, -inf), 0, complex(nan, nan)], np.complex64)
    np.testing.assert_array_equal(got[-5:], wanted)
    with np.errstate(all="ignore"):
        want = z[:-5].astype(np.complex128) / w[:-5].astype(np.complex128)
    inside = np.maximum(np.abs(want.real), np.abs(want.imag)) < np.finfo(np.float32).max
    lost = 0.0
    if device in FLUSHING:
        lost = np.sqrt(2) * np.finfo(np.float32).tiny
        for one in (z[:-5], w[:-5]):
            inside &= np.maximum(np.abs(one.real), np.abs(one.imag)) >= np.finfo(np.float32).tiny
    errors = (np.abs(got[:-5] - want) - lost) / np.maximum(np.abs(want), 1e-32)
    assert errors[inside].max() < 3 * np.finfo(np.float32).eps


@pytest.mark.parametrize("name", ["bool", "complex64", "complex128"])
def test_bitcast_to_the_same_type(name: str, load_on: Callable[..., Any]) -> None:
    """JAX writes `bitcast_convert` of complex numbers and booleans to their own type."""
    x = np.array([[1, 0, 3], [4, 5, 6]]).astype(name)
    with jax.enable_x64(True):
        lowered = jax.jit(lambda x: lax.bitcast_convert_type(x, name)).lower(x)
    assert "stablehlo.bitcast_convert" in lowered.as_text()
    program = load_on(compile(lowered, targets=["reference"]), "reference")
    np.testing.assert_array_equal(program.main(x), x, strict=True)
    program.close()
