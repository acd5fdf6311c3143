"""Functions of OpenCL C that the kernels of an executable share, and expressions in place of variables."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stablehlo_text import main, tensor

from orchestrion import compiler
from orchestrion.compiler.errors import CompileError
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.ir.verifier import verify
from orchestrion.compiler.targets.target import target
from orchestrion.schema.decoder import read_module
from orchestrion.schema.dtypes import BY_NAME

WIDTHS = (784, 256, 128, 10)
T = tensor([8], "f32")


def unary(*ops: str, dtype: str = "f32") -> str:
    """A chain of ops of one operand."""
    t = tensor([8], dtype)
    names = ["%a0", *(f"%r{at}" for at in range(len(ops)))]
    lines = [f'{names[at + 1]} = "{op}"({names[at]}) : ({t}) -> {t}' for at, op in enumerate(ops)]
    return main([t], lines, [(names[-1], t)])


def source_of(*arguments: Any, machines: tuple[str, ...] = ("cpu",)) -> str:
    """The OpenCL C of a program of one executable."""
    module = read_module(compiler.compile(*arguments, targets=["opencl"], machines=machines))
    (variant,) = module.variants
    return bytes(module.segment(variant.payload)).decode()


def mlp(activation: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The program of flax's `Dense` layers of these widths for 32 rows."""

    def apply(params: Any, x: Any) -> Any:
        for kernel, bias in params[:-1]:
            x = activation(x @ kernel + bias)
        kernel, bias = params[-1]
        return jax.nn.log_softmax(x @ kernel + bias)

    sizes = zip(WIDTHS, WIDTHS[1:], strict=False)
    params = [(np.zeros(size, np.float32), np.zeros(size[1:], np.float32)) for size in sizes]
    return apply, params, np.zeros((32, WIDTHS[0]), np.float32)


@pytest.fixture(scope="module")
def relu() -> str:
    return source_of(*mlp(jax.nn.relu))


def test_the_source_of_an_mlp_takes_60_kilobytes_at_most(relu: str) -> None:
    """It took 94,158 bytes when every kernel held its own expansions, of which 24 KB is asked for here."""
    assert relu.count("__kernel") == 4
    assert len(relu) <= 24_000
    assert len(source_of(*mlp(jax.nn.gelu))) <= 60_000


@pytest.mark.parametrize("machine", ["cpu", "gpu"])
def test_a_function_stands_once_for_all_kernels(machine: str) -> None:
    source = source_of(*mlp(jnp.tanh), machines=(machine,))
    functions, *kernels = source.split("__kernel ")
    assert len(re.findall(r"static float\d* tanh_f32(x16)?\(", functions)) == 1
    assert sum("tanh_f32" in kernel for kernel in kernels) == 2
    assert not any("static" in kernel for kernel in kernels)
    names = re.findall(r"^static \w+ (\w+)\(", functions, re.MULTILINE)
    assert len(names) == len(set(names)) == source.count("static ")


def test_each_function_is_called(relu: str) -> None:
    for name in re.findall(r"^static \w+ (\w+)\(", relu, re.MULTILINE):
        assert len(re.findall(rf"\b{name}\(", relu)) >= 2


def test_a_constant_operand_is_no_parameter(lowered: Any) -> None:
    """Its function is another one than that of two variables, and is simpler."""
    lines = [
        f'%z = "stablehlo.constant"() <{{value = dense<0.0> : {T}}}> : () -> {T}',
        f'%m = "stablehlo.maximum"(%a0, %a1) : ({T}, {T}) -> {T}',
        f'%r = "stablehlo.maximum"(%m, %z) : ({T}, {T}) -> {T}',
    ]
    source = lowered(main([T, T], lines, [("%r", T)]), "opencl").payload.data.decode()
    assert "/* maximum(x, y) */\nstatic float maximum_f32(const float x, const float y)" in source
    assert "/* maximum(x, 0.0f) */\nstatic float maximum_f32_2(const float x)" in source
    assert "maximum_f32_2(maximum_f32(" in source


