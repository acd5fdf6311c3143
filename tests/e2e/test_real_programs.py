"""Programs as people export them, forward and gradient, give JAX's numbers on every device.

Building the many kernels of some takes an OpenCL driver half a minute: those run there when
`ORCHESTRION_REAL_PROGRAMS=all` asks for it (`make programs`).
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from real_programs import PROGRAMS, RealProgram  # noqa: E402

from orchestrion import compiler  # noqa: E402

DEVICES = ("reference", "opencl", "vulkan")
ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_real_program(program: RealProgram, load_on: Callable[..., Any]) -> None:
    """One module for all devices; a call is one submission unless a predicate is read on the way."""
    function, arguments = program.made()
    with jax.enable_x64(False):  # as JAX is when nobody asks for f64
        jitted = jax.jit(function)
        module = compiler.compile(jitted.lower(*arguments))
        wanted = [np.asarray(leaf) for leaf in jax.tree.leaves(jitted(*arguments))]
    for device in DEVICES if ALL or not program.many_kernels else ("reference", "vulkan"):
        loaded = load_on(module, device)
        got = loaded.main(*jax.tree.leaves(arguments))
        results = list(got) if isinstance(got, tuple) else [got]
        assert len(results) == len(wanted)
        for index, (result, want) in enumerate(zip(results, wanted, strict=True)):
            note = f"{program.name} on {device}, result {index}"
            if program.tolerance == 0 or want.dtype.kind not in "fc":
                np.testing.assert_array_equal(result, want, err_msg=note)
            else:
                room = program.tolerance * float(np.max(np.abs(want), initial=0))
                np.testing.assert_allclose(result, want, rtol=program.tolerance, atol=room, err_msg=note)
        counts = loaded.statistics()["calls"][-1]
        assert counts["submissions"] == counts["waits"] and (counts["submissions"] == 1 or program.reads_predicates)
