"""Random programs of symbolic sizes: exported by JAX once, one module, called at several sizes, beside JAX itself.

`ORCHESTRION_PROGRAMS` sets how many there are (`make fuzz`).
"""

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orchestrion import compiler

jax = pytest.importorskip("jax")
from jax import export  # noqa: E402
from random_symbolic import generate  # noqa: E402

COUNT = int(os.environ.get("ORCHESTRION_PROGRAMS", "6"))
TARGETS = {"reference": "reference", "vulkan": "spirv"}
#: at no size is a tensor empty
SIZES = ({"b": 3, "s": 4}, {"b": 5, "s": 3}, {"b": 4, "s": 4})


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("seed", range(COUNT))
def test_program(seed: int, load_on: Callable[[bytes, str], Any]) -> None:
    made = generate(random.Random(seed))
    scope = export.SymbolicScope()
    shapes = [export.symbolic_shape(shape, scope=scope) for shape in made.shapes]
    specs = [jax.ShapeDtypeStruct(*spec) for spec in zip(shapes, made.types, strict=True)]
    try:
        exported = export.export(jax.jit(made.function))(*specs)
    except (ValueError, jax.core.InconclusiveDimensionOperation):
        pytest.skip("JAX does not export it")
    module = compiler.compile(exported.mlir_module(), targets=list(TARGETS.values()))
    programs = {device: load_on(module, device) for device in TARGETS}
    for sizes in SIZES:
        arguments = [_numbers(shape, dtype, sizes) for shape, dtype in zip(shapes, made.types, strict=True)]
        wanted = [np.asarray(x) for x in exported.call(*arguments)]
        for device, program in programs.items():
            results = program.main(*arguments)
            found = [np.asarray(x) for x in (results if isinstance(results, tuple) else (results,))]
            for got, want in zip(found, wanted, strict=True):
                assert got.dtype == want.dtype, device
                np.testing.assert_array_equal(got, want, f"{device} {sizes}\n{exported.mlir_module()}")


def _numbers(shape: Any, dtype: str, sizes: dict[str, int]) -> np.ndarray:
    state = np.random.default_rng(sum(sizes.values()))
    return state.integers(0, 4, [int(eval(str(size), {}, sizes)) for size in shape]).astype(dtype)
