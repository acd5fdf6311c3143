"""The programs of `test_devices.py` and of `test_real_programs.py` as C that calls Vulkan give JAX's numbers, and the
bits of the HAL's device. The validation layer says nothing.

All programs run if `ORCHESTRION_REAL_PROGRAMS=all` asks for it.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from c_programs import STRICT
from jax import export
from real_programs import PROGRAMS, RealProgram
from vulkan_programs import vulkan_program

from orchestrion import compiler

Check = Callable[[Any, list[Any]], None]
LoadOn = Callable[..., Any]
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: programs that run by default
SAMPLE = frozenset(
    """
    residual softmax scan_gradient collatz cond_in_loop switch donated cache conv_groups top_k narrow_neighbours
    special_values matmul_f64 arithmetic_int8 zero_elements many_results many_workgroups pass_through
    """.split()
)
#: real programs that run by default
REAL_SAMPLE = frozenset({"adam_step", "lstm", "life"})
SOME = [program for program in PROGRAMS if ALL or program.name in REAL_SAMPLE]
BATCHED = [program for program in SOME if program.batch]


def same_bits(got: Sequence[Any], want: Any) -> None:
    for found, wanted in zip(got, map(np.asarray, jax.tree.leaves(want)), strict=True):
        assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())


@pytest.mark.programs(SAMPLE)
def test_program_on_vulkan(
    case: Any, tmp_path: Path, check: Check, module_of: Callable[[Any], bytes], load_on: LoadOn
) -> None:
    program = vulkan_program(case.lowered(), tmp_path).build("gcc", *STRICT)
    results = program(*case.arguments())
    check(case, results)
    same_bits(results, load_on(module_of(case), "vulkan").main(*case.arguments()))


@pytest.mark.parametrize("program", SOME, ids=lambda program: program.name)
def test_real_program_on_vulkan(program: RealProgram, tmp_path: Path, load_on: LoadOn) -> None:
    function, arguments = program.made()
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    with jax.enable_x64(False):
        lowered = jax.jit(function).lower(*arguments)
        loaded = load_on(compiler.compile(lowered, targets=["spirv"]), "vulkan")
        same_bits(vulkan_program(lowered, tmp_path).build("gcc", *STRICT)(*leaves), loaded.main(*leaves))


@pytest.mark.long
@pytest.mark.parametrize("program", BATCHED, ids=lambda program: program.name)
def test_real_program_of_any_batch_on_vulkan(program: RealProgram, tmp_path: Path, load_on: LoadOn) -> None:
    """The sizes of a call decide how much memory it needs."""
    function, arguments = program.made()
    leaves, tree = jax.tree.flatten(arguments)
    with jax.enable_x64(False):
        exported = export.export(jax.jit(function))(*program.symbolic(leaves, tree))
        loaded = load_on(compiler.compile(exported, targets=["spirv"]), "vulkan")
        code = vulkan_program(exported, tmp_path).build("gcc", *STRICT)
    for size in (3, 1, 6):
        call = [np.asarray(leaf) for leaf in program.sized(leaves, size)]
        same_bits(code(*call), loaded.main(*call))
