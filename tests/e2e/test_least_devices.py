"""Programs on Vulkan devices with the least limits: lavapipe restricted to them, and SwiftShader, as phones have them.

A program that needs types which the device lacks is skipped, with the feature. `ORCHESTRION_REAL_PROGRAMS=all` runs all
programs of `test_devices.py`, otherwise a sample runs.
"""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.hal.registry import find_device
from orchestrion.schema.decoder import read_module
from orchestrion.schema.profiles import FEATURES
from orchestrion.vm.check import Verdict, check, subject
from orchestrion.vm.errors import NoProgram
from orchestrion.vm.module_manifest import manifest_of

Check = Callable[[Any, list[Any]], None]
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
SAMPLE = ("mlp", "residual", "transcendental_f32", "select")


@pytest.fixture(params=["least_vulkan", "swiftshader"])
def phone(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def load(module: bytes, device: str) -> vm.Program:
    try:
        return vm.load(module, device)
    except NoProgram as error:
        lacking = [name for name in FEATURES if f"{name}, " in str(error)]
        if not lacking:
            raise
        pytest.skip(f"the device lacks {', '.join(lacking)}")


@pytest.mark.sampled(every=2)
@pytest.mark.programs(SAMPLE)
def test_program(case: Any, phone: str, check: Check) -> None:
    program = load(compiler.compile(case.lowered(), targets="spirv"), phone)
    results = program.main(*case.arguments())
    check(case, list(results) if isinstance(results, tuple | list) else [results])


def adam(p: Any, m: Any, v: Any, g: Any) -> Any:
    """One dispatch of seven buffers, all of the caller."""
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def tensors(count: int, *shape: int) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(count)
    return [random.uniform(0.5, 1.5, shape).astype(np.float32) for _ in range(count)]


def profiles(module: bytes) -> list[str]:
    found = read_module(module)
    return [found.strings[row.profile] for row in found.programs]


@pytest.mark.parametrize("batch", [None, 5], ids=["static", "dynamic"])
def test_dispatches_with_many_buffers(batch: int | None, phone: str) -> None:
    """The results are the same as on a device that binds all buffers."""
    arguments = tensors(4, 5, 33)
    if batch is None:
        module = compiler.compile(adam, *arguments, targets="spirv")
    else:
        (size,) = jax.export.symbolic_shape("b")
        spec = jax.ShapeDtypeStruct((size, 33), jnp.float32)
        module = compiler.compile(adam, *[spec] * 4, targets="spirv")
    assert profiles(module) == ["spirv", "spirv_least"]
    program = vm.load(module, phone)
    assert program.name == ("spirv_least" if program.device.info.limits.max_bindings == 4 else "spirv")
    for _ in range(2):
        for got, wanted in zip(program.main(*arguments), adam(*arguments), strict=True):
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-5, atol=1e-6)


def test_donated_arguments_among_many_buffers(least_vulkan: str) -> None:
    arguments = tensors(4, 16)
    module = compiler.compile(jax.jit(adam, donate_argnums=(0, 1, 2)), *arguments, targets="spirv")
    program = vm.load(module, least_vulkan)
    held = [program.put(array) for array in arguments]
    program.main(*held, out=held[:3])
    for got, wanted in zip(held, adam(*arguments), strict=False):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-5, atol=1e-6)


def test_one_program_serves_all_where_no_dispatch_is_wide() -> None:
    x, y = tensors(2, 8)
    assert profiles(compiler.compile(lambda x, y: x + y, x, y, targets="spirv")) == ["spirv"]
    alone = compiler.compile(lambda x, y: x + y, x, y, targets="spirv_least")
    assert profiles(alone) == ["spirv_least"]


def test_levels_are_an_option() -> None:
    arguments = tensors(4, 8)
    assert profiles(compiler.compile(adam, *arguments, targets="spirv", levels="first")) == ["spirv"]
    assert profiles(compiler.compile(adam, *arguments, targets="spirv,spirv_least")) == ["spirv", "spirv_least"]
    with pytest.raises(compiler.CompileError, match="levels is 'some', one of all, first expected"):
        compiler.compile(adam, *arguments, targets="spirv", levels="some")


def test_module_and_manifest_say_which_program_runs(least_vulkan: str) -> None:
    arguments = tensors(4, 8)
    both = read_module(compiler.compile(adam, *arguments, targets="spirv"))
    first = read_module(compiler.compile(adam, *arguments, targets="spirv", levels="first"))
    info = find_device(least_vulkan)[1]
    for asked in (subject(both), subject(manifest_of(both))):
        answer = check(asked, info)
        assert (answer.verdict, answer.program) == (Verdict.SLOWER, "spirv_least")
        assert "program spirv entry main_dispatch_0: 7 bindings, the device's limit is 4" in str(answer)
    for asked in (subject(first), subject(manifest_of(first))):
        answer = check(asked, info)
        assert answer.verdict == Verdict.NOT and "7 bindings, the device's limit is 4" in str(answer)
    with pytest.raises(NoProgram, match="entry main_dispatch_0: 7 bindings, the device's limit is 4"):
        vm.load(compiler.compile(adam, *arguments, targets="spirv", levels="first"), least_vulkan)


def test_equal_executables_are_stored_once() -> None:
    """Only the code of the dispatch of seven buffers differs."""

    def function(p: Any, m: Any, v: Any, g: Any, x: Any) -> Any:
        return *adam(p, m, v, g), jnp.tanh(x @ x.T), jnp.sort(x, axis=1)

    found = read_module(compiler.compile(function, *tensors(4, 5, 33), *tensors(1, 8, 16), targets="spirv"))
    payloads = [
        [
            found.variants[executable.variants_start].payload
            for executable in found.executables[row.executables_start : row.executables_end]
        ]
        for row in found.programs
    ]
    assert len(payloads) == 2 and len(payloads[0]) == len(payloads[1]) >= 3
    assert len(set(payloads[0]) ^ set(payloads[1])) == 2


def test_module_and_manifest_say_which_variants_run(least_vulkan: str) -> None:
    """Without 64-bit integers the executable gets its variant in words."""
    x = np.arange(-4, 4, dtype=np.int64)
    with jax.enable_x64(True):
        module = read_module(compiler.compile(lambda x: x * x, x, targets="spirv"))
    for asked in (subject(module), subject(manifest_of(module))):
        answer = check(asked, find_device(least_vulkan)[1])
        assert (answer.verdict, answer.program) == (Verdict.SLOWER, "spirv")
        assert "runs a later variant: spirv: wants int64, which the device lacks" in str(answer)


def test_equal_constants_are_stored_once() -> None:
    weights = np.random.default_rng(0).normal(size=(1 << 16,)).astype(np.float32)

    def function(a: Any, b: Any, c: Any, d: Any) -> Any:
        return (a + weights) * b - c / d

    arguments = tensors(4, 1 << 16)
    one = compiler.compile(function, *arguments, targets="spirv", levels="first")
    both = compiler.compile(function, *arguments, targets="spirv")
    assert profiles(both) == ["spirv", "spirv_least"] and len(both) < 1.1 * len(one)


def test_operands_that_do_not_fit_one_buffer_leave_the_level_out() -> None:
    """Five buffers of 100 MiB: four bindings cannot hold two of them together, so only devices with more run it."""
    spec = jax.ShapeDtypeStruct((25 << 20,), jnp.float32)
    with pytest.warns(compiler.TargetWarning, match="do not fit beside each other into one of 134217728") as warned:
        module = compiler.compile(lambda a, b, c, d: a + b * c - d, *[spec] * 4, targets="spirv")
    assert profiles(module) == ["spirv"] and len(warned) == 1
