"""The programs of `test_devices.py` as C that calls Vulkan give JAX's numbers, and the bits of the HAL's device.

All programs run if `ORCHESTRION_REAL_PROGRAMS=all` asks for it. The validation layer says nothing.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from c_programs import STRICT
from vulkan_programs import vulkan_program

Check = Callable[[Any, list[Any]], None]
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: programs that run by default
SAMPLE = frozenset(
    """
    residual softmax scan_gradient collatz cond_in_loop switch donated cache conv_groups top_k narrow_neighbours
    special_values matmul_f64 arithmetic_int8 zero_elements many_results many_workgroups pass_through
    """.split()
)


def test_program_on_vulkan(
    case: Any,
    tmp_path: Path,
    check: Check,
    module_of: Callable[[Any], bytes],
    load_on: Callable[[bytes, str], Any],
) -> None:
    if case.name not in SAMPLE and not ALL:
        pytest.skip("one of many programs: make programs")
    program = vulkan_program(case.lowered(), tmp_path).build("gcc", *STRICT)
    results = program(*case.arguments())
    check(case, results)
    found = load_on(module_of(case), "vulkan").main(*case.arguments())
    for got, want in zip(results, jax.tree.leaves(found), strict=True):
        wanted = np.asarray(want)
        assert (got.dtype, got.shape, got.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())
