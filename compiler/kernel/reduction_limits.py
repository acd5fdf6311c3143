"""Who shares a fold, and how many elements an invocation folds at most on a machine.

Some drivers end the loops of an invocation after a number of turns (`Quirks.loop_turns`,
docs/decisions/loop-turns.md). The numbers below were chosen for llvmpipe's 65,535 turns. They grow with the turns of a
machine: where loops have no limit, nothing reaches them.
"""

from typing import Final

from orchestrion.compiler.ir.dims import DEFAULT_GREATEST, Dim, bounds

from .machine import LLVMPIPE_TURNS, Machine

#: folds of a dynamic length have a workgroup each if they are fewer than this
FEW_FOLDS: Final = 1024
#: folds fewer than -> invocations of such a workgroup; most calls bring short folds, of which many wait for each other
SHARED: Final = {8: 128, FEW_FOLDS: 16}


def sharing(folds: int) -> int:
    """How many invocations share a fold of a dynamic length. A dynamic number of folds is taken for a large one."""
    return 1 if isinstance(folds, Dim) else next((lanes for few, lanes in SHARED.items() if folds < few), 1)


def _scaled(limit: int, machine: Machine) -> int:
    return limit * machine.quirks.loop_turns // LLVMPIPE_TURNS


def max_loop_turns(machine: Machine) -> int:
    """Turns of the loops of a fold whose innermost turns are counted, but not each exit: half of the limit."""
    return (machine.quirks.loop_turns + 1) // 2


def max_counted_turns(machine: Machine) -> int:
    """Turns of loops where every turn and every exit is counted: a little below the limit."""
    return _scaled(62_000, machine)


def max_elements(machine: Machine) -> int:
    """Elements of a static fold of one invocation: a turn takes 64 of them at most, and leaving a loop is a turn."""
    return _scaled(800_000, machine)


def max_dynamic_elements(machine: Machine) -> int:
    """Elements of a fold of one invocation whose length is dynamic: few enough for turns of 4."""
    return _scaled(120_000, machine)


def max_updates(machine: Machine) -> int:
    """Updates that one invocation of a scatter looks at."""
    return _scaled(1 << 18, machine)


def longest(count: int, machine: Machine) -> int:
    """The greatest length of a fold of one invocation: its own if it is static."""
    return min(bounds(count)[1], max_dynamic_elements(machine), DEFAULT_GREATEST) if isinstance(count, Dim) else count
