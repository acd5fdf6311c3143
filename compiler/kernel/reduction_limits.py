"""Limits of reductions on a machine: how many invocations share one, how many elements one invocation may combine.

Some drivers end the loops of an invocation after a number of iterations (`Quirks.max_loop_iterations`,
docs/decisions/loop-iterations.md). The limits below were chosen for the 65,535 iterations of llvmpipe and scale with
the limit of the machine. Nothing reaches them on a machine without such a limit.
"""

from typing import Final

from orchestrion.compiler.ir.dims import DEFAULT_GREATEST, Size, bounds, is_dynamic
from orchestrion.schema.quirks import LLVMPIPE_ITERATIONS

from .machine import Machine

#: fewer reductions of dynamic length than this have a workgroup each
FEW_REDUCTIONS: Final = 1024
#: number of reductions, exclusive bound -> invocations of a workgroup. Most reductions are short at run time, and many
#: invocations then wait for each other
LANES_BY_COUNT: Final = {8: 128, FEW_REDUCTIONS: 16}


def lanes_per_reduction(reductions: Size) -> int:
    """Invocations that share a reduction of dynamic length, given the number of reductions. A dynamic number counts as
    a large one.
    """
    return (
        1
        if is_dynamic(reductions)
        else next((lanes for bound, lanes in LANES_BY_COUNT.items() if reductions < bound), 1)
    )


def _scaled(limit: int, machine: Machine) -> int:
    return limit * machine.quirks.max_loop_iterations // LLVMPIPE_ITERATIONS


def max_loop_iterations(machine: Machine) -> int:
    """Iterations of the loops of a reduction if exits of loops are not counted: half of the limit."""
    return (machine.quirks.max_loop_iterations + 1) // 2


def max_counted_iterations(machine: Machine) -> int:
    """Iterations of loops if every iteration and every exit is counted: slightly below the limit."""
    return _scaled(62_000, machine)


def max_elements(machine: Machine) -> int:
    """Elements of a static reduction in one invocation, with up to 64 per iteration. Exits of loops count as
    iterations.
    """
    return _scaled(800_000, machine)


def max_dynamic_elements(machine: Machine) -> int:
    """Elements of a reduction of dynamic length in one invocation: few enough for iterations of 4 elements."""
    return _scaled(120_000, machine)


def max_updates(machine: Machine) -> int:
    """Updates that one invocation of a scatter looks at."""
    return _scaled(1 << 18, machine)


def longest(count: Size, machine: Machine) -> int:
    """The greatest length of a reduction in one invocation. `count` if it is static, else limited by the machine."""
    return min(bounds(count)[1], max_dynamic_elements(machine), DEFAULT_GREATEST) if is_dynamic(count) else count
