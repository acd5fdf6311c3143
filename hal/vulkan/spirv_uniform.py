"""Checks that each barrier is reached by all invocations of a workgroup or by none.

A value is *uniform* if every invocation of the workgroup computes the same value: constants, parameters, workgroup ids,
numbers of workgroups, and results of arithmetic, or of an OpPhi under uniform conditions, on uniform values only. All
other values are divergent: loads from buffers and workgroup memory, the invocation's own index, and everything that
depends on them. A barrier is accepted if the conditions of all constructs around it are uniform.

Only functions with a barrier inside a construct are checked. Time is linear in the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .spirv_flow import Flow
from .spirv_types import Scope

Uses = Sequence[tuple[int, Sequence[int]]]


def check_barriers(scope: Scope, flow: Flow, uses: Uses, divergent: Iterable[int]) -> None:
    """Raises ModuleError for a barrier under a condition that is not uniform.

    `uses`: (result, operands) of each instruction. `divergent`: results that may differ whatever their operands are.
    """
    barriers = [(at, conditions) for at, conditions in flow.barriers if conditions]
    if not barriers:
        return
    found = spread([*uses, *flow.phis.items()], divergent)
    for at, conditions in barriers:
        for condition in conditions:
            if condition in found:
                scope.at, scope.op = at, "OpControlBarrier"
                scope.refuse(f"under condition {condition}, which may differ between invocations of a workgroup")


def spread(uses: Uses, divergent: Iterable[int]) -> set[int]:
    """All values that depend on a divergent one."""
    users: dict[int, list[int]] = {}
    for result, operands in uses:
        for operand in operands:
            users.setdefault(operand, []).append(result)
    return _reachable(users, divergent)


def _reachable(users: Mapping[int, Sequence[int]], seeds: Iterable[int]) -> set[int]:
    found = set(seeds)
    pending = [*found]
    while pending:
        for user in users.get(pending.pop(), ()):
            if user not in found:
                found.add(user)
                pending.append(user)
    return found
