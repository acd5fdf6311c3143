"""The programs of `test_devices.py` as C without a runtime give JAX's numbers, and those of the device cpu.

All programs run if `ORCHESTRION_REAL_PROGRAMS=all` asks for it, with the sanitizers of the compiler.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from c_programs import STRICT, c_program

Check = Callable[[Any, list[Any]], None]
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: programs that run by default
SAMPLE = frozenset(
    """
    residual softmax scan_gradient sort_axes collatz cond_in_loop switch donated cache conv_groups top_k
    narrow_neighbours special_values matmul_f64 arithmetic_int8 rotated zero_elements
    """.split()
)


def test_program_in_c(
    case: Any,
    tmp_path: Path,
    check: Check,
    module_of: Callable[[Any], bytes],
    load_on: Callable[[bytes, str], Any],
) -> None:
    if case.name not in SAMPLE and not ALL:
        pytest.skip("one of many programs: make programs")
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    flags = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all") if ALL else ()
    program = c_program(case.lowered(), tmp_path).build("gcc", *STRICT, "-O1", "-march=native", *flags)
    results = program(*case.arguments())
    check(case, results)
    if ALL:
        found = load_on(module_of(case), "cpu").main(*case.arguments())
        for got, want in zip(results, jax.tree.leaves(found), strict=True):
            np.testing.assert_array_equal(got, want)  # equal numbers, or both NaN
