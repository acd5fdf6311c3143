"""Every program on every device gives JAX's numbers; one module holds all three programs.

What takes an OpenCL driver half a minute to build runs there when `ORCHESTRION_REAL_PROGRAMS=all` asks for it.
"""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from everyday import is_everyday

from orchestrion import compiler

ModuleOf = Callable[[Any], bytes]
Check = Callable[[Any, list[Any]], None]
LoadOn = Callable[[bytes, str], Any]
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: of the random streams one of 32 bits stays
MANY_KERNELS = re.compile(r"bits_(philox|threefry)_(?!uint32)\w+|random_\w+|convolutional_training_step")


@pytest.mark.sampled(every=8)
@pytest.mark.parametrize("device", ["reference", "cpu", "opencl", "vulkan"])
def test_program(
    case: Any, device: str, module_of: ModuleOf, load_on: LoadOn, check: Check, request: pytest.FixtureRequest
) -> None:
    """One module is for all devices. Where each program runs on one device, some modules are for that alone."""
    if device == "opencl" and MANY_KERNELS.fullmatch(case.name) and not ALL:
        pytest.skip("builds many kernels: make programs")
    alone = is_everyday(request.config) and crc32(case.name.encode()) % 4
    module = compiler.compile(case.lowered(), targets=[device]) if alone else module_of(case)
    results = load_on(module, device).main(*case.arguments())
    check(case, list(results) if isinstance(results, tuple | list) else [results])


@pytest.mark.parametrize("device", ["reference", "cpu", "opencl", "vulkan"])
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


@pytest.mark.parametrize("name", ["residual", "scan_gradient", "sort_axes"])
def test_programs_run_where_bindings_begin_at_multiples_of_512_bytes(
    name: str,
    cases: dict[str, Any],
    module_of: ModuleOf,
    load_on: LoadOn,
    check: Check,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As NVIDIA's OpenCL driver wants it. These programs have several buffers in an arena."""
    from orchestrion.hal.opencl import driver

    describe = driver.describe

    def aligned(index: int, device: Any) -> Any:
        info = describe(index, device)
        return replace(info, limits=replace(info.limits, min_binding_alignment=512))

    monkeypatch.setattr(driver, "describe", aligned)
    program = load_on(module_of(cases[name]), "opencl")
    assert program.device.info.limits.min_binding_alignment == 512
    results = program.main(*cases[name].arguments())
    check(cases[name], list(results) if isinstance(results, tuple | list) else [results])
