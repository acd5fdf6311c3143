"""Random StableHLO programs on every device: whatever is fused, shared, cloned or copied, the numbers are right.

What is right says StableHLO's own interpreter: exactly, signs of zeros included, except for what is transcendental or
summed up (`random_body.py`). Each program is called in several ways, since a second call, one with arguments on the
device and one into given memory take other paths. `ORCHESTRION_PROGRAMS` sets how many there are (`make fuzz`).
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from random_programs import Program, generate

from orchestrion import compiler

Oracle = Callable[..., list[np.ndarray]]
LoadOn = Callable[[bytes, str], Any]

COUNT = int(os.environ.get("ORCHESTRION_PROGRAMS", "150"))
#: device -> every how many programs run on it; kernels are built by slow compilers
DEVICES = {"reference": 1, "opencl": 25, "vulkan": 5}
#: relative and absolute (of the largest magnitude) tolerance of what is not exact
TOLERANCES = {np.dtype(np.float32): (1e-5, 1e-6), np.dtype(np.float64): (1e-12, 1e-13)}
CASES = [pytest.param(device, seed) for device, step in DEVICES.items() for seed in range(0, COUNT, step)]


@pytest.mark.parametrize(("device", "seed"), CASES)
def test_program(device: str, seed: int, interpreter: Oracle, load_on: LoadOn) -> None:
    made = generate(seed, 60 if seed % 4 == 0 else 20)
    wanted = interpreter(made.text, *made.arguments)
    program = load_on(compiler.compile(made.text, targets=["spirv" if device == "vulkan" else device]), device)
    for way, found in calls(program, made, wanted):
        for value, got, want in zip(made.results, found, wanted, strict=True):
            message = mismatch(np.asarray(got), want, value.near)
            assert not message, f"{value.name} {value.type}, {way}: {message}\n{made.text}"


def calls(program: Any, made: Program, wanted: list[np.ndarray]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Ways to call it, and what comes out."""
    others = [np.zeros_like(x) for x in made.arguments]
    resident = [program.put(x) for x in made.arguments]
    mixed = [x if at % 2 else y for at, (x, y) in enumerate(zip(resident, made.arguments, strict=True))]
    out = [program.empty(want.shape, want.dtype) for want in wanted]
    first = program.main(*made.arguments)
    program.main(*others)
    yield "first, kept over another call", first
    yield "on the device", program.main(*resident)
    yield "into given memory", program.main(*mixed, out=out)
    program.main(*others, out=out)
    yield "again", program.main(*made.arguments)


def mismatch(got: np.ndarray, want: np.ndarray, near: bool) -> str:
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} where {want.dtype}{list(want.shape)} is wanted"
    right = (got == want) | ((got != got) & (want != want))
    if near and want.dtype in TOLERANCES:
        relative, absolute = TOLERANCES[want.dtype]
        largest = np.abs(want[np.isfinite(want)]).max(initial=0)
        with np.errstate(all="ignore"):
            right |= np.abs(got - want) <= relative * np.abs(want) + absolute * largest
    elif want.dtype in TOLERANCES:
        right &= (np.signbit(got) == np.signbit(want)) | np.isnan(want)
    if right.all():
        return ""
    place = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(~right)))
    values = np.atleast_1d(got)[place], np.atleast_1d(want)[place]
    return f"{np.sum(~right)} of {want.size} differ, first at {place}: {values[0]!r}, wanted {values[1]!r}"
