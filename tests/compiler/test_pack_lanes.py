"""Ops behind a dot in vectors are computed in vectors, with the same bits as element by element."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from orchestrion import compiler, vm
from orchestrion.compiler.codegen.c.body import CBody
from orchestrion.compiler.driver import Compilation
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.attributes import StringAttr
from orchestrion.compiler.ir.core import Block, Operation
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.types import scalar
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.sequencer import ll_seq
from orchestrion.compiler.targets.opencl import target as opencl
from orchestrion.compiler.targets.target import target
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.schema.decoder import read_module

F = np.float32


def source_of(module: bytes) -> str:
    read = read_module(module)
    (variant,) = read.variants
    return bytes(read.segment(variant.payload)).decode()


def both(function: Callable[..., Any], *arguments: Any) -> tuple[bytes, bytes]:
    """The module of a program with ops in vectors, and one without."""

    def compiled() -> bytes:
        return compiler.compile(function, *arguments, targets=["opencl"])

    plain = dataclasses.replace(opencl.SOURCE, packs_lanes=False)
    machines = {name: dataclasses.replace(machine, quirks=plain) for name, machine in opencl.MACHINES.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(opencl.TARGET), "machines", machines)
        scalars = compiled()
    return compiled(), scalars


def results(module: bytes, *arguments: Any) -> list[bytes]:
    try:
        program = vm.load(module, device="opencl", allow_native_code=True)
    except DriverUnavailable as error:
        pytest.skip(str(error))
    found = program.main(*arguments)
    program.close()
    return [np.asarray(one).tobytes() for one in (found if isinstance(found, tuple | list) else [found])]


def bits(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).integers(0, 1 << 32, shape, np.uint32).view(F)


#: scalar ops of f32, of which most need conditions, integers, conversions or shifts
OPS: dict[str, Callable[..., Any]] = {
    "exponential": lambda x, y: jnp.exp(x),
    "exponential_minus_one": lambda x, y: jnp.expm1(x),
    "log": lambda x, y: jnp.log(x),
    "log_plus_one": lambda x, y: jnp.log1p(x),
    "tanh": lambda x, y: jnp.tanh(x),
    "cbrt": lambda x, y: jnp.cbrt(x),
    "floor and sqrt": lambda x, y: jnp.floor(x) + jnp.sqrt(x),
    "round": lambda x, y: lax.round(x),
    "rsqrt and abs": lambda x, y: lax.rsqrt(jnp.abs(x)),
    "sign": lambda x, y: jnp.sign(x),
    "erf": lambda x, y: lax.erf(x),
    "erfc": lambda x, y: lax.erfc(x),
    "maximum": jnp.maximum,
    "maximum, minimum of constants": lambda x, y: jnp.maximum(jnp.minimum(x, 9), 0),
    "power": lambda x, y: x**y,
    "divide": lambda x, y: -y / x,
    "atan2": jnp.arctan2,
    "lgamma": lambda x, y: lax.lgamma(x),
    "digamma": lambda x, y: lax.digamma(x),
    "erf_inv": lambda x, y: lax.erf_inv(x),
    "bessel_i1e": lambda x, y: lax.bessel_i1e(x),
}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", OPS)
def test_functions_on_vectors_give_the_bits_of_scalars(name: str) -> None:
    """A row of a product with (1, 0) is the other operand, so every pattern of bits reaches the op."""
    x, y, one = bits(1, 2, 160), bits(2, 160), np.array([[1, 0]] * 40, F)
    x[1], one[20:] = 0, 2
    packed, scalars = both(lambda a, b, c: OPS[name](a @ b, c), one, x, y)
    stored = re.compile(r"\] = v\d+\.s0;")
    assert stored.search(source_of(packed)) and not stored.search(source_of(scalars))
    assert results(packed, one, x, y) == results(scalars, one, x, y)


def _norm(x: Any, w: Any, s: Any, t: Any, r: Any) -> Any:
    y = (x @ w) * s + t
    return y * jax.nn.sigmoid(y) + r


def _masked(x: Any, w: Any, s: Any, t: Any, r: Any) -> Any:
    return jnp.tanh(jnp.where(r > 0, x @ w + s, -1e9) * 3)


def _strided(x: Any, w: Any, s: Any, t: Any, r: Any) -> Any:
    return jnp.exp((x @ w) * r.T.reshape(r.shape) + t)


def _two(x: Any, w: Any, s: Any, t: Any, r: Any) -> Any:
    y = jnp.tanh(x @ w + s)
    return y * t, jnp.exp(y) + r, y


def _integers(x: Any, w: Any, s: Any, t: Any, r: Any) -> Any:
    return (jnp.exp(x @ w + s) * 100).astype(jnp.int32)


_TWO_SHAPES = ((48, 144, "f4"), (49, 24, "f4"))
CASES = {
    f"{function.__name__[1:]}, {rows} x {columns}, {dtype}": (function, rows, columns, dtype)
    for function, shapes in (
        (_norm, (*_TWO_SHAPES, (1, 20, "f4"), (33, 40, "f8"), (7, 5, "f4"))),
        *((function, _TWO_SHAPES[1:]) for function in (_masked, _strided, _two, _integers)),
    )
    for rows, columns, dtype in shapes
}


@pytest.mark.parametrize("case", CASES)
def test_programs_give_the_same_bits(case: str) -> None:
    """Rows and columns that are multiples of a tile and others, one row, f64, columns fewer than a vector has lanes."""
    function, rows, columns, dtype = CASES[case]
    random = np.random.default_rng(0)
    shapes = (rows, 24), (24, columns), (columns,), (columns,), (rows, columns)
    arguments = [random.normal(size=shape).astype(dtype) for shape in shapes]
    packed, scalars = both(function, *arguments)
    assert results(packed, *arguments) == results(scalars, *arguments)


def test_an_epilogue_is_computed_once_per_vector() -> None:
    arguments = [np.zeros(shape, F) for shape in ((48, 24), (24, 144), (144,), (144,), (48, 144))]
    packed, scalars = map(source_of, both(_norm, *arguments))
    assert packed.count("exponential_f32x16(") == 3 and "exponential_f32(" not in packed
    assert scalars.count("exponential_f32(") == 33
    assert len(re.findall(r"vload16\(0, b[2-5] \+", packed)) == 4, "scale and offset, and a row of the residual each"


def test_an_op_without_a_form_on_vectors_stays_scalar() -> None:
    """An f64 needs integers of 64 bits; a branch differs from lane to lane."""
    wide = [np.zeros(shape) for shape in ((48, 24), (24, 144), (144,), (144,), (48, 144))]
    assert "exponential_f64(" in source_of(both(_norm, *wide)[0])
    narrow = [array.astype(F) for array in wide]
    source = source_of(both(lambda x, w, s, t, r: jnp.sin(x @ w), *narrow)[0])
    assert "static float sine_f32(" in source


def test_a_call_takes_vectors_of_the_length_of_its_result() -> None:
    block = Block([k.vector_type(8, "f32"), scalar("f32")])
    name = {"scalar": StringAttr("tanh")}
    for operand, result, wrong in ((0, "8xf32", False), (0, "4xf32", True), (1, "8xf32", True)):
        count, _, dtype = result.partition("x")
        call = k.Call([block.arguments[operand]], [k.vector_type(int(count), dtype)], properties=name)
        assert bool(list(call.check())) is wrong


def test_a_function_on_vectors_that_a_target_lacks_is_refused() -> None:
    """In IR that was edited. The compiler makes such calls for OpenCL, of functions that have a form on vectors."""
    arguments = [np.zeros(shape, F) for shape in ((48, 24), (24, 144), (144,), (144,), (48, 144))]
    lowered = jax.jit(lambda x, w, s, t, r: jnp.tanh(x @ w + s)).lower(*arguments)
    text = Compilation(targets=["opencl"]).text(lowered, "executables")
    assert 'scalar = "tanh"' in text

    def entry(text: str) -> Operation:
        return next(op for op in parse(text).walk() if isinstance(op, ll_seq.Executable))

    edited = entry(text.replace('scalar = "tanh"', 'scalar = "sine"'))
    with pytest.raises(CompileError, match="no function on vectors computes sine of f32"):
        target("opencl").serialize(edited)
    target("cpu").serialize(entry(text))  # native code has a function for vectors of each length
    with pytest.raises(CompileError, match="SPIR-V kernels have no such op"):
        target("spirv").serialize(entry(text))
    call = next(op for op in entry(text).walk() if isinstance(op, k.Call))
    with pytest.raises(CompileError, match="style c: no function on vectors"):
        CBody(lambda call: "").call(call)
