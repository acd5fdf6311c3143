"""Stores of narrow results on devices without narrow integers: whole words in the usual cases, else parts of words."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from orchestrion import compiler, vm
from orchestrion.compiler.ir.core import Operation
from orchestrion.compiler.kernel import dialect as k
from orchestrion.compiler.targets.spirv import target
from orchestrion.hal.device import Device
from orchestrion.hal.errors import DriverUnavailable
from orchestrion.hal.vulkan import instance
from orchestrion.hal.vulkan.device import VulkanDevice
from orchestrion.hal.vulkan.driver import VulkanDriver

I8, F16, BOOL, F32, I32 = jnp.int8, jnp.float16, jnp.bool_, jnp.float32, jnp.int32
NARROW = frozenset({"int8", "int16"})


def _scatter(x: Any, rows: Any, y: Any) -> Any:
    return x.at[rows].set(y)


#: name -> function, shapes and types of its arguments
WHOLE: dict[str, tuple[Callable[..., Any], list[tuple[tuple[int, ...], Any]]]] = {
    "elements": (lambda x, y: x + y, [((33, 8), I8)] * 2),
    "elements and a tail": (lambda x, y: x * y, [((5, 51), I8)] * 2),
    "mask": (lambda m, x, y: jnp.where(m, x, y), [((32, 9), BOOL), ((32, 9), F16), ((32, 9), F16)]),
    "results of two widths": (lambda x, y: (x < y, x + y), [((301,), F32)] * 2),
    "halves": (lambda x, y: jnp.tanh(x * y + x), [((32, 20), F16)] * 2),
    "pad": (lambda x: jnp.pad(x, ((1, 1), (3, 5))), [((16, 12), I8)]),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], 1), [((16, 12), I8), ((16, 3), I8)]),
    "transpose": (lambda x: x.T, [((16, 13), I8)]),
    "short reductions": (lambda x: jnp.any(x, 1), [((300, 7), BOOL)]),
    "dot": (jnp.dot, [((16, 64), I8), ((64, 16), I8)]),
    "rows in registers": (jax.nn.softmax, [((16, 128), F16)]),
    "short rows": (jax.nn.softmax, [((16, 8), F16)]),
}
PARTS: dict[str, tuple[Callable[..., Any], list[tuple[tuple[int, ...], Any]]]] = {
    "rows of odd length": (jax.nn.softmax, [((16, 129), F16)]),
    "long reductions": (lambda x: jnp.any(x, 1), [((300, 500), BOOL)]),
    "scatter": (_scatter, [((16, 7), I8), ((3,), I32), ((3, 7), I8)]),
}


def specs(given: list[tuple[tuple[int, ...], Any]]) -> list[Any]:
    return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in given]


def parts_of_words(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], *given: Any) -> int:
    """Stores of parts of words outside of loops over the last elements, in code for devices without narrow types."""
    found: list[k.StoreBits] = []
    emulate = target.emulate

    def emulated(executable: Operation, features: frozenset[str]) -> Operation:
        made = emulate(executable, features)
        if features >= NARROW & executable_features(executable):
            found.extend(op for op in made.walk() if isinstance(op, k.StoreBits) and not is_tail(op))
        return made

    monkeypatch.setattr(target, "emulate", emulated)
    compiler.compile(jax.jit(function), *given, targets="spirv")
    return len(found)


def executable_features(executable: Operation) -> frozenset[str]:
    return target.TARGET.serialize(executable).features


def is_tail(op: Operation) -> bool:
    """Whether the store is in the loop over the elements behind the last whole word."""
    loop = op.parent_op
    return isinstance(loop, k.For) and isinstance(loop.parent_op, k.If) and isinstance(loop.parent_op.parent_op, k.If)


@pytest.mark.parametrize("name", WHOLE)
def test_the_usual_stores_are_whole_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, given = WHOLE[name]
    assert parts_of_words(monkeypatch, function, *specs(given)) == 0


@pytest.mark.parametrize("name", PARTS)
def test_other_stores_are_parts_of_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, given = PARTS[name]
    assert parts_of_words(monkeypatch, function, *specs(given)) > 0


@pytest.fixture(scope="module", params=["llvmpipe", "SwiftShader"])
def device(request: pytest.FixtureRequest) -> Any:
    """A device without 8- and 16-bit types; the first is one as if it had none."""
    try:
        rows = [row for row in VulkanDriver()._scan() if request.param in row.info.name]
    except DriverUnavailable as error:
        pytest.skip(str(error))
    if not rows:
        pytest.skip(f"no {request.param} is installed")
    row = dataclasses.replace(rows[0], info=dataclasses.replace(rows[0].info, features=rows[0].info.features - NARROW))
    with Device.of(VulkanDevice(instance.open_instance().api, row)) as opened:
        yield opened


def values(shape: tuple[int, ...], dtype: Any) -> Any:
    random = np.random.default_rng(len(shape))
    if dtype == BOOL:
        return random.random(shape) < 0.1
    if dtype == I32:
        return np.array([2, 5, 2], np.int32)
    return random.integers(-128, 128, shape).astype(np.int8) if dtype == I8 else random.normal(size=shape).astype(dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("name", [*WHOLE, *PARTS])
def test_results_are_those_of_native_code(name: str, device: Device) -> None:
    """Bit for bit those of a device with the types, as far as the schedule does not share reductions of floats."""
    function, given = (WHOLE | PARTS)[name]
    arguments = [values(*one) for one in given]
    module = compiler.compile(jax.jit(function), *specs(given), targets="reference,spirv")
    with vm.load(module, device="reference") as reference, vm.load(module, device=device) as program:
        for _ in range(2):
            wanted, got = (jax.tree.leaves(one.main(*arguments)) for one in (reference, program))
            for one, want in zip(got, wanted, strict=True):
                one, want = np.asarray(one), np.asarray(want)
                assert one.dtype == want.dtype
                if one.dtype.kind == "f":
                    np.testing.assert_allclose(one.astype(np.float32), want.astype(np.float32), rtol=2e-3, atol=1e-3)
                else:
                    np.testing.assert_array_equal(one, want)
