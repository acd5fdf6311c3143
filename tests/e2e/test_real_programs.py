"""Programs as people export them, forward and gradient, give JAX's numbers on every device.

Building the many kernels of some takes an OpenCL driver half a minute: those run there when
`ORCHESTRION_REAL_PROGRAMS=all` asks for it (`make programs`). So do most of those with a symbolic batch, whose sizes
are taken from the rows of what the program is called with, and most on Vulkan devices like those of phones.
"""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from everyday import is_everyday  # noqa: E402
from jax import export  # noqa: E402
from real_programs import PROGRAMS, RealProgram  # noqa: E402

from orchestrion import compiler  # noqa: E402

ALL = os.environ.get("ORCHESTRION_REAL_PROGRAMS") == "all"
#: sizes of a batch, in the order of the calls
SIZES = (3, 1, 6, 3)
BATCHED = [program for program in PROGRAMS if program.batch]
QUICK = [program for program in BATCHED if not program.many_kernels][:3]
LoadOn = Callable[..., Any]
#: OpenCL drivers build kernels slowly
QUICK_DEVICES = ("reference", "cpu", "vulkan")
#: like devices of phones; programs other than the sample run there when all are asked for
PHONES, SAMPLE = ("swiftshader", "least"), [program.name for program in QUICK]
DEVICES = ("reference", "cpu", "opencl", "vulkan", *PHONES)


def is_quick(program: RealProgram, device: str) -> bool:
    return program.name in SAMPLE if device in PHONES else device in QUICK_DEVICES or not program.many_kernels


#: the longest one, which has the ops of `resnet18` and of `convnet_gradient`
LONGEST = "resnet18_gradient"
CELLS = [
    pytest.param(program, device, id=f"{program.name}-{device}", marks=[pytest.mark.long] * (program.name == LONGEST))
    for program in PROGRAMS
    for device in DEVICES
    if ALL or is_quick(program, device)
]


@functools.lru_cache(maxsize=2)
def compiled(program: RealProgram, *devices: str) -> tuple[bytes, Sequence[Any], list[Any]]:
    """One module for these devices, or for all, the arguments, and JAX's results."""
    function, arguments = program.made()
    targets = ["vulkan" if device in PHONES else device for device in devices]
    with jax.enable_x64(False):  # as JAX is when nobody asks for f64
        jitted = jax.jit(function)
        module = compiler.compile(jitted.lower(*arguments), targets=targets or None)
        return module, arguments, jax.tree.leaves(jitted(*arguments))


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(("program", "device"), CELLS)
def test_real_program(program: RealProgram, device: str, load_on: LoadOn, pytestconfig: pytest.Config) -> None:
    """A call is one submission unless a predicate is read on the way. All devices have one module; where each program
    runs on one of them, so do only those of the sample.
    """
    alone = is_everyday(pytestconfig) and program.name not in SAMPLE
    module, arguments, wanted = compiled(program, device) if alone else compiled(program)
    loaded = load_on(module, device)
    _compare(program, device, loaded.main(*jax.tree.leaves(arguments)), wanted)
    counts = loaded.statistics()["calls"][-1]
    assert counts["submissions"] == counts["waits"] and (counts["submissions"] == 1 or program.reads_predicates)


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("program", BATCHED if ALL else QUICK, ids=lambda program: program.name)
def test_real_program_of_any_batch(program: RealProgram, load_on: LoadOn) -> None:
    """One module for all sizes; a size seen before is one submission, and records nothing."""
    function, arguments = program.made()
    leaves, tree = jax.tree.flatten(arguments)
    with jax.enable_x64(False):
        jitted = jax.jit(function)
        module = compiler.compile(export.export(jitted)(*program.symbolic(leaves, tree)))
        calls = [program.sized(leaves, size) for size in SIZES]
        wanted = [jax.tree.leaves(jitted(*jax.tree.unflatten(tree, call))) for call in calls]
    for device in DEVICES if ALL else QUICK_DEVICES:
        loaded = load_on(module, device)
        for call, want in zip(calls, wanted, strict=True):
            _compare(program, device, loaded.main(*call), want)
        counts = loaded.statistics()["calls"][-1]
        assert (counts["submissions"], counts["waits"], counts["executables_created"]) == (1, 1, 0)


def _compare(program: RealProgram, device: str, got: Any, wanted: Sequence[Any]) -> None:
    results = list(got) if isinstance(got, tuple) else [got]
    assert len(results) == len(wanted)
    for index, (result, given) in enumerate(zip(results, wanted, strict=True)):
        want, note = np.asarray(given), f"{program.name} on {device}, result {index}"
        if program.tolerance == 0 or want.dtype.kind not in "fc":
            np.testing.assert_array_equal(result, want, err_msg=note)
        else:
            room = program.tolerance * float(np.max(np.abs(want), initial=0))
            np.testing.assert_allclose(result, want, rtol=program.tolerance, atol=room, err_msg=note)