def test_an_expansion_of_few_ops_is_no_function(lowered: Any) -> None:
    text = unary("stablehlo.abs", dtype="i32")
    assert "static" not in lowered(text, "opencl").payload.data.decode()


def test_an_entry_keeps_its_name_where_a_function_has_it(lowered: Any) -> None:
    module = str(lowered(unary("stablehlo.tanh"), "opencl").module).replace('"test_main"', '"tanh_f32"')
    source = target("opencl").serialize(parse(module, "test.mlir").block.first).data.decode()
    assert "void tanh_f32(__global" in source
    assert "static float tanh_f32_2(const float x)" in source


def test_features_are_also_what_functions_compute_with(lowered: Any) -> None:
    """The exponential of an f64 makes a power of two from 64-bit integers, which the kernel has nowhere else."""
    entry = lowered(unary("stablehlo.exponential", dtype="f64"), "opencl")
    functions, kernel = entry.payload.data.decode().split("__kernel")
    assert "long" in functions and "long" not in kernel
    assert entry.payload.features == {"float64", "int64"}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_functions_give_the_bits_of_their_expansions(
    lowered: Any, devices: Any, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    ops = ["stablehlo.sine", "stablehlo.exponential", "chlo.lgamma", "stablehlo.tanh", "stablehlo.log"]
    ops += ["chlo.erf", "stablehlo.cbrt"]
    t, unsigned = tensor([4000], dtype), BY_NAME[dtype.replace("f", "ui")].numpy
    x = np.random.default_rng(0).integers(0, np.iinfo(unsigned).max, 4000, unsigned).view(BY_NAME[dtype].numpy)
    lines = [f'%r{at} = "{op}"(%a0) : ({t}) -> {t}' for at, op in enumerate(ops)]
    text = main([t], lines, [(f"%r{at}", t) for at in range(len(ops))])
    called = lowered(text, "opencl")
    monkeypatch.setattr("orchestrion.compiler.kernel.code.builder.LEAST_CALLED", 1 << 30)
    expanded = lowered(text, "opencl")
    assert b"static" in called.payload.data and b"static" not in expanded.payload.data
    for one, other in zip(devices.run(called, x), devices.run(expanded, x), strict=True):
        number = ~np.isnan(one)  # which NaN an operation gives depends on the order of its operands in a register
        assert np.array_equal(number, ~np.isnan(other)) and one[number].tobytes() == other[number].tobytes()


def test_what_is_chosen_from_is_computed_in_front(lowered: Any) -> None:
    """Clang makes branches of divisions in `?:`, and a loop over work items with branches is not vectorised."""
    source = lowered(unary("chlo.erf"), "opencl").payload.data.decode()
    choices = re.findall(r" \? (.*?) : (.*?)[;)]", source)
    assert choices
    assert not [choice for choice in choices if re.search(r" [-+*/] ", " ".join(choice))]


def test_spirv_refuses_calls(lowered: Any) -> None:
    module = parse(str(lowered(unary("stablehlo.tanh"), "opencl").module), "test.mlir")
    with pytest.raises(CompileError, match="SPIR-V kernels have no such op"):
        target("spirv").serialize(module.block.first)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('scalar = "tanh"', 'scalar = "tanhh"', "tanhh is not a scalar op"),
        ('scalar = "tanh"', 'scalar = "atan2"', r"atan2 does not take \(f32\) -> f32"),
    ],
)
def test_a_call_names_a_scalar_op_of_its_types(lowered: Any, old: str, new: str, message: str) -> None:
    text = str(lowered(unary("stablehlo.tanh"), "opencl").module)
    assert text.count(old) == 1
    found = [str(diagnostic) for diagnostic in verify(parse(text.replace(old, new), "test.mlir"))]
    assert len(found) == 1 and re.search(message, found[0])
