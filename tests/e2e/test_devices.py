"""Every program on every device gives JAX's numbers; one module holds all three programs.

What takes an OpenCL driver half a minute to build runs there when `ORCHESTRION_REAL_PROGRAMS=all` asks for it.
"""

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

ModuleOf = Callable[[Any], bytes]
Check = Callable[[Any, list[Any]], None]
LoadOn = Callable[[bytes, str], Any]
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: of the random streams one of 32 bits stays
MANY_KERNELS = re.compile(r"bits_(philox|threefry)_(?!uint32)\w+|random_\w+|convolutional_training_step")


@pytest.mark.parametrize("device", ["reference", "opencl", "vulkan"])
def test_program(case: Any, device: str, module_of: ModuleOf, load_on: LoadOn, check: Check) -> None:
    if device == "opencl" and MANY_KERNELS.fullmatch(case.name) and not ALL:
        pytest.skip("builds many kernels: make programs")
    results = load_on(module_of(case), device).main(*case.arguments())
    check(case, list(results) if isinstance(results, tuple | list) else [results])


@pytest.mark.parametrize("device", ["reference", "opencl", "vulkan"])
def test_a_warm_call_submits_once_and_allocates_nothing(
    device: str, cases: dict[str, Any], module_of: ModuleOf, load_on: LoadOn
) -> None:
    case = cases["mlp"]
    program = load_on(module_of(case), device)
    arguments = [program.put(x) for x in case.arguments()]
    out = program.empty((8, 10), np.float32)
    for _ in range(3):
        program.main(*arguments, out=out)
    last = program.statistics()["calls"][-1]
    assert (last["submissions"], last["waits"], last["allocations"]) == (1, 1, 0)
    assert last["dispatches"] > 1 and last["executables_created"] == 0
    np.testing.assert_allclose(np.asarray(out), case.wanted()[0], rtol=1e-5, atol=1e-6)
