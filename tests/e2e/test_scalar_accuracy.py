"""Every float function on every device against mpmath, over hard cases, through the whole road: at most 4 ulp."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accuracy import BOUND, DTYPES, ORACLES, POSITIVE, expected, hard_cases, near_powers, pairs, ulps
from stablehlo_text import op_name

from orchestrion import compiler

TARGETS = {"reference": ["reference"], "opencl": ["opencl"], "vulkan": ["spirv"]}


def text(functions: list[tuple[str, int]], dtype: str, size: int) -> str:
    """A module with one public function per op, all of the same size."""
    kind = f"tensor<{size}x{dtype}>"
    bodies = []
    for name, arity in functions:
        arguments = ", ".join(f"%a{i}: {kind}" for i in range(arity))
        operands = ", ".join(f"%a{i}" for i in range(arity))
        kinds = ", ".join([kind] * arity)
        bodies.append(
            f'"func.func"() <{{function_type = ({kinds}) -> {kind}, sym_name = "{name}"}}> ({{\n'
            f"^bb0({arguments}):\n"
            f'  %0 = "{op_name(name)}"({operands}) : ({kinds}) -> {kind}\n'
            f'  "func.return"(%0) : ({kind}) -> ()\n}}) : () -> ()'
        )
    return '"builtin.module"() ({\n' + "\n".join(bodies) + "\n}) : () -> ()\n"


@pytest.fixture(scope="module")
def samples() -> dict[tuple[str, str], tuple[list[np.ndarray], list[Any]]]:
    """(function, type) -> operands, exact results."""
    made = {}
    for dtype, scalar in DTYPES.items():
        every = hard_cases(scalar)[::9]
        for name in sorted(ORACLES):
            if name == "power":
                operands = [column[:600] for column in near_powers(scalar)]
            elif name == "atan2":
                operands = [column[:600] for column in pairs(scalar)]
            else:
                operands = [np.where(np.abs(every) < 1, np.abs(every), every)]
                if name in POSITIVE:
                    operands = [np.abs(every)]
                elif name == "log_plus_one":
                    operands = [np.where(every < -0.999, -every, every)]
            made[name, dtype] = (operands, expected(name, *operands))
    return made


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("device", TARGETS)
def test_functions_stay_within_the_bound(
    device: str, dtype: str, samples: Any, load_on: Callable[[bytes, str], Any], record_property: Callable[..., None]
) -> None:
    wrong = []
    for arity in (1, 2):
        names = [name for name in sorted(ORACLES) if (name in {"power", "atan2"}) == (arity == 2)]
        size = len(samples[names[0], dtype][0][0])
        source = text([(name, arity) for name in names], dtype, size)
        program = load_on(compiler.compile(source, targets=TARGETS[device]), device)
        for name in names:
            operands, want = samples[name, dtype]
            got = program[name](*operands)
            errors = ulps(got, want, DTYPES[dtype])
            worst = int(np.argmax(errors))
            record_property(f"{device} {name} {dtype}", float(errors[worst]))
            if errors[worst] > BOUND:
                arguments = ", ".join(float(column[worst]).hex() for column in operands)
                wrong.append(f"{name}({arguments}) = {float(got[worst]).hex()}: {errors[worst]:.2f} ulp")
    assert not wrong
