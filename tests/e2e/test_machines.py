"""Modules made for kinds of device: each device takes what is for it, and any computes the same products.

For `gpu` convolutions and products are staged in shared memory, and the devices at hand are processors: what is held
here is that these run it, with the bits of what was made for them.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from phase_texts import dumped_texts

from orchestrion import compiler
from orchestrion.compiler.ir.parser import parse
from orchestrion.compiler.profiles import program_name
from orchestrion.compiler.sequencer.ll_seq import Entry
from orchestrion.hal.backend import DeviceInfo, Limits
from orchestrion.schema.decoder import read_module
from orchestrion.schema.profiles import FEATURES
from orchestrion.schema.writer import write
from orchestrion.vm.selection import choose_program

jax = pytest.importorskip("jax")
from jax import export, lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402

LoadOn = Callable[[bytes, str], Any]
Array = np.ndarray[Any, Any]
random = np.random.default_rng(0)
FEATURES_LAST, FEATURES_FIRST = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def normal(*shape: int) -> Array:
    return random.normal(size=shape).astype(np.float32)


def common(x: Any, w: Any, q: Any, k: Any, bias: Any) -> list[Any]:
    """A convolution with something in front of it and behind, and a batch of products of narrow floats."""
    image = lax.conv_general_dilated(jnp.abs(x), w, (1, 1), "SAME", dimension_numbers=FEATURES_LAST)
    narrow = jnp.einsum("bqd,bkd->bqk", q.astype(jnp.bfloat16), k.astype(jnp.bfloat16))
    return [jax.nn.relu(image + bias), narrow]


def others(x: Any, w: Any, y: Any, v: Any, q: Any, k: Any) -> list[Any]:
    """Strides, dilations of windows and images, odd padding; sums of 63 elements; operands in any order; integers."""
    convolution = lax.conv_general_dilated
    return [
        convolution(x, w, (2, 2), "SAME", rhs_dilation=(2, 1), dimension_numbers=FEATURES_LAST),
        convolution(y, v, (1, 2), ((1, 1), (0, 2)), dimension_numbers=FEATURES_FIRST),
        convolution(y, v, (1, 1), ((1, 2), (2, 2)), lhs_dilation=(2, 2), dimension_numbers=FEATURES_FIRST),
        jnp.einsum("bqd,bkd->bqk", q * 0.2, jnp.tanh(k), precision="highest"),
        jnp.einsum("bqd,bkd->kqb", (q * 100).astype(jnp.int32), (k * 100).astype(jnp.int32)),
    ]


Q, K = normal(3, 20, 24), normal(3, 27, 24)
IMAGE, WEIGHTS = normal(1, 10, 14, 32), normal(3, 3, 32, 24)
#: function, arguments, entries in blocks
COMMON = common, (IMAGE, WEIGHTS, Q, K, normal(24)), 2
OTHERS = others, (normal(1, 26, 27, 9), normal(3, 3, 9, 24), normal(2, 12, 10, 11), normal(20, 12, 3, 3), Q, K), 8


def source_of(function: Any, arguments: tuple[Array, ...]) -> Any:
    return jax.jit(function, keep_unused=True).lower(*arguments)


@pytest.mark.parametrize(("device", "program"), [("vulkan", COMMON), ("vulkan", OTHERS), ("opencl", COMMON)])
def test_blocks_compute_what_jax_does(device: str, program: Any, load_on: LoadOn) -> None:
    function, arguments, blocks = program
    source, profile = source_of(function, arguments), {"vulkan": "spirv", "opencl": "opencl"}[device]
    text = compiler.Compilation(targets=(profile,), machines=("gpu",)).text(source, "executables")
    entries = [op for op in parse(text, "text").walk() if isinstance(op, Entry)]
    staged = [op for op in entries if "stage(lhs, shared, " in str(op.schedules) and "kernel.barrier" in str(op)]
    assert len(staged) == blocks
    results = load_on(compiler.compile(source, targets=[profile], machines=("gpu",)), device).main(*arguments)
    for got, want in zip(results, jax.jit(function)(*arguments), strict=True):
        got, want = np.asarray(got), np.asarray(want)
        assert got.dtype == want.dtype
        wide = want.astype(np.float64)
        np.testing.assert_allclose(got.astype(np.float64), wide, rtol=1e-5, atol=2e-6 * np.abs(wide).max())
    if function is others:
        same = load_on(compiler.compile(source, targets=[profile], machines=("cpu",)), device).main(*arguments)
        equal = [np.asarray(x).tobytes() == np.asarray(y).tobytes() for x, y in zip(same, results, strict=True)]
        assert equal == [True, False, True, True, True]  # the second is transposed for processors, and sums in an order


def test_a_batch_of_any_size(load_on: LoadOn) -> None:
    """The rows of a product are known in a call; its fold is not."""
    weights = normal(24, 40)
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("b, 24"), np.float32)
    source = export.export(jax.jit(lambda x: jnp.tanh(jnp.matmul(x, weights, precision="highest"))))(shape)
    text = compiler.Compilation(targets=("spirv",), machines=("gpu",)).text(source, "executables")
    assert "kernel.barrier" in text
    program = load_on(compiler.compile(source, targets=["spirv"], machines=("gpu",)), "vulkan")
    for batch in (1, 16, 45):
        x = normal(batch, 24)
        np.testing.assert_allclose(np.asarray(program.main(x)), np.tanh(x @ weights), rtol=1e-5, atol=2e-6)


def test_a_batch_that_leaves_nothing(load_on: LoadOn) -> None:
    """A product of no rows is staged, too, and not dispatched."""
    weights = normal(24, 40)
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("b, 24"), np.float32)
    source = export.export(jax.jit(lambda x: jnp.matmul(x[1:], weights, precision="highest")))(shape)
    assert "stage(lhs, shared, " in compiler.Compilation(targets=("spirv",), machines=("gpu",)).text(source, "hl_seq")
    program = load_on(compiler.compile(source, targets=["spirv"], machines=("gpu",)), "vulkan")
    for batch in (1, 2, 20):
        x = normal(batch, 24)
        np.testing.assert_allclose(np.asarray(program.main(x)), x[1:] @ weights, rtol=1e-5, atol=2e-6)


PRODUCT = source_of(lambda x, y: x @ y, (normal(96, 64), normal(64, 96)))


#: machines -> the programs of a module
MADE = {
    ("cpu",): "reference spirv opencl cpu",
    ("gpu",): "reference spirv_gpu opencl_gpu cpu",
    ("gpu", "cpu"): "reference spirv_gpu spirv opencl_gpu opencl cpu",
}
#: whether a device is a GPU, machines -> what it takes
TAKEN = {
    (False, ("cpu",)): "cpu", (False, ("gpu",)): "gpu", (False, ("gpu", "cpu")): "cpu",
    (True, ("cpu",)): "cpu", (True, ("gpu",)): "gpu", (True, ("gpu", "cpu")): "gpu",
}  # fmt: skip


def info_of(driver: str, is_gpu: bool) -> DeviceInfo:
    """A device that has everything, and is a GPU or is none."""
    formats, features = {"vulkan": "spirv", "opencl": "opencl-c"}[driver], set(FEATURES) - {"gpu"}
    return DeviceInfo(
        driver, 0, "test", "test", "1", (formats,), frozenset(features | ({"gpu"} if is_gpu else set())),
        Limits((1 << 16,) * 3, 128, 1 << 30, 16, 128, 16384, 16, 4096), 1 << 30,
    )  # fmt: skip


@pytest.mark.parametrize("machines", MADE)
def test_each_device_takes_the_program_for_its_kind(machines: tuple[str, ...]) -> None:
    """And where there is none, the last one: a module for one machine runs on all."""
    module = read_module(compiler.compile(PRODUCT, machines=machines))
    names = [module.strings[row.name] for row in module.programs]
    assert " ".join(names) == MADE[machines]
    for driver, profile in (("vulkan", "spirv"), ("opencl", "opencl")):
        for is_gpu in (False, True):
            taken = names[choose_program(module, info_of(driver, is_gpu))]
            assert taken == program_name(profile, TAKEN[is_gpu, machines])


def test_every_phase_continues_to_the_same_bytes(tmp_path: Path) -> None:
    """Up to `flow` a text is for any machine; then it says which."""
    machines = ("gpu", "cpu")
    whole = write(compiler.Compilation(machines=machines, dump=tmp_path).rows(PRODUCT))
    texts = dumped_texts(tmp_path)
    assert whole != compiler.compile(PRODUCT)
    for phase in ("flow", "hl_seq", "ll_seq", "executables", "bytecode"):
        given = machines if phase == "flow" else ("cpu",)
        assert write(compiler.Compilation(start=phase, machines=given).rows(texts[phase])) == whole, phase


@pytest.mark.parametrize("encodings", ["test", "always"])
def test_operands_in_tiles_have_the_same_bits(encodings: str, load_on: LoadOn) -> None:
    x, y = normal(96, 64), normal(64, 96)
    found = {
        np.asarray(
            load_on(compiler.compile(PRODUCT, targets=["spirv"], encodings=layouts, machines=("gpu",)), "vulkan").main(
                x, y
            )
        ).tobytes()
        for layouts in (encodings, "default")
    }
    assert len(found) == 1


@pytest.mark.parametrize("target", ["spirv", "opencl"])
def test_blocks_read_what_is_there_as_it_lies(target: str) -> None:
    """Either order of an operand is fetched by neighbours: no dispatch puts it in tiles first."""
    shape = jax.ShapeDtypeStruct((256, 256), np.float32)
    source = jax.jit(lambda x, y: x @ y.T).lower(shape, shape)
    layouts = {
        machine: compiler.Compilation(targets=(target,), machines=(machine,))
        .text(source, "hl_seq")
        .count("#util.layout")
        for machine in ("cpu", "gpu")
    }
    assert layouts["cpu"] > 0 and layouts["gpu"] == 0


def test_refusals() -> None:
    with pytest.raises(compiler.CompileError, match="no machine is called tpu; there are cpu, gpu, mcu"):
        compiler.compile(PRODUCT, machines=("tpu",))
    with pytest.raises(compiler.CompileError, match=r"\[cpu, gpu\]: cpu must be the last one"):
        compiler.compile(PRODUCT, machines=("cpu", "gpu"))
    for machines in ((), ("gpu", "gpu")):
        with pytest.raises(compiler.CompileError, match="expected one or more, each once"):
            compiler.Compilation(machines=machines)
    with pytest.raises(
        compiler.CompileError, match="the text of phase ll_seq already states the machines of its programs"
    ):
        compiler.Compilation(start="ll_seq", machines=("gpu",))
    for target, known in (("spirv", "cpu, gpu"), ("reference", "none")):
        for dialect, phase in (
            ("hl_seq", "hl_seq"),
            ("hl_seq", "ll_seq"),
            ("hl_seq", "executables"),
            ("vm", "bytecode"),
        ):
            text = compiler.Compilation(targets=(target,)).text(PRODUCT, phase)
            assert text.count(f'"{dialect}.program"() <{{') == 1
            for machine, name, message in (
                ("tpu", f"{target}_tpu", f"target {target} has no machine tpu; it has {known}"),
                ("gpu", target, f"a program of {target} for gpu is called {target}_gpu, not {target}"),
            ):
                named = f'machine = "{machine}", sym_name = "{name}"}}> ({{'
                with pytest.raises(compiler.CompileError, match=message):
                    compiler.Compilation(start=phase).rows(text.replace(f'sym_name = "{target}"}}> ({{', named, 1))
